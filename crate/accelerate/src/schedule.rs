//! Learning-rate schedules, equal to those of transformers and PyTorch.

use std::f64::consts::PI;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::optim::Optimizer;
use crate::{Error, Result};

/// Sets an optimizer's learning rates, step by step, as PyTorch's `LambdaLR`.
///
/// The learning rate of step 0 is set on creation; each [`step`](Self::step) sets the next one.
/// Clones share their position. When an optimizer's step was skipped, because the accelerator is
/// still accumulating gradients, the schedule is held, so that it counts optimizer steps.
///
/// ```
/// use candle_accelerate::optim::{Adam, Optimizer};
/// use candle_accelerate::schedule::get_linear_schedule_with_warmup;
/// # use candle_accelerate::{Parameter, Parameters};
/// # use candle_core::{Device, Tensor};
/// # let weight = Parameter::new("weight", &Tensor::new(&[1f32], &Device::Cpu)?)?;
/// # let parameters = Parameters::from_iter([weight]);
/// let optimizer = Adam::new(parameters, 1e-3)?;
/// let lr_scheduler = get_linear_schedule_with_warmup(&optimizer, 2, 10);
/// assert_eq!(optimizer.learning_rate(), 0.0);
/// optimizer.step()?;
/// lr_scheduler.step()?;
/// assert_eq!(optimizer.learning_rate(), 0.5e-3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct LrScheduler {
    optimizer: Arc<dyn Optimizer>,
    factor: Arc<dyn Fn(u64) -> f64 + Send + Sync>,
    state: Arc<Mutex<LrSchedulerState>>,
}

/// Where a schedule is: see [`LrScheduler::state_dict`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LrSchedulerState {
    /// How many steps have been made.
    pub step: u64,
    /// The learning rate of each parameter group where the schedule's factor is 1.
    pub base_lrs: Vec<f64>,
}

impl LrScheduler {
    /// Sets each group's learning rate to its present one times `factor(step)`.
    ///
    /// ```
    /// use candle_accelerate::optim::{Optimizer, Sgd};
    /// use candle_accelerate::schedule::LrScheduler;
    /// # use candle_accelerate::{Parameter, Parameters};
    /// # use candle_core::{Device, Tensor};
    /// # let weight = Parameter::new("weight", &Tensor::new(&[1f32], &Device::Cpu)?)?;
    /// # let parameters = Parameters::from_iter([weight]);
    /// let optimizer = Sgd::new(parameters, 1.0)?;
    /// let lr_scheduler = LrScheduler::lambda(&optimizer, |step| 0.5f64.powf(step as f64));
    /// lr_scheduler.step()?;
    /// assert_eq!(lr_scheduler.get_last_lr(), [0.5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn lambda<O: Optimizer + Clone + 'static>(
        optimizer: &O,
        factor: impl Fn(u64) -> f64 + Send + Sync + 'static,
    ) -> Self {
        Self::with_base_lrs(optimizer, optimizer.learning_rates(), factor)
    }

    fn with_base_lrs<O: Optimizer + Clone + 'static>(
        optimizer: &O,
        base_lrs: Vec<f64>,
        factor: impl Fn(u64) -> f64 + Send + Sync + 'static,
    ) -> Self {
        let scheduler = Self {
            optimizer: Arc::new(optimizer.clone()),
            factor: Arc::new(factor),
            state: Arc::new(Mutex::new(LrSchedulerState { step: 0, base_lrs })),
        };
        // Cannot fail: the optimizer has one learning rate for each base rate.
        let _ = scheduler.apply(&scheduler.lock());
        scheduler
    }

    /// Goes on to the next learning rate, unless the optimizer's last step was skipped.
    ///
    /// # Errors
    /// None for the schedules of this library; in the signature because a schedule may refuse.
    pub fn step(&self) -> Result<()> {
        if self.optimizer.step_was_skipped() {
            return Ok(());
        }
        let mut state = self.lock();
        state.step += 1;
        self.apply(&state)
    }

    /// The learning rate of each parameter group, as last set.
    pub fn get_last_lr(&self) -> Vec<f64> {
        self.lrs(&self.lock())
    }

    /// Where the schedule is.
    pub fn state_dict(&self) -> LrSchedulerState {
        self.lock().clone()
    }

    /// Goes on from `state`, and sets the optimizer's learning rates to those of its step.
    ///
    /// # Errors
    /// The state has another number of parameter groups.
    pub fn load_state_dict(&self, state: &LrSchedulerState) -> Result<()> {
        let mut own = self.lock();
        if own.base_lrs.len() != state.base_lrs.len() {
            return Err(Error::invalid(
                "scheduler state",
                format!(
                    "has {} parameter groups; this scheduler has {}",
                    state.base_lrs.len(),
                    own.base_lrs.len()
                ),
            ));
        }
        *own = state.clone();
        self.apply(&own)
    }

    fn lrs(&self, state: &LrSchedulerState) -> Vec<f64> {
        let factor = (self.factor)(state.step);
        state.base_lrs.iter().map(|lr| lr * factor).collect()
    }

    fn apply(&self, state: &LrSchedulerState) -> Result<()> {
        self.optimizer.set_learning_rates(&self.lrs(state))
    }

    fn lock(&self) -> MutexGuard<'_, LrSchedulerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for LrScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LrScheduler(step {}, lr {:?})", self.lock().step, self.get_last_lr())
    }
}

