//! The Gaussian error linear unit, exact and approximated.

use candle_core::backend::BackendStorage as _;
use candle_core::{CpuStorage, CustomOp1, Layout, Shape, Tensor};

use super::cpu::{self, Real, dispatch};
use crate::Result;

/// `x Φ(x)`, Φ being the normal distribution function, by `erf` (Hendrycks and Gimpel, 2016).
///
/// What a Hugging Face configuration means by `"gelu"`. Any shape; shape and dtype stay.
///
/// ```
/// use candle_accelerate::ops;
/// use candle_core::{Device, Tensor};
///
/// let y = ops::gelu(&Tensor::new(&[1f32], &Device::Cpu)?)?.to_vec1::<f32>()?;
/// assert!((y[0] - 0.841345).abs() < 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn gelu(x: &Tensor) -> Result<Tensor> {
    apply(x, Gelu::Exact)
}

/// The tanh approximation, `x/2 (1 + tanh(sqrt(2/π) (x + 0.044715 x³)))`.
///
/// What a Hugging Face configuration means by `"gelu_new"`. Any shape; shape and dtype stay.
///
/// ```
/// use candle_accelerate::ops;
/// use candle_core::{Device, Tensor};
///
/// let y = ops::gelu_tanh(&Tensor::new(&[1f32], &Device::Cpu)?)?.to_vec1::<f32>()?;
/// assert!((y[0] - 0.841192).abs() < 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn gelu_tanh(x: &Tensor) -> Result<Tensor> {
    apply(x, Gelu::Tanh)
}

fn apply(x: &Tensor, op: Gelu) -> Result<Tensor> {
    cpu::widened(
        "gelu",
        [x],
        |[x]| {
            if x.device().is_cpu() { x.apply_op1(op) } else { op.composed(&x) }
        },
    )
}

#[derive(Clone, Copy)]
enum Gelu {
    Exact,
    Tanh,
}

/// sqrt(2/π).
const TANH_SCALE: f64 = 0.797_884_560_802_865_4;
const TANH_CUBIC: f64 = 0.044_715;

impl Gelu {
    fn composed(self, x: &Tensor) -> candle_core::Result<Tensor> {
        let inner = match self {
            Self::Exact => (x * std::f64::consts::FRAC_1_SQRT_2)?.erf()?,
            Self::Tanh => ((x + (x.sqr()?.mul(x)? * TANH_CUBIC)?)? * TANH_SCALE)?.tanh()?,
        };
        x.mul(&((inner + 1.0)? * 0.5)?)
    }

    #[inline(always)]
    fn value<T: Real>(self, x: T) -> T {
        let half = T::from_f64(0.5);
        match self {
            Self::Exact => half * x * (T::one() + (x * frac_1_sqrt_2()).erf()),
            Self::Tanh => half * x * (T::one() + tanh(tanh_argument(x))),
        }
    }

    #[inline(always)]
    fn derivative<T: Real>(self, x: T) -> T {
        let half = T::from_f64(0.5);
        match self {
            Self::Exact => {
                // Φ(x) + x φ(x); 0.3989… is 1/sqrt(2π).
                let density =
                    T::from_f64(0.398_942_280_401_432_7) * (-(half * x * x)).exp_nonpositive();
                half * (T::one() + (x * frac_1_sqrt_2()).erf()) + x * density
            }
            Self::Tanh => {
                let t = tanh(tanh_argument(x));
                let slope =
                    T::from_f64(TANH_SCALE) * (T::one() + T::from_f64(3.0 * TANH_CUBIC) * x * x);
                half * (T::one() + t) + half * x * (T::one() - t * t) * slope
            }
        }
    }
}

#[inline(always)]
fn frac_1_sqrt_2<T: Real>() -> T {
    T::from_f64(std::f64::consts::FRAC_1_SQRT_2)
}

#[inline(always)]
fn tanh_argument<T: Real>(x: T) -> T {
    T::from_f64(TANH_SCALE) * (x + T::from_f64(TANH_CUBIC) * x * x * x)
}

/// tanh(x) by e^(-2|x|), which cannot overflow.
#[inline(always)]
fn tanh<T: Real>(x: T) -> T {
    let e = (-(T::from_f64(2.0) * x.abs())).exp_nonpositive();
    let t = (T::one() - e) / (T::one() + e);
    if x < T::zero() { -t } else { t }
}

impl CustomOp1 for Gelu {
    fn name(&self) -> &'static str {
        "gelu"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> candle_core::Result<(CpuStorage, Shape)> {
        fn run<T: Real>(
            x: &CpuStorage,
            layout: &Layout,
            value: impl Fn(T) -> T + Sync,
        ) -> candle_core::Result<CpuStorage> {
            let x = cpu::slice::<T>(x, layout)?;
            let mut out = vec![T::zero(); x.len()];
            cpu::fill_blocks(&mut out, 1, |start, out| {
                for (out, x) in out.iter_mut().zip(&x[start..]) {
                    *out = value(*x);
                }
            });
            Ok(T::to_cpu_storage_owned(out))
        }
        // One match outside the loop, or it would not vectorise.
        let out = match self {
            Self::Exact => dispatch!(x.dtype(), run(x, layout, |x| Self::Exact.value(x))),
            Self::Tanh => dispatch!(x.dtype(), run(x, layout, |x| Self::Tanh.value(x))),
        }?;
        Ok((out, layout.shape().clone()))
    }

    fn bwd(&self, x: &Tensor, _out: &Tensor, grad: &Tensor) -> candle_core::Result<Option<Tensor>> {
        fn run<T: Real>(
            x: &Tensor,
            grad: &Tensor,
            derivative: impl Fn(T) -> T + Sync,
        ) -> candle_core::Result<Option<Tensor>> {
            let grad = grad.contiguous()?;
            let (values, grad) = (cpu::values::<T>(x)?, cpu::values::<T>(&grad)?);
            let (values, grad) = (&*values, &*grad);
            let mut grad_x = vec![T::zero(); values.len()];
            cpu::fill_blocks(&mut grad_x, 1, |start, grad_x| {
                let pairs = values[start..].iter().zip(&grad[start..]);
                for (grad_x, (x, grad)) in grad_x.iter_mut().zip(pairs) {
                    *grad_x = *grad * derivative(*x);
                }
            });
            Ok(Some(cpu::tensor(grad_x, x.shape())?))
        }
        match self {
            Self::Exact => dispatch!(x.dtype(), run(x, grad, |x| Self::Exact.derivative(x))),
            Self::Tanh => dispatch!(x.dtype(), run(x, grad, |x| Self::Tanh.derivative(x))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Case, cpu_tensor};
    use super::*;

    #[test]
    fn gradients_equal_finite_differences_on_strided_input_and_every_dtype() {
        Case::new("gelu", [cpu_tensor(&[5, 3, 19], 1)], |[x]| gelu(x))
            .composed(|[x]| Gelu::Exact.composed(x).map_err(Into::into))
            .check();
        Case::new("gelu_tanh", [cpu_tensor(&[5, 3, 19], 1)], |[x]| gelu_tanh(x))
            .composed(|[x]| Gelu::Tanh.composed(x).map_err(Into::into))
            .check();
    }
}
