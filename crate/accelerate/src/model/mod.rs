//! Trainable models.
//!
//! To add an architecture: a configuration and a variant in `config.rs`, a file like
//! `distilbert.rs` with a [`BaseModel`] and a [`SequenceClassifier`] made of the layers of
//! [`nn`](crate::nn), and an arm in each of the two functions of `auto.rs` that build them.

mod auto;
mod bert;
mod config;
mod distilbert;
mod encoder;
mod inputs;
mod output;
mod pretrained;
mod roberta;

use candle_core::{DType, Tensor};

pub use auto::{AutoModel, AutoModelForSequenceClassification};
pub use bert::{BertForSequenceClassification, BertModel};
pub use config::{AutoConfig, BertConfig, DistilBertConfig, ProblemType};
pub use distilbert::{DistilBertForSequenceClassification, DistilBertModel};
pub use output::{BaseModelOutput, SequenceClassifierOutput};
pub use pretrained::PretrainedOptions;
pub use roberta::{RobertaForSequenceClassification, RobertaModel};

use crate::data::Batch;
pub use crate::nn::Mode;
use crate::{Error, Parameters, Result};

/// A network that gives each token a vector.
pub trait BaseModel: std::fmt::Debug + Send + Sync {
    /// The hidden states of a batch with `input_ids` [batch, length].
    fn forward(&self, batch: &Batch) -> Result<BaseModelOutput>;
}

/// A network that gives each sequence of tokens some numbers.
pub trait SequenceClassifier: std::fmt::Debug + Send + Sync {
    /// The logits [batch, num_labels] of a batch with `input_ids` [batch, length].
    fn logits(&self, batch: &Batch) -> Result<Tensor>;
}

/// What an [`Accelerator`](crate::Accelerator) needs to know of a model.
pub trait Model {
    /// Every parameter, in the order in which the model was built.
    fn parameters(&self) -> Parameters;

    /// The switch that the model's dropout layers follow.
    fn mode(&self) -> &Mode;

    /// Switches to training: dropout on.
    fn train(&self) {
        self.mode().set_training(true);
    }

    /// Switches to evaluation: dropout off.
    fn eval(&self) {
        self.mode().set_training(false);
    }

    /// The number of trainable and frozen elements together.
    fn num_parameters(&self) -> usize {
        self.parameters().num_elements()
    }
}

/// A scalar loss that knows the parameters it trains.
#[derive(Clone, Debug)]
pub struct Loss {
    tensor: Option<Tensor>,
    parameters: Parameters,
}

impl Loss {
    /// The loss `tensor` (a scalar) of a model with these parameters.
    pub fn new(tensor: Tensor, parameters: Parameters) -> Self {
        Self { tensor: Some(tensor), parameters }
    }

    /// The loss of a batch without labels: every use of it is an error.
    pub fn absent() -> Self {
        Self { tensor: None, parameters: Parameters::default() }
    }

    /// The scalar as a node of the autograd graph.
    pub fn tensor(&self) -> Result<&Tensor> {
        self.tensor.as_ref().ok_or_else(|| {
            Error::invalid("loss", "does not exist: the batch has no 'labels' tensor")
        })
    }

    /// The parameters of the model that made the loss.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The value.
    pub fn item(&self) -> Result<f32> {
        Ok(self.tensor()?.to_dtype(DType::F32)?.to_scalar()?)
    }

    /// Computes the gradients and adds them to the model's parameters.
    ///
    /// # Errors
    /// [`Error::MissingGradient`] when a trainable parameter got none.
    pub fn backward(&self) -> Result<()> {
        self.parameters.backward(self.tensor()?)
    }
}
