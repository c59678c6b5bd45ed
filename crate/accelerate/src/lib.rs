//! Accelerator-style training loops on [candle](https://docs.rs/candle-core).

mod error;
mod parameter;

pub use error::{Error, Result};
pub use parameter::{Parameter, Parameters};
