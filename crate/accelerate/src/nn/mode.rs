//! The switch between training and evaluation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a model trains (dropout on) or evaluates. Clones share the switch, so that every
/// dropout layer follows its model.
///
/// ```
/// use candle_accelerate::nn::Mode;
///
/// let mode = Mode::default();
/// let of_a_layer = mode.clone();
/// assert!(of_a_layer.is_training());
/// mode.set_training(false);
/// assert!(!of_a_layer.is_training());
/// ```
#[derive(Clone, Debug)]
pub struct Mode(Arc<AtomicBool>);

impl Default for Mode {
    fn default() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }
}

impl Mode {
    /// Whether dropout is on.
    pub fn is_training(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Switches between training and evaluation.
    pub fn set_training(&self, training: bool) {
        self.0.store(training, Ordering::Relaxed);
    }
}
