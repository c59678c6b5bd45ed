//! The [`Accelerator`]: one training loop for every device.

mod builder;
mod clip;
mod device;
mod prepare;

pub use builder::AcceleratorBuilder;
pub use device::AcceleratorDevice;
pub use prepare::Prepare;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candle_core::Tensor;
use candle_core::backprop::GradStore;

use crate::data::DataLoader;
use crate::model::{Loss, Model};
use crate::optim::Optimizer;
use crate::parameter::gradients;
use crate::progress::{LastLoss, Progress};
use crate::schedule::LrScheduler;
use crate::{Error, GradientState, Parameters, Result};

/// Runs a training loop on the device there is, as Hugging Face Accelerate's `Accelerator`.
///
/// Clones are handles to the same accelerator.
///
/// ```
/// use candle_accelerate::Accelerator;
///
/// let accelerator = Accelerator::new()?;
/// println!("{}", accelerator.device());
/// # Ok::<(), candle_accelerate::Error>(())
/// ```
#[derive(Clone)]
pub struct Accelerator(Arc<Inner>);

struct Inner {
    device: AcceleratorDevice,
    device_placement: bool,
    find_unused_parameters: bool,
    gradient_state: GradientState,
    /// The parameters of each prepared model.
    models: Mutex<Vec<Parameters>>,
    optimizers: Mutex<Vec<Arc<dyn Optimizer>>>,
    last_loss: LastLoss,
}

impl Accelerator {
    /// With the default settings: the first GPU that is compiled in and found, else the CPU.
    ///
    /// # Errors
    /// A GPU that is found but cannot be used.
    pub fn new() -> Result<Self> {
        Self::builder().build()
    }

    /// Starts an accelerator with other settings.
    pub fn builder() -> AcceleratorBuilder {
        AcceleratorBuilder::default()
    }

    fn from_parts(
        device: AcceleratorDevice,
        gradient_state: GradientState,
        device_placement: bool,
        find_unused_parameters: bool,
    ) -> Self {
        Self(Arc::new(Inner {
            device,
            device_placement,
            find_unused_parameters,
            gradient_state,
            models: Mutex::default(),
            optimizers: Mutex::default(),
            last_loss: LastLoss::default(),
        }))
    }

    /// The device that models and batches are put on.
    pub fn device(&self) -> AcceleratorDevice {
        self.0.device.clone()
    }

    /// Makes models, optimizers, loaders and schedulers ready for training: one of them, or a tuple
    /// of up to eight in any order. Returns the same.
    ///
    /// * A model's parameters move to the device. Optimizers hold the same parameters, so they
    ///   follow.
    /// * A loader puts its batches on the device.
    /// * An optimizer steps only when [`sync_gradients`](Self::sync_gradients) says so, and its
    ///   scheduler only when it has stepped.
    ///
    /// # Errors
    /// The device has no room.
    pub fn prepare<P: Prepare>(&self, objects: P) -> Result<P> {
        objects.prepare(self)
    }

    /// Prepares a model: see [`prepare`](Self::prepare).
    pub fn prepare_model<M: Model>(&self, model: M) -> Result<M> {
        let parameters = model.parameters();
        if self.0.device_placement {
            parameters.to_device(&self.0.device)?;
        }
        let mut models = lock(&self.0.models);
        // The same model again, or two models that share parameters, is no new model.
        if !models.iter().any(|known| covers(known, &parameters)) {
            models.push(parameters);
        }
        Ok(model)
    }

