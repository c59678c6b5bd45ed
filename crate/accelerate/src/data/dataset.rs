//! Samples and where they come from.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use candle_core::Tensor;

use crate::{Error, Result};

/// One sample: named tensors without a batch dimension.
///
/// ```
/// use candle_accelerate::data::Sample;
/// use candle_core::{Device, Tensor};
///
/// let sample = Sample::new([
///     ("input_ids", Tensor::new(&[101u32, 7592, 102], &Device::Cpu)?),
///     ("labels", Tensor::new(1u32, &Device::Cpu)?),
/// ]);
/// assert_eq!(sample.get("input_ids").map(|ids| ids.elem_count()), Some(3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Sample(BTreeMap<String, Tensor>);

impl Sample {
    /// A sample of these tensors.
    pub fn new<N: Into<String>>(tensors: impl IntoIterator<Item = (N, Tensor)>) -> Self {
        Self(tensors.into_iter().map(|(name, tensor)| (name.into(), tensor)).collect())
    }

    /// The tensor called `name`.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.0.get(name)
    }

    /// The names and tensors, by name.
    pub fn iter(&self) -> std::collections::btree_map::Iter<'_, String, Tensor> {
        self.0.iter()
    }
}

/// A source of samples by index, as PyTorch's map-style `Dataset`.
///
/// ```
/// use candle_accelerate::Result;
/// use candle_accelerate::data::{DataLoader, Dataset, Sample};
/// use candle_core::{Device, Tensor};
///
/// #[derive(Debug)]
/// struct Squares;
///
/// impl Dataset for Squares {
///     fn len(&self) -> usize {
///         10
///     }
///
///     fn get(&self, index: usize) -> Result<Sample> {
///         Ok(Sample::new([("x", Tensor::new((index * index) as f32, &Device::Cpu)?)]))
///     }
/// }
///
/// let dataloader = DataLoader::builder(Squares).batch_size(4).build()?;
/// assert_eq!(dataloader.len(), 3);
/// # Ok::<(), candle_accelerate::Error>(())
/// ```
pub trait Dataset: Debug + Send + Sync {
    /// How many samples there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The sample at `index`, from 0 to below [`len`](Self::len).
    fn get(&self, index: usize) -> Result<Sample>;
}

impl<D: Dataset + ?Sized> Dataset for Arc<D> {
    fn len(&self) -> usize {
        (**self).len()
    }

    fn get(&self, index: usize) -> Result<Sample> {
        (**self).get(index)
    }
}

/// Samples that are held in memory.
///
/// ```
/// use candle_accelerate::data::{Dataset, InMemoryDataset, Sample};
/// use candle_core::{Device, Tensor};
///
/// let samples = (0..3u32).map(|x| Ok(Sample::new([("x", Tensor::new(x, &Device::Cpu)?)])));
/// let dataset = InMemoryDataset::new(samples.collect::<candle_core::Result<_>>()?);
/// assert_eq!(dataset.len(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct InMemoryDataset(Arc<Vec<Sample>>);

impl InMemoryDataset {
    /// A dataset of these samples.
    pub fn new(samples: Vec<Sample>) -> Self {
        Self(Arc::new(samples))
    }
}

impl Dataset for InMemoryDataset {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> Result<Sample> {
        self.0.get(index).cloned().ok_or_else(|| out_of_range(index, self.len()))
    }
}

/// Tensors whose first dimension is the sample.
///
/// ```
/// use candle_accelerate::data::{Dataset, TensorDataset};
/// use candle_core::{DType, Device, Tensor};
///
/// let pixels = Tensor::zeros((100, 28, 28), DType::F32, &Device::Cpu)?;
/// let labels = Tensor::zeros(100, DType::U32, &Device::Cpu)?;
/// let dataset = TensorDataset::new([("pixels", pixels), ("labels", labels)])?;
/// assert_eq!(dataset.len(), 100);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct TensorDataset {
    tensors: BTreeMap<String, Tensor>,
    len: usize,
}

impl TensorDataset {
    /// A dataset of these tensors.
    ///
    /// # Errors
    /// A tensor without dimensions, or with another first dimension than the others.
    pub fn new<N: Into<String>>(tensors: impl IntoIterator<Item = (N, Tensor)>) -> Result<Self> {
        let tensors: BTreeMap<String, Tensor> =
            tensors.into_iter().map(|(name, tensor)| (name.into(), tensor)).collect();
        let mut len = None;
        for (name, tensor) in &tensors {
            let first = tensor.dims().first().copied();
            match (first, len) {
                (Some(first), None) => len = Some(first),
                (Some(first), Some(len)) if first == len => {}
                _ => {
                    return Err(Error::invalid(
                        format!("tensor '{name}'"),
                        format!(
                            "has shape {:?}; its first dimension must be the number of samples{}",
                            tensor.dims(),
                            len.map(|len| format!(", {len}")).unwrap_or_default()
                        ),
                    ));
                }
            }
        }
        Ok(Self { tensors, len: len.unwrap_or(0) })
    }
}

impl Dataset for TensorDataset {
    fn len(&self) -> usize {
        self.len
    }

    fn get(&self, index: usize) -> Result<Sample> {
        if index >= self.len {
            return Err(out_of_range(index, self.len));
        }
        let mut sample = BTreeMap::new();
        for (name, tensor) in &self.tensors {
            sample.insert(name.clone(), tensor.get(index)?);
        }
        Ok(Sample(sample))
    }
}

pub(super) fn out_of_range(index: usize, len: usize) -> Error {
    Error::invalid(format!("sample {index}"), format!("does not exist; the dataset has {len}"))
}
