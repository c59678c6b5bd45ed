//! Whether gradients are complete: shared by accelerator, loaders and optimizers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Follows gradient accumulation, as Accelerate's `GradientState`. Clones share it.
///
/// A window is the `num_steps` batches whose gradients make one optimizer step. The last window of
/// a loader may be short; it is weighted by what it really holds.
#[derive(Clone, Debug)]
pub struct GradientState(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    num_steps: usize,
    sync_with_dataloader: bool,
    /// Whether the gradients of the current window are complete.
    sync_gradients: bool,
    /// The number of the current window.
    window: u64,
    /// How many batches of the current window have been started.
    started: usize,
    /// The samples in the current window, if a loader says so.
    window_samples: Option<usize>,
    /// Whether the current window has had a backward pass.
    has_gradients: bool,
    /// Whether the loop was left in the middle of a window.
    abandoned: bool,
    /// What the current batch's loss counts in the window.
    weight: f64,
    /// The loaders that are being iterated, outermost first.
    loaders: Vec<Position>,
    next_id: u64,
}

/// Where a loader is.
#[derive(Clone, Copy, Debug)]
struct Position {
    id: u64,
    batch_size: usize,
    /// Samples in the current batch.
    samples: usize,
    /// Samples in the current batch and all later ones.
    remaining: usize,
}

impl GradientState {
    pub(crate) fn new(num_steps: usize, sync_with_dataloader: bool) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            num_steps,
            sync_with_dataloader,
            sync_gradients: true,
            window: 0,
            started: 0,
            window_samples: None,
            has_gradients: false,
            abandoned: false,
            weight: 1.0,
            loaders: Vec::new(),
            next_id: 0,
        })))
    }

    /// Whether gradients are complete, so that an optimizer step is due.
    pub fn sync_gradients(&self) -> bool {
        self.lock().sync_gradients
    }

    /// Whether the innermost prepared loader that is being iterated is at its last batch.
    pub fn end_of_dataloader(&self) -> bool {
        self.lock().at_end()
    }

    /// The number of batches in a full window.
    pub fn num_steps(&self) -> usize {
        self.lock().num_steps
    }

    /// What the current batch's loss counts: the weights of a window add up to 1.
    pub(crate) fn weight(&self) -> f64 {
        self.lock().weight
    }

    /// The number of the current window.
    pub(crate) fn window(&self) -> u64 {
        self.lock().window
    }

    /// Whether an optimizer that last stepped in window `stepped` may forget its gradients.
    ///
    /// In the middle of a window it may not: the gradients would miss in the step to come. So a
    /// loop may call `zero_grad` first, as without accumulation, or last.
    pub(crate) fn may_zero_grad(&self, stepped: Option<u64>) -> bool {
        let inner = self.lock();
        inner.num_steps == 1 || !inner.has_gradients || stepped == Some(inner.window)
    }

    /// Starts the next batch of the window. Says whether gradients of a window that was never
    /// finished are left over.
    pub(crate) fn start_batch(&self) -> bool {
        let mut inner = self.lock();
        if inner.sync_gradients {
            inner.window += 1;
            inner.started = 0;
            inner.has_gradients = false;
        }
        let position = inner.loaders.last().copied().filter(|_| inner.sync_with_dataloader);
        if inner.started == 0 {
            inner.window_samples = position
                .map(|position| position.remaining.min(inner.num_steps * position.batch_size));
        }
        inner.started += 1;
        inner.weight = match (position, inner.window_samples) {
            (Some(position), Some(total)) => position.samples as f64 / total.max(1) as f64,
            _ => 1.0 / inner.num_steps as f64,
        };
        let at_end = inner.sync_with_dataloader && inner.at_end();
        inner.sync_gradients = inner.started >= inner.num_steps || at_end;
        std::mem::take(&mut inner.abandoned)
    }

    /// Ends the batch: a backward pass outside of a window counts in full.
    pub(crate) fn end_batch(&self) {
        self.lock().weight = 1.0;
    }

    /// A backward pass has added gradients.
    pub(crate) fn add_gradients(&self) {
        self.lock().has_gradients = true;
    }

    /// A loader starts; what it returns stands for the loader until dropped.
    pub(crate) fn enter_loader(&self, batch_size: usize) -> ActiveLoader {
        let mut inner = self.lock();
        let id = inner.next_id;
        inner.next_id += 1;
        inner.loaders.push(Position { id, batch_size, samples: 0, remaining: 0 });
        ActiveLoader { state: self.clone(), id }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn at_end(&self) -> bool {
        self.loaders.last().is_some_and(|position| position.samples >= position.remaining)
    }
}

/// A prepared loader that is being iterated.
#[derive(Debug)]
pub(crate) struct ActiveLoader {
    state: GradientState,
    id: u64,
}

impl ActiveLoader {
    /// The loader is about to yield a batch of `samples`, the first of `remaining` samples.
    pub(crate) fn yields(&self, samples: usize, remaining: usize) {
        let mut inner = self.state.lock();
        if let Some(position) = inner.loaders.iter_mut().find(|position| position.id == self.id) {
            position.samples = samples;
            position.remaining = remaining;
        }
    }
}

impl Drop for ActiveLoader {
    fn drop(&mut self) {
        let mut inner = self.state.lock();
        inner.loaders.retain(|position| position.id != self.id);
        if inner.loaders.is_empty() && inner.sync_with_dataloader {
            // The loop is over, also when it was left early: what follows is no part of its window.
            inner.abandoned |= !inner.sync_gradients;
            inner.sync_gradients = true;
            inner.has_gradients = false;
        }
    }
}
