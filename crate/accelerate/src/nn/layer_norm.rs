//! The layer-norm layer.

use candle_core::Tensor;

use super::{Init, ParameterBuilder};
use crate::{Parameter, Result, ops};

/// Layer normalisation over the last dimension, with a gradient for everything below it.
///
/// ```
/// use candle_accelerate::nn::{LayerNorm, ParameterBuilder};
/// use candle_core::{DType, Device, Tensor};
///
/// let builder = ParameterBuilder::new(DType::F32, &Device::Cpu);
/// let layer = LayerNorm::new(2, 1e-12, &builder)?;
/// let y = layer.forward(&Tensor::new(&[[1f32, 3.0]], &Device::Cpu)?)?;
/// assert_eq!(y.to_vec2::<f32>()?, [[-1.0, 1.0]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct LayerNorm {
    weight: Parameter,
    bias: Parameter,
    eps: f64,
}

impl LayerNorm {
    /// The parameters `weight` `[size]`, ones, and `bias` `[size]`, zeros.
    pub fn new(size: usize, eps: f64, builder: &ParameterBuilder) -> Result<Self> {
        Ok(Self {
            weight: builder.get("weight", size, Init::Constant(1.0))?,
            bias: builder.get("bias", size, Init::Constant(0.0))?,
            eps,
        })
    }

    /// The weight.
    pub fn weight(&self) -> &Parameter {
        &self.weight
    }

    /// The bias.
    pub fn bias(&self) -> &Parameter {
        &self.bias
    }

    /// What is added to the variance.
    pub fn eps(&self) -> f64 {
        self.eps
    }

    /// [.., size] to [.., size].
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::layer_norm(x, &self.weight.tensor(), &self.bias.tensor(), self.eps)
    }
}
