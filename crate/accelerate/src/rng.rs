//! Random numbers that a seed makes repeatable, bit for bit, on every device and thread count.
//!
//! candle cannot seed its CPU generator, so numbers are drawn here with ChaCha and then moved to
//! the device. Each draw (one tensor, one dropout mask) has a ChaCha stream of its own, numbered
//! in the order of the draws; its blocks can be made in any order, by any thread.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

use candle_core::{DType, Device, Shape, Tensor};
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::Result;

/// Elements that are drawn in one piece.
const BLOCK: usize = 1 << 12;

/// Where the random streams stand: the seed and how many draws have been made from each stream.
///
/// ```
/// use candle_accelerate::rng;
/// use candle_core::{DType, Device};
///
/// rng::with_seed(7, || {
///     let before = rng::state();
///     let first = rng::normal((2, 3), 0.0, 1.0, DType::F32, &Device::Cpu)?;
///     rng::set_state(before);
///     let again = rng::normal((2, 3), 0.0, 1.0, DType::F32, &Device::Cpu)?;
///     assert_eq!(first.to_vec2::<f32>()?, again.to_vec2::<f32>()?);
///     Ok::<(), Box<dyn std::error::Error>>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RngState {
    /// What [`set_seed`] was called with, or a number from the operating system.
    pub seed: u64,
    /// How many tensors have been drawn for initialisation.
    pub init_draws: u64,
    /// How many dropout masks have been drawn.
    pub dropout_draws: u64,
}

impl RngState {
    const fn new(seed: u64) -> Self {
        Self { seed, init_draws: 0, dropout_draws: 0 }
    }
}

static PROCESS: Mutex<Option<RngState>> = Mutex::new(None);

thread_local! {
    static THREAD: Cell<Option<RngState>> = const { Cell::new(None) };
}

/// Seeds every random stream of the process: initialisation, dropout and shuffling.
///
/// Without it the seed comes from the operating system. Inside [`with_seed`] it seeds only that
/// scope.
///
/// ```
/// candle_accelerate::set_seed(42);
/// ```
pub fn set_seed(seed: u64) {
    set_state(RngState::new(seed));
}

/// The seed in force.
///
/// ```
/// use candle_accelerate::rng;
///
/// assert_eq!(rng::with_seed(42, rng::seed), 42);
/// ```
pub fn seed() -> u64 {
    state().seed
}

/// The state to save in a checkpoint.
pub fn state() -> RngState {
    update(|_| ())
}

/// Goes on from a saved state.
pub fn set_state(state: RngState) {
    update(|current| *current = state);
}

/// Runs `f` with random streams of its own, seeded with `seed`, on this thread.
///
/// Replicas that share a process use it so that their draws do not depend on which thread is
/// faster. The former streams go on afterwards, untouched.
pub fn with_seed<T>(seed: u64, f: impl FnOnce() -> T) -> T {
    struct Restore(Option<RngState>);
    impl Drop for Restore {
        fn drop(&mut self) {
            THREAD.set(self.0);
        }
    }
    let _restore = Restore(THREAD.replace(Some(RngState::new(seed))));
    f()
}

/// Changes the state in force and returns what it was before.
fn update(change: impl FnOnce(&mut RngState)) -> RngState {
    if let Some(mut state) = THREAD.get() {
        let before = state;
        change(&mut state);
        THREAD.set(Some(state));
        return before;
    }
    let mut process = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
    let state = process.get_or_insert_with(|| RngState::new(rand::random()));
    let before = *state;
    change(state);
    before
}

/// Uniform numbers from `low` (included) to `high`, drawn in f32.
pub fn uniform(
    shape: impl Into<Shape>,
    low: f64,
    high: f64,
    dtype: DType,
    device: &Device,
) -> Result<Tensor> {
    draw_tensor(shape.into(), dtype, device, |words, values| {
        let (low, range) = (low as f32, (high - low) as f32);
        for (value, word) in values.iter_mut().zip(words) {
            *value = low + range * unit(*word);
        }
    })
}

/// Normal numbers of this mean and standard deviation, drawn in f32 (Box and Muller, 1958).
pub fn normal(
    shape: impl Into<Shape>,
    mean: f64,
    std: f64,
    dtype: DType,
    device: &Device,
) -> Result<Tensor> {
    draw_tensor(shape.into(), dtype, device, |words, values| {
        for (values, words) in values.chunks_mut(2).zip(words.chunks_exact(2)) {
            // In (0, 1], since the logarithm of zero is not finite.
            let radius = (f64::from(words[0]) + 1.0) / 4_294_967_296.0;
            let radius = std * (-2.0 * radius.ln()).sqrt();
            let (sin, cos) =
                (std::f64::consts::TAU * f64::from(words[1]) / 4_294_967_296.0).sin_cos();
            values[0] = (mean + radius * cos) as f32;
            if let Some(value) = values.get_mut(1) {
                *value = (mean + radius * sin) as f32;
            }
        }
    })
}