/// A learning rate that stays as it is.
pub fn get_constant_schedule<O: Optimizer + Clone + 'static>(optimizer: &O) -> LrScheduler {
    LrScheduler::lambda(optimizer, |_| 1.0)
}

/// Rises from 0 in `num_warmup_steps` steps, then stays.
pub fn get_constant_schedule_with_warmup<O: Optimizer + Clone + 'static>(
    optimizer: &O,
    num_warmup_steps: usize,
) -> LrScheduler {
    LrScheduler::lambda(optimizer, move |step| warmup(step, num_warmup_steps).unwrap_or(1.0))
}

/// Rises from 0 in `num_warmup_steps` steps, then falls in a straight line to 0 at
/// `num_training_steps`.
pub fn get_linear_schedule_with_warmup<O: Optimizer + Clone + 'static>(
    optimizer: &O,
    num_warmup_steps: usize,
    num_training_steps: usize,
) -> LrScheduler {
    LrScheduler::lambda(optimizer, move |step| {
        warmup(step, num_warmup_steps).unwrap_or_else(|| {
            let left = num_training_steps as f64 - step as f64;
            let length = num_training_steps.saturating_sub(num_warmup_steps).max(1);
            (left / length as f64).max(0.0)
        })
    })
}

/// Rises from 0 in `num_warmup_steps` steps, then falls along half a cosine to 0 at
/// `num_training_steps`.
pub fn get_cosine_schedule_with_warmup<O: Optimizer + Clone + 'static>(
    optimizer: &O,
    num_warmup_steps: usize,
    num_training_steps: usize,
) -> LrScheduler {
    LrScheduler::lambda(optimizer, move |step| {
        warmup(step, num_warmup_steps).unwrap_or_else(|| {
            let progress = progress(step, num_warmup_steps, num_training_steps);
            (0.5 * (1.0 + (PI * progress).cos())).max(0.0)
        })
    })
}

/// Rises from 0 in `num_warmup_steps` steps, then falls `num_cycles` times along half a cosine,
/// starting anew from the top each time.
pub fn get_cosine_with_hard_restarts_schedule_with_warmup<O: Optimizer + Clone + 'static>(
    optimizer: &O,
    num_warmup_steps: usize,
    num_training_steps: usize,
    num_cycles: usize,
) -> LrScheduler {
    LrScheduler::lambda(optimizer, move |step| {
        warmup(step, num_warmup_steps).unwrap_or_else(|| {
            let progress = progress(step, num_warmup_steps, num_training_steps);
            if progress >= 1.0 {
                return 0.0;
            }
            let cycle = (num_cycles as f64 * progress) % 1.0;
            (0.5 * (1.0 + (PI * cycle).cos())).max(0.0)
        })
    })
}

/// Rises from 0 in `num_warmup_steps` steps, then falls to `lr_end` at `num_training_steps` as a
/// polynomial of degree `power`.
///
/// `lr_end` is meant for the first parameter group; other groups fall by the same factor.
pub fn get_polynomial_decay_schedule_with_warmup<O: Optimizer + Clone + 'static>(
    optimizer: &O,
    num_warmup_steps: usize,
    num_training_steps: usize,
    lr_end: f64,
    power: f64,
) -> LrScheduler {
    let lr_init = optimizer.learning_rate();
    LrScheduler::lambda(optimizer, move |step| {
        warmup(step, num_warmup_steps).unwrap_or_else(|| {
            if step > num_training_steps as u64 {
                return lr_end / lr_init;
            }
            let remaining = 1.0 - progress(step, num_warmup_steps, num_training_steps);
            ((lr_init - lr_end) * remaining.powf(power) + lr_end) / lr_init
        })
    })
}

/// Rises along a cosine from `max_lr / 25` to `max_lr` in the first 30 % of `total_steps`, then
/// falls along a cosine to `max_lr / 250000`.
///
/// Equal to `torch.optim.lr_scheduler.OneCycleLR` with its defaults and `cycle_momentum=False`;
/// after `total_steps`, where PyTorch raises an error, the learning rate stays.
pub fn get_one_cycle_schedule<O: Optimizer + Clone + 'static>(
    optimizer: &O,
    max_lr: f64,
    total_steps: usize,
) -> LrScheduler {
    const START: f64 = 1.0 / 25.0;
    const END: f64 = START / 1e4;
    let base_lrs = vec![max_lr; optimizer.learning_rates().len()];
    let (top, end) = (0.3 * total_steps as f64 - 1.0, total_steps as f64 - 1.0);
    LrScheduler::with_base_lrs(optimizer, base_lrs, move |step| {
        let step = step as f64;
        let (from, to, fraction) = if step <= top {
            (START, 1.0, step / top)
        } else {
            (1.0, END, ((step - top) / (end - top)).min(1.0))
        };
        to + (from - to) / 2.0 * ((PI * fraction).cos() + 1.0)
    })
}

/// The factor during warm-up, `None` after it.
fn warmup(step: u64, num_warmup_steps: usize) -> Option<f64> {
    (step < num_warmup_steps as u64).then(|| step as f64 / num_warmup_steps as f64)
}

/// How much of the time after warm-up is over: 0 at its end, 1 at the end of training.
fn progress(step: u64, num_warmup_steps: usize, num_training_steps: usize) -> f64 {
    let length = num_training_steps.saturating_sub(num_warmup_steps).max(1);
    (step as f64 - num_warmup_steps as f64) / length as f64
}
