//! Stochastic gradient descent.

use candle_core::Tensor;
use rayon::prelude::*;

use super::shared::{check_not_negative, is_fusable, state_dtype};
use super::{Optimizer, ParamGroups, ParameterState, Settings, Shared};
use crate::in_place::{Element, with_mut, with_ref};
use crate::{Error, Parameter, Result};

/// How many elements one thread updates at a time.
const CHUNK: usize = 1 << 14;

/// The settings of [`Sgd`] beside the learning rate, as in `torch.optim.SGD`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SgdConfig {
    /// How much of the last update goes on; 0 for none.
    pub momentum: f64,
    /// How much of the gradient is kept out of the momentum.
    pub dampening: f64,
    /// The L2 penalty.
    pub weight_decay: f64,
    /// Whether to look ahead along the momentum (needs momentum and no dampening).
    pub nesterov: bool,
}

/// Stochastic gradient descent, as `torch.optim.SGD`.
///
/// ```
/// use candle_accelerate::optim::{Optimizer, Sgd, SgdConfig};
/// # use candle_accelerate::{Parameter, Parameters};
/// # use candle_core::{Device, Tensor};
/// # let weight = Parameter::new("weight", &Tensor::new(&[1f32], &Device::Cpu)?)?;
/// # let parameters = Parameters::from_iter([weight]);
/// let config = SgdConfig { momentum: 0.9, nesterov: true, ..SgdConfig::default() };
/// let optimizer = Sgd::with_config(parameters, 0.1, config)?;
/// assert_eq!(optimizer.learning_rate(), 0.1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sgd {
    shared: Shared,
    config: SgdConfig,
}

impl Sgd {
    /// Plain gradient descent with this learning rate.
    ///
    /// # Errors
    /// No parameters, two parameters of the same name, or a learning rate that is negative or not
    /// finite.
    pub fn new(parameters: impl Into<ParamGroups>, lr: f64) -> Result<Self> {
        Self::with_config(parameters, lr, SgdConfig::default())
    }

    /// With these settings.
    ///
    /// # Errors
    /// As [`new`](Self::new), or a setting out of range.
    pub fn with_config(
        parameters: impl Into<ParamGroups>,
        lr: f64,
        config: SgdConfig,
    ) -> Result<Self> {
        check_not_negative("momentum", config.momentum)?;
        if config.nesterov && (config.momentum == 0.0 || config.dampening != 0.0) {
            return Err(Error::invalid("nesterov", "needs a momentum above 0 and no dampening"));
        }
        Ok(Self { shared: Shared::new(parameters.into(), lr, config.weight_decay)?, config })
    }
}

impl Optimizer for Sgd {
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
        if self.config.momentum > 0.0 {
            state.tensor_like("momentum_buffer", parameter)?;
        }
        if is_fusable::<f32>(parameter, grad, state) {
            fused::<f32>(parameter, grad, &self.config, settings, state)
        } else if is_fusable::<f64>(parameter, grad, state) {
            fused::<f64>(parameter, grad, &self.config, settings, state)
        } else {
            composed(parameter, grad, &self.config, settings, state)
        }
    }
}

/// How much of the gradient enters the momentum: all of it in the first step, as in PyTorch.
fn kept(config: &SgdConfig, state: &ParameterState) -> f64 {
    if state.step == 1 { 1.0 } else { 1.0 - config.dampening }
}

/// The update in one pass over the CPU's memory.
fn fused<T: Element>(
    parameter: &Parameter,
    grad: &Tensor,
    config: &SgdConfig,
    settings: Settings,
    state: &ParameterState,
) -> Result<()> {
    let number = T::from_f64;
    let (lr, l2) = (number(settings.lr), number(settings.weight_decay));
    let (momentum, kept) = (number(config.momentum), number(kept(config, state)));
    let nesterov = config.nesterov;
    let var = parameter.var();
    with_ref::<T>(grad, |g| {
        with_mut::<T>(var.as_tensor(), |p| {
            let Some(buffer) = state.tensors.get("momentum_buffer") else {
                p.par_chunks_mut(CHUNK).zip(g.par_chunks(CHUNK)).for_each(|(p, g)| {
                    p.iter_mut().zip(g).for_each(|(p, g)| *p -= lr * (*g + l2 * *p));
                });
                return Ok(());
            };
            with_mut::<T>(buffer, |b| {
                let chunks = p.par_chunks_mut(CHUNK).zip(b.par_chunks_mut(CHUNK));
                chunks.zip(g.par_chunks(CHUNK)).for_each(|((p, b), g)| {
                    for ((p, b), g) in p.iter_mut().zip(b).zip(g) {
                        let g = *g + l2 * *p;
                        *b = momentum * *b + kept * g;
                        *p -= lr * if nesterov { g + momentum * *b } else { *b };
                    }
                });
                Ok(())
            })
        })
    })?;
    Ok(())
}

/// The same update in candle's operations, for every device and type.
fn composed(
    parameter: &Parameter,
    grad: &Tensor,
    config: &SgdConfig,
    settings: Settings,
    state: &mut ParameterState,
) -> Result<()> {
    let dtype = state_dtype(parameter.dtype());
    let value = parameter.var().as_detached_tensor().to_dtype(dtype)?;
    let grad = (grad.to_dtype(dtype)? + (&value * settings.weight_decay)?)?;
    let kept = kept(config, state);
    let direction = match state.tensors.get_mut("momentum_buffer") {
        None => grad,
        Some(buffer) => {
            *buffer = ((&*buffer * config.momentum)? + (&grad * kept)?)?;
            if config.nesterov { (grad + (&*buffer * config.momentum)?)? } else { buffer.clone() }
        }
    };
    let updated = (value - (direction * settings.lr)?)?;
    parameter.set(&updated.to_dtype(parameter.dtype())?)
}
