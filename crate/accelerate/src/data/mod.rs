//! Datasets, batches and the loader.

mod batch;

pub use batch::Batch;
