//! Batches in order, or shuffled.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candle_core::Device;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::{Batch, Collate, Dataset, DefaultCollate, Sample};
use crate::gradient_state::ActiveLoader;
use crate::{Error, GradientState, Result, interrupt, rng};

/// Sets the random stream of the order apart from those of initialisation and dropout.
const ORDER: u64 = u64::from_be_bytes(*b"shuffled");

/// Yields the samples of a dataset in batches.
///
/// Iterating never fails: an error (a bad sample, an interrupt) is held by the batch, and the
/// first use of that batch returns it. Clones share the position.
///
/// When shuffled, the order is a function of the seed and the epoch only. Each iteration that
/// follows a complete one or one that was left early is the next epoch;
/// [`set_epoch`](Self::set_epoch) says which.
///
/// ```
/// use candle_accelerate::data::{DataLoader, TensorDataset};
/// use candle_core::{Device, Tensor};
///
/// let x = Tensor::arange(0u32, 10, &Device::Cpu)?;
/// let dataset = TensorDataset::new([("x", x)])?;
/// let dataloader = DataLoader::builder(dataset).batch_size(4).shuffle(true).seed(42).build()?;
/// assert_eq!(dataloader.len(), 3);
/// for batch in &dataloader {
///     println!("{}", batch.get("x")?);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct DataLoader {
    source: Arc<Source>,
    state: Arc<Mutex<State>>,
    skipped: usize,
    device: Option<Device>,
    gradient_state: Option<GradientState>,
}

/// What clones share and nothing changes.
#[derive(Debug)]
struct Source {
    dataset: Box<dyn Dataset>,
    collate: Box<dyn Collate>,
    batch_size: usize,
    drop_last: bool,
    shuffle_seed: Option<u64>,
}

#[derive(Debug, Default)]
struct State {
    position: DataLoaderState,
    /// Whether the position's epoch has been started.
    started: bool,
}

/// Where a loader is: see [`DataLoader::state_dict`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataLoaderState {
    /// The epoch that is being iterated, or is next.
    pub epoch: u64,
    /// How many batches of this epoch have been yielded.
    pub batches: usize,
}

/// Sets up a [`DataLoader`].
#[derive(Debug)]
pub struct DataLoaderBuilder {
    dataset: Box<dyn Dataset>,
    collate: Box<dyn Collate>,
    batch_size: usize,
    drop_last: bool,
    shuffle: bool,
    seed: Option<u64>,
}

impl DataLoaderBuilder {
    /// How many samples a batch has; 1 by default, as in PyTorch.
    pub fn batch_size(self, batch_size: usize) -> Self {
        Self { batch_size, ..self }
    }

    /// Whether each epoch has an order of its own.
    pub fn shuffle(self, shuffle: bool) -> Self {
        Self { shuffle, ..self }
    }

    /// The seed of the order; by default that of [`set_seed`](crate::set_seed).
    pub fn seed(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// Whether a last batch that is not full is left out.
    pub fn drop_last(self, drop_last: bool) -> Self {
        Self { drop_last, ..self }
    }

    /// How samples become a batch; [`DefaultCollate`] if not set.
    pub fn collate(self, collate: impl Collate + 'static) -> Self {
        Self { collate: Box::new(collate), ..self }
    }

    /// The loader.
    ///
    /// # Errors
    /// A batch size of 0.
    pub fn build(self) -> Result<DataLoader> {
        if self.batch_size == 0 {
            return Err(Error::invalid("batch_size", "is 0; use at least 1"));
        }
        let shuffle_seed = self.shuffle.then(|| self.seed.unwrap_or_else(rng::seed));
        Ok(DataLoader {
            source: Arc::new(Source {
                dataset: self.dataset,
                collate: self.collate,
                batch_size: self.batch_size,
                drop_last: self.drop_last,
                shuffle_seed,
            }),
            state: Arc::default(),
            skipped: 0,
            device: None,
            gradient_state: None,
        })
    }
}

impl DataLoader {
    /// Starts a loader for `dataset`.
    pub fn builder(dataset: impl Dataset + 'static) -> DataLoaderBuilder {
        DataLoaderBuilder {
            dataset: Box::new(dataset),
            collate: Box::new(DefaultCollate),
            batch_size: 1,
            drop_last: false,
            shuffle: false,
            seed: None,
        }
    }

    /// How many batches an iteration yields.
    pub fn len(&self) -> usize {
        self.source.num_batches().saturating_sub(self.skipped)
    }

    /// Whether an iteration yields nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The dataset.
    pub fn dataset(&self) -> &dyn Dataset {
        &*self.source.dataset
    }

    /// How many samples a full batch has.
    pub fn batch_size(&self) -> usize {
        self.source.batch_size
    }

    /// Makes `epoch` the next one to be iterated.
    pub fn set_epoch(&self, epoch: u64) {
        self.load_state_dict(DataLoaderState { epoch, batches: 0 });
    }

