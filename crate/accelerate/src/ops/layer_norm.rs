//! Layer normalisation.

use candle_core::backend::BackendStorage as _;
use candle_core::{CpuStorage, CustomOp3, D, Layout, Shape, Tensor};

use super::cpu::{self, Real, dispatch};
use crate::{Error, Result, gradient_sink};

/// `(x - mean) / sqrt(variance + eps) * weight + bias` over the last dimension (Ba et al., 2016).
///
/// `x` is [.., n], `weight` and `bias` are `[n]`; the result has the shape and dtype of `x`. The
/// variance is the mean square, as in PyTorch.
///
/// ```
/// use candle_accelerate::ops;
/// use candle_core::{Device, Tensor};
///
/// let x = Tensor::new(&[[1f32, 2.0, 3.0]], &Device::Cpu)?;
/// let (weight, bias) = (Tensor::new(&[1f32; 3], &Device::Cpu)?, Tensor::new(&[0f32; 3], &Device::Cpu)?);
/// let y = ops::layer_norm(&x, &weight, &bias, 1e-5)?.to_vec2::<f32>()?;
/// assert!((y[0][2] - 1.2247).abs() < 1e-4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn layer_norm(x: &Tensor, weight: &Tensor, bias: &Tensor, eps: f64) -> Result<Tensor> {
    let n = x.dims().last().copied().unwrap_or(0);
    for (what, tensor) in [("weight", weight), ("bias", bias)] {
        if tensor.dims() != [n] {
            return Err(Error::invalid(
                format!("layer_norm {what}"),
                format!("has shape {:?}; x {:?} needs [{n}]", tensor.dims(), x.dims()),
            ));
        }
    }
    cpu::widened("layer_norm", [x, weight, bias], |[x, weight, bias]| {
        if x.device().is_cpu() {
            x.apply_op3(&weight, &bias, LayerNorm { eps })
        } else {
            composed(&x, &weight, &bias, eps)
        }
    })
}

fn composed(x: &Tensor, weight: &Tensor, bias: &Tensor, eps: f64) -> candle_core::Result<Tensor> {
    let centred = x.broadcast_sub(&x.mean_keepdim(D::Minus1)?)?;
    let variance = centred.sqr()?.mean_keepdim(D::Minus1)?;
    let normalised = centred.broadcast_div(&(variance + eps)?.sqrt()?)?;
    normalised.broadcast_mul(weight)?.broadcast_add(bias)
}

struct LayerNorm {
    eps: f64,
}

impl CustomOp3 for LayerNorm {
    fn name(&self) -> &'static str {
        "layer_norm"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        weight: &CpuStorage,
        weight_layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> candle_core::Result<(CpuStorage, Shape)> {
        fn run<T: Real>(
            (x, x_layout): (&CpuStorage, &Layout),
            (weight, weight_layout): (&CpuStorage, &Layout),
            (bias, bias_layout): (&CpuStorage, &Layout),
            eps: f64,
        ) -> candle_core::Result<CpuStorage> {
            let x = cpu::slice::<T>(x, x_layout)?;
            let weight = cpu::slice::<T>(weight, weight_layout)?;
            let bias = cpu::slice::<T>(bias, bias_layout)?;
            let mut out = vec![T::zero(); x.len()];
            cpu::fill_blocks(&mut out, weight.len(), |start, out| {
                normalise_rows(&x[start..], weight, bias, eps, out);
            });
            Ok(T::to_cpu_storage_owned(out))
        }
        let out = dispatch!(
            x.dtype(),
            run((x, x_layout), (weight, weight_layout), (bias, bias_layout), self.eps)
        )?;
        Ok((out, x_layout.shape().clone()))
    }

