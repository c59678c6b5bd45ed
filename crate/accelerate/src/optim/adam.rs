//! Adam and AdamW.

use candle_core::Tensor;
use rayon::prelude::*;

use super::shared::{check_not_negative, check_rate, is_fusable, state_dtype};
use super::{Optimizer, ParamGroups, ParameterState, Settings, Shared};
use crate::in_place::{Element, with_mut, with_ref};
use crate::{Parameter, Result};

/// How many elements one thread updates at a time.
const CHUNK: usize = 1 << 14;

/// The settings of [`Adam`] and [`AdamW`] beside the learning rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamConfig {
    /// Decay rate of the running average of the gradient.
    pub beta1: f64,
    /// Decay rate of the running average of the squared gradient.
    pub beta2: f64,
    /// Added to the denominator.
    pub eps: f64,
    /// Weight decay: an L2 penalty in [`Adam`], decoupled from the gradient in [`AdamW`].
    pub weight_decay: f64,
}

impl Default for AdamConfig {
    /// PyTorch's defaults for Adam: betas 0.9 and 0.999, eps 1e-8, no weight decay.
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.0 }
    }
}

impl AdamConfig {
    fn check(&self) -> Result<()> {
        check_rate("beta1", self.beta1)?;
        check_rate("beta2", self.beta2)?;
        check_not_negative("eps", self.eps)
    }
}

/// Adam, as `torch.optim.Adam` (Kingma and Ba, <https://arxiv.org/abs/1412.6980>, algorithm 1).
///
/// ```
/// use candle_accelerate::optim::{Adam, AdamConfig, Optimizer};
/// # use candle_accelerate::{Parameter, Parameters};
/// # use candle_core::{Device, Tensor};
/// # let weight = Parameter::new("weight", &Tensor::new(&[1f32], &Device::Cpu)?)?;
/// # let parameters = Parameters::from_iter([weight]);
/// let optimizer = Adam::new(parameters.clone(), 2e-5)?;
/// let config = AdamConfig { beta2: 0.98, ..AdamConfig::default() };
/// let optimizer = Adam::with_config(parameters, 2e-5, config)?;
/// assert_eq!(optimizer.learning_rate(), 2e-5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Adam {
    shared: Shared,
    config: AdamConfig,
}

impl Adam {
    /// With PyTorch's default settings and this learning rate.
    ///
    /// # Errors
    /// No parameters, two parameters of the same name, or a learning rate that is negative or not
    /// finite.
    pub fn new(parameters: impl Into<ParamGroups>, lr: f64) -> Result<Self> {
        Self::with_config(parameters, lr, AdamConfig::default())
    }

    /// With these settings.
    ///
    /// # Errors
    /// As [`new`](Self::new), or a setting out of range.
    pub fn with_config(
        parameters: impl Into<ParamGroups>,
        lr: f64,
        config: AdamConfig,
    ) -> Result<Self> {
        config.check()?;
        Ok(Self { shared: Shared::new(parameters.into(), lr, config.weight_decay)?, config })
    }
}

impl Optimizer for Adam {
    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn update(
        &self,
        parameter: &Parameter,
        grad: &Tensor,
        settings: Settings,
        state: &mut ParameterState,
    ) -> Result<()> {
        let decay = Decay { l2: settings.weight_decay, shrink: 1.0 };
        update(parameter, grad, &self.config, settings.lr, decay, state)
    }
}

/// AdamW, as `torch.optim.AdamW` (Loshchilov and Hutter, <https://arxiv.org/abs/1711.05101>,
/// algorithm 2): weight decay acts on the weights, not on the gradient.
///
/// ```
/// use candle_accelerate::optim::{AdamW, Optimizer, ParamGroups};
/// # use candle_accelerate::{Parameter, Parameters};
/// # use candle_core::{Device, Tensor};
/// # let weight = Parameter::new("weight", &Tensor::new(&[1f32], &Device::Cpu)?)?;
/// # let parameters = Parameters::from_iter([weight]);
/// let optimizer = AdamW::new(ParamGroups::split_decay(&parameters), 5e-5)?;
/// assert_eq!(optimizer.learning_rate(), 5e-5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct AdamW {
    shared: Shared,
    config: AdamConfig,
}

impl AdamW {
    /// With PyTorch's default settings (weight decay 0.01) and this learning rate.
    ///
    /// # Errors
    /// No parameters, two parameters of the same name, or a learning rate that is negative or not
    /// finite.
    pub fn new(parameters: impl Into<ParamGroups>, lr: f64) -> Result<Self> {
        let config = AdamConfig { weight_decay: 0.01, ..AdamConfig::default() };
        Self::with_config(parameters, lr, config)
    }

    /// With these settings.
    ///
    /// # Errors
    /// As [`new`](Self::new), or a setting out of range.
    pub fn with_config(
        parameters: impl Into<ParamGroups>,
        lr: f64,
        config: AdamConfig,
    ) -> Result<Self> {
        config.check()?;
        Ok(Self { shared: Shared::new(parameters.into(), lr, config.weight_decay)?, config })
    }
}

