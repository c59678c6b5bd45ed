//! Model configurations: what `config.json` says.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{Error, Result};

/// The most that any size in a configuration may be; more means a broken or hostile file.
const MAX_SIZE: usize = 1 << 24;

/// The largest `config.json` that is read, in bytes.
const MAX_CONFIG_BYTES: u64 = 16 << 20;

/// What a classifier's outputs mean; decides the loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProblemType {
    /// Numbers: mean squared error.
    Regression,
    /// One class of several: cross-entropy.
    SingleLabelClassification,
    /// Any number of classes at once: binary cross-entropy.
    MultiLabelClassification,
}

/// The configuration of DistilBERT, with the field names of `config.json`.
///
/// ```
/// use candle_accelerate::model::DistilBertConfig;
///
/// let config = DistilBertConfig { dim: 64, n_heads: 4, ..DistilBertConfig::default() };
/// assert_eq!((config.dim, config.n_layers), (64, 6));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)] // The names are transformers' own and explained there.
pub struct DistilBertConfig {
    pub activation: String,
    pub attention_dropout: f64,
    pub dim: usize,
    pub dropout: f64,
    pub hidden_dim: usize,
    #[serde(deserialize_with = "labels", skip_serializing_if = "BTreeMap::is_empty")]
    pub id2label: BTreeMap<usize, String>,
    pub initializer_range: f64,
    pub max_position_embeddings: usize,
    pub n_heads: usize,
    pub n_layers: usize,
    pub pad_token_id: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem_type: Option<ProblemType>,
    pub seq_classif_dropout: f64,
    pub vocab_size: usize,
    /// Every other field of the file, kept as it is.
    #[serde(flatten)]
    pub extra: BTreeMap<String, Value>,
}

impl Default for DistilBertConfig {
    fn default() -> Self {
        Self {
            activation: "gelu".into(),
            attention_dropout: 0.1,
            dim: 768,
            dropout: 0.1,
            hidden_dim: 3072,
            id2label: BTreeMap::new(),
            initializer_range: 0.02,
            max_position_embeddings: 512,
            n_heads: 12,
            n_layers: 6,
            pad_token_id: Some(0),
            problem_type: None,
            seq_classif_dropout: 0.2,
            vocab_size: 30522,
            extra: BTreeMap::new(),
        }
    }
}

/// The configuration of BERT and RoBERTa, with the field names of `config.json`.
///
/// ```
/// use candle_accelerate::model::BertConfig;
///
/// assert_eq!(BertConfig::default().vocab_size, 30522);
/// assert_eq!(BertConfig::roberta().pad_token_id, Some(1));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)] // The names are transformers' own and explained there.
pub struct BertConfig {
    pub attention_probs_dropout_prob: f64,
    pub classifier_dropout: Option<f64>,
    pub hidden_act: String,
    pub hidden_dropout_prob: f64,
    pub hidden_size: usize,
    #[serde(deserialize_with = "labels", skip_serializing_if = "BTreeMap::is_empty")]
    pub id2label: BTreeMap<usize, String>,
    pub initializer_range: f64,
    pub intermediate_size: usize,
    pub layer_norm_eps: f64,
    pub max_position_embeddings: usize,
    pub num_attention_heads: usize,
    pub num_hidden_layers: usize,
    pub pad_token_id: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem_type: Option<ProblemType>,
    pub type_vocab_size: usize,
    pub vocab_size: usize,
    /// Every other field of the file, kept as it is.
    #[serde(flatten)]
    pub extra: BTreeMap<String, Value>,
}

impl Default for BertConfig {
    fn default() -> Self {
        Self {
            attention_probs_dropout_prob: 0.1,
            classifier_dropout: None,
            hidden_act: "gelu".into(),
            hidden_dropout_prob: 0.1,
            hidden_size: 768,
            id2label: BTreeMap::new(),
            initializer_range: 0.02,
            intermediate_size: 3072,
            layer_norm_eps: 1e-12,
            max_position_embeddings: 512,
            num_attention_heads: 12,
            num_hidden_layers: 12,
            pad_token_id: Some(0),
            problem_type: None,
            type_vocab_size: 2,
            vocab_size: 30522,
            extra: BTreeMap::new(),
        }
    }
}

