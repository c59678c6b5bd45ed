//! What every optimizer keeps: groups, per-parameter state, and whether a step is due.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candle_core::{DType, Tensor};

use super::ParamGroups;
use crate::{Error, GradientState, Parameter, Parameters, Result, in_place};

/// The settings of the group a parameter is in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The learning rate of this step.
    pub lr: f64,
    /// The weight decay.
    pub weight_decay: f64,
}

/// What an optimizer remembers about one parameter.
#[derive(Clone, Debug, Default)]
pub struct ParameterState {
    /// How many updates the parameter has had.
    pub step: u64,
    /// Running averages and the like by PyTorch's name, such as `exp_avg`.
    pub tensors: BTreeMap<String, Tensor>,
}

impl ParameterState {
    /// The tensor called `name`, made of zeros in the parameter's shape on first use.
    ///
    /// It is on the parameter's device, also after the parameter moved, and at least `f32`: small
    /// updates would vanish in half precision.
    pub fn tensor_like(&mut self, name: &str, parameter: &Parameter) -> Result<Tensor> {
        let device = parameter.device();
        let tensor = match self.tensors.get(name) {
            Some(tensor) if tensor.device().same_device(&device) => return Ok(tensor.clone()),
            Some(tensor) => tensor.to_device(&device)?,
            None => Tensor::zeros(parameter.dims(), state_dtype(parameter.dtype()), &device)?,
        };
        self.tensors.insert(name.to_owned(), tensor.clone());
        Ok(tensor)
    }
}