impl Optimizer for AdamW {
    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn update(
        &self,
        parameter: &Parameter,
        grad: &Tensor,
        settings: Settings,
        state: &mut ParameterState,
    ) -> Result<()> {
        let decay = Decay { l2: 0.0, shrink: 1.0 - settings.lr * settings.weight_decay };
        update(parameter, grad, &self.config, settings.lr, decay, state)
    }
}

/// Where weight decay acts.
#[derive(Clone, Copy)]
struct Decay {
    /// Times the parameter, added to the gradient.
    l2: f64,
    /// Times the parameter, before the update.
    shrink: f64,
}

/// One step's constants, in `f64`: `1 - beta2` has only three digits in `f32`.
#[derive(Clone, Copy)]
struct Step {
    beta2: f64,
    one_minus_beta1: f64,
    one_minus_beta2: f64,
    step_size: f64,
    correction2_sqrt: f64,
    eps: f64,
    decay: Decay,
}

fn update(
    parameter: &Parameter,
    grad: &Tensor,
    config: &AdamConfig,
    lr: f64,
    decay: Decay,
    state: &mut ParameterState,
) -> Result<()> {
    let exp_avg = state.tensor_like("exp_avg", parameter)?;
    let exp_avg_sq = state.tensor_like("exp_avg_sq", parameter)?;
    let t = state.step as f64;
    let step = Step {
        beta2: config.beta2,
        one_minus_beta1: 1.0 - config.beta1,
        one_minus_beta2: 1.0 - config.beta2,
        step_size: lr / (1.0 - config.beta1.powf(t)),
        correction2_sqrt: (1.0 - config.beta2.powf(t)).sqrt(),
        eps: config.eps,
        decay,
    };
    if is_fusable::<f32>(parameter, grad, state) {
        fused::<f32>(parameter, grad, &exp_avg, &exp_avg_sq, step)
    } else if is_fusable::<f64>(parameter, grad, state) {
        fused::<f64>(parameter, grad, &exp_avg, &exp_avg_sq, step)
    } else {
        let (exp_avg, exp_avg_sq) = composed(parameter, grad, &exp_avg, &exp_avg_sq, step)?;
        state.tensors.insert("exp_avg".into(), exp_avg);
        state.tensors.insert("exp_avg_sq".into(), exp_avg_sq);
        Ok(())
    }
}

/// The update in one pass over the CPU's memory.
fn fused<T: Element>(
    parameter: &Parameter,
    grad: &Tensor,
    exp_avg: &Tensor,
    exp_avg_sq: &Tensor,
    step: Step,
) -> Result<()> {
    let number = T::from_f64;
    let (beta2, one_minus_beta1) = (number(step.beta2), number(step.one_minus_beta1));
    let one_minus_beta2 = number(step.one_minus_beta2);
    let (step_size, correction2_sqrt) = (number(step.step_size), number(step.correction2_sqrt));
    let (eps, l2, shrink) = (number(step.eps), number(step.decay.l2), number(step.decay.shrink));
    let update = |p: &mut [T], m: &mut [T], v: &mut [T], g: &[T]| {
        for (((p, m), v), g) in p.iter_mut().zip(m).zip(v).zip(g) {
            let g = *g + l2 * *p;
            *m += one_minus_beta1 * (g - *m);
            *v = beta2 * *v + one_minus_beta2 * g * g;
            *p = shrink * *p - step_size * *m / ((*v).sqrt() / correction2_sqrt + eps);
        }
    };
    with_ref::<T>(grad, |g| {
        with_mut::<T>(parameter.var().as_tensor(), |p| {
            with_mut::<T>(exp_avg, |m| {
                with_mut::<T>(exp_avg_sq, |v| {
                    p.par_chunks_mut(CHUNK)
                        .zip(m.par_chunks_mut(CHUNK))
                        .zip(v.par_chunks_mut(CHUNK))
                        .zip(g.par_chunks(CHUNK))
                        .for_each(|(((p, m), v), g)| update(p, m, v, g));
                    Ok(())
                })
            })
        })
    })?;
    Ok(())
}

/// The same update in candle's operations, for every device and type.
fn composed(
    parameter: &Parameter,
    grad: &Tensor,
    exp_avg: &Tensor,
    exp_avg_sq: &Tensor,
    step: Step,
) -> Result<(Tensor, Tensor)> {
    let dtype = state_dtype(parameter.dtype());
    let value = parameter.var().as_detached_tensor().to_dtype(dtype)?;
    let grad = grad.to_dtype(dtype)?;
    let grad = if step.decay.l2 == 0.0 { grad } else { (grad + (&value * step.decay.l2)?)? };
    let exp_avg = (exp_avg + ((&grad - exp_avg)? * step.one_minus_beta1)?)?;
    let exp_avg_sq = ((exp_avg_sq * step.beta2)? + (grad.sqr()? * step.one_minus_beta2)?)?;
    let denominator = ((exp_avg_sq.sqrt()? / step.correction2_sqrt)? + step.eps)?;
    let change = (exp_avg.div(&denominator)? * step.step_size)?;
    let updated = ((value * step.decay.shrink)? - change)?;
    parameter.set(&updated.to_dtype(parameter.dtype())?)?;
    Ok((exp_avg, exp_avg_sq))
}
