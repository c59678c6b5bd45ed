//! The fully connected layer's product.

use candle_core::backend::BackendStorage as _;
use candle_core::{CpuStorage, CustomOp2, CustomOp3, Layout, Shape, Tensor};

use super::cpu::{self, Real, dispatch};
use crate::{Error, Result, gradient_sink};

/// `x · weightᵀ + bias`.
///
/// `x` is [.., n], `weight` is `[m, n]`, `bias` is `[m]`; the result is [.., m] in the dtype of `x`.
/// Neither pass copies a transposed matrix.
///
/// ```
/// use candle_accelerate::ops;
/// use candle_core::{Device, Tensor};
///
/// let x = Tensor::new(&[[1f32, 2.0]], &Device::Cpu)?;
/// let weight = Tensor::new(&[[1f32, 1.0], [0.0, 3.0], [1.0, 0.0]], &Device::Cpu)?;
/// let bias = Tensor::new(&[0.5f32, 0.0, 0.0], &Device::Cpu)?;
/// let y = ops::linear(&x, &weight, Some(&bias))?;
/// assert_eq!(y.to_vec2::<f32>()?, [[3.5, 6.0, 1.0]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn linear(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    let (m, n) = weight.dims2()?;
    if x.dims().last() != Some(&n) {
        return Err(Error::invalid(
            "linear input",
            format!("has shape {:?}; a weight of shape [{m}, {n}] needs [.., {n}]", x.dims()),
        ));
    }
    if let Some(bias) = bias.filter(|bias| bias.dims() != [m]) {
        return Err(Error::invalid(
            "linear bias",
            format!("has shape {:?}; a weight of shape [{m}, {n}] needs [{m}]", bias.dims()),
        ));
    }
    if !x.device().is_cpu() {
        return Ok(composed(x, weight, bias)?);
    }
    match bias {
        Some(bias) => cpu::widened("linear", [x, weight, bias], |[x, weight, bias]| {
            x.apply_op3(&weight, &bias, Linear)
        }),
        None => cpu::widened("linear", [x, weight], |[x, weight]| x.apply_op2(&weight, Linear)),
    }
}

