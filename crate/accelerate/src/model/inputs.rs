//! What text models take out of a batch, checked.

use candle_core::{DType, Tensor};

use crate::data::Batch;
use crate::{Error, Result, ops};

/// The token tensors of a batch.
pub(super) struct Inputs<'a> {
    pub input_ids: &'a Tensor,
    pub token_type_ids: Option<&'a Tensor>,
    attention_mask: Option<&'a Tensor>,
    pub length: usize,
}

impl<'a> Inputs<'a> {
    /// `input_ids` [batch, length], and, where the batch has them, `attention_mask` and
    /// `token_type_ids` of the same shape; integers. At most `max_length` tokens.
    pub(super) fn new(batch: &'a Batch, max_length: usize) -> Result<Self> {
        let input_ids = batch.get("input_ids")?;
        let Ok((_, length)) = input_ids.dims2() else {
            return Err(wrong("input_ids", input_ids, "[batch, length]"));
        };
        if !input_ids.dtype().is_int() || length == 0 {
            return Err(wrong("input_ids", input_ids, "[batch, length]"));
        }
        if length > max_length {
            return Err(Error::invalid(
                "input_ids",
                format!(
                    "have {length} tokens per sample; the model has positions for {max_length}. \
                     Truncate when tokenizing"
                ),
            ));
        }
        let optional = |name| match batch.get_optional(name)? {
            Some(tensor) if tensor.dims() != input_ids.dims() || !tensor.dtype().is_int() => {
                Err(wrong(name, tensor, &format!("{:?}", input_ids.dims())))
            }
            tensor => Ok(tensor),
        };
        Ok(Self {
            input_ids,
            token_type_ids: optional("token_type_ids")?,
            attention_mask: optional("attention_mask")?,
            length,
        })
    }

    /// The additive attention mask, if the batch has one.
    pub(super) fn mask(&self, dtype: DType) -> Result<Option<Tensor>> {
        self.attention_mask.map(|mask| ops::attention_mask(mask, dtype)).transpose()
    }
}

fn wrong(name: &str, tensor: &Tensor, expected: &str) -> Error {
    Error::invalid(
        name,
        format!(
            "are {:?} {:?}; the model takes integers {expected}",
            tensor.dims(),
            tensor.dtype()
        ),
    )
}