impl BertConfig {
    /// RoBERTa's defaults.
    pub fn roberta() -> Self {
        Self { vocab_size: 50265, pad_token_id: Some(1), ..Self::default() }
    }
}

/// The configuration of any architecture this library trains.
///
/// Prints like transformers' configurations: the class name and sorted JSON.
///
/// ```
/// use candle_accelerate::model::{AutoConfig, DistilBertConfig};
///
/// let config = AutoConfig::DistilBert(DistilBertConfig::default()).with_num_labels(3);
/// assert_eq!(config.num_labels(), 3);
/// assert!(config.to_string().starts_with("DistilBertConfig {\n  \"activation\": \"gelu\","));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum AutoConfig {
    /// `"model_type": "distilbert"`
    DistilBert(DistilBertConfig),
    /// `"model_type": "bert"`
    Bert(BertConfig),
    /// `"model_type": "roberta"`
    Roberta(BertConfig),
}

impl AutoConfig {
    /// Reads `config.json` in the folder `path`.
    ///
    /// # Errors
    /// A file that cannot be read or is no configuration; a `model_type` that is not among those
    /// that work, which are named; sizes that no model has.
    pub fn from_pretrained(path: impl AsRef<Path>) -> Result<Self> {
        let file = path.as_ref().join("config.json");
        let io = |source| Error::io(&file, source);
        let bytes = std::fs::metadata(&file).map_err(io)?.len();
        if bytes > MAX_CONFIG_BYTES {
            return Err(Error::file(&file, format!("has {bytes} bytes; no configuration has")));
        }
        let text = std::fs::read_to_string(&file).map_err(io)?;
        Self::from_json(&text).map_err(|error| Error::file(&file, error.to_string()))
    }

    /// Reads the text of a `config.json`.
    ///
    /// ```
    /// use candle_accelerate::model::AutoConfig;
    ///
    /// let error = AutoConfig::from_json(r#"{"model_type": "gpt2"}"#).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "model_type is \"gpt2\"; those that work are distilbert, bert, roberta"
    /// );
    /// ```
    pub fn from_json(text: &str) -> Result<Self> {
        let wrong = |error: serde_json::Error| Error::invalid("configuration", format!("{error}"));
        let mut fields: Map<String, Value> = serde_json::from_str(text).map_err(wrong)?;
        let model_type = fields.remove("model_type").unwrap_or_default();
        let num_labels = fields.remove("num_labels");
        fields.remove("label2id");
        let config = match model_type.as_str() {
            Some("distilbert") => Self::DistilBert(parse(fields)?),
            Some("bert") => Self::Bert(parse(fields)?),
            Some("roberta") => {
                for (name, value) in [("vocab_size", 50265), ("pad_token_id", 1)] {
                    fields.entry(name).or_insert(json!(value));
                }
                Self::Roberta(parse(fields)?)
            }
            _ => {
                return Err(Error::invalid(
                    "model_type",
                    format!("is {model_type}; those that work are distilbert, bert, roberta"),
                ));
            }
        };
        config.validate()?;
        match num_labels {
            Some(count) if config.id2label().is_empty() => {
                let count = count.as_u64().and_then(|count| usize::try_from(count).ok());
                let count = count.filter(|count| (1..=MAX_SIZE).contains(count));
                let count = count.ok_or_else(|| Error::invalid("num_labels", "is no count"))?;
                Ok(config.with_num_labels(count))
            }
            _ => Ok(config),
        }
    }

