//! Functions that are applied to each element between two products.

use candle_core::backend::BackendStorage as _;
use candle_core::{CpuStorage, CustomOp1, Layout, Shape, Tensor};

use super::cpu::{self, Real, dispatch};
use crate::{Result, gradient_sink};

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
    Activation::Gelu.forward(x)
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
    Activation::GeluTanh.forward(x)
}

/// A function that is applied to each element.
///
/// ```
/// use candle_accelerate::ops::Activation;
/// use candle_core::{Device, Tensor};
///
/// let y = Activation::Relu.forward(&Tensor::new(&[-1f32, 2.0], &Device::Cpu)?)?;
/// assert_eq!(y.to_vec1::<f32>()?, [0.0, 2.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// See [`gelu`].
    Gelu,
    /// See [`gelu_tanh`].
    GeluTanh,
    /// The larger of 0 and x.
    Relu,
    /// `x / (1 + e^-x)`, also called swish.
    Silu,
}

/// sqrt(2/π).
const TANH_SCALE: f64 = 0.797_884_560_802_865_4;
const TANH_CUBIC: f64 = 0.044_715;
/// 1/sqrt(2π).
const DENSITY: f64 = 0.398_942_280_401_432_7;

impl Activation {
    /// Any shape; shape and dtype stay.
    pub fn forward(self, x: &Tensor) -> Result<Tensor> {
        cpu::widened("activation", [x], |[x]| {
            if x.device().is_cpu() { x.apply_op1(self) } else { self.composed(&x) }
        })
    }

    fn composed(self, x: &Tensor) -> candle_core::Result<Tensor> {
        let inner = match self {
            Self::Gelu => (x * std::f64::consts::FRAC_1_SQRT_2)?.erf()?,
            Self::GeluTanh => ((x + (x.sqr()?.mul(x)? * TANH_CUBIC)?)? * TANH_SCALE)?.tanh()?,
            Self::Relu => return x.relu(),
            Self::Silu => return x.silu(),
        };
        x.mul(&((inner + 1.0)? * 0.5)?)
    }

    /// The function and its derivative.
    #[inline(always)]
    fn evaluate<T: Real>(self, x: T) -> (T, T) {
        let (half, one) = (T::from_f64(0.5), T::one());
        match self {
            Self::Gelu => {
                let below = half * (one + (x * T::from_f64(std::f64::consts::FRAC_1_SQRT_2)).erf());
                let density = T::from_f64(DENSITY) * (-(half * x * x)).exp_nonpositive();
                (x * below, below + x * density)
            }
            Self::GeluTanh => {
                let (scale, cubic) = (T::from_f64(TANH_SCALE), T::from_f64(TANH_CUBIC));
                let t = tanh(scale * (x + cubic * x * x * x));
                let slope = scale * (one + T::from_f64(3.0) * cubic * x * x);
                let weight = half * (one + t);
                (x * weight, weight + half * x * (one - t * t) * slope)
            }
            Self::Relu => {
                // In this order NaN comes through.
                let value = if x < T::zero() { T::zero() } else { x };
                (value, if x > T::zero() { one } else { T::zero() })
            }
            Self::Silu => {
                let e = (-x.abs()).exp_nonpositive();
                let numerator = if x < T::zero() { e } else { one };
                let sigmoid = numerator / (one + e);
                (x * sigmoid, sigmoid * (one + x * (one - sigmoid)))
            }
        }
    }

    /// `out = f(x)`.
    pub(super) fn apply<T: Real>(self, x: &[T], out: &mut [T]) {
        // One match outside the loops, or they would not vectorise.
        match self {
            Self::Gelu => each(x, out, |x| Self::Gelu.evaluate(x).0),
            Self::GeluTanh => each(x, out, |x| Self::GeluTanh.evaluate(x).0),
            Self::Relu => each(x, out, |x| Self::Relu.evaluate(x).0),
            Self::Silu => each(x, out, |x| Self::Silu.evaluate(x).0),
        }
    }

