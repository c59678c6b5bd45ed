//! Optimizers: [`Adam`], [`AdamW`] and [`Sgd`], equal to PyTorch's.
//!
//! An optimizer is a cheap handle: its clones share parameters, learning rates and state, which is
//! how a scheduler changes the learning rate of the optimizer that a training loop holds.
//!
//! A new optimizer is a type that holds a [`Shared`] and says in [`Optimizer::update`] what happens
//! to one parameter; see the source of [`Sgd`] for the shortest example.

mod adam;
mod group;
mod sgd;
mod shared;

pub use adam::{Adam, AdamConfig, AdamW};
pub use group::{ParamGroup, ParamGroups};
pub use sgd::{Sgd, SgdConfig};
pub use shared::{OptimizerState, ParameterState, Settings, Shared};

use std::fmt::Debug;

use candle_core::Tensor;

use crate::{Error, Parameter, Parameters, Result};

/// Changes parameters along their gradients.
///
/// ```
/// use candle_accelerate::optim::{Adam, Optimizer};
/// use candle_accelerate::{Parameter, Parameters};
/// use candle_core::{Device, Tensor};
///
/// let weight = Parameter::new("weight", &Tensor::new(&[1f32], &Device::Cpu)?)?;
/// let parameters = Parameters::from_iter([weight.clone()]);
/// let optimizer = Adam::new(parameters.clone(), 0.1)?;
/// parameters.backward(&weight.tensor().sqr()?.sum_all()?)?;
/// optimizer.step()?;
/// optimizer.zero_grad();
/// assert!((weight.tensor().to_vec1::<f32>()?[0] - 0.9).abs() < 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Optimizer: Debug + Send + Sync {
    /// What the optimizer's clones share.
    fn shared(&self) -> &Shared;

    /// Updates one parameter along `grad`, which is contiguous and has the parameter's shape.
    ///
    /// `state.step` already counts this update. Called by [`step`](Self::step).
    fn update(
        &self,
        parameter: &Parameter,
        grad: &Tensor,
        settings: Settings,
        state: &mut ParameterState,
    ) -> Result<()>;

    /// Checks a loaded state against its parameter: every tensor must have the parameter's shape.
    fn check_state(&self, parameter: &Parameter, state: &ParameterState) -> Result<()> {
        let wrong = state.tensors.iter().find(|(_, tensor)| tensor.dims() != parameter.dims());
        let Some((key, tensor)) = wrong else { return Ok(()) };
        Err(Error::invalid(
            format!("optimizer state '{key}' of '{}'", parameter.name()),
            format!("has shape {:?}; the parameter has {:?}", tensor.dims(), parameter.dims()),
        ))
    }

    /// Updates every trained parameter that has a gradient.
    ///
    /// While a prepared optimizer's accelerator accumulates gradients, this does nothing.
    fn step(&self) -> Result<()> {
        self.shared()
            .step(|parameter, grad, settings, state| self.update(parameter, grad, settings, state))
    }

    /// Whether the last [`step`](Self::step) updated nothing because gradients were incomplete.
    fn step_was_skipped(&self) -> bool {
        self.shared().step_was_skipped()
    }

    /// Forgets the gradients; does nothing while gradients are being accumulated.
    fn zero_grad(&self) {
        self.shared().zero_grad();
    }

    /// Every parameter of every group, in order.
    fn parameters(&self) -> Parameters {
        self.shared().parameters()
    }

    /// The learning rate of the first group.
    fn learning_rate(&self) -> f64 {
        self.learning_rates().first().copied().unwrap_or_default()
    }

    /// The learning rate of each group.
    fn learning_rates(&self) -> Vec<f64> {
        self.shared().learning_rates()
    }

    /// Sets the learning rate of every group.
    fn set_learning_rate(&self, lr: f64) {
        let rates = vec![lr; self.learning_rates().len()];
        // Cannot fail: there are as many rates as groups.
        let _ = self.set_learning_rates(&rates);
    }

    /// Sets the learning rate of each group.
    ///
    /// # Errors
    /// The number of rates is not the number of groups.
    fn set_learning_rates(&self, rates: &[f64]) -> Result<()> {
        self.shared().set_learning_rates(rates)
    }

    /// A copy of everything that is needed to go on exactly from here.
    fn state_dict(&self) -> Result<OptimizerState> {
        self.shared().state_dict()
    }

    /// Goes on from `state`.
    ///
    /// # Errors
    /// The state belongs to other parameters or groups; then nothing is changed.
    fn load_state_dict(&self, state: &OptimizerState) -> Result<()> {
        self.shared().load_state_dict(state, |parameter, state| self.check_state(parameter, state))
    }
}
