//! Accelerator-style training loops on [candle](https://docs.rs/candle-core).

pub mod data;
mod error;
pub mod interrupt;
pub mod model;
mod parameter;
pub mod rng;

pub use error::{Error, Result};
pub use parameter::{Parameter, Parameters};
pub use rng::set_seed;
