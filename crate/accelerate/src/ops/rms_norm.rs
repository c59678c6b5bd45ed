//! Root-mean-square normalisation.

use candle_core::backend::BackendStorage as _;
use candle_core::{CpuStorage, CustomOp2, D, Layout, Shape, Tensor};

use super::cpu::{self, Real, dispatch};
use crate::{Error, Result, gradient_sink};

/// `x / sqrt(mean(x²) + eps) * weight` over the last dimension (Zhang and Sennrich, 2019).
///
/// `x` is [.., n], `weight` is `[n]`; the result has the shape and dtype of `x`.
///
/// ```
/// use candle_accelerate::ops;
/// use candle_core::{Device, Tensor};
///
/// let x = Tensor::new(&[[3f32, 4.0]], &Device::Cpu)?;
/// let y = ops::rms_norm(&x, &Tensor::new(&[1f32, 1.0], &Device::Cpu)?, 0.0)?.to_vec2::<f32>()?;
/// assert!((y[0][0] - 3.0 / 12.5f32.sqrt()).abs() < 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn rms_norm(x: &Tensor, weight: &Tensor, eps: f64) -> Result<Tensor> {
    let n = x.dims().last().copied().unwrap_or(0);
    if weight.dims() != [n] {
        return Err(Error::invalid(
            "rms_norm weight",
            format!("has shape {:?}; x {:?} needs [{n}]", weight.dims(), x.dims()),
        ));
    }
    cpu::widened("rms_norm", [x, weight], |[x, weight]| {
        if x.device().is_cpu() {
            x.apply_op2(&weight, RmsNorm { eps })
        } else {
            composed(&x, &weight, eps)
        }
    })
}

fn composed(x: &Tensor, weight: &Tensor, eps: f64) -> candle_core::Result<Tensor> {
    let mean_square = x.sqr()?.mean_keepdim(D::Minus1)?;
    x.broadcast_div(&(mean_square + eps)?.sqrt()?)?.broadcast_mul(weight)
}

struct RmsNorm {
    eps: f64,
}

impl CustomOp2 for RmsNorm {
    fn name(&self) -> &'static str {
        "rms_norm"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        weight: &CpuStorage,
        weight_layout: &Layout,
    ) -> candle_core::Result<(CpuStorage, Shape)> {
        fn run<T: Real>(
            (x, x_layout): (&CpuStorage, &Layout),
            (weight, weight_layout): (&CpuStorage, &Layout),
            eps: f64,
        ) -> candle_core::Result<CpuStorage> {
            let x = cpu::slice::<T>(x, x_layout)?;
            let weight = cpu::slice::<T>(weight, weight_layout)?;
            let n = weight.len();
            let mut out = vec![T::zero(); x.len()];
            cpu::fill_blocks(&mut out, n, |start, out| {
                for (out, x) in out.chunks_exact_mut(n).zip(x[start..].chunks_exact(n)) {
                    let scale = scale(x, eps);
                    for i in 0..n {
                        out[i] = x[i] * scale * weight[i];
                    }
                }
            });
            Ok(T::to_cpu_storage_owned(out))
        }
        let out = dispatch!(x.dtype(), run((x, x_layout), (weight, weight_layout), self.eps))?;
        Ok((out, x_layout.shape().clone()))
    }

    fn bwd(
        &self,
        x: &Tensor,
        weight: &Tensor,
        _out: &Tensor,
        grad: &Tensor,
    ) -> candle_core::Result<(Option<Tensor>, Option<Tensor>)> {
        fn run<T: Real>(
            x: &Tensor,
            weight: &Tensor,
            grad: &Tensor,
            eps: f64,
        ) -> candle_core::Result<(Tensor, Tensor)> {
            let grad = grad.contiguous()?;
            let (x_values, weight) = (cpu::values::<T>(x)?, cpu::values::<T>(weight)?);
            let grad = cpu::values::<T>(&grad)?;
            let (x_values, weight, grad) = (&*x_values, &*weight, &*grad);
            let n = weight.len();
            let count = T::from_f64(n as f64);
            let mut grad_x = vec![T::zero(); x_values.len()];
            let grad_weight = cpu::fill_blocks_and_sum(&mut grad_x, n, n, |start, out, sums| {
                let rows = x_values[start..].chunks_exact(n).zip(grad[start..].chunks_exact(n));
                for (out, (x, grad)) in out.chunks_exact_mut(n).zip(rows) {
                    let scale = scale(x, eps);
                    let mean_product = cpu::sum(n, |i| grad[i] * weight[i] * x[i]) * scale / count;
                    for i in 0..n {
                        let normalised = x[i] * scale;
                        out[i] = scale * (grad[i] * weight[i] - normalised * mean_product);
                        sums[i] += grad[i] * normalised;
                    }
                }
            });
            Ok((cpu::tensor(grad_x, x.shape())?, cpu::tensor(grad_weight, n)?))
        }
        let (grad_x, grad_weight) = dispatch!(x.dtype(), run(x, weight, grad, self.eps))?;
        Ok((gradient_sink::hand_over(x, grad_x)?, gradient_sink::hand_over(weight, grad_weight)?))
    }
}

/// 1 / sqrt(mean square + eps) of a row.
#[inline(always)]
fn scale<T: Real>(row: &[T], eps: f64) -> T {
    let mean_square = cpu::sum(row.len(), |i| row[i] * row[i]) / T::from_f64(row.len() as f64);
    T::one() / (mean_square + T::from_f64(eps)).sqrt()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::testing::{Case, cpu_tensor};
    use super::*;

    #[test]
    fn gradients_equal_finite_differences_on_strided_input_and_every_dtype() {
        let inputs = [cpu_tensor(&[4, 3, 20], 1), cpu_tensor(&[20], 2)];
        Case::new("rms_norm", inputs, |[x, w]| rms_norm(x, w, 1e-6))
            .composed(|[x, w]| composed(x, w, 1e-6).map_err(Into::into))
            .check();
    }
}
