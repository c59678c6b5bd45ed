//! What notebook cells link: candle-accelerate and candle in ONE shared object.
//!
//! candle numbers tensors with a counter in a static variable, and its autograd finds gradients by
//! these numbers. Cells that link candle statically have a counter each, hand out the same numbers
//! twice, and get wrong gradients without an error. One shared object has one counter.
//!
//! Programs outside notebooks depend on `candle-accelerate` itself.

pub use candle_accelerate::*;
pub use candle_core;
pub use candle_nn;

#[doc(hidden)]
pub mod cell;
#[cfg(unix)]
mod child;
