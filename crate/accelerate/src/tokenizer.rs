//! Text to token ids.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use candle_core::{Device, Tensor};
use serde::Deserialize;
pub use tokenizers::EncodeInput;
use tokenizers::utils::padding::{PaddingParams, PaddingStrategy};
use tokenizers::utils::truncation::TruncationParams;
use tokenizers::{Encoding, PostProcessor, Tokenizer};

use crate::data::Batch;
use crate::{Error, Result};

/// Lengths above this mean "no limit" in `tokenizer_config.json`.
const NO_LIMIT: f64 = 1e9;

/// To which length the samples of a batch are padded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Padding {
    /// That of the longest sample.
    #[default]
    Longest,
    /// The maximum length, whatever the samples.
    MaxLength,
    /// Not at all: every sample must have the same length.
    None,
}

/// How [`AutoTokenizer::encode_batch_with`] makes a batch.
///
/// ```
/// use candle_accelerate::tokenizer::{EncodeOptions, Padding};
///
/// let options = EncodeOptions { max_length: Some(128), ..EncodeOptions::default() };
/// assert_eq!((options.padding, options.truncation), (Padding::Longest, true));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodeOptions {
    /// Whether longer samples are cut to the maximum length; pairs lose tokens of the longer text.
    pub truncation: bool,
    /// The maximum length with special tokens: the model's own unless given.
    pub max_length: Option<usize>,
    /// To which length samples are padded.
    pub padding: Padding,
}

impl Default for EncodeOptions {
    fn default() -> Self {
        Self { truncation: true, max_length: None, padding: Padding::Longest }
    }
}

/// The tokenizer that belongs to a model. Clones share the vocabulary.
///
/// ```
/// use candle_accelerate::tokenizer::AutoTokenizer;
///
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
/// # std::fs::write(folder.join("tokenizer.json"), r#"{
/// #     "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
/// #     "normalizer": null, "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null,
/// #     "decoder": null,
/// #     "model": {"type": "WordLevel", "unk_token": "?", "vocab": {"[PAD]": 0, "?": 1, "hello": 2}}
/// # }"#)?;
/// let tokenizer = AutoTokenizer::from_pretrained(folder)?;
/// let batch = tokenizer.encode_batch(["hello", "hello, world"])?;
/// assert_eq!(batch.get("input_ids")?.to_vec2::<u32>()?, [[2, 0, 0], [2, 1, 1]]);
/// assert_eq!(batch.get("attention_mask")?.to_vec2::<u32>()?, [[1, 0, 0], [1, 1, 1]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct AutoTokenizer(Arc<Inner>);

struct Inner {
    /// Locked, since truncation and padding are settings of the tokenizer itself.
    tokenizer: Mutex<Tokenizer>,
    max_length: Option<usize>,
    pad_id: u32,
    pad_token: String,
    token_type_ids: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenizerConfig {
    model_max_length: Option<f64>,
    pad_token: Option<Token>,
    model_input_names: Option<Vec<String>>,
    tokenizer_class: Option<String>,
}

/// A token as a string, or as the record that older files hold.
#[derive(Deserialize)]
#[serde(untagged)]
enum Token {
    Text(String),
    Record { content: String },
}

impl AutoTokenizer {
    /// Reads `tokenizer.json` and, if there, `tokenizer_config.json` (maximum length, padding
    /// token) in the folder `path`.
    ///
    /// # Errors
    /// A missing or damaged file, which is named.
    pub fn from_pretrained(path: impl AsRef<Path>) -> Result<Self> {
        let file = path.as_ref().join("tokenizer.json");
        let text = std::fs::read_to_string(&file).map_err(|source| Error::io(&file, source))?;
        let tokenizer: Tokenizer = text
            .parse()
            .map_err(|error| Error::file(&file, format!("is no tokenizer: {error}")))?;

        let config_file = path.as_ref().join("tokenizer_config.json");
        let config: TokenizerConfig = match std::fs::read_to_string(&config_file) {
            Ok(text) => serde_json::from_str(&text)
                .map_err(|error| Error::file(&config_file, format!("is damaged: {error}")))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Default::default(),
            Err(source) => return Err(Error::io(&config_file, source)),
        };

        let pad_token = match config.pad_token {
            Some(Token::Text(token) | Token::Record { content: token }) => Some(token),
            None => tokenizer.get_padding().map(|padding| padding.pad_token.clone()),
        };
        let known = ["[PAD]", "<pad>"].map(str::to_owned);
        let pad_token = pad_token.into_iter().chain(known).find_map(|token| {
            let id = tokenizer.token_to_id(&token)?;
            Some((token, id))
        });
        let (pad_token, pad_id) = pad_token.unwrap_or_default();
        Ok(Self(Arc::new(Inner {
            max_length: config
                .model_max_length
                .filter(|length| (1.0..NO_LIMIT).contains(length))
                .map(|length| length as usize),
            pad_id,
            pad_token,
            token_type_ids: match (config.model_input_names, config.tokenizer_class) {
                (Some(names), _) => names.iter().any(|name| name == "token_type_ids"),
                (None, Some(class)) => {
                    !class.starts_with("DistilBert") && !class.starts_with("Roberta")
                }
                (None, None) => true,
            },
            tokenizer: Mutex::new(tokenizer),
        })))
    }

