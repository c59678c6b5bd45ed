//! The dropout layer.

use candle_core::Tensor;

use super::{Mode, ParameterBuilder};
use crate::{Error, Result, ops};

/// Dropout that is on while its model trains.
///
/// ```
/// use candle_accelerate::nn::{Dropout, ParameterBuilder};
/// use candle_core::{DType, Device, Tensor};
///
/// let builder = ParameterBuilder::new(DType::F32, &Device::Cpu);
/// let layer = Dropout::new(0.5, &builder)?;
/// let x = Tensor::ones(100, DType::F32, &Device::Cpu)?;
/// assert!(layer.forward(&x)?.to_vec1::<f32>()?.contains(&0.0));
/// builder.mode().set_training(false);
/// assert_eq!(layer.forward(&x)?.to_vec1::<f32>()?, [1.0; 100]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Dropout {
    p: f64,
    mode: Mode,
}

impl Dropout {
    /// Drops with probability `p`, following the builder's mode.
    pub fn new(p: f64, builder: &ParameterBuilder) -> Result<Self> {
        if (0.0..=1.0).contains(&p) {
            Ok(Self { p, mode: builder.mode() })
        } else {
            Err(Error::invalid("dropout", format!("is {p}; use a probability, 0 to 1")))
        }
    }

    /// The probability in force: 0 in evaluation.
    pub fn p(&self) -> f64 {
        if self.mode.is_training() { self.p } else { 0.0 }
    }

    /// Any shape; it stays.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::dropout(x, self.p())
    }
}