/// A 24-bit number in [0, 1): every one is exact in f32.
fn unit(word: u32) -> f32 {
    (word >> 8) as f32 / 16_777_216.0
}

fn draw_tensor(
    shape: Shape,
    dtype: DType,
    device: &Device,
    convert: impl Fn(&[u32], &mut [f32]) + Sync,
) -> Result<Tensor> {
    let before = update(|state| state.init_draws += 1);
    let stream = Draw { seed: before.seed, stream: 2 * before.init_draws };
    let mut values = vec![0f32; shape.elem_count()];
    values.par_chunks_mut(BLOCK).enumerate().for_each(|(block, values)| {
        let mut words = [0u32; BLOCK];
        let words = &mut words[..values.len().next_multiple_of(2)];
        stream.words(block * BLOCK, words);
        convert(words, values);
    });
    Ok(Tensor::from_vec(values, shape, &Device::Cpu)?.to_dtype(dtype)?.to_device(device)?)
}

/// One draw: 32-bit words that can be read from any position, as often as needed. A dropout layer
/// keeps this instead of its mask.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draw {
    seed: u64,
    stream: u64,
}

impl Draw {
    /// The next dropout mask.
    pub(crate) fn dropout() -> Self {
        let before = update(|state| state.dropout_draws += 1);
        Self { seed: before.seed, stream: 2 * before.dropout_draws + 1 }
    }

    /// The words from `position` on.
    pub(crate) fn words(&self, position: usize, words: &mut [u32]) {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(self.stream);
        rng.set_word_pos(position as u128);
        for word in words {
            *word = rng.next_u32();
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn draw(n: usize) -> Vec<f32> {
        normal(n, 0.0, 1.0, DType::F32, &Device::Cpu).unwrap().to_vec1().unwrap()
    }

    #[test]
    fn the_same_seed_gives_the_same_bits_on_any_number_of_threads() {
        let in_pool = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| with_seed(5, || draw(3 * BLOCK + 17)))
        };
        let one = in_pool(1);
        assert_eq!(one, in_pool(3));
        assert_ne!(one, with_seed(6, || draw(3 * BLOCK + 17)));
    }

    #[test]
    fn draws_differ_from_each_other_and_repeat_from_a_saved_state() {
        with_seed(1, || {
            let first = draw(8);
            let json = serde_json::to_string(&state()).unwrap();
            let second = draw(8);
            assert_ne!(first, second);
            set_state(serde_json::from_str(&json).unwrap());
            assert_eq!(second, draw(8));
        });
    }

    #[test]
    fn normal_has_the_moments_and_tails_of_the_normal_distribution() {
        let values = with_seed(3, || draw(200_001));
        let n = values.len() as f64;
        let moment = |k: i32| values.iter().map(|v| f64::from(*v).powi(k)).sum::<f64>() / n;
        assert!(moment(1).abs() < 0.01, "mean {}", moment(1));
        assert!((moment(2) - 1.0).abs() < 0.02, "variance {}", moment(2));
        assert!(moment(3).abs() < 0.03, "skewness {}", moment(3));
        assert!((moment(4) - 3.0).abs() < 0.1, "kurtosis {}", moment(4));
        let tail = values.iter().filter(|v| v.abs() > 1.959_964).count() as f64 / n;
        assert!((tail - 0.05).abs() < 0.002, "two-sided 5 % tail {tail}");
    }

    #[test]
    fn uniform_fills_its_range_evenly() {
        let values: Vec<f32> = with_seed(3, || {
            uniform(100_000, -2.0, 6.0, DType::F32, &Device::Cpu).unwrap().to_vec1().unwrap()
        });
        assert!(values.iter().all(|v| (-2.0..6.0).contains(v)));
        for quarter in 0..4 {
            let low = -2.0 + 2.0 * quarter as f32;
            let share = values.iter().filter(|v| (low..low + 2.0).contains(*v)).count();
            assert!((24_000..26_000).contains(&share), "quarter {quarter}: {share}");
        }
    }

    #[test]
    fn words_do_not_depend_on_how_they_are_cut() {
        let draw = with_seed(9, Draw::dropout);
        let mut whole = [0; 100];
        draw.words(0, &mut whole);
        let mut part = [0; 37];
        draw.words(41, &mut part);
        assert_eq!(whole[41..78], part);
    }
}
