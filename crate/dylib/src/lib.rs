//! What notebook cells link: candle-accelerate and candle in ONE shared object.
pub use candle_accelerate::*;
pub use candle_core;
pub use candle_nn;
