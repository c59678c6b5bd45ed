//! Datasets, batches and the loader.

mod batch;
mod collate;
mod dataset;
mod loader;
pub mod paraphrase;

pub use batch::Batch;
pub use collate::{Collate, DataCollatorWithPadding, DefaultCollate};
pub use dataset::{Dataset, InMemoryDataset, Sample, TensorDataset};
pub use loader::{Batches, DataLoader, DataLoaderBuilder, DataLoaderState};