    /// `value = f(x)` and `grad *= f'(x)`.
    pub(super) fn apply_backward<T: Real>(self, x: &[T], value: &mut [T], grad: &mut [T]) {
        match self {
            Self::Gelu => each_backward(x, value, grad, |x| Self::Gelu.evaluate(x)),
            Self::GeluTanh => each_backward(x, value, grad, |x| Self::GeluTanh.evaluate(x)),
            Self::Relu => each_backward(x, value, grad, |x| Self::Relu.evaluate(x)),
            Self::Silu => each_backward(x, value, grad, |x| Self::Silu.evaluate(x)),
        }
    }
}

fn each<T: Real>(x: &[T], out: &mut [T], f: impl Fn(T) -> T + Sync) {
    cpu::fill_blocks(out, 1, |start, out| {
        for (out, x) in out.iter_mut().zip(&x[start..]) {
            *out = f(*x);
        }
    });
}

fn each_backward<T: Real>(
    x: &[T],
    value: &mut [T],
    grad: &mut [T],
    f: impl Fn(T) -> (T, T) + Sync,
) {
    cpu::fill_blocks_of_two(value, grad, 1, |start, value, grad| {
        let pairs = value.iter_mut().zip(grad);
        for ((value, grad), x) in pairs.zip(&x[start..]) {
            let (y, slope) = f(*x);
            *value = y;
            *grad *= slope;
        }
    });
}

/// tanh(x) by e^(-2|x|), which cannot overflow.
#[inline(always)]
fn tanh<T: Real>(x: T) -> T {
    let e = (-(T::from_f64(2.0) * x.abs())).exp_nonpositive();
    let t = (T::one() - e) / (T::one() + e);
    if x < T::zero() { -t } else { t }
}

impl CustomOp1 for Activation {
    fn name(&self) -> &'static str {
        "activation"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> candle_core::Result<(CpuStorage, Shape)> {
        fn run<T: Real>(
            op: Activation,
            x: &CpuStorage,
            layout: &Layout,
        ) -> candle_core::Result<CpuStorage> {
            let x = cpu::slice::<T>(x, layout)?;
            let mut out = vec![T::zero(); x.len()];
            op.apply(x, &mut out);
            Ok(T::to_cpu_storage_owned(out))
        }
        Ok((dispatch!(x.dtype(), run(*self, x, layout))?, layout.shape().clone()))
    }

    fn bwd(&self, x: &Tensor, _out: &Tensor, grad: &Tensor) -> candle_core::Result<Option<Tensor>> {
        fn run<T: Real>(op: Activation, x: &Tensor, grad: &Tensor) -> candle_core::Result<Tensor> {
            let mut grad_x = cpu::values::<T>(&grad.contiguous()?)?.to_vec();
            let values = cpu::values::<T>(x)?;
            let mut value = vec![T::zero(); values.len()];
            op.apply_backward(&values, &mut value, &mut grad_x);
            cpu::tensor(grad_x, x.shape())
        }
        gradient_sink::hand_over(x, dispatch!(x.dtype(), run(*self, x, grad))?)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::testing::{Case, cpu_tensor};
    use super::*;
    use candle_core::Device;

    const ALL: [Activation; 4] =
        [Activation::Gelu, Activation::GeluTanh, Activation::Relu, Activation::Silu];

    #[test]
    fn gradients_equal_finite_differences_on_strided_input_and_every_dtype() {
        for activation in ALL {
            Case::new("activation", [cpu_tensor(&[5, 3, 19], 1)], |[x]| activation.forward(x))
                .composed(|[x]| activation.composed(x).map_err(Into::into))
                .check();
        }
    }

    #[test]
    fn extremes_and_nan_keep_their_meaning() {
        let x = Tensor::new(&[-1e30f32, -100.0, 0.0, 100.0, 1e30, f32::NAN], &Device::Cpu).unwrap();
        for activation in ALL {
            let y = activation.forward(&x).unwrap().to_vec1::<f32>().unwrap();
            assert_eq!(y[..5], [0.0, 0.0, 0.0, 100.0, 1e30], "{activation:?}");
            assert!(y[5].is_nan(), "{activation:?}");
        }
    }
}
