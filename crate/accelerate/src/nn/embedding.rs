//! The embedding layer.

use candle_core::Tensor;

use super::{Init, ParameterBuilder};
use crate::{Parameter, Result, ops};

/// A vector for each id.
///
/// ```
/// use candle_accelerate::nn::{Embedding, ParameterBuilder};
/// use candle_core::{DType, Device, Tensor};
///
/// let builder = ParameterBuilder::new(DType::F32, &Device::Cpu);
/// let layer = Embedding::new(10, 4, Some(0), &builder)?;
/// let y = layer.forward(&Tensor::new(&[[1u32, 0, 7]], &Device::Cpu)?)?;
/// assert_eq!(y.dims(), [1, 3, 4]);
/// assert_eq!(y.get(0)?.get(1)?.to_vec1::<f32>()?, [0.0; 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Embedding {
    weight: Parameter,
    padding_id: Option<u32>,
}

impl Embedding {
    /// The parameter `weight` [count, size], normal with standard deviation 1 or the builder's
    /// [`initializer_range`](ParameterBuilder::with_initializer_range). The row `padding_id` starts
    /// as zeros and does not train.
    pub fn new(
        count: usize,
        size: usize,
        padding_id: Option<u32>,
        builder: &ParameterBuilder,
    ) -> Result<Self> {
        let std = builder.initializer_range().unwrap_or(1.0);
        let init = Init::Embedding { std, zero_row: padding_id.map(|id| id as usize) };
        Ok(Self { weight: builder.get("weight", (count, size), init)?, padding_id })
    }

    /// Integers of any shape [..] to [.., size].
    pub fn forward(&self, ids: &Tensor) -> Result<Tensor> {
        ops::embedding(ids, &self.weight.tensor(), self.padding_id)
    }
}
