//! Trainable tensors that a model, an optimizer and an accelerator share.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Tensor, Var};

use crate::{Error, Result, gradient_sink, in_place};

/// A named, trainable tensor with its gradient.
///
/// Clones share the value and the gradient, as PyTorch's parameters do: when
/// [`Accelerator::prepare`](crate::Accelerator::prepare) moves a parameter to another device, the
/// optimizer that holds a clone sees the move.
///
/// ```
/// use candle_accelerate::Parameter;
/// use candle_core::{Device, Tensor};
///
/// let weight = Parameter::new("weight", &Tensor::new(&[2f32, 3.0], &Device::Cpu)?)?;
/// let loss = weight.tensor().sqr()?.sum_all()?;
/// weight.accumulate(&loss.backward()?)?;
/// assert_eq!(weight.grad().map(|g| g.to_vec1::<f32>()).transpose()?, Some(vec![4.0, 6.0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Parameter(Arc<Inner>);

struct Inner {
    name: String,
    value: RwLock<Var>,
    grad: RwLock<Option<Grad>>,
    requires_grad: AtomicBool,
}

struct Grad {
    tensor: Tensor,
    /// Whether nothing else holds the tensor's memory, so that it may be added to in place. A
    /// backward pass may give several parameters the same memory.
    owned: bool,
}

impl Parameter {
    /// A trainable parameter that starts as a copy of `value`.
    pub fn new(name: impl Into<String>, value: &Tensor) -> Result<Self> {
        // `Var::from_tensor` copies, so that no optimizer step writes into the caller's tensor.
        let value = Var::from_tensor(&value.detach())?;
        Ok(Self(Arc::new(Inner {
            name: name.into(),
            value: RwLock::new(value),
            grad: RwLock::new(None),
            requires_grad: AtomicBool::new(true),
        })))
    }

    /// The full name, such as `distilbert.transformer.layer.0.attention.q_lin.weight`.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The value as a node of the autograd graph; cut from the graph while frozen.
    pub fn tensor(&self) -> Tensor {
        let var = self.var();
        if self.requires_grad() { var.as_tensor().clone() } else { var.as_detached_tensor() }
    }

    /// The variable itself, for in-place updates.
    pub fn var(&self) -> Var {
        self.0.value.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the value. The shape must stay; dtype and device may change.
    pub fn set(&self, value: &Tensor) -> Result<()> {
        let var = self.var();
        if var.shape() != value.shape() {
            return Err(Error::invalid(
                self.name(),
                format!(
                    "has shape {:?}; it cannot be set from shape {:?}",
                    var.dims(),
                    value.dims()
                ),
            ));
        }
        let same_storage = var.dtype() == value.dtype() && var.device().same_device(value.device());
        if same_storage {
            // In place, so that tensors which students already hold stay the parameter.
            var.set(&value.detach())?;
        } else {
            *self.0.value.write().unwrap_or_else(PoisonError::into_inner) =
                Var::from_tensor(&value.detach())?;
        }
        Ok(())
    }

    /// Moves value and gradient to `device`; nothing happens when they are there.
    pub fn to_device(&self, device: &Device) -> Result<()> {
        if self.var().device().same_device(device) {
            return Ok(());
        }
        self.set(&self.var().as_detached_tensor().to_device(device)?)?;
        let moved = self.grad().map(|grad| grad.to_device(device)).transpose()?;
        self.set_grad(moved);
        Ok(())
    }

    /// The accumulated gradient, if a backward pass has reached this parameter since
    /// [`zero_grad`](Self::zero_grad).
    ///
    /// Later backward passes may add to the same memory, as in PyTorch; copy it to keep it.
    pub fn grad(&self) -> Option<Tensor> {
        let grad = self.0.grad.read().unwrap_or_else(PoisonError::into_inner);
        grad.as_ref().map(|grad| grad.tensor.clone())
    }

    /// Replaces the gradient.
    pub fn set_grad(&self, grad: Option<Tensor>) {
        let grad = grad.map(|tensor| Grad { tensor, owned: false });
        *self.0.grad.write().unwrap_or_else(PoisonError::into_inner) = grad;
    }

    /// Forgets the gradient.
    pub fn zero_grad(&self) {
        self.set_grad(None);
    }

    /// Adds this parameter's gradient out of `grads`. Says whether there was one.
    pub fn accumulate(&self, grads: &GradStore) -> Result<bool> {
        let Some(grad) = grads.get(self.var().as_tensor()) else { return Ok(false) };
        // Detached, or the graph of this step would stay alive with the gradient.
        let grad = grad.detach();
        let mut slot = self.0.grad.write().unwrap_or_else(PoisonError::into_inner);
        match &mut *slot {
            None => *slot = Some(Grad { tensor: grad, owned: false }),
            Some(sum) if sum.owned => in_place::add(&mut sum.tensor, &grad)?,
            Some(sum) => *sum = Grad { tensor: (&sum.tensor + grad)?, owned: true },
        }
        Ok(true)
    }

    /// Whether the parameter is trained. Frozen parameters get no gradient and no update.
    pub fn requires_grad(&self) -> bool {
        self.0.requires_grad.load(Ordering::Relaxed)
    }

    /// Freezes (`false`) or unfreezes (`true`) the parameter.
    pub fn set_requires_grad(&self, requires_grad: bool) {
        self.0.requires_grad.store(requires_grad, Ordering::Relaxed);
    }

    /// Whether both are handles to the same parameter.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The dimensions.
    pub fn dims(&self) -> Vec<usize> {
        self.var().dims().to_vec()
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.var().dtype()
    }

    /// The device that holds the value.
    pub fn device(&self) -> Device {
        self.var().device().clone()
    }

    /// The number of elements.
    pub fn elem_count(&self) -> usize {
        self.var().elem_count()
    }
}

impl fmt::Debug for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Parameter({} {:?} {:?})", self.name(), self.dims(), self.dtype())
    }
}

