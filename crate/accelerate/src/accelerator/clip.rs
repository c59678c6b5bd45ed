//! Keeping gradients small.

use candle_core::{DType, Tensor};

use super::Accelerator;
use crate::{Error, Parameters, Result};

impl Accelerator {
    /// Scales the gradients so that their total norm is at most `max_norm`, as
    /// `torch.nn.utils.clip_grad_norm_`, and returns the norm they had.
    ///
    /// Returns `None`, and changes nothing, while gradients are being accumulated.
    ///
    /// # Errors
    /// A `max_norm` that is not above 0.
    pub fn clip_grad_norm(&self, parameters: &Parameters, max_norm: f64) -> Result<Option<f64>> {
        check_limit("max_norm", max_norm)?;
        if !self.sync_gradients() {
            return Ok(None);
        }
        let mut squares = 0.0;
        for parameter in parameters {
            if let Some(grad) = parameter.grad() {
                squares += sum_of_squares(&grad)?;
            }
        }
        let norm = squares.sqrt();
        // PyTorch's constant against a division by zero.
        let factor = max_norm / (norm + 1e-6);
        if factor < 1.0 {
            for parameter in parameters {
                let clipped = parameter.grad().map(|grad| grad * factor).transpose()?;
                parameter.set_grad(clipped);
            }
        }
        Ok(Some(norm))
    }

    /// Limits every element of the gradients to the range from `-clip_value` to `clip_value`.
    ///
    /// Does nothing while gradients are being accumulated.
    ///
    /// # Errors
    /// A `clip_value` that is not above 0.
    pub fn clip_grad_value(&self, parameters: &Parameters, clip_value: f64) -> Result<()> {
        check_limit("clip_value", clip_value)?;
        if !self.sync_gradients() {
            return Ok(());
        }
        for parameter in parameters {
            let clipped = parameter.grad().map(|grad| grad.clamp(-clip_value, clip_value));
            parameter.set_grad(clipped.transpose()?);
        }
        Ok(())
    }
}

fn sum_of_squares(grad: &Tensor) -> Result<f64> {
    let grad = grad.flatten_all()?.to_dtype(DType::F32)?;
    Ok(f64::from(grad.sqr()?.sum_all()?.to_scalar::<f32>()?))
}

fn check_limit(what: &str, limit: f64) -> Result<()> {
    if limit > 0.0 {
        return Ok(());
    }
    Err(Error::invalid(what, format!("is {limit}; use a number above 0")))
}
