//! The transformer encoder that DistilBERT, BERT and RoBERTa share.
//!
//! Only the names of the parameters and one dropout differ; see [`Names`].

use candle_core::Tensor;

use crate::nn::{Dropout, LayerNorm, Linear, ParameterBuilder};
use crate::ops::{self, Activation, Attention};
use crate::{Error, Result};

/// The activation that a configuration calls `name`.
pub(super) fn activation(name: &str) -> Result<Activation> {
    match name {
        "gelu" => Ok(Activation::Gelu),
        "gelu_new" | "gelu_pytorch_tanh" => Ok(Activation::GeluTanh),
        "relu" => Ok(Activation::Relu),
        "silu" | "swish" => Ok(Activation::Silu),
        _ => Err(Error::invalid(
            "activation",
            format!(
                "is \"{name}\"; those that work are gelu, gelu_new, gelu_pytorch_tanh, relu, silu, \
                 swish"
            ),
        )),
    }
}

/// The sizes of an encoder.
#[derive(Clone, Debug)]
pub(super) struct EncoderConfig {
    pub layers: usize,
    pub width: usize,
    pub heads: usize,
    pub intermediate: usize,
    pub activation: Activation,
    pub eps: f64,
    pub attention_dropout: f64,
    /// After the attention's last product. DistilBERT has none.
    pub attention_output_dropout: f64,
    pub output_dropout: f64,
}

/// What the parts of a layer are called in the checkpoints.
pub(super) struct Names {
    pub query: &'static str,
    pub key: &'static str,
    pub value: &'static str,
    pub attention_output: &'static str,
    pub attention_norm: &'static str,
    pub intermediate: &'static str,
    pub output: &'static str,
    pub output_norm: &'static str,
}

/// A stack of post-norm transformer layers.
#[derive(Clone, Debug)]
pub(super) struct Encoder {
    layers: Vec<Layer>,
}

impl Encoder {
    /// Layers under `layer.0.`, `layer.1.`, … of the builder.
    pub(super) fn new(
        config: &EncoderConfig,
        names: &Names,
        builder: &ParameterBuilder,
    ) -> Result<Self> {
        let builder = builder.child("layer");
        let layers = (0..config.layers)
            .map(|index| Layer::new(config, names, &builder.child(&index.to_string())))
            .collect::<Result<_>>()?;
        Ok(Self { layers })
    }

    /// [batch, length, width] to the same; `mask` is additive, [batch, 1, 1, length].
    pub(super) fn forward(&self, hidden: &Tensor, mask: Option<&Tensor>) -> Result<Tensor> {
        let mut hidden = hidden.clone();
        for layer in &self.layers {
            hidden = layer.forward(&hidden, mask)?;
        }
        Ok(hidden)
    }
}

#[derive(Clone, Debug)]
struct Layer {
    attention: SelfAttention,
    feed_forward: FeedForward,
}

impl Layer {
    fn new(config: &EncoderConfig, names: &Names, builder: &ParameterBuilder) -> Result<Self> {
        Ok(Self {
            attention: SelfAttention::new(config, names, builder)?,
            feed_forward: FeedForward::new(config, names, builder)?,
        })
    }

    fn forward(&self, hidden: &Tensor, mask: Option<&Tensor>) -> Result<Tensor> {
        self.feed_forward.forward(&self.attention.forward(hidden, mask)?)
    }
}

#[derive(Clone, Debug)]
struct SelfAttention {
    query: Linear,
    key: Linear,
    value: Linear,
    heads: usize,
    weights_dropout: Dropout,
    output: Linear,
    output_dropout: Dropout,
    norm: LayerNorm,
}

impl SelfAttention {
    fn new(config: &EncoderConfig, names: &Names, builder: &ParameterBuilder) -> Result<Self> {
        let linear = |name| Linear::new(config.width, config.width, &builder.child(name));
        Ok(Self {
            query: linear(names.query)?,
            key: linear(names.key)?,
            value: linear(names.value)?,
            heads: config.heads,
            weights_dropout: Dropout::new(config.attention_dropout, builder)?,
            output: linear(names.attention_output)?,
            output_dropout: Dropout::new(config.attention_output_dropout, builder)?,
            norm: LayerNorm::new(config.width, config.eps, &builder.child(names.attention_norm))?,
        })
    }

    fn forward(&self, hidden: &Tensor, mask: Option<&Tensor>) -> Result<Tensor> {
        let layer = ops::SelfAttention {
            query_weight: self.query.weight().tensor(),
            query_bias: self.query.bias().tensor(),
            key_weight: self.key.weight().tensor(),
            key_bias: self.key.bias().tensor(),
            value_weight: self.value.weight().tensor(),
            value_bias: self.value.bias().tensor(),
            attention: Attention {
                num_heads: self.heads,
                mask: mask.cloned(),
                dropout: self.weights_dropout.p(),
            },
            output_weight: self.output.weight().tensor(),
            output_bias: self.output.bias().tensor(),
            dropout: self.output_dropout.p(),
            norm_weight: self.norm.weight().tensor(),
            norm_bias: self.norm.bias().tensor(),
            eps: self.norm.eps(),
        };
        ops::self_attention(hidden, &layer)
    }
}

#[derive(Clone, Debug)]
struct FeedForward {
    intermediate: Linear,
    activation: Activation,
    output: Linear,
    dropout: Dropout,
    norm: LayerNorm,
}

impl FeedForward {
    fn new(config: &EncoderConfig, names: &Names, builder: &ParameterBuilder) -> Result<Self> {
        let (width, intermediate) = (config.width, config.intermediate);
        Ok(Self {
            intermediate: Linear::new(width, intermediate, &builder.child(names.intermediate))?,
            activation: config.activation,
            output: Linear::new(intermediate, width, &builder.child(names.output))?,
            dropout: Dropout::new(config.output_dropout, builder)?,
            norm: LayerNorm::new(width, config.eps, &builder.child(names.output_norm))?,
        })
    }

    fn forward(&self, hidden: &Tensor) -> Result<Tensor> {
        let layer = ops::FeedForward {
            intermediate_weight: self.intermediate.weight().tensor(),
            intermediate_bias: self.intermediate.bias().tensor(),
            activation: self.activation,
            output_weight: self.output.weight().tensor(),
            output_bias: self.output.bias().tensor(),
            dropout: self.dropout.p(),
            norm_weight: self.norm.weight().tensor(),
            norm_bias: self.norm.bias().tensor(),
            eps: self.norm.eps(),
        };
        ops::feed_forward(hidden, &layer)
    }
}
