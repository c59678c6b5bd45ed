//! The device that an accelerator uses.

use std::fmt;
use std::ops::Deref;

use candle_core::utils::{cuda_is_available, metal_is_available};
use candle_core::{Device, DeviceLocation};

/// A candle [`Device`] that prints as PyTorch's does: `cpu`, `cuda:0`, `metal:0`.
///
/// `&device` can be used wherever candle wants a `&Device`.
///
/// ```
/// use candle_accelerate::Accelerator;
/// use candle_core::Tensor;
///
/// let accelerator = Accelerator::builder().cpu(true).build()?;
/// let device = accelerator.device();
/// assert_eq!(device.to_string(), "cpu");
/// let tensor = Tensor::new(&[1f32, 2.0], &device)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct AcceleratorDevice(Device);

impl AcceleratorDevice {
    /// The first GPU that is compiled in and found, else the CPU.
    pub(super) fn find() -> candle_core::Result<Self> {
        if cuda_is_available() {
            Ok(Self(Device::new_cuda(0)?))
        } else if metal_is_available() {
            Ok(Self(Device::new_metal(0)?))
        } else {
            Ok(Self::cpu())
        }
    }

    pub(super) fn cpu() -> Self {
        Self(Device::Cpu)
    }
}

impl Deref for AcceleratorDevice {
    type Target = Device;

    fn deref(&self) -> &Device {
        &self.0
    }
}

impl fmt::Display for AcceleratorDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.location() {
            DeviceLocation::Cpu => f.write_str("cpu"),
            DeviceLocation::Cuda { gpu_id } => write!(f, "cuda:{gpu_id}"),
            DeviceLocation::Metal { gpu_id } => write!(f, "metal:{gpu_id}"),
        }
    }
}
