//! Accelerator-style training loops on [candle](https://docs.rs/candle-core).

mod accelerator;
pub mod data;
mod error;
mod gradient_sink;
mod gradient_state;
mod in_place;
pub mod interrupt;
pub mod metrics;
pub mod model;
pub mod nn;
pub mod notebook;
pub mod ops;
pub mod optim;
mod parameter;
pub mod plot;
pub mod prelude;
mod progress;
pub mod rng;
pub mod schedule;
mod tensor_file;
pub mod tokenizer;

pub use accelerator::{Accelerator, AcceleratorBuilder, AcceleratorDevice, AsLoss, Prepare};
pub use error::{Error, Result};
pub use gradient_state::GradientState;
pub use parameter::{Parameter, Parameters};
pub use progress::Progress;
pub use rng::set_seed;

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
