//! Dropout.

use candle_core::backend::BackendStorage as _;
use candle_core::{CpuStorage, CustomOp1, Device, Layout, Shape, Tensor};

use super::cpu::{self, Real, dispatch};
use crate::rng::Draw;
use crate::{Error, Result, gradient_sink};

/// Zeroes each element with probability `p` and divides the others by `1 - p` (Srivastava et al.,
/// 2014). Shape and dtype stay.
///
/// Follows [`set_seed`](crate::set_seed). For layers that switch off in evaluation, see
/// [`nn::Dropout`](crate::nn::Dropout).
///
/// # Errors
/// A `p` outside 0 to 1.
///
/// ```
/// use candle_accelerate::ops;
/// use candle_core::{Device, Tensor};
///
/// let y = ops::dropout(&Tensor::ones(1000, candle_core::DType::F32, &Device::Cpu)?, 0.5)?;
/// assert!(y.to_vec1::<f32>()?.iter().all(|y| *y == 0.0 || *y == 2.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn dropout(x: &Tensor, p: f64) -> Result<Tensor> {
    let Some(mask) = DropMask::draw(p)? else { return Ok(x.clone()) };
    mask.apply_to_any(x)
}

/// Which elements survive: a function of the position, so that the backward pass finds the same
/// mask without anybody having kept it.
#[derive(Clone, Copy)]
pub(super) struct DropMask {
    draw: Draw,
    p: f64,
}

impl DropMask {
    /// A new mask; none when `p` is 0.
    pub(super) fn draw(p: f64) -> Result<Option<Self>> {
        if !(0.0..=1.0).contains(&p) {
            return Err(Error::invalid("dropout", format!("is {p}; use a probability, 0 to 1")));
        }
        Ok((p > 0.0).then(|| Self { draw: Draw::dropout(), p }))
    }

    /// `x` with the mask laid over it.
    pub(super) fn apply_to_any(self, x: &Tensor) -> Result<Tensor> {
        cpu::widened("dropout", [x], |[x]| self.apply(&x))
    }

    /// `x` with the mask laid over it. `x` must be f32 or f64.
    pub(super) fn apply(self, x: &Tensor) -> candle_core::Result<Tensor> {
        if x.device().is_cpu() { x.contiguous()?.apply_op1(self) } else { self.composed(x) }
    }

    fn composed(self, x: &Tensor) -> candle_core::Result<Tensor> {
        let mut mask = vec![1f64; x.elem_count()];
        cpu::fill_blocks(&mut mask, 1, |start, mask| self.lay(start, mask));
        let mask = Tensor::from_vec(mask, x.shape(), &Device::Cpu)?;
        x.mul(&mask.to_dtype(x.dtype())?.to_device(x.device())?)
    }

    /// Multiplies by the mask's elements from `start` on: 0 or 1 / (1 - p).
    pub(super) fn lay<T: Real>(&self, start: usize, values: &mut [T]) {
        const WORDS: usize = 1024;
        // At most 2^32 - 1, so that p = 1 is told apart below.
        let threshold = (self.p * 4_294_967_296.0) as u32;
        let scale = if self.p < 1.0 { T::from_f64(1.0 / (1.0 - self.p)) } else { T::zero() };
        let mut words = [0u32; WORDS];
        for (chunk, values) in values.chunks_mut(WORDS).enumerate() {
            let words = &mut words[..values.len()];
            self.draw.words(start + chunk * WORDS, words);
            for (value, word) in values.iter_mut().zip(words) {
                *value = if *word >= threshold { *value * scale } else { T::zero() };
            }
        }
    }
}

impl CustomOp1 for DropMask {
    fn name(&self) -> &'static str {
        "dropout"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> candle_core::Result<(CpuStorage, Shape)> {
        fn run<T: Real>(
            x: &CpuStorage,
            layout: &Layout,
            mask: &DropMask,
        ) -> candle_core::Result<CpuStorage> {
            let mut out = cpu::slice::<T>(x, layout)?.to_vec();
            cpu::fill_blocks(&mut out, 1, |start, out| mask.lay(start, out));
            Ok(T::to_cpu_storage_owned(out))
        }
        Ok((dispatch!(x.dtype(), run(x, layout, self))?, layout.shape().clone()))
    }

    fn bwd(&self, x: &Tensor, _out: &Tensor, grad: &Tensor) -> candle_core::Result<Option<Tensor>> {
        // The same linear map.
        gradient_sink::hand_over(x, grad.contiguous()?.apply_op1_no_bwd(self)?)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::testing::{Case, cpu_tensor};
    use super::*;
    use crate::rng;
    use candle_core::DType;

    #[test]
    fn gradients_equal_finite_differences_on_strided_input_and_every_dtype() {
        let mask = rng::with_seed(4, || DropMask::draw(0.4)).unwrap().unwrap();
        Case::new("dropout", [cpu_tensor(&[5, 3, 19], 1)], |[x]| {
            rng::with_seed(4, || dropout(x, 0.4))
        })
        .composed(move |[x]| mask.composed(x).map_err(Into::into))
        .check();
    }

    #[test]
    fn the_share_of_zeros_is_p_and_the_mean_stays() {
        let x = Tensor::ones(100_000, DType::F32, &Device::Cpu).unwrap();
        let y = rng::with_seed(1, || dropout(&x, 0.1)).unwrap();
        let y = y.to_vec1::<f32>().unwrap();
        let zeros = y.iter().filter(|y| **y == 0.0).count();
        assert!((9_500..10_500).contains(&zeros), "{zeros} zeros");
        let mean = y.iter().sum::<f32>() / 1e5;
        assert!((mean - 1.0).abs() < 0.01, "mean {mean}");
    }

    #[test]
    fn zero_and_one_are_probabilities_and_two_is_not() {
        let x = Tensor::ones(64, DType::F32, &Device::Cpu).unwrap();
        let sum = |p| dropout(&x, p).unwrap().sum_all().unwrap().to_scalar::<f32>().unwrap();
        assert_eq!(sum(0.0), 64.0);
        assert_eq!(sum(1.0), 0.0);
        let error = dropout(&x, 2.0).unwrap_err().to_string();
        assert_eq!(error, "dropout is 2; use a probability, 0 to 1");
    }
}