    /// A loader over the same epochs, every one without its first `num_batches` batches: for the
    /// first epoch after resuming in the middle of it.
    ///
    /// ```
    /// # use candle_accelerate::data::{DataLoader, TensorDataset};
    /// # use candle_core::{Device, Tensor};
    /// # let dataset = TensorDataset::new([("x", Tensor::arange(0u32, 10, &Device::Cpu)?)])?;
    /// let dataloader = DataLoader::builder(dataset).batch_size(4).build()?;
    /// let rest = dataloader.skip_first_batches(1);
    /// assert_eq!(rest.len(), 2);
    /// assert_eq!(rest.iter().count(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn skip_first_batches(&self, num_batches: usize) -> Self {
        Self { skipped: self.skipped.saturating_add(num_batches), ..self.clone() }
    }

    /// Where the loader is.
    pub fn state_dict(&self) -> DataLoaderState {
        self.lock().position
    }

    /// Makes the epoch of `state` the next one to be iterated.
    ///
    /// It starts at its first batch; `skip_first_batches(state.batches)` starts where it was.
    pub fn load_state_dict(&self, state: DataLoaderState) {
        *self.lock() = State { position: state, started: false };
    }

    /// Starts the next epoch.
    pub fn iter(&self) -> Batches {
        let epoch = {
            let mut state = self.lock();
            let epoch = state.position.epoch + u64::from(state.started);
            *state =
                State { position: DataLoaderState { epoch, batches: self.skipped }, started: true };
            epoch
        };
        Batches {
            epoch,
            order: self.source.order(epoch),
            next: self.skipped,
            end: self.source.num_batches(),
            active: self.gradient_state.as_ref().map(|s| s.enter_loader(self.source.batch_size)),
            loader: self.clone(),
        }
    }

    /// Puts batches on `device` (if given), and tells `gradient_state` where an iteration is.
    pub(crate) fn prepared(self, device: Option<Device>, gradient_state: &GradientState) -> Self {
        Self { device, gradient_state: Some(gradient_state.clone()), ..self }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source {
    fn num_batches(&self) -> usize {
        let len = self.dataset.len();
        if self.drop_last { len / self.batch_size } else { len.div_ceil(self.batch_size) }
    }

    /// How many samples the batches of an epoch have together.
    fn num_samples(&self) -> usize {
        self.dataset.len().min(self.num_batches() * self.batch_size)
    }

    fn order(&self, epoch: u64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.dataset.len()).collect();
        if let Some(seed) = self.shuffle_seed {
            let mut rng = ChaCha8Rng::seed_from_u64(seed ^ ORDER);
            rng.set_stream(epoch);
            order.shuffle(&mut rng);
        }
        order
    }

    fn batch(&self, indices: &[usize], device: Option<&Device>) -> Result<Batch> {
        let samples = indices
            .iter()
            .map(|index| self.dataset.get(*index))
            .collect::<Result<Vec<Sample>>>()?;
        let batch = self.collate.collate(&samples)?;
        match device {
            Some(device) => batch.to_device(device),
            None => Ok(batch),
        }
    }
}

impl IntoIterator for &DataLoader {
    type Item = Batch;
    type IntoIter = Batches;

    fn into_iter(self) -> Batches {
        self.iter()
    }
}

/// One epoch of a [`DataLoader`]'s batches.
#[derive(Debug)]
pub struct Batches {
    loader: DataLoader,
    epoch: u64,
    order: Vec<usize>,
    next: usize,
    end: usize,
    /// Kept while there is more to come, and during the last batch.
    active: Option<ActiveLoader>,
}

impl Batches {
    /// Ends the iteration with an error.
    fn fail(&mut self, error: Error) -> Batch {
        self.end = 0;
        self.active = None;
        Batch::failed(error)
    }

    /// After the last batch the next epoch is due, unless another has been chosen meanwhile.
    fn finish(&mut self) {
        self.end = 0;
        self.active = None;
        let mut state = self.loader.lock();
        if state.started && state.position.epoch == self.epoch {
            let position = DataLoaderState { epoch: self.epoch + 1, batches: 0 };
            *state = State { position, started: false };
        }
    }
}

impl Iterator for Batches {
    type Item = Batch;

    fn next(&mut self) -> Option<Batch> {
        if self.end == 0 {
            return None;
        }
        if self.next >= self.end {
            self.finish();
            return None;
        }
        if interrupt::take() {
            return Some(self.fail(Error::Interrupted { step: self.next }));
        }
        let source = self.loader.source.clone();
        let first = self.next * source.batch_size;
        let last = (first + source.batch_size).min(self.order.len());
        if let Some(active) = &self.active {
            active.yields(last - first, source.num_samples() - first);
        }
        let batch = match source.batch(&self.order[first..last], self.loader.device.as_ref()) {
            Ok(batch) => batch,
            Err(error) => return Some(self.fail(error)),
        };
        self.next += 1;
        self.loader.lock().position.batches = self.next;
        Some(batch)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end.saturating_sub(self.next);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Batches {}
