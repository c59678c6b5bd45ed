//! Models by configuration: any architecture behind one type.

use std::path::Path;
use std::sync::Arc;

use candle_core::{DType, Device};

use super::output::classification_loss;
use super::{
    AutoConfig, BaseModel, BaseModelOutput, BertForSequenceClassification, BertModel,
    DistilBertForSequenceClassification, DistilBertModel, Model, PretrainedOptions,
    RobertaForSequenceClassification, RobertaModel, SequenceClassifier, SequenceClassifierOutput,
    pretrained,
};
use crate::data::Batch;
use crate::nn::{LoadingReport, Mode, ParameterBuilder};
use crate::{Error, Parameters, Result};

/// What both kinds of model have around their network.
#[derive(Debug)]
struct Shell<N: ?Sized> {
    config: AutoConfig,
    parameters: Parameters,
    mode: Mode,
    report: LoadingReport,
    network: Box<N>,
}

impl<N: ?Sized> Shell<N> {
    fn new(
        config: AutoConfig,
        builder: &ParameterBuilder,
        network: impl FnOnce(&AutoConfig, &ParameterBuilder) -> Result<Box<N>>,
    ) -> Result<Arc<Self>> {
        config.validate()?;
        let network = network(&config, builder)?;
        Ok(Arc::new(Self {
            config,
            parameters: builder.parameters(),
            mode: builder.mode(),
            report: builder.finish(),
            network,
        }))
    }

    fn freeze(&self, prefix: &str) -> Result<()> {
        let mut found = false;
        for parameter in &self.parameters {
            if parameter.name().starts_with(prefix) {
                parameter.set_requires_grad(false);
                found = true;
            }
        }
        if found {
            return Ok(());
        }
        Err(Error::invalid("freeze", format!("found no parameter whose name begins '{prefix}'")))
    }
}

fn new_builder(config: &AutoConfig) -> ParameterBuilder {
    ParameterBuilder::new(DType::F32, &Device::Cpu)
        .with_initializer_range(config.initializer_range())
}

/// The methods that both kinds of model share.
macro_rules! auto_model {
    ($name:ident, $with_head:expr, $build:ident) => {
        impl $name {
            /// A new model, initialised as transformers does, in training mode, f32 on the CPU.
            pub fn from_config(config: AutoConfig) -> Result<Self> {
                let builder = new_builder(&config);
                Ok(Self(Shell::new(config, &builder, $build)?))
            }

            /// The model in a folder with `config.json` and `model.safetensors` (or shards of it
            /// and their index).
            ///
            /// As in transformers, it starts in evaluation mode: call
            /// [`train`](Model::train) before training, for dropout. What the folder lacks is
            /// initialised; see [`loading_report`](Self::loading_report).
            ///
            /// # Errors
            /// No such folder; an architecture that does not work; a damaged file; a tensor whose
            /// shape is not what the configuration says, with both shapes.
            pub fn from_pretrained(path_or_name: impl AsRef<Path>) -> Result<Self> {
                Self::from_pretrained_with(path_or_name, &PretrainedOptions::default())
            }

            /// [`from_pretrained`](Self::from_pretrained) with options.
            pub fn from_pretrained_with(
                path_or_name: impl AsRef<Path>,
                options: &PretrainedOptions,
            ) -> Result<Self> {
                let folder = pretrained::resolve(path_or_name)?;
                let config = options.config(&folder)?;
                let builder = pretrained::builder(&folder, &config, $with_head, options)?;
                let model = Self(Shell::new(config, &builder, $build)?);
                model.eval();
                Ok(model)
            }

            /// Writes `config.json` and `model.safetensors` into `folder`, for
            /// [`from_pretrained`](Self::from_pretrained) and for transformers.
            pub fn save_pretrained(&self, folder: impl AsRef<Path>) -> Result<()> {
                let architecture = self.0.config.architecture($with_head);
                pretrained::save(folder.as_ref(), &self.0.config, &architecture, &self.0.parameters)
            }

            /// The configuration. Prints as transformers prints it.
            pub fn config(&self) -> &AutoConfig {
                &self.0.config
            }

            /// What was and was not found in the folder the model came from.
            pub fn loading_report(&self) -> &LoadingReport {
                &self.0.report
            }

            /// Stops training the parameters whose names begin with `prefix`.
            ///
            /// # Errors
            /// No parameter's name does.
            pub fn freeze(&self, prefix: &str) -> Result<()> {
                self.0.freeze(prefix)
            }
        }

        impl Model for $name {
            fn parameters(&self) -> Parameters {
                self.0.parameters.clone()
            }

            fn mode(&self) -> &Mode {
                &self.0.mode
            }
        }
    };
}