    /// Prepares an optimizer: see [`prepare`](Self::prepare).
    pub fn prepare_optimizer<O: Optimizer + Clone + 'static>(&self, optimizer: O) -> Result<O> {
        optimizer.shared().attach(&self.0.gradient_state);
        let mut optimizers = lock(&self.0.optimizers);
        if !optimizers.iter().any(|known| known.shared().same(optimizer.shared())) {
            optimizers.push(Arc::new(optimizer.clone()));
        }
        Ok(optimizer)
    }

    /// Prepares a loader: see [`prepare`](Self::prepare).
    pub fn prepare_data_loader(&self, loader: DataLoader) -> Result<DataLoader> {
        let device = self.0.device_placement.then(|| (*self.0.device).clone());
        Ok(loader.prepared(device, &self.0.gradient_state))
    }

    /// Prepares a scheduler: see [`prepare`](Self::prepare). It follows its optimizer already.
    pub fn prepare_scheduler(&self, scheduler: LrScheduler) -> Result<LrScheduler> {
        Ok(scheduler)
    }

    /// Computes the gradients of `loss` and adds them to the parameters: those of the prepared
    /// models and optimizers, and of the model that made the loss.
    ///
    /// Inside [`accumulate`](Self::accumulate) the loss is weighted so that the gradients of a
    /// window are those of one large batch. `loss` must be a mean over the batch's samples.
    ///
    /// # Errors
    /// [`Error::MissingGradient`] when the loss depends on a model, but some of its trainable
    /// parameters get no gradient; then no gradient is changed. A prepared model that the loss does
    /// not depend on at all, such as a GAN's other network, is left alone. A loss that depends on
    /// no parameter at all is an error.
    pub fn backward<L: AsLoss + ?Sized>(&self, loss: &L) -> Result<()> {
        let weight = self.0.gradient_state.weight();
        let tensor = loss.loss_tensor()?;
        self.0.last_loss.set(tensor);
        let grads =
            if weight == 1.0 { gradients(tensor)? } else { gradients(&(tensor * weight)?)? };
        let mut groups = lock(&self.0.models).clone();
        let optimized: Vec<_> =
            lock(&self.0.optimizers).iter().map(|optimizer| optimizer.parameters()).collect();
        for more in optimized.into_iter().chain(loss.loss_parameters().cloned()) {
            let rest: Parameters = more
                .into_iter()
                .filter(|parameter| !groups.iter().flatten().any(|known| known.same(parameter)))
                .collect();
            groups.push(rest);
        }
        self.check_gradients(&groups, &grads)?;
        groups.iter().try_for_each(|group| group.accumulate(&grads))?;
        self.0.gradient_state.add_gradients();
        Ok(())
    }

    /// Checks that each group of parameters gets all of its gradients, or none.
    fn check_gradients(&self, groups: &[Parameters], grads: &GradStore) -> Result<()> {
        let mut touched = false;
        let mut names = Vec::new();
        for group in groups {
            let missing = group.missing(grads);
            if missing.len() < group.trainable().len() {
                touched = true;
                names.extend(missing);
            }
        }
        if !touched {
            return Err(Error::invalid(
                "loss",
                "depends on no trainable parameter; call prepare with the model, and compute the \
                 loss from the model's outputs",
            ));
        }
        if names.is_empty() || self.0.find_unused_parameters {
            return Ok(());
        }
        Err(Error::MissingGradient { names })
    }

    /// Runs the body of a training loop so that `gradient_accumulation_steps` batches make one
    /// optimizer step.
    ///
    /// Inside, `optimizer.step`, `optimizer.zero_grad`, `lr_scheduler.step` and the clipping
    /// functions do nothing until the window is complete, so the body reads as without
    /// accumulation. The last window of a prepared loader may be short: it counts by the samples
    /// it really has, so its gradient is that of the concatenated batch.
    ///
    /// ```
    /// # use candle_accelerate::data::{DataLoader, TensorDataset};
    /// # use candle_accelerate::optim::{Optimizer, Sgd};
    /// # use candle_accelerate::{Accelerator, Parameter, Parameters};
    /// # use candle_core::{DType, Device, Tensor};
    /// # let weight = Parameter::new("weight", &Tensor::new(0f32, &Device::Cpu)?)?;
    /// # let parameters = Parameters::from_iter([weight.clone()]);
    /// # let optimizer = Sgd::new(parameters, 0.1)?;
    /// # let x = Tensor::ones(10, DType::F32, &Device::Cpu)?;
    /// # let dataloader = DataLoader::builder(TensorDataset::new([("x", x)])?).build()?;
    /// let accelerator = Accelerator::builder().gradient_accumulation_steps(4).build()?;
    /// let (optimizer, dataloader) = accelerator.prepare((optimizer, dataloader))?;
    /// for batch in &dataloader {
    ///     accelerator.accumulate(|| {
    ///         let loss = batch.get("x")?.broadcast_sub(&weight.tensor())?.sqr()?.mean_all()?;
    ///         accelerator.backward(&loss)?;
    ///         optimizer.step()?;
    ///         optimizer.zero_grad();
    ///         Ok(())
    ///     })?;
    /// }
    /// // Ten batches are two windows of four and one of two.
    /// assert_eq!(optimizer.state_dict()?.parameters["weight"].step, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of `body`.
    pub fn accumulate<T>(&self, body: impl FnOnce() -> Result<T>) -> Result<T> {
        if self.0.gradient_state.start_batch() {
            // A loop that was left in the middle of a window has left half a sum behind.
            lock(&self.0.models).iter().for_each(Parameters::zero_grad);
            lock(&self.0.optimizers).iter().for_each(|o| o.parameters().zero_grad());
        }
        let result = body();
        self.0.gradient_state.end_batch();
        result
    }

    /// Wraps what a loop runs over in a progress bar, as tqdm does. The bar shows the loss that was
    /// last given to [`backward`](Self::backward), and ends the loop at an interrupt.
    ///
    /// ```
    /// # let accelerator = candle_accelerate::Accelerator::new()?;
    /// for epoch in accelerator.progress(0..3) {
    ///     // …
    /// }
    /// # Ok::<(), candle_accelerate::Error>(())
    /// ```
    pub fn progress<T: IntoIterator>(&self, items: T) -> Progress<T::IntoIter> {
        Progress::new(items.into_iter(), self.0.last_loss.clone())
    }

    /// Whether the gradients are complete, so that an optimizer step is due.
    pub fn sync_gradients(&self) -> bool {
        self.0.gradient_state.sync_gradients()
    }

    /// How many batches make one optimizer step.
    pub fn gradient_accumulation_steps(&self) -> usize {
        self.0.gradient_state.num_steps()
    }

    /// The state of gradient accumulation.
    pub fn gradient_state(&self) -> &GradientState {
        &self.0.gradient_state
    }

    /// How many processes train together.
    pub fn num_processes(&self) -> usize {
        1
    }

    /// The number of this process, from 0.
    pub fn process_index(&self) -> usize {
        0
    }

    /// Whether this is the process that prints and writes files.
    pub fn is_main_process(&self) -> bool {
        self.process_index() == 0
    }

    /// Prints a line, in the main process only.
    pub fn print(&self, message: impl fmt::Display) {
        if self.is_main_process() {
            println!("{message}");
        }
    }

    /// The values of all processes for the samples of the current batch, each sample once.
    ///
    /// # Errors
    /// A tensor without a leading sample dimension: a per-process mean cannot be cut to the
    /// samples that count.
    pub fn gather_for_metrics(&self, tensor: &Tensor) -> Result<Tensor> {
        if tensor.rank() == 0 {
            return Err(Error::invalid(
                "gather_for_metrics",
                "got a scalar; give it one value for each sample, in the first dimension",
            ));
        }
        Ok(tensor.clone())
    }

    /// The model without what `prepare` put around it, which is nothing: the same handle.
    pub fn unwrap_model<M: Model + Clone>(&self, model: &M) -> M {
        model.clone()
    }

    /// Lets go of every prepared model and optimizer, so that their memory can be freed.
    pub fn free_memory(&self) {
        lock(&self.0.models).clear();
        lock(&self.0.optimizers).clear();
    }
}

