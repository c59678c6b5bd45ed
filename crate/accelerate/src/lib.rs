//! Accelerator-style training loops on [candle](https://docs.rs/candle-core).
