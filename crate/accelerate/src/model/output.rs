//! What models return, and the losses of classifiers.

use candle_core::{DType, Tensor};

use super::{Loss, ProblemType};
use crate::data::Batch;
use crate::ops::{self, CrossEntropy};
use crate::{Error, Parameters, Result};

/// What a base model returns.
#[derive(Clone, Debug)]
pub struct BaseModelOutput {
    /// A vector for each token: [batch, length, width].
    pub last_hidden_state: Tensor,
    /// A vector for each sample, [batch, width], from models that have a pooler.
    pub pooler_output: Option<Tensor>,
}

/// What a sequence classifier returns.
#[derive(Clone, Debug)]
pub struct SequenceClassifierOutput {
    /// The mean loss; an error in use if the batch has no `labels`.
    pub loss: Loss,
    /// [batch, num_labels], before softmax or sigmoid.
    pub logits: Tensor,
}

/// The loss of `logits` [batch, num_labels] against the batch's `labels`, as transformers chooses
/// it: by `problem_type` or, without one, mean squared error for one output, cross-entropy for
/// integer labels [batch], and binary cross-entropy for labels [batch, num_labels] of floats.
pub(super) fn classification_loss(
    logits: &Tensor,
    batch: &Batch,
    problem_type: Option<ProblemType>,
    parameters: Parameters,
) -> Result<Loss> {
    let Some(labels) = batch.get_optional("labels")? else { return Ok(Loss::absent()) };
    let problem_type = match problem_type {
        Some(problem_type) => problem_type,
        None if logits.dims()[1] == 1 => ProblemType::Regression,
        None if labels.dtype().is_int() => ProblemType::SingleLabelClassification,
        None => ProblemType::MultiLabelClassification,
    };
    let loss = match problem_type {
        ProblemType::SingleLabelClassification => {
            ops::cross_entropy(logits, labels, &CrossEntropy::default())?
        }
        ProblemType::Regression => {
            let (logits, labels) = paired(logits, labels)?;
            (logits - labels)?.sqr()?.mean_all()?
        }
        ProblemType::MultiLabelClassification => {
            let (logits, labels) = paired(logits, labels)?;
            binary_cross_entropy_with_logits(&logits, &labels)?
        }
    };
    Ok(Loss::new(loss, parameters))
}

/// Labels as floats in the shape of the logits.
fn paired(logits: &Tensor, labels: &Tensor) -> Result<(Tensor, Tensor)> {
    if labels.elem_count() != logits.elem_count() || labels.dims().first() != logits.dims().first()
    {
        return Err(Error::invalid(
            "labels",
            format!("have shape {:?}; the logits have {:?}", labels.dims(), logits.dims()),
        ));
    }
    let logits = logits.to_dtype(DType::F32)?;
    let labels = labels.to_dtype(DType::F32)?.reshape(logits.shape())?;
    Ok((logits, labels))
}

/// mean(max(x, 0) - x y + log(1 + e^-|x|)): the form that cannot overflow.
fn binary_cross_entropy_with_logits(x: &Tensor, y: &Tensor) -> candle_core::Result<Tensor> {
    let softplus = (x.abs()?.neg()?.exp()? + 1.0)?.log()?;
    (x.relu()? - x.mul(y)? + softplus)?.mean_all()
}