    /// Encodes texts, or pairs of texts, cut to the model's maximum length and padded to the
    /// longest.
    ///
    /// The batch has `input_ids`, `attention_mask` (1 for a token, 0 for padding) and, if the model
    /// takes them, `token_type_ids`: u32, [texts, length], on the CPU.
    pub fn encode_batch<'a, T: Into<EncodeInput<'a>>>(
        &self,
        texts: impl IntoIterator<Item = T>,
    ) -> Result<Batch> {
        self.encode_batch_with(texts, &EncodeOptions::default())
    }

    /// [`encode_batch`](Self::encode_batch) with options.
    ///
    /// # Errors
    /// No texts; texts of several lengths without padding; a maximum length that leaves no room
    /// for text.
    pub fn encode_batch_with<'a, T: Into<EncodeInput<'a>>>(
        &self,
        texts: impl IntoIterator<Item = T>,
        options: &EncodeOptions,
    ) -> Result<Batch> {
        let texts: Vec<EncodeInput<'a>> = texts.into_iter().map(Into::into).collect();
        let encodings = self.encode(texts, options)?;
        let length = encodings.first().map_or(0, Encoding::len);
        if length == 0 {
            return Err(Error::invalid("the texts to encode", "hold no tokens at all"));
        }
        if encodings.iter().any(|encoding| encoding.len() != length) {
            return Err(Error::invalid(
                "the texts to encode",
                "have several lengths; pad them (Padding::Longest)",
            ));
        }
        let tensor = |row: fn(&Encoding) -> &[u32]| {
            let values: Vec<u32> = encodings.iter().flat_map(row).copied().collect();
            Tensor::from_vec(values, (encodings.len(), length), &Device::Cpu)
        };
        let mut tensors = vec![
            ("input_ids", tensor(Encoding::get_ids)?),
            ("attention_mask", tensor(Encoding::get_attention_mask)?),
        ];
        if self.0.token_type_ids {
            tensors.push(("token_type_ids", tensor(Encoding::get_type_ids)?));
        }
        Ok(Batch::new(tensors))
    }

    fn encode(
        &self,
        texts: Vec<EncodeInput<'_>>,
        options: &EncodeOptions,
    ) -> Result<Vec<Encoding>> {
        let failed =
            |error: tokenizers::Error| Error::invalid("tokenizer", format!("failed: {error}"));
        let max_length = options.max_length.or(self.0.max_length);
        let mut tokenizer = self.0.tokenizer.lock().unwrap_or_else(PoisonError::into_inner);
        let is_pair = |text: &EncodeInput<'_>| matches!(text, EncodeInput::Dual(..));
        let special = tokenizer
            .get_post_processor()
            .map_or(0, |processor| processor.added_tokens(texts.iter().any(is_pair)));
        let truncation = match max_length.filter(|_| options.truncation) {
            Some(max_length) if max_length <= special => {
                return Err(Error::invalid(
                    "max_length",
                    format!("is {max_length}; special tokens alone take {special}"),
                ));
            }
            limit => limit.map(|max_length| TruncationParams { max_length, ..Default::default() }),
        };
        let strategy = match options.padding {
            Padding::None => None,
            Padding::Longest => Some(PaddingStrategy::BatchLongest),
            Padding::MaxLength => Some(PaddingStrategy::Fixed(max_length.ok_or_else(|| {
                Error::invalid("max_length", "is needed to pad to it; the tokenizer has none")
            })?)),
        };
        let direction = tokenizer.get_padding().map(|padding| padding.direction);
        let padding = strategy.map(|strategy| PaddingParams {
            strategy,
            direction: direction.unwrap_or(PaddingParams::default().direction),
            pad_id: self.0.pad_id,
            pad_token: self.0.pad_token.clone(),
            ..Default::default()
        });
        tokenizer.with_truncation(truncation).map_err(failed)?.with_padding(padding);
        tokenizer.encode_batch(texts, true).map_err(failed)
    }

    /// The text of token ids, without special tokens.
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        let tokenizer = self.0.tokenizer.lock().unwrap_or_else(PoisonError::into_inner);
        tokenizer
            .decode(ids, true)
            .map_err(|error| Error::invalid("token ids", format!("cannot be decoded: {error}")))
    }

    /// How many tokens there are.
    pub fn vocab_size(&self) -> usize {
        let tokenizer = self.0.tokenizer.lock().unwrap_or_else(PoisonError::into_inner);
        tokenizer.get_vocab_size(true)
    }