    /// The value of `model_type`.
    pub fn model_type(&self) -> &'static str {
        match self {
            Self::DistilBert(_) => "distilbert",
            Self::Bert(_) => "bert",
            Self::Roberta(_) => "roberta",
        }
    }

    /// How many outputs a classifier has: 2 unless the configuration says otherwise.
    pub fn num_labels(&self) -> usize {
        match self.id2label() {
            labels if labels.is_empty() => 2,
            labels => labels.len(),
        }
    }

    /// The names of the classes: `LABEL_0`, … unless the configuration names them; may be empty
    /// for the default of two.
    pub fn id2label(&self) -> &BTreeMap<usize, String> {
        match self {
            Self::DistilBert(config) => &config.id2label,
            Self::Bert(config) | Self::Roberta(config) => &config.id2label,
        }
    }

    /// What a classifier's outputs mean, if the configuration says so.
    pub fn problem_type(&self) -> Option<ProblemType> {
        match self {
            Self::DistilBert(config) => config.problem_type,
            Self::Bert(config) | Self::Roberta(config) => config.problem_type,
        }
    }

    /// The same with `count` outputs called `LABEL_0`, …
    pub fn with_num_labels(self, count: usize) -> Self {
        self.with_labels((0..count).map(|id| format!("LABEL_{id}")))
    }

    /// The same with one output per name.
    pub fn with_labels<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        let labels = names.into_iter().map(Into::into).enumerate().collect();
        match &mut self {
            Self::DistilBert(config) => config.id2label = labels,
            Self::Bert(config) | Self::Roberta(config) => config.id2label = labels,
        }
        self
    }

    /// The same with this meaning of the outputs.
    pub fn with_problem_type(mut self, problem_type: ProblemType) -> Self {
        match &mut self {
            Self::DistilBert(config) => config.problem_type = Some(problem_type),
            Self::Bert(config) | Self::Roberta(config) => config.problem_type = Some(problem_type),
        }
        self
    }

    /// The text of a `config.json` that transformers reads.
    pub fn to_json(&self) -> String {
        let value = match self {
            Self::DistilBert(config) => serde_json::to_value(config),
            Self::Bert(config) | Self::Roberta(config) => serde_json::to_value(config),
        };
        // Sorted, whatever serde_json's features are.
        let mut fields: BTreeMap<String, Value> = match value {
            Ok(Value::Object(fields)) => fields.into_iter().collect(),
            _ => BTreeMap::new(),
        };
        fields.insert("model_type".into(), json!(self.model_type()));
        if !self.id2label().is_empty() {
            let label2id: BTreeMap<_, _> =
                self.id2label().iter().map(|(id, label)| (label, id)).collect();
            fields.insert("label2id".into(), json!(label2id));
        }
        serde_json::to_string_pretty(&fields).unwrap_or_default()
    }

    pub(super) fn initializer_range(&self) -> f64 {
        match self {
            Self::DistilBert(config) => config.initializer_range,
            Self::Bert(config) | Self::Roberta(config) => config.initializer_range,
        }
    }

    pub(super) fn extra_mut(&mut self) -> &mut BTreeMap<String, Value> {
        match self {
            Self::DistilBert(config) => &mut config.extra,
            Self::Bert(config) | Self::Roberta(config) => &mut config.extra,
        }
    }

    /// The name of transformers' model class.
    pub(super) fn architecture(&self, with_head: bool) -> String {
        let family = self.class_name().trim_end_matches("Config");
        format!("{family}{}", if with_head { "ForSequenceClassification" } else { "Model" })
    }

    fn class_name(&self) -> &'static str {
        match self {
            Self::DistilBert(_) => "DistilBertConfig",
            Self::Bert(_) => "BertConfig",
            Self::Roberta(_) => "RobertaConfig",
        }
    }

    /// Refuses what no model has, before anything is allocated for it.
    pub(super) fn validate(&self) -> Result<()> {
        let (sizes, heads, width, probabilities) = match self {
            Self::DistilBert(c) => (
                vec![
                    ("dim", c.dim),
                    ("hidden_dim", c.hidden_dim),
                    ("max_position_embeddings", c.max_position_embeddings),
                    ("n_heads", c.n_heads),
                    ("n_layers", c.n_layers),
                    ("vocab_size", c.vocab_size),
                ],
                c.n_heads,
                c.dim,
                vec![c.attention_dropout, c.dropout, c.seq_classif_dropout],
            ),
            Self::Bert(c) | Self::Roberta(c) => (
                vec![
                    ("hidden_size", c.hidden_size),
                    ("intermediate_size", c.intermediate_size),
                    ("max_position_embeddings", c.max_position_embeddings),
                    ("num_attention_heads", c.num_attention_heads),
                    ("num_hidden_layers", c.num_hidden_layers),
                    ("type_vocab_size", c.type_vocab_size),
                    ("vocab_size", c.vocab_size),
                ],
                c.num_attention_heads,
                c.hidden_size,
                vec![
                    c.attention_probs_dropout_prob,
                    c.hidden_dropout_prob,
                    c.classifier_dropout.unwrap_or(0.0),
                ],
            ),
        };
        if let Some((name, size)) = sizes.iter().find(|(_, size)| !(1..=MAX_SIZE).contains(size)) {
            return Err(Error::invalid(*name, format!("is {size}; use 1 to {MAX_SIZE}")));
        }
        if !width.is_multiple_of(heads) {
            return Err(Error::invalid(
                "the number of heads",
                format!("is {heads}; it must divide the width {width}"),
            ));
        }
        if let Some(p) = probabilities.iter().find(|p| !(0.0..=1.0).contains(*p)) {
            return Err(Error::invalid("dropout", format!("is {p}; use a probability, 0 to 1")));
        }
        let ids = self.id2label().keys().copied();
        if !ids.eq(0..self.id2label().len()) {
            return Err(Error::invalid("id2label", "must number its labels from 0 without a gap"));
        }
        Ok(())
    }
}

