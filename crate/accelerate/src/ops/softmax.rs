//! Softmax.

use candle_core::backend::BackendStorage as _;
use candle_core::{CpuStorage, CustomOp1, D, Layout, Shape, Tensor};

use super::cpu::{self, Real, dispatch};
use crate::Result;

/// `e^x / sum(e^x)` over the last dimension; the shape and dtype of `x` stay.
///
/// A row of nothing but minus infinity gives NaN, as in PyTorch.
///
/// ```
/// use candle_accelerate::ops;
/// use candle_core::{Device, Tensor};
///
/// let x = Tensor::new(&[[0f32, 3f32.ln()]], &Device::Cpu)?;
/// let y = ops::softmax(&x)?.to_vec2::<f32>()?;
/// assert!((y[0][0] - 0.25).abs() < 1e-6 && (y[0][1] - 0.75).abs() < 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn softmax(x: &Tensor) -> Result<Tensor> {
    cpu::widened("softmax", [x], |[x]| {
        if x.device().is_cpu() { x.apply_op1(Softmax) } else { composed(&x) }
    })
}

pub(super) fn composed(x: &Tensor) -> candle_core::Result<Tensor> {
    let exponential = x.broadcast_sub(&x.max_keepdim(D::Minus1)?.detach())?.exp()?;
    exponential.broadcast_div(&exponential.sum_keepdim(D::Minus1)?)
}

struct Softmax;

impl CustomOp1 for Softmax {
    fn name(&self) -> &'static str {
        "softmax"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> candle_core::Result<(CpuStorage, Shape)> {
        fn run<T: Real>(x: &CpuStorage, layout: &Layout) -> candle_core::Result<CpuStorage> {
            let x = cpu::slice::<T>(x, layout)?;
            let n = layout.dims().last().copied().unwrap_or(1).max(1);
            let mut out = vec![T::zero(); x.len()];
            cpu::fill_blocks(&mut out, n, |start, out| {
                out.copy_from_slice(&x[start..start + out.len()]);
                for row in out.chunks_exact_mut(n) {
                    softmax_row(row);
                }
            });
            Ok(T::to_cpu_storage_owned(out))
        }
        Ok((dispatch!(x.dtype(), run(x, layout))?, layout.shape().clone()))
    }

    fn bwd(&self, _x: &Tensor, out: &Tensor, grad: &Tensor) -> candle_core::Result<Option<Tensor>> {
        fn run<T: Real>(out: &Tensor, grad: &Tensor) -> candle_core::Result<Option<Tensor>> {
            let grad = grad.contiguous()?;
            let (y, grad) = (cpu::values::<T>(out)?, cpu::values::<T>(&grad)?);
            let (y, grad) = (&*y, &*grad);
            let n = out.dims().last().copied().unwrap_or(1).max(1);
            let mut grad_x = vec![T::zero(); y.len()];
            cpu::fill_blocks(&mut grad_x, n, |start, grad_x| {
                let rows = y[start..].chunks_exact(n).zip(grad[start..].chunks_exact(n));
                for (grad_x, (y, grad)) in grad_x.chunks_exact_mut(n).zip(rows) {
                    let dot = cpu::sum(n, |i| grad[i] * y[i]);
                    for i in 0..n {
                        grad_x[i] = y[i] * (grad[i] - dot);
                    }
                }
            });
            Ok(Some(cpu::tensor(grad_x, out.shape())?))
        }
        dispatch!(out.dtype(), run(out, grad))
    }
}

/// Replaces a row by its softmax; returns its largest element and 1 / sum(e^(x - largest)).
#[inline(always)]
pub(super) fn softmax_row<T: Real>(row: &mut [T]) -> [T; 2] {
    let largest = cpu::max(row);
    row.iter_mut().for_each(|x| *x = (*x - largest).exp_nonpositive());
    let total = cpu::sum(row.len(), |i| row[i]);
    let scale = T::one() / total;
    row.iter_mut().for_each(|x| *x *= scale);
    [largest, scale]
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::testing::{Case, cpu_tensor};
    use super::*;

    #[test]
    fn gradients_equal_finite_differences_on_strided_input_and_every_dtype() {
        Case::new("softmax", [cpu_tensor(&[5, 3, 19], 1)], |[x]| softmax(x))
            .composed(|[x]| composed(x).map_err(Into::into))
            .check();
    }

    #[test]
    fn large_masked_and_infinite_values_keep_their_meaning() {
        let inf = f32::INFINITY;
        let rows = [[1e4f32, 1e4, -inf], [-1e38, -1e38, -1e38], [-inf; 3]];
        let x = Tensor::new(&rows, &candle_core::Device::Cpu).unwrap();
        let y = softmax(&x).unwrap().to_vec2::<f32>().unwrap();
        assert_eq!(y[0], [0.5, 0.5, 0.0]);
        assert!(y[1].iter().all(|y| (y - 1.0 / 3.0).abs() < 1e-6));
        assert!(y[2].iter().all(|y| y.is_nan()));
    }
}
