//! BERT (Devlin et al., 2018).

use candle_core::Tensor;

use super::encoder::{Encoder, EncoderConfig, Names, activation};
use super::inputs::Inputs;
use super::{BaseModel, BaseModelOutput, BertConfig, SequenceClassifier};
use crate::Result;
use crate::data::Batch;
use crate::nn::{Dropout, Embedding, LayerNorm, Linear, ParameterBuilder};

const NAMES: Names = Names {
    query: "attention.self.query",
    key: "attention.self.key",
    value: "attention.self.value",
    attention_output: "attention.output.dense",
    attention_norm: "attention.output.LayerNorm",
    intermediate: "intermediate.dense",
    output: "output.dense",
    output_norm: "output.LayerNorm",
};

/// Where the positions of a sample's tokens start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Positions {
    /// At 0, for every token.
    FromZero,
    /// After the padding id, counting only tokens that are not padding; padding has the position
    /// of the padding id. RoBERTa's way.
    AfterPadding(u32),
}

/// The part of a BERT that turns ids into hidden states; RoBERTa's too.
#[derive(Clone, Debug)]
pub(super) struct BertEncoder {
    word_embeddings: Embedding,
    position_embeddings: Embedding,
    token_type_embeddings: Embedding,
    norm: LayerNorm,
    dropout: Dropout,
    encoder: Encoder,
    positions: Positions,
    max_length: usize,
}

impl BertEncoder {
    pub(super) fn new(
        config: &BertConfig,
        positions: Positions,
        builder: &ParameterBuilder,
    ) -> Result<Self> {
        let width = config.hidden_size;
        let embeddings = builder.child("embeddings");
        let embedding = |name, count, padding_id| {
            Embedding::new(count, width, padding_id, &embeddings.child(name))
        };
        let (position_padding, reserved) = match positions {
            Positions::FromZero => (None, 0),
            Positions::AfterPadding(id) => (Some(id), id as usize + 1),
        };
        let encoder_config = EncoderConfig {
            layers: config.num_hidden_layers,
            width,
            heads: config.num_attention_heads,
            intermediate: config.intermediate_size,
            activation: activation(&config.hidden_act)?,
            eps: config.layer_norm_eps,
            attention_dropout: config.attention_probs_dropout_prob,
            attention_output_dropout: config.hidden_dropout_prob,
            output_dropout: config.hidden_dropout_prob,
        };
        Ok(Self {
            word_embeddings: embedding("word_embeddings", config.vocab_size, config.pad_token_id)?,
            position_embeddings: embedding(
                "position_embeddings",
                config.max_position_embeddings,
                position_padding,
            )?,
            token_type_embeddings: embedding(
                "token_type_embeddings",
                config.type_vocab_size,
                None,
            )?,
            norm: LayerNorm::new(width, config.layer_norm_eps, &embeddings.child("LayerNorm"))?,
            dropout: Dropout::new(config.hidden_dropout_prob, builder)?,
            encoder: Encoder::new(&encoder_config, &NAMES, &builder.child("encoder"))?,
            positions,
            max_length: config.max_position_embeddings.saturating_sub(reserved),
        })
    }

    /// [batch, length, width].
    pub(super) fn forward(&self, batch: &Batch) -> Result<Tensor> {
        let inputs = Inputs::new(batch, self.max_length)?;
        let device = inputs.input_ids.device();
        let positions = match self.positions {
            Positions::FromZero => Tensor::arange(0, inputs.length as u32, device)?,
            Positions::AfterPadding(id) => positions_after_padding(inputs.input_ids, id)?,
        };
        let token_types = match inputs.token_type_ids {
            Some(ids) => ids.clone(),
            None => inputs.input_ids.zeros_like()?,
        };
        let embedded = self
            .word_embeddings
            .forward(inputs.input_ids)?
            .add(&self.token_type_embeddings.forward(&token_types)?)?
            .broadcast_add(&self.position_embeddings.forward(&positions)?)?;
        let hidden = self.dropout.forward(&self.norm.forward(&embedded)?)?;
        self.encoder.forward(&hidden, inputs.mask(hidden.dtype())?.as_ref())
    }
}

fn positions_after_padding(input_ids: &Tensor, padding_id: u32) -> Result<Tensor> {
    let ids = input_ids.to_dtype(candle_core::DType::U32)?;
    let mut positions = ids.to_vec2::<u32>()?;
    for row in &mut positions {
        let mut position = padding_id;
        for id in row {
            *id = if *id == padding_id {
                padding_id
            } else {
                position += 1;
                position
            };
        }
    }
    Ok(Tensor::new(positions, input_ids.device())?)
}

/// The first token's vector through a product and tanh.
#[derive(Clone, Debug)]
pub(super) struct Pooler {
    dense: Linear,
}

impl Pooler {
    pub(super) fn new(width: usize, builder: &ParameterBuilder) -> Result<Self> {
        Ok(Self { dense: Linear::new(width, width, &builder.child("dense"))? })
    }

    pub(super) fn forward(&self, hidden: &Tensor) -> Result<Tensor> {
        let first = hidden.narrow(1, 0, 1)?.squeeze(1)?;
        Ok(self.dense.forward(&first)?.tanh()?)
    }
}

/// BERT without a head, with its pooler.
///
/// A loss of `last_hidden_state` alone does not reach the pooler; freeze it then.
#[derive(Clone, Debug)]
pub struct BertModel {
    encoder: BertEncoder,
    pooler: Pooler,
}

impl BertModel {
    /// The model with its parameters from `builder`.
    pub fn new(config: &BertConfig, builder: &ParameterBuilder) -> Result<Self> {
        Self::with_positions(config, Positions::FromZero, builder)
    }

    pub(super) fn with_positions(
        config: &BertConfig,
        positions: Positions,
        builder: &ParameterBuilder,
    ) -> Result<Self> {
        Ok(Self {
            encoder: BertEncoder::new(config, positions, builder)?,
            pooler: Pooler::new(config.hidden_size, &builder.child("pooler"))?,
        })
    }
}

impl BaseModel for BertModel {
    fn forward(&self, batch: &Batch) -> Result<BaseModelOutput> {
        let last_hidden_state = self.encoder.forward(batch)?;
        let pooler_output = Some(self.pooler.forward(&last_hidden_state)?);
        Ok(BaseModelOutput { last_hidden_state, pooler_output })
    }
}

/// BERT with a classifier on its pooler.
#[derive(Clone, Debug)]
pub struct BertForSequenceClassification {
    bert: BertModel,
    dropout: Dropout,
    classifier: Linear,
}

impl BertForSequenceClassification {
    /// The model with its parameters from `builder`.
    pub fn new(config: &BertConfig, num_labels: usize, builder: &ParameterBuilder) -> Result<Self> {
        let dropout = config.classifier_dropout.unwrap_or(config.hidden_dropout_prob);
        Ok(Self {
            bert: BertModel::new(config, &builder.child("bert"))?,
            dropout: Dropout::new(dropout, builder)?,
            classifier: Linear::new(config.hidden_size, num_labels, &builder.child("classifier"))?,
        })
    }
}

impl SequenceClassifier for BertForSequenceClassification {
    fn logits(&self, batch: &Batch) -> Result<Tensor> {
        let pooled = self.bert.pooler.forward(&self.bert.encoder.forward(batch)?)?;
        self.classifier.forward(&self.dropout.forward(&pooled)?)
    }
}