fn composed(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> candle_core::Result<Tensor> {
    let (m, n) = weight.dims2()?;
    let mut dims = x.dims().to_vec();
    if let Some(last) = dims.last_mut() {
        *last = m;
    }
    let weight = weight.to_dtype(x.dtype())?;
    let y = x.reshape(((), n))?.matmul(&weight.t()?)?.reshape(dims)?;
    match bias {
        Some(bias) => y.broadcast_add(&bias.to_dtype(x.dtype())?),
        None => Ok(y),
    }
}

struct Linear;

type Stored<'a> = (&'a CpuStorage, &'a Layout);

impl Linear {
    fn forward(
        x: Stored<'_>,
        weight: Stored<'_>,
        bias: Option<Stored<'_>>,
    ) -> candle_core::Result<(CpuStorage, Shape)> {
        fn run<T: Real>(
            x: Stored<'_>,
            weight: Stored<'_>,
            bias: Option<Stored<'_>>,
        ) -> candle_core::Result<CpuStorage> {
            let (m, _) = weight.1.shape().dims2()?;
            let (x, weight) = (cpu::slice::<T>(x.0, x.1)?, cpu::slice::<T>(weight.0, weight.1)?);
            let bias = bias.map(|(bias, layout)| cpu::slice::<T>(bias, layout)).transpose()?;
            let zeros = if bias.is_none() { vec![T::zero(); m] } else { Vec::new() };
            let out = cpu::affine(x, weight, bias.unwrap_or(&zeros));
            Ok(T::to_cpu_storage_owned(out))
        }
        let mut dims = x.1.dims().to_vec();
        if let Some(last) = dims.last_mut() {
            *last = weight.1.dims()[0];
        }
        Ok((dispatch!(x.0.dtype(), run(x, weight, bias))?, dims.into()))
    }

    /// The gradients of `x` and `weight` (those that are asked for), and of the bias.
    fn backward(
        x: &Tensor,
        weight: &Tensor,
        bias: Option<&Tensor>,
        grad: &Tensor,
    ) -> candle_core::Result<[Option<Tensor>; 3]> {
        fn run<T: Real>(
            x: &Tensor,
            weight: &Tensor,
            bias: Option<&Tensor>,
            grad: &Tensor,
        ) -> candle_core::Result<[Option<Tensor>; 3]> {
            let grad = grad.contiguous()?;
            let grad = cpu::values::<T>(&grad)?;
            let (m, n) = weight.dims2()?;
            let grad_x = if x.track_op() {
                let mut out = vec![T::zero(); x.elem_count()];
                cpu::add_input_gradient(&grad, &cpu::values::<T>(weight)?, m, &mut out);
                gradient_sink::hand_over(x, cpu::tensor(out, x.shape())?)?
            } else {
                None
            };
            let grad_weight = if weight.track_op() {
                let out = cpu::weight_gradient(&grad, &cpu::values::<T>(x)?, (m, n));
                gradient_sink::hand_over(weight, cpu::tensor(out, (m, n))?)?
            } else {
                None
            };
            let grad_bias = match bias {
                Some(bias) if bias.track_op() => {
                    let out = cpu::tensor(cpu::column_sums(&grad, m), m)?;
                    gradient_sink::hand_over(bias, out)?
                }
                _ => None,
            };
            Ok([grad_x, grad_weight, grad_bias])
        }
        dispatch!(x.dtype(), run(x, weight, bias, grad))
    }
}

impl CustomOp2 for Linear {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        weight: &CpuStorage,
        weight_layout: &Layout,
    ) -> candle_core::Result<(CpuStorage, Shape)> {
        Self::forward((x, x_layout), (weight, weight_layout), None)
    }

    fn bwd(
        &self,
        x: &Tensor,
        weight: &Tensor,
        _out: &Tensor,
        grad: &Tensor,
    ) -> candle_core::Result<(Option<Tensor>, Option<Tensor>)> {
        let [grad_x, grad_weight, _] = Self::backward(x, weight, None, grad)?;
        Ok((grad_x, grad_weight))
    }
}

impl CustomOp3 for Linear {
    fn name(&self) -> &'static str {
        "linear"
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
        Self::forward((x, x_layout), (weight, weight_layout), Some((bias, bias_layout)))
    }

    fn bwd(
        &self,
        x: &Tensor,
        weight: &Tensor,
        bias: &Tensor,
        _out: &Tensor,
        grad: &Tensor,
    ) -> candle_core::Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let [grad_x, grad_weight, grad_bias] = Self::backward(x, weight, Some(bias), grad)?;
        Ok((grad_x, grad_weight, grad_bias))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::testing::{Case, cpu_tensor};
    use super::*;

    #[test]
    fn gradients_equal_finite_differences_on_strided_input_and_every_dtype() {
        let inputs = [cpu_tensor(&[4, 3, 7], 1), cpu_tensor(&[5, 7], 2), cpu_tensor(&[5], 3)];
        Case::new("linear", inputs, |[x, w, b]| linear(x, w, Some(b)))
            .composed(|[x, w, b]| composed(x, w, Some(b)).map_err(Into::into))
            .check();
        let inputs = [cpu_tensor(&[4, 3, 7], 1), cpu_tensor(&[5, 7], 2)];
        Case::new("linear without bias", inputs, |[x, w]| linear(x, w, None))
            .composed(|[x, w]| composed(x, w, None).map_err(Into::into))
            .check();
    }

    #[test]
    fn shapes_that_do_not_fit_are_named() {
        let (x, weight) = (cpu_tensor(&[2, 4], 1), cpu_tensor(&[3, 5], 1));
        assert_eq!(
            linear(&x, &weight, None).unwrap_err().to_string(),
            "linear input has shape [2, 4]; a weight of shape [3, 5] needs [.., 5]"
        );
    }
}