/// A model that gives each token a vector.
///
/// Clones share the parameters.
///
/// ```
/// use candle_accelerate::data::Batch;
/// use candle_accelerate::model::{AutoConfig, AutoModel};
/// use candle_core::{Device, Tensor};
///
/// let config = AutoConfig::from_json(
///     r#"{"model_type": "bert", "vocab_size": 30, "hidden_size": 8, "intermediate_size": 16,
///         "num_hidden_layers": 1, "num_attention_heads": 2}"#,
/// )?;
/// let model = AutoModel::from_config(config)?;
/// let batch = Batch::new([("input_ids", Tensor::new(&[[1u32, 2, 3]], &Device::Cpu)?)]);
/// let outputs = model.forward(&batch)?;
/// assert_eq!(outputs.last_hidden_state.dims(), [1, 3, 8]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct AutoModel(Arc<Shell<dyn BaseModel>>);

auto_model!(AutoModel, false, base_model);

fn base_model(config: &AutoConfig, builder: &ParameterBuilder) -> Result<Box<dyn BaseModel>> {
    Ok(match config {
        AutoConfig::DistilBert(config) => Box::new(DistilBertModel::new(config, builder)?),
        AutoConfig::Bert(config) => Box::new(BertModel::new(config, builder)?),
        AutoConfig::Roberta(config) => Box::new(RobertaModel::new(config, builder)?),
    })
}

impl AutoModel {
    /// The hidden states of a batch with `input_ids` and, if any, `attention_mask` and
    /// `token_type_ids`, each [batch, length].
    pub fn forward(&self, batch: &Batch) -> Result<BaseModelOutput> {
        self.0.network.forward(batch)
    }
}

/// A model that puts a sequence of tokens into classes (or gives it numbers).
///
/// Clones share the parameters.
///
/// ```
/// use candle_accelerate::data::Batch;
/// use candle_accelerate::model::{AutoConfig, AutoModelForSequenceClassification, Model};
/// use candle_core::{Device, Tensor};
///
/// let config = AutoConfig::from_json(
///     r#"{"model_type": "distilbert", "vocab_size": 30, "dim": 8, "hidden_dim": 16,
///         "n_layers": 1, "n_heads": 2}"#,
/// )?;
/// let model = AutoModelForSequenceClassification::from_config(config)?;
/// let batch = Batch::new([
///     ("input_ids", Tensor::new(&[[1u32, 2, 3], [4, 5, 0]], &Device::Cpu)?),
///     ("attention_mask", Tensor::new(&[[1u32, 1, 1], [1, 1, 0]], &Device::Cpu)?),
///     ("labels", Tensor::new(&[0u32, 1], &Device::Cpu)?),
/// ]);
/// let outputs = model.forward(&batch)?;
/// assert_eq!(outputs.logits.dims(), [2, 2]);
/// outputs.loss.backward()?;
/// assert!(model.parameters().iter().all(|parameter| parameter.grad().is_some()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct AutoModelForSequenceClassification(Arc<Shell<dyn SequenceClassifier>>);

auto_model!(AutoModelForSequenceClassification, true, classifier);

fn classifier(
    config: &AutoConfig,
    builder: &ParameterBuilder,
) -> Result<Box<dyn SequenceClassifier>> {
    let labels = config.num_labels();
    Ok(match config {
        AutoConfig::DistilBert(config) => {
            Box::new(DistilBertForSequenceClassification::new(config, labels, builder)?)
        }
        AutoConfig::Bert(config) => {
            Box::new(BertForSequenceClassification::new(config, labels, builder)?)
        }
        AutoConfig::Roberta(config) => {
            Box::new(RobertaForSequenceClassification::new(config, labels, builder)?)
        }
    })
}

impl AutoModelForSequenceClassification {
    /// Logits, and the loss if the batch has `labels`.
    ///
    /// The batch has `input_ids` and, if any, `attention_mask` (1 for a token, 0 for padding) and
    /// `token_type_ids`: integers, `[batch, length]`. `labels` are integers `[batch]` for one class of
    /// several, floats `[batch, num_labels]` for several at once, floats `[batch]` for regression.
    pub fn forward(&self, batch: &Batch) -> Result<SequenceClassifierOutput> {
        let logits = self.0.network.logits(batch)?;
        let problem_type = self.0.config.problem_type();
        let loss = classification_loss(&logits, batch, problem_type, self.parameters())?;
        Ok(SequenceClassifierOutput { loss, logits })
    }

    /// How many outputs there are.
    pub fn num_labels(&self) -> usize {
        self.0.config.num_labels()
    }
}