impl fmt::Display for AutoConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.class_name(), self.to_json())
    }
}

fn parse<T: DeserializeOwned>(fields: Map<String, Value>) -> Result<T> {
    serde_json::from_value(Value::Object(fields))
        .map_err(|error| Error::invalid("configuration", format!("is wrong: {error}")))
}

/// `id2label` may be missing, null, or have keys that are numbers in quotes.
fn labels<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<BTreeMap<usize, String>, D::Error> {
    let labels: Option<BTreeMap<String, String>> = Deserialize::deserialize(deserializer)?;
    let number = |(id, label): (String, String)| match id.parse() {
        Ok(id) => Ok((id, label)),
        Err(_) => Err(serde::de::Error::custom(format!("id2label has the id '{id}'"))),
    };
    labels.unwrap_or_default().into_iter().map(number).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn fields_nobody_knows_survive_a_round_trip() {
        let text = r#"{"model_type": "roberta", "hidden_size": 12, "torch_dtype": "float32",
            "id2label": {"0": "no", "1": "yes", "2": "maybe"}, "label2id": {"no": 0}}"#;
        let config = AutoConfig::from_json(text).unwrap();
        assert_eq!((config.num_labels(), config.model_type()), (3, "roberta"));
        let again = AutoConfig::from_json(&config.to_json()).unwrap();
        assert_eq!(again, config);
        let json: Value = serde_json::from_str(&config.to_json()).unwrap();
        assert_eq!(json["torch_dtype"], "float32");
        assert_eq!(json["label2id"]["maybe"], 2);
        assert_eq!(json["vocab_size"], 50265);
    }

    #[test]
    fn wrong_values_are_named() {
        let error = |text: &str| AutoConfig::from_json(text).unwrap_err().to_string();
        assert!(error("[1]").starts_with("configuration "));
        assert!(error("{}").contains("those that work are distilbert, bert, roberta"));
        assert!(error(r#"{"model_type": "bert", "hidden_size": "x"}"#).contains("is wrong"));
        assert_eq!(
            error(r#"{"model_type": "bert", "vocab_size": 99999999999}"#),
            "vocab_size is 99999999999; use 1 to 16777216"
        );
        assert_eq!(
            error(r#"{"model_type": "distilbert", "n_heads": 5}"#),
            "the number of heads is 5; it must divide the width 768"
        );
        assert!(error(r#"{"model_type": "bert", "id2label": {"1": "a"}}"#).contains("from 0"));
        let deep = format!(r#"{{"model_type": "bert", "x": {}"#, "[".repeat(100_000));
        assert!(error(&deep).contains("recursion limit"));
    }
}
