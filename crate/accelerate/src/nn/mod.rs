//! Layers, and the builder that makes their parameters.
//!
//! ```
//! use candle_accelerate::nn::{Linear, ParameterBuilder};
//! use candle_accelerate::ops;
//! use candle_core::{DType, Device, Tensor};
//!
//! let builder = ParameterBuilder::new(DType::F32, &Device::Cpu);
//! let hidden = Linear::new(4, 8, &builder.child("hidden"))?;
//! let output = Linear::new(8, 1, &builder.child("output"))?;
//! assert_eq!(builder.parameters().get("hidden.weight").map(|p| p.dims()), Some(vec![8, 4]));
//!
//! let x = Tensor::ones((2, 4), DType::F32, &Device::Cpu)?;
//! let y = output.forward(&ops::gelu(&hidden.forward(&x)?)?)?;
//! assert_eq!(y.dims(), [2, 1]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod builder;
mod dropout;
mod embedding;
mod layer_norm;
mod linear;
mod mode;

pub use builder::{Init, LoadingReport, ParameterBuilder};
pub use dropout::Dropout;
pub use embedding::Embedding;
pub use layer_norm::LayerNorm;
pub use linear::Linear;
pub use mode::Mode;
