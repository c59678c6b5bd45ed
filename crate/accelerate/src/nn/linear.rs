//! The fully connected layer.

use candle_core::Tensor;

use super::{Init, ParameterBuilder};
use crate::{Parameter, Result, ops};

/// `x · weightᵀ + bias`, from [.., inputs] to [.., outputs].
///
/// ```
/// use candle_accelerate::nn::{Linear, ParameterBuilder};
/// use candle_core::{DType, Device, Tensor};
///
/// let builder = ParameterBuilder::new(DType::F32, &Device::Cpu);
/// let layer = Linear::new(3, 2, &builder)?;
/// let y = layer.forward(&Tensor::ones((5, 3), DType::F32, &Device::Cpu)?)?;
/// assert_eq!(y.dims(), [5, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Linear {
    weight: Parameter,
    bias: Parameter,
}

impl Linear {
    /// The parameters `weight` `[outputs, inputs]` and `bias` `[outputs]`.
    ///
    /// They start as in PyTorch, uniform in ±1/sqrt(inputs), or as the builder's
    /// [`initializer_range`](ParameterBuilder::with_initializer_range) says.
    pub fn new(inputs: usize, outputs: usize, builder: &ParameterBuilder) -> Result<Self> {
        let bound = 1.0 / (inputs as f64).sqrt();
        let uniform = Init::Uniform { low: -bound, high: bound };
        let (weight, bias) = match builder.initializer_range() {
            Some(std) => (Init::Normal { std }, Init::Constant(0.0)),
            None => (uniform, uniform),
        };
        Ok(Self {
            weight: builder.get("weight", (outputs, inputs), weight)?,
            bias: builder.get("bias", outputs, bias)?,
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

    /// [.., inputs] to [.., outputs].
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::linear(x, &self.weight.tensor(), Some(&self.bias.tensor()))
    }
}
