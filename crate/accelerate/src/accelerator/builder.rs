//! Settings of an accelerator.

use super::{Accelerator, device::AcceleratorDevice};
use crate::{Error, GradientState, Result, rng};

/// Sets up an [`Accelerator`].
///
/// ```
/// use candle_accelerate::Accelerator;
///
/// let accelerator = Accelerator::builder().cpu(true).gradient_accumulation_steps(4).build()?;
/// assert!(accelerator.sync_gradients());
/// # Ok::<(), candle_accelerate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct AcceleratorBuilder {
    device_placement: bool,
    cpu: bool,
    seed: Option<u64>,
    gradient_accumulation_steps: usize,
    sync_with_dataloader: bool,
    find_unused_parameters: bool,
}

impl Default for AcceleratorBuilder {
    fn default() -> Self {
        Self {
            device_placement: true,
            cpu: false,
            seed: None,
            gradient_accumulation_steps: 1,
            sync_with_dataloader: true,
            find_unused_parameters: false,
        }
    }
}

impl AcceleratorBuilder {
    /// Whether `prepare` moves models and batches to the device; on by default.
    pub fn device_placement(self, device_placement: bool) -> Self {
        Self { device_placement, ..self }
    }

    /// Whether to use the CPU even if there is a GPU.
    pub fn cpu(self, cpu: bool) -> Self {
        Self { cpu, ..self }
    }

    /// Calls [`set_seed`](crate::set_seed) when the accelerator is built.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// How many batches make one optimizer step: see [`Accelerator::accumulate`].
    pub fn gradient_accumulation_steps(self, steps: usize) -> Self {
        Self { gradient_accumulation_steps: steps, ..self }
    }

    /// Whether the last batch of a prepared loader ends its accumulation window, even if that is
    /// not full; on by default, as in Accelerate.
    ///
    /// Switch it off where [`Accelerator::accumulate`] runs inside a short inner loop over a
    /// prepared loader: every end of the inner loop would force an optimizer step.
    pub fn sync_with_dataloader(self, sync_with_dataloader: bool) -> Self {
        Self { sync_with_dataloader, ..self }
    }

    /// Whether `backward` accepts that trained parameters get no gradient; off by default.
    pub fn find_unused_parameters(self, find_unused_parameters: bool) -> Self {
        Self { find_unused_parameters, ..self }
    }

    /// The accelerator.
    ///
    /// # Errors
    /// 0 accumulation steps, or a GPU that is found but cannot be used.
    pub fn build(self) -> Result<Accelerator> {
        if self.gradient_accumulation_steps == 0 {
            return Err(Error::invalid("gradient_accumulation_steps", "is 0; use at least 1"));
        }
        if let Some(seed) = self.seed {
            rng::set_seed(seed);
        }
        let device = if self.cpu { AcceleratorDevice::cpu() } else { AcceleratorDevice::find()? };
        let gradient_state =
            GradientState::new(self.gradient_accumulation_steps, self.sync_with_dataloader);
        Ok(Accelerator::from_parts(
            device,
            gradient_state,
            self.device_placement,
            self.find_unused_parameters,
        ))
    }
}