    fn bwd(
        &self,
        x: &Tensor,
        weight: &Tensor,
        bias: &Tensor,
        _out: &Tensor,
        grad: &Tensor,
    ) -> candle_core::Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        fn run<T: Real>(
            x: &Tensor,
            weight: &Tensor,
            grad: &Tensor,
            eps: f64,
        ) -> candle_core::Result<[Tensor; 3]> {
            let n = weight.elem_count();
            let grad = grad.contiguous()?;
            let [grad_x, grad_weight, grad_bias] = backward(
                &cpu::values::<T>(x)?,
                &cpu::values::<T>(weight)?,
                &cpu::values::<T>(&grad)?,
                eps,
            );
            Ok([
                cpu::tensor(grad_x, x.shape())?,
                cpu::tensor(grad_weight, n)?,
                cpu::tensor(grad_bias, n)?,
            ])
        }
        let [grad_x, grad_weight, grad_bias] =
            dispatch!(x.dtype(), run(x, weight, grad, self.eps))?;
        Ok((
            gradient_sink::hand_over(x, grad_x)?,
            gradient_sink::hand_over(weight, grad_weight)?,
            gradient_sink::hand_over(bias, grad_bias)?,
        ))
    }
}

/// `out = layer_norm(x)`, for as many rows as `out` has.
#[inline(always)]
pub(super) fn normalise_rows<T: Real>(x: &[T], weight: &[T], bias: &[T], eps: f64, out: &mut [T]) {
    let n = weight.len();
    for (out, x) in out.chunks_exact_mut(n).zip(x.chunks_exact(n)) {
        let (mean, scale) = statistics(x, eps);
        for i in 0..n {
            out[i] = (x[i] - mean) * scale * weight[i] + bias[i];
        }
    }
}

/// The gradients of x, weight and bias.
pub(super) fn backward<T: Real>(x: &[T], weight: &[T], grad: &[T], eps: f64) -> [Vec<T>; 3] {
    let n = weight.len();
    let count = T::from_f64(n as f64);
    let mut grad_x = vec![T::zero(); x.len()];
    let mut sums = cpu::fill_blocks_and_sum(&mut grad_x, n, 2 * n, |start, out, sums| {
        let (weight_sum, bias_sum) = sums.split_at_mut(n);
        let rows = x[start..].chunks_exact(n).zip(grad[start..].chunks_exact(n));
        for (out, (x, grad)) in out.chunks_exact_mut(n).zip(rows) {
            let (mean, scale) = statistics(x, eps);
            let mean_grad = cpu::sum(n, |i| grad[i] * weight[i]) / count;
            let mean_product = cpu::sum(n, |i| grad[i] * weight[i] * (x[i] - mean)) * scale / count;
            for i in 0..n {
                let normalised = (x[i] - mean) * scale;
                out[i] = scale * (grad[i] * weight[i] - mean_grad - normalised * mean_product);
                weight_sum[i] += grad[i] * normalised;
                bias_sum[i] += grad[i];
            }
        }
    });
    let grad_bias = sums.split_off(n);
    [grad_x, sums, grad_bias]
}

/// Mean and 1 / sqrt(variance + eps) of a row.
#[inline(always)]
fn statistics<T: Real>(row: &[T], eps: f64) -> (T, T) {
    let count = T::from_f64(row.len() as f64);
    let mean = cpu::sum(row.len(), |i| row[i]) / count;
    let variance = cpu::sum(row.len(), |i| (row[i] - mean) * (row[i] - mean)) / count;
    (mean, T::one() / (variance + T::from_f64(eps)).sqrt())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::testing::{Case, cpu_tensor};
    use super::*;

    #[test]
    fn gradients_equal_finite_differences_on_strided_input_and_every_dtype() {
        let inputs = [cpu_tensor(&[4, 3, 20], 1), cpu_tensor(&[20], 2), cpu_tensor(&[20], 3)];
        Case::new("layer_norm", inputs, |[x, w, b]| layer_norm(x, w, b, 1e-5))
            .composed(|[x, w, b]| composed(x, w, b, 1e-5).map_err(Into::into))
            .check();
    }

    #[test]
    fn a_weight_of_the_wrong_size_is_named() {
        let error =
            layer_norm(&cpu_tensor(&[2, 4], 1), &cpu_tensor(&[3], 1), &cpu_tensor(&[4], 1), 1e-5);
        assert_eq!(
            error.unwrap_err().to_string(),
            "layer_norm weight has shape [3]; x [2, 4] needs [4]"
        );
    }
}
