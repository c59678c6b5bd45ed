//! One mini-batch: named tensors.

use std::collections::BTreeMap;
use std::sync::Arc;

use candle_core::{Device, Tensor};

use crate::{Error, Result};

/// Named tensors that belong together: what a loader yields and a model takes.
///
/// A loader that fails half way (a bad row, an interrupt) yields a batch that holds the error;
/// the first use of that batch returns it. So `for batch in &dataloader` needs no `?` of its own.
///
/// ```
/// use candle_accelerate::data::Batch;
/// use candle_core::{Device, Tensor};
///
/// let batch = Batch::new([("input_ids", Tensor::new(&[[1u32, 2]], &Device::Cpu)?)]);
/// assert_eq!(batch.get("input_ids")?.dims(), [1, 2]);
/// assert!(batch.get("labels").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Batch(Result<BTreeMap<String, Tensor>, Arc<Error>>);

impl Batch {
    /// A batch of these tensors. The first dimension of each is the sample.
    pub fn new<N: Into<String>>(tensors: impl IntoIterator<Item = (N, Tensor)>) -> Self {
        Self(Ok(tensors.into_iter().map(|(name, tensor)| (name.into(), tensor)).collect()))
    }

    /// A batch whose every use returns `error`.
    pub fn failed(error: Error) -> Self {
        Self(Err(Arc::new(error)))
    }

    /// The tensors by name, or the error that kept the loader from making them.
    pub fn tensors(&self) -> Result<&BTreeMap<String, Tensor>> {
        self.0.as_ref().map_err(|error| Error::Shared(error.clone()))
    }

    /// The tensor called `name`.
    pub fn get(&self, name: &str) -> Result<&Tensor> {
        let tensors = self.tensors()?;
        tensors.get(name).ok_or_else(|| {
            let names: Vec<_> = tensors.keys().map(String::as_str).collect();
            Error::invalid("batch", format!("has no tensor '{name}'; it has {}", names.join(", ")))
        })
    }

    /// The tensor called `name`, if the batch has one.
    pub fn get_optional(&self, name: &str) -> Result<Option<&Tensor>> {
        Ok(self.tensors()?.get(name))
    }

    /// The same batch on `device`.
    pub fn to_device(&self, device: &Device) -> Result<Self> {
        let mut moved = BTreeMap::new();
        for (name, tensor) in self.tensors()? {
            moved.insert(name.clone(), tensor.to_device(device)?);
        }
        Ok(Self(Ok(moved)))
    }

    /// The number of samples: the first dimension.
    pub fn len(&self) -> Result<usize> {
        match self.tensors()?.values().next() {
            Some(tensor) => Ok(tensor.dim(0)?),
            None => Ok(0),
        }
    }

    /// Whether the batch has no samples.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }
}