/// The type in which an optimizer computes for parameters of type `dtype`.
pub(super) fn state_dtype(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

/// Everything that a checkpoint needs to go on exactly: see [`Optimizer::state_dict`].
///
/// [`Optimizer::state_dict`]: super::Optimizer::state_dict
#[derive(Clone, Debug, Default)]
pub struct OptimizerState {
    /// The settings of each group.
    pub groups: Vec<Settings>,
    /// The state of each parameter that has been updated, by the parameter's name.
    pub parameters: BTreeMap<String, ParameterState>,
}

/// The part of an optimizer that its clones share.
///
/// An optimizer holds one and returns it from [`Optimizer::shared`](super::Optimizer::shared).
#[derive(Clone, Debug)]
pub struct Shared(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    parameters: Vec<Parameters>,
    settings: Mutex<Vec<Settings>>,
    state: Mutex<BTreeMap<String, ParameterState>>,
    gradient_state: Mutex<Option<GradientState>>,
    /// The accumulation window of the last step.
    stepped_window: Mutex<Option<u64>>,
    step_was_skipped: AtomicBool,
}

impl Shared {
    /// For these groups; `lr` and `weight_decay` hold where a group has none of its own.
    ///
    /// # Errors
    /// No parameters, two parameters of the same name, or a setting that is negative or not finite.
    pub fn new(groups: ParamGroups, lr: f64, weight_decay: f64) -> Result<Self> {
        groups.check_names()?;
        let (mut parameters, mut settings) = (Vec::new(), Vec::new());
        for group in groups.into_vec() {
            let group_settings = Settings {
                lr: group.lr.unwrap_or(lr),
                weight_decay: group.weight_decay.unwrap_or(weight_decay),
            };
            check_not_negative("lr", group_settings.lr)?;
            check_not_negative("weight_decay", group_settings.weight_decay)?;
            parameters.push(group.parameters);
            settings.push(group_settings);
        }
        if parameters.iter().all(Parameters::is_empty) {
            return Err(Error::invalid("optimizer", "got no parameters to train"));
        }
        Ok(Self(Arc::new(Inner {
            parameters,
            settings: Mutex::new(settings),
            state: Mutex::default(),
            gradient_state: Mutex::default(),
            stepped_window: Mutex::default(),
            step_was_skipped: AtomicBool::new(false),
        })))
    }

    /// Whether both belong to the same optimizer.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Follows an accelerator's gradient accumulation from now on.
    pub(crate) fn attach(&self, gradient_state: &GradientState) {
        *lock(&self.0.gradient_state) = Some(gradient_state.clone());
    }

    pub(super) fn step_was_skipped(&self) -> bool {
        self.0.step_was_skipped.load(Ordering::Relaxed)
    }

    pub(super) fn parameters(&self) -> Parameters {
        self.0.parameters.iter().flatten().cloned().collect()
    }

    pub(super) fn learning_rates(&self) -> Vec<f64> {
        lock(&self.0.settings).iter().map(|group| group.lr).collect()
    }

    pub(super) fn set_learning_rates(&self, rates: &[f64]) -> Result<()> {
        let mut settings = lock(&self.0.settings);
        if rates.len() != settings.len() {
            return Err(Error::invalid(
                "learning rates",
                format!("are {}; the optimizer has {} groups", rates.len(), settings.len()),
            ));
        }
        for (group, lr) in settings.iter_mut().zip(rates) {
            group.lr = *lr;
        }
        Ok(())
    }

    /// Calls `update` for every trained parameter that has a gradient, if a step is due.
    pub(super) fn step(
        &self,
        update: impl Fn(&Parameter, &Tensor, Settings, &mut ParameterState) -> Result<()>,
    ) -> Result<()> {
        if let Some(gradient_state) = &*lock(&self.0.gradient_state) {
            let due = gradient_state.sync_gradients();
            self.0.step_was_skipped.store(!due, Ordering::Relaxed);
            if !due {
                return Ok(());
            }
            *lock(&self.0.stepped_window) = Some(gradient_state.window());
        }
        let settings = lock(&self.0.settings).clone();
        let mut state = lock(&self.0.state);
        for (parameters, settings) in self.0.parameters.iter().zip(settings) {
            for parameter in parameters.iter().filter(|parameter| parameter.requires_grad()) {
                let Some(grad) = parameter.grad() else { continue };
                let state = state.entry(parameter.name().to_owned()).or_default();
                state.step += 1;
                update(parameter, &grad.contiguous()?, settings, state)?;
            }
        }
        Ok(())
    }

    pub(super) fn zero_grad(&self) {
        let stepped = *lock(&self.0.stepped_window);
        let gradient_state = lock(&self.0.gradient_state);
        if gradient_state.as_ref().is_none_or(|state| state.may_zero_grad(stepped)) {
            self.0.parameters.iter().for_each(Parameters::zero_grad);
        }
    }

    pub(super) fn state_dict(&self) -> Result<OptimizerState> {
        let mut parameters = lock(&self.0.state).clone();
        for state in parameters.values_mut() {
            for tensor in state.tensors.values_mut() {
                // A copy: the next step changes the optimizer's own tensors in place.
                *tensor = tensor.copy()?;
            }
        }
        Ok(OptimizerState { groups: lock(&self.0.settings).clone(), parameters })
    }

    pub(super) fn load_state_dict(
        &self,
        state: &OptimizerState,
        check: impl Fn(&Parameter, &ParameterState) -> Result<()>,
    ) -> Result<()> {
        let parameters = self.parameters();
        for (name, saved) in &state.parameters {
            let parameter = parameters.get(name).ok_or_else(|| {
                Error::invalid(
                    "optimizer state",
                    format!("has parameter '{name}', which this optimizer does not train"),
                )
            })?;
            check(parameter, saved)?;
        }
        if state.groups.len() != self.0.parameters.len() {
            return Err(Error::invalid(
                "optimizer state",
                format!(
                    "has {} parameter groups; this optimizer has {}",
                    state.groups.len(),
                    self.0.parameters.len()
                ),
            ));
        }
        let mut loaded = state.parameters.clone();
        for state in loaded.values_mut() {
            for tensor in state.tensors.values_mut() {
                *tensor = tensor.copy()?;
            }
        }
        *lock(&self.0.settings) = state.groups.clone();
        *lock(&self.0.state) = loaded;
        Ok(())
    }
}

/// Whether the fused CPU update for elements of type `T` can be used.
pub(super) fn is_fusable<T: in_place::Element>(
    parameter: &Parameter,
    grad: &Tensor,
    state: &ParameterState,
) -> bool {
    let var = parameter.var();
    let tensors: Vec<&Tensor> =
        [var.as_tensor(), grad].into_iter().chain(state.tensors.values()).collect();
    in_place::is_fusable::<T>(&tensors)
}

/// A panic in another thread leaves numbers, not broken invariants: go on with them.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A setting must be a finite number of at least 0.
pub(super) fn check_not_negative(what: &str, value: f64) -> Result<()> {
    if value.is_finite() && value >= 0.0 {
        return Ok(());
    }
    Err(Error::invalid(what, format!("is {value}; use a finite number of at least 0")))
}

/// A decay rate of a running average must be in `[0, 1)`.
pub(super) fn check_rate(what: &str, value: f64) -> Result<()> {
    if (0.0..1.0).contains(&value) {
        return Ok(());
    }
    Err(Error::invalid(what, format!("is {value}; use a number from 0 to below 1")))
}