/// An ordered list of parameters, such as all those of a model.
///
/// The order is the order in which the model was built, in every run.
#[derive(Clone, Debug, Default)]
pub struct Parameters(Vec<Parameter>);

impl Parameters {
    /// The parameters in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Parameter> {
        self.0.iter()
    }

    /// How many parameters (tensors) there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The parameter with this full name.
    pub fn get(&self, name: &str) -> Option<&Parameter> {
        self.0.iter().find(|parameter| parameter.name() == name)
    }

    /// The number of elements in all parameters together.
    pub fn num_elements(&self) -> usize {
        self.0.iter().map(Parameter::elem_count).sum()
    }

    /// Only those that are trained.
    pub fn trainable(&self) -> Self {
        self.0.iter().filter(|parameter| parameter.requires_grad()).cloned().collect()
    }

    /// Forgets every gradient.
    pub fn zero_grad(&self) {
        self.0.iter().for_each(Parameter::zero_grad);
    }

    /// Moves every parameter to `device`.
    pub fn to_device(&self, device: &Device) -> Result<()> {
        self.0.iter().try_for_each(|parameter| parameter.to_device(device))
    }

    /// Runs the backward pass of `loss` (a scalar) and adds the gradients to the parameters.
    ///
    /// # Errors
    /// [`Error::MissingGradient`] names every trainable parameter that got no gradient; then no
    /// gradient is changed.
    pub fn backward(&self, loss: &Tensor) -> Result<()> {
        let grads = gradients(loss)?;
        let missing = self.missing(&grads);
        if !missing.is_empty() {
            return Err(Error::MissingGradient { names: missing });
        }
        self.accumulate(&grads)
    }

    /// The names of the trained parameters that have no gradient in `grads`.
    pub(crate) fn missing(&self, grads: &GradStore) -> Vec<String> {
        let missing = self.0.iter().filter(|parameter| {
            parameter.requires_grad() && grads.get(parameter.var().as_tensor()).is_none()
        });
        missing.map(|parameter| parameter.name().to_owned()).collect()
    }

    /// Adds the gradients in `grads` to the trained parameters that have one there.
    pub fn accumulate(&self, grads: &GradStore) -> Result<()> {
        for parameter in self.0.iter().filter(|parameter| parameter.requires_grad()) {
            parameter.accumulate(grads)?;
        }
        Ok(())
    }
}

/// The gradients of a scalar.
pub(crate) fn gradients(loss: &Tensor) -> Result<GradStore> {
    if loss.elem_count() != 1 {
        return Err(Error::invalid(
            "loss",
            format!("has shape {:?}; reduce it to one number, such as its mean", loss.dims()),
        ));
    }
    gradient_sink::backward(loss)
}

impl FromIterator<Parameter> for Parameters {
    fn from_iter<I: IntoIterator<Item = Parameter>>(iter: I) -> Self {
        Self(iter.into_iter().collect())
    }
}

impl Extend<Parameter> for Parameters {
    fn extend<I: IntoIterator<Item = Parameter>>(&mut self, iter: I) {
        self.0.extend(iter);
    }
}

impl IntoIterator for Parameters {
    type Item = Parameter;
    type IntoIter = std::vec::IntoIter<Parameter>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Parameters {
    type Item = &'a Parameter;
    type IntoIter = std::slice::Iter<'a, Parameter>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
