//! Making a batch of samples.

use std::collections::BTreeMap;
use std::fmt::Debug;

use candle_core::Tensor;

use super::{Batch, Sample};
use crate::{Error, Result};

/// Makes one batch of several samples.
///
/// ```
/// use candle_accelerate::Result;
/// use candle_accelerate::data::{Batch, Collate, DefaultCollate, Sample};
///
/// /// Keeps only the labels.
/// #[derive(Debug)]
/// struct Labels;
///
/// impl Collate for Labels {
///     fn collate(&self, samples: &[Sample]) -> Result<Batch> {
///         let batch = DefaultCollate.collate(samples)?;
///         Ok(Batch::new([("labels", batch.get("labels")?.clone())]))
///     }
/// }
/// ```
pub trait Collate: Debug + Send + Sync {
    /// The batch of `samples`, of which there is at least one. The first dimension of each of its
    /// tensors is the sample.
    fn collate(&self, samples: &[Sample]) -> Result<Batch>;
}

/// Stacks the tensors of each name; they must have the same shape in every sample.
#[derive(Clone, Copy, Debug, Default)]
pub struct DefaultCollate;

impl Collate for DefaultCollate {
    fn collate(&self, samples: &[Sample]) -> Result<Batch> {
        collate_by_name(samples, stack)
    }
}

/// Pads token sequences to the longest of the batch, then stacks.
///
/// Names that are padded, and with what: `input_ids` with the tokenizer's padding token,
/// `attention_mask` and `token_type_ids` with 0, `labels` (if they are sequences) with -100, which
/// losses ignore. Other names are only stacked; give them a value with
/// [`pad_value`](Self::pad_value).
///
/// ```
/// use candle_accelerate::data::{Collate, DataCollatorWithPadding, Sample};
/// use candle_core::{Device, Tensor};
///
/// let sample = |ids: &[u32]| Ok(Sample::new([("input_ids", Tensor::new(ids, &Device::Cpu)?)]));
/// let samples = [sample(&[7]), sample(&[8, 9])].into_iter().collect::<candle_core::Result<Vec<_>>>()?;
/// let batch = DataCollatorWithPadding::new(0).collate(&samples)?;
/// assert_eq!(batch.get("input_ids")?.to_vec2::<u32>()?, [[7, 0], [8, 9]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct DataCollatorWithPadding {
    pad_values: BTreeMap<String, f64>,
    pad_to_multiple_of: usize,
}

impl DataCollatorWithPadding {
    /// For a tokenizer with this padding token.
    pub fn new(pad_token_id: u32) -> Self {
        let values = [
            ("input_ids", f64::from(pad_token_id)),
            ("attention_mask", 0.0),
            ("token_type_ids", 0.0),
            ("labels", -100.0),
        ];
        Self {
            pad_values: values.map(|(name, value)| (name.to_owned(), value)).into(),
            pad_to_multiple_of: 1,
        }
    }

    /// Pads the tensors called `name` with `value` too.
    pub fn pad_value(mut self, name: impl Into<String>, value: f64) -> Self {
        self.pad_values.insert(name.into(), value);
        self
    }

    /// Makes every padded length a multiple of `multiple` (0 counts as 1).
    pub fn pad_to_multiple_of(self, multiple: usize) -> Self {
        Self { pad_to_multiple_of: multiple.max(1), ..self }
    }

    fn pad(&self, name: &str, tensors: &[&Tensor]) -> Result<Tensor> {
        let Some(value) = self.pad_values.get(name) else { return stack(name, tensors) };
        if tensors.iter().any(|tensor| tensor.rank() == 0) {
            return stack(name, tensors);
        }
        let longest = tensors.iter().map(|tensor| tensor.dims()[0]).max().unwrap_or(0);
        let length = longest.next_multiple_of(self.pad_to_multiple_of);
        let padded = tensors
            .iter()
            .map(|tensor| pad_to(tensor, length, *value))
            .collect::<Result<Vec<_>>>()?;
        stack(name, &padded.iter().collect::<Vec<_>>())
    }
}

impl Collate for DataCollatorWithPadding {
    fn collate(&self, samples: &[Sample]) -> Result<Batch> {
        collate_by_name(samples, |name, tensors| self.pad(name, tensors))
    }
}

/// Lengthens the first dimension to `length` with `value`.
fn pad_to(tensor: &Tensor, length: usize, value: f64) -> Result<Tensor> {
    let mut dims = tensor.dims().to_vec();
    if dims[0] == length {
        return Ok(tensor.clone());
    }
    dims[0] = length - dims[0];
    let padding = Tensor::full(value, dims, tensor.device())?.to_dtype(tensor.dtype())?;
    Ok(Tensor::cat(&[tensor, &padding], 0)?)
}

fn stack(name: &str, tensors: &[&Tensor]) -> Result<Tensor> {
    let first = tensors[0];
    match tensors.iter().find(|tensor| tensor.shape() != first.shape()) {
        None => Ok(Tensor::stack(tensors, 0)?),
        Some(other) => Err(Error::invalid(
            format!("'{name}'"),
            format!(
                "has shape {:?} in one sample of a batch and {:?} in another; use a collate that \
                 pads it, such as DataCollatorWithPadding",
                first.dims(),
                other.dims()
            ),
        )),
    }
}

/// Calls `make` with the tensors of each name; every sample must have the names of the first.
fn collate_by_name(
    samples: &[Sample],
    make: impl Fn(&str, &[&Tensor]) -> Result<Tensor>,
) -> Result<Batch> {
    let Some(first) = samples.first() else {
        return Err(Error::invalid("batch", "has no samples"));
    };
    let mut tensors = Vec::new();
    for (name, _) in first.iter() {
        let values = samples
            .iter()
            .map(|sample| {
                sample.get(name).ok_or_else(|| {
                    Error::invalid(
                        "sample",
                        format!("has no '{name}', as others of its batch have"),
                    )
                })
            })
            .collect::<Result<Vec<_>>>()?;
        tensors.push((name.clone(), make(name, &values)?));
    }
    Ok(Batch::new(tensors))
}