impl fmt::Debug for Accelerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Accelerator")
            .field("device", &format_args!("{}", self.0.device))
            .field("num_processes", &self.num_processes())
            .field("gradient_accumulation_steps", &self.gradient_accumulation_steps())
            .finish()
    }
}

/// What [`Accelerator::backward`] takes: a model's [`Loss`], or a scalar [`Tensor`].
pub trait AsLoss {
    /// The scalar.
    fn loss_tensor(&self) -> Result<&Tensor>;

    /// The parameters of the model that made it, if it knows them.
    fn loss_parameters(&self) -> Option<&Parameters>;
}

impl AsLoss for Tensor {
    fn loss_tensor(&self) -> Result<&Tensor> {
        Ok(self)
    }

    fn loss_parameters(&self) -> Option<&Parameters> {
        None
    }
}

impl AsLoss for Loss {
    fn loss_tensor(&self) -> Result<&Tensor> {
        self.tensor()
    }

    fn loss_parameters(&self) -> Option<&Parameters> {
        Some(self.parameters())
    }
}

/// Whether every parameter of `part` is in `whole`.
fn covers(whole: &Parameters, part: &Parameters) -> bool {
    part.iter().all(|parameter| whole.iter().any(|known| known.same(parameter)))
}

/// A panic in another thread leaves lists, not broken invariants: go on with them.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