    /// The id of padding.
    pub fn pad_id(&self) -> u32 {
        self.0.pad_id
    }

    /// The most tokens that the model takes, if the tokenizer knows.
    pub fn max_length(&self) -> Option<usize> {
        self.0.max_length
    }
}

impl fmt::Debug for AutoTokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AutoTokenizer")
            .field("vocab_size", &self.vocab_size())
            .field("max_length", &self.0.max_length)
            .field("pad_id", &self.0.pad_id)
            .finish()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const TOKENIZER: &str = r###"{
        "version": "1.0", "truncation": {"max_length": 4, "strategy": "LongestFirst", "stride": 0},
        "padding": null, "added_tokens": [], "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
        "decoder": null,
        "model": {"type": "WordLevel", "unk_token": "?",
            "vocab": {"[PAD]": 0, "?": 1, "[CLS]": 2, "[SEP]": 3, "a": 4, "b": 5, "c": 6}}
    }"###;

    fn tokenizer(config: &str) -> Result<AutoTokenizer> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tokenizer.json"), TOKENIZER).unwrap();
        std::fs::write(folder.path().join("tokenizer_config.json"), config).unwrap();
        AutoTokenizer::from_pretrained(folder.path())
    }

    fn ids(batch: &Batch, name: &str) -> Vec<Vec<u32>> {
        batch.get(name).unwrap().to_vec2().unwrap()
    }

    #[test]
    fn pairs_have_token_types_and_are_padded_to_the_longest() {
        let batch = tokenizer("{}").unwrap().encode_batch([("A b", "c"), ("a", "x")]).unwrap();
        assert_eq!(ids(&batch, "input_ids"), [[2, 4, 5, 3, 6, 3], [2, 4, 3, 1, 3, 0]]);
        assert_eq!(ids(&batch, "token_type_ids"), [[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0]]);
        assert_eq!(ids(&batch, "attention_mask"), [[1; 6], [1, 1, 1, 1, 1, 0]]);
    }

    #[test]
    fn the_models_maximum_cuts_and_options_override_it() {
        let tokenizer = tokenizer(r#"{"model_max_length": 5}"#).unwrap();
        let batch = tokenizer.encode_batch(["a b c a b c"]).unwrap();
        assert_eq!(ids(&batch, "input_ids"), [[2, 4, 5, 6, 3]]);
        let options = EncodeOptions {
            max_length: Some(7),
            padding: Padding::MaxLength,
            ..EncodeOptions::default()
        };
        let batch = tokenizer.encode_batch_with(["a"], &options).unwrap();
        assert_eq!(ids(&batch, "input_ids"), [[2, 4, 3, 0, 0, 0, 0]]);
        let whole = EncodeOptions { truncation: false, ..EncodeOptions::default() };
        let batch = tokenizer.encode_batch_with(["a b c a b c"], &whole).unwrap();
        assert_eq!(ids(&batch, "input_ids")[0].len(), 8);
    }

    #[test]
    fn models_without_token_types_get_none() {
        for config in [
            r#"{"model_input_names": ["input_ids", "attention_mask"]}"#,
            r#"{"tokenizer_class": "DistilBertTokenizer", "model_max_length": 1e30}"#,
        ] {
            let tokenizer = tokenizer(config).unwrap();
            assert_eq!(tokenizer.max_length(), None);
            let batch = tokenizer.encode_batch(["a"]).unwrap();
            assert!(batch.get_optional("token_type_ids").unwrap().is_none());
        }
    }

    #[test]
    fn what_cannot_be_encoded_is_an_error() {
        let tokenizer = tokenizer("{}").unwrap();
        let none: [&str; 0] = [];
        assert!(tokenizer.encode_batch(none).is_err());
        let options = |max_length, padding| EncodeOptions { max_length, padding, truncation: true };
        let error = tokenizer.encode_batch_with(["a"], &options(Some(2), Padding::Longest));
        assert_eq!(error.unwrap_err().to_string(), "max_length is 2; special tokens alone take 2");
        assert!(tokenizer.encode_batch_with(["a", "a b"], &options(None, Padding::None)).is_err());
        assert!(tokenizer.encode_batch_with(["a"], &options(None, Padding::MaxLength)).is_err());
    }

    #[test]
    fn damaged_files_are_named() {
        assert!(tokenizer("[").unwrap_err().to_string().contains("tokenizer_config.json"));
        let folder = tempfile::tempdir().unwrap();
        let error = |text: Option<&str>| {
            if let Some(text) = text {
                std::fs::write(folder.path().join("tokenizer.json"), text).unwrap();
            }
            AutoTokenizer::from_pretrained(folder.path()).unwrap_err().to_string()
        };
        for text in [None, Some("{}"), Some("not json")] {
            assert!(error(text).contains("tokenizer.json"));
        }
    }
}
