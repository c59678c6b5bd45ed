//! DistilBERT (Sanh et al., 2019).

use candle_core::Tensor;

use super::encoder::{Encoder, EncoderConfig, Names, activation};
use super::inputs::Inputs;
use super::{BaseModel, BaseModelOutput, DistilBertConfig, SequenceClassifier};
use crate::Result;
use crate::data::Batch;
use crate::nn::{Dropout, Embedding, LayerNorm, Linear, ParameterBuilder};

const EPS: f64 = 1e-12;

const NAMES: Names = Names {
    query: "attention.q_lin",
    key: "attention.k_lin",
    value: "attention.v_lin",
    attention_output: "attention.out_lin",
    attention_norm: "sa_layer_norm",
    intermediate: "ffn.lin1",
    output: "ffn.lin2",
    output_norm: "output_layer_norm",
};

/// DistilBERT without a head.
///
/// ```
/// use candle_accelerate::data::Batch;
/// use candle_accelerate::model::{BaseModel, DistilBertConfig, DistilBertModel};
/// use candle_accelerate::nn::ParameterBuilder;
/// use candle_core::{DType, Device, Tensor};
///
/// let config = DistilBertConfig {
///     vocab_size: 20, dim: 8, hidden_dim: 16, n_layers: 1, n_heads: 2,
///     ..DistilBertConfig::default()
/// };
/// let model = DistilBertModel::new(&config, &ParameterBuilder::new(DType::F32, &Device::Cpu))?;
/// let batch = Batch::new([("input_ids", Tensor::new(&[[1u32, 2, 3]], &Device::Cpu)?)]);
/// assert_eq!(model.forward(&batch)?.last_hidden_state.dims(), [1, 3, 8]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct DistilBertModel {
    word_embeddings: Embedding,
    position_embeddings: Embedding,
    norm: LayerNorm,
    dropout: Dropout,
    encoder: Encoder,
    max_positions: usize,
}

impl DistilBertModel {
    /// The model with its parameters from `builder`.
    pub fn new(config: &DistilBertConfig, builder: &ParameterBuilder) -> Result<Self> {
        let embeddings = builder.child("embeddings");
        let encoder_config = EncoderConfig {
            layers: config.n_layers,
            width: config.dim,
            heads: config.n_heads,
            intermediate: config.hidden_dim,
            activation: activation(&config.activation)?,
            eps: EPS,
            attention_dropout: config.attention_dropout,
            attention_output_dropout: 0.0,
            output_dropout: config.dropout,
        };
        Ok(Self {
            word_embeddings: Embedding::new(
                config.vocab_size,
                config.dim,
                config.pad_token_id,
                &embeddings.child("word_embeddings"),
            )?,
            position_embeddings: Embedding::new(
                config.max_position_embeddings,
                config.dim,
                None,
                &embeddings.child("position_embeddings"),
            )?,
            norm: LayerNorm::new(config.dim, EPS, &embeddings.child("LayerNorm"))?,
            dropout: Dropout::new(config.dropout, builder)?,
            encoder: Encoder::new(&encoder_config, &NAMES, &builder.child("transformer"))?,
            max_positions: config.max_position_embeddings,
        })
    }

    /// [batch, length, dim].
    fn hidden_states(&self, batch: &Batch) -> Result<Tensor> {
        let inputs = Inputs::new(batch, self.max_positions)?;
        let positions = Tensor::arange(0, inputs.length as u32, inputs.input_ids.device())?;
        let embedded = self
            .word_embeddings
            .forward(inputs.input_ids)?
            .broadcast_add(&self.position_embeddings.forward(&positions)?)?;
        let hidden = self.dropout.forward(&self.norm.forward(&embedded)?)?;
        self.encoder.forward(&hidden, inputs.mask(hidden.dtype())?.as_ref())
    }
}

impl BaseModel for DistilBertModel {
    fn forward(&self, batch: &Batch) -> Result<BaseModelOutput> {
        Ok(BaseModelOutput { last_hidden_state: self.hidden_states(batch)?, pooler_output: None })
    }
}

/// DistilBERT with a classifier on its first token.
#[derive(Clone, Debug)]
pub struct DistilBertForSequenceClassification {
    distilbert: DistilBertModel,
    pre_classifier: Linear,
    dropout: Dropout,
    classifier: Linear,
}

impl DistilBertForSequenceClassification {
    /// The model with its parameters from `builder`.
    pub fn new(
        config: &DistilBertConfig,
        num_labels: usize,
        builder: &ParameterBuilder,
    ) -> Result<Self> {
        Ok(Self {
            distilbert: DistilBertModel::new(config, &builder.child("distilbert"))?,
            pre_classifier: Linear::new(config.dim, config.dim, &builder.child("pre_classifier"))?,
            dropout: Dropout::new(config.seq_classif_dropout, builder)?,
            classifier: Linear::new(config.dim, num_labels, &builder.child("classifier"))?,
        })
    }
}

impl SequenceClassifier for DistilBertForSequenceClassification {
    fn logits(&self, batch: &Batch) -> Result<Tensor> {
        let hidden = self.distilbert.hidden_states(batch)?;
        let first = hidden.narrow(1, 0, 1)?.squeeze(1)?;
        let pooled = self.pre_classifier.forward(&first)?.relu()?;
        self.classifier.forward(&self.dropout.forward(&pooled)?)
    }
}
