//! The transformer encoder that DistilBERT, BERT and RoBERTa share.
//!
//! Only the names of the parameters and one dropout differ; see [`Names`].

use candle_core::Tensor;

use crate::nn::{Dropout, LayerNorm, Linear, ParameterBuilder};
use crate::ops::{self, Attention};
use crate::{Error, Result};

/// The function between the two products of the feed-forward part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activation {
    Gelu,
    GeluTanh,
    Relu,
    Silu,
}

impl Activation {
    /// The activation that a configuration calls `name`.
    pub(super) fn from_name(name: &str) -> Result<Self> {
        match name {
            "gelu" => Ok(Self::Gelu),
            "gelu_new" | "gelu_pytorch_tanh" => Ok(Self::GeluTanh),
            "relu" => Ok(Self::Relu),
            "silu" | "swish" => Ok(Self::Silu),
            _ => Err(Error::invalid(
                "activation",
                format!(
                    "is \"{name}\"; those that work are gelu, gelu_new, gelu_pytorch_tanh, relu, \
                     silu, swish"
                ),
            )),
        }
    }

    fn forward(self, x: &Tensor) -> Result<Tensor> {
        match self {
            Self::Gelu => ops::gelu(x),
            Self::GeluTanh => ops::gelu_tanh(x),
            Self::Relu => Ok(x.relu()?),
            Self::Silu => Ok(x.silu()?),
        }
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
    attention_norm: LayerNorm,
    feed_forward: FeedForward,
    output_norm: LayerNorm,
}

impl Layer {
    fn new(config: &EncoderConfig, names: &Names, builder: &ParameterBuilder) -> Result<Self> {
        let norm = |name| LayerNorm::new(config.width, config.eps, &builder.child(name));
        Ok(Self {
            attention: SelfAttention::new(config, names, builder)?,
            attention_norm: norm(names.attention_norm)?,
            feed_forward: FeedForward::new(config, names, builder)?,
            output_norm: norm(names.output_norm)?,
        })
    }

    fn forward(&self, hidden: &Tensor, mask: Option<&Tensor>) -> Result<Tensor> {
        let attended = self.attention.forward(hidden, mask)?;
        let hidden = self.attention_norm.forward(&(attended + hidden)?)?;
        let output = self.feed_forward.forward(&hidden)?;
        self.output_norm.forward(&(output + hidden)?)
    }
}

#[derive(Clone, Debug)]
struct SelfAttention {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    heads: usize,
    weights_dropout: Dropout,
    output_dropout: Dropout,
}

impl SelfAttention {
    fn new(config: &EncoderConfig, names: &Names, builder: &ParameterBuilder) -> Result<Self> {
        let linear = |name| Linear::new(config.width, config.width, &builder.child(name));
        Ok(Self {
            query: linear(names.query)?,
            key: linear(names.key)?,
            value: linear(names.value)?,
            output: linear(names.attention_output)?,
            heads: config.heads,
            weights_dropout: Dropout::new(config.attention_dropout, builder)?,
            output_dropout: Dropout::new(config.attention_output_dropout, builder)?,
        })
    }

    fn forward(&self, hidden: &Tensor, mask: Option<&Tensor>) -> Result<Tensor> {
        let attended = ops::scaled_dot_product_attention(
            &self.query.forward(hidden)?,
            &self.key.forward(hidden)?,
            &self.value.forward(hidden)?,
            &Attention {
                num_heads: self.heads,
                mask: mask.cloned(),
                dropout: self.weights_dropout.p(),
            },
        )?;
        self.output_dropout.forward(&self.output.forward(&attended)?)
    }
}

#[derive(Clone, Debug)]
struct FeedForward {
    intermediate: Linear,
    activation: Activation,
    output: Linear,
    dropout: Dropout,
}

impl FeedForward {
    fn new(config: &EncoderConfig, names: &Names, builder: &ParameterBuilder) -> Result<Self> {
        let (width, intermediate) = (config.width, config.intermediate);
        Ok(Self {
            intermediate: Linear::new(width, intermediate, &builder.child(names.intermediate))?,
            activation: config.activation,
            output: Linear::new(intermediate, width, &builder.child(names.output))?,
            dropout: Dropout::new(config.output_dropout, builder)?,
        })
    }

    fn forward(&self, hidden: &Tensor) -> Result<Tensor> {
        let intermediate = self.activation.forward(&self.intermediate.forward(hidden)?)?;
        self.dropout.forward(&self.output.forward(&intermediate)?)
    }
}
