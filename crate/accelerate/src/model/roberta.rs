//! RoBERTa (Liu et al., 2019): BERT with other positions and another head.

use candle_core::Tensor;

use super::bert::{BertEncoder, BertModel, Positions};
use super::{BaseModel, BaseModelOutput, BertConfig, SequenceClassifier};
use crate::data::Batch;
use crate::nn::{Dropout, Linear, ParameterBuilder};
use crate::{Error, Result};

fn positions(config: &BertConfig) -> Result<Positions> {
    let padding_id = config.pad_token_id.ok_or_else(|| {
        Error::invalid("pad_token_id", "is missing; RoBERTa counts positions from it")
    })?;
    Ok(Positions::AfterPadding(padding_id))
}

/// RoBERTa without a head, with its pooler.
///
/// A loss of `last_hidden_state` alone does not reach the pooler; freeze it then.
#[derive(Clone, Debug)]
pub struct RobertaModel(BertModel);

impl RobertaModel {
    /// The model with its parameters from `builder`.
    pub fn new(config: &BertConfig, builder: &ParameterBuilder) -> Result<Self> {
        BertModel::with_positions(config, positions(config)?, builder).map(Self)
    }
}

impl BaseModel for RobertaModel {
    fn forward(&self, batch: &Batch) -> Result<BaseModelOutput> {
        self.0.forward(batch)
    }
}

/// RoBERTa with a classifier on its first token. It has no pooler.
#[derive(Clone, Debug)]
pub struct RobertaForSequenceClassification {
    roberta: BertEncoder,
    dense: Linear,
    dropout: Dropout,
    out_proj: Linear,
}

impl RobertaForSequenceClassification {
    /// The model with its parameters from `builder`.
    pub fn new(config: &BertConfig, num_labels: usize, builder: &ParameterBuilder) -> Result<Self> {
        let roberta = BertEncoder::new(config, positions(config)?, &builder.child("roberta"))?;
        let builder = builder.child("classifier");
        let dropout = config.classifier_dropout.unwrap_or(config.hidden_dropout_prob);
        let width = config.hidden_size;
        Ok(Self {
            roberta,
            dense: Linear::new(width, width, &builder.child("dense"))?,
            dropout: Dropout::new(dropout, &builder)?,
            out_proj: Linear::new(width, num_labels, &builder.child("out_proj"))?,
        })
    }
}

impl SequenceClassifier for RobertaForSequenceClassification {
    fn logits(&self, batch: &Batch) -> Result<Tensor> {
        let first = self.roberta.forward(batch)?.narrow(1, 0, 1)?.squeeze(1)?;
        let hidden = self.dense.forward(&self.dropout.forward(&first)?)?.tanh()?;
        self.out_proj.forward(&self.dropout.forward(&hidden)?)
    }
}
