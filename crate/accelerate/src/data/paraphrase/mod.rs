//! A built-in task in the shape of MRPC: do two English sentences say the same?
//!
//! Pairs are generated from a small grammar: who did (or never did) what, with how many of which
//! things, and where; in the active or the passive voice, in several orders, with synonyms. Both
//! sentences of a pair state facts: the same fact for a paraphrase (label 1), facts that differ in
//! one to five details for the others (label 0). A fact belongs either to the training set or to
//! the test set, whatever the seed, so nothing that a test pair says is ever seen in training.
//!
//! A DistilBERT of 2 layers, 96 wide with 12 heads, `initializer_range` 0.1 and no dropout learns
//! it from 8,000 pairs in 3 epochs of batches of 32 with Adam at 1e-3, warmed up over a tenth of
//! the steps.

mod grammar;

use std::collections::HashSet;
use std::sync::Arc;

use candle_core::{Device, Tensor};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tokenizers::models::wordlevel::WordLevel;
use tokenizers::normalizers::utils::Lowercase;
use tokenizers::pre_tokenizers::whitespace::Whitespace;
use tokenizers::processors::template::TemplateProcessing;
use tokenizers::{AddedToken, Tokenizer};

use self::grammar::Fact;
use super::dataset::out_of_range;
use super::{DataCollatorWithPadding, Dataset, Sample};
use crate::{Error, Result};

/// Two sentences and whether they say the same.
///
/// ```
/// use candle_accelerate::data::paraphrase::ParaphraseDataset;
///
/// let dataset = ParaphraseDataset::train(10, 42)?;
/// let pair = &dataset.pairs()[0];
/// println!("{}\n{}\n{}", pair.sentence1, pair.sentence2, pair.label);
/// # Ok::<(), candle_accelerate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SentencePair {
    /// The first sentence.
    pub sentence1: String,
    /// The second sentence.
    pub sentence2: String,
    /// 1 for a paraphrase, 0 otherwise.
    pub label: u32,
}

/// Generated sentence pairs, encoded as `input_ids`, `attention_mask` (both `u32`, one dimension)
/// and `labels` (`u32`, a scalar).
///
/// About half of the pairs are paraphrases. The same size and seed give the same pairs.
///
/// ```
/// use candle_accelerate::data::paraphrase::ParaphraseDataset;
/// use candle_accelerate::data::{DataLoader, Dataset};
///
/// let dataset = ParaphraseDataset::train(100, 42)?;
/// let dataloader = DataLoader::builder(dataset.clone())
///     .batch_size(16)
///     .shuffle(true)
///     .collate(dataset.collate())
///     .build()?;
/// for batch in &dataloader {
///     assert_eq!(batch.get("input_ids")?.dims(), batch.get("attention_mask")?.dims());
/// }
/// # Ok::<(), candle_accelerate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ParaphraseDataset {
    pairs: Arc<Vec<SentencePair>>,
    tokenizer: Arc<Tokenizer>,
}

impl ParaphraseDataset {
    /// `size` pairs to train on.
    pub fn train(size: usize, seed: u64) -> Result<Self> {
        Self::generate(size, seed, false)
    }

    /// `size` pairs to test with, none of whose facts is in any training set.
    pub fn test(size: usize, seed: u64) -> Result<Self> {
        Self::generate(size, seed, true)
    }

    /// The sentences.
    pub fn pairs(&self) -> &[SentencePair] {
        &self.pairs
    }

    /// The tokenizer: one token for each word, `[CLS] sentence1 [SEP] sentence2 [SEP]`.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// How many tokens the tokenizer knows: the model's `vocab_size`.
    pub fn vocab_size(&self) -> usize {
        self.tokenizer.get_vocab_size(true)
    }

    /// What pads the batches of a loader.
    pub fn collate(&self) -> DataCollatorWithPadding {
        DataCollatorWithPadding::new(PAD.1)
    }

    fn generate(size: usize, seed: u64, held_out: bool) -> Result<Self> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(u64::from(held_out));
        let mut seen = HashSet::with_capacity(size);
        let mut pairs = Vec::with_capacity(size);
        while pairs.len() < size {
            let pair = random_pair(held_out, &mut rng);
            if seen.insert(pair.clone()) {
                pairs.push(pair);
            }
        }
        Ok(Self { pairs: Arc::new(pairs), tokenizer: Arc::new(tokenizer()?) })
    }
}

impl Dataset for ParaphraseDataset {
    fn len(&self) -> usize {
        self.pairs.len()
    }

    fn get(&self, index: usize) -> Result<Sample> {
        let pair = self.pairs.get(index).ok_or_else(|| out_of_range(index, self.len()))?;
        let sentences = (pair.sentence1.as_str(), pair.sentence2.as_str());
        let encoding = self.tokenizer.encode(sentences, true).map_err(tokenizer_error)?;
        Ok(Sample::new([
            ("input_ids", Tensor::new(encoding.get_ids(), &Device::Cpu)?),
            ("attention_mask", Tensor::new(encoding.get_attention_mask(), &Device::Cpu)?),
            ("labels", Tensor::new(pair.label, &Device::Cpu)?),
        ]))
    }
}

/// A pair whose facts are all on one side.
fn random_pair(held_out: bool, rng: &mut ChaCha8Rng) -> SentencePair {
    let fact = draw(|| Fact::random(rng), held_out);
    let label = u32::from(rng.random_bool(0.5));
    let second = if label == 1 { fact } else { draw(|| fact.near_miss(rng), held_out) };
    let sentence1 = fact.sentence(rng);
    // A copy would be no test of understanding.
    let mut sentence2 = second.sentence(rng);
    while sentence2 == sentence1 {
        sentence2 = second.sentence(rng);
    }
    SentencePair { sentence1, sentence2, label }
}

fn draw(mut next: impl FnMut() -> Fact, held_out: bool) -> Fact {
    loop {
        let fact = next();
        if fact.is_held_out() == held_out {
            return fact;
        }
    }
}

const PAD: (&str, u32) = ("[PAD]", 0);
const UNK: &str = "[UNK]";
const CLS: (&str, u32) = ("[CLS]", 2);
const SEP: (&str, u32) = ("[SEP]", 3);

/// A tokenizer with one token for each word of the grammar.
fn tokenizer() -> Result<Tokenizer> {
    let special = [PAD.0, UNK, CLS.0, SEP.0].map(str::to_owned);
    let vocab = special.clone().into_iter().chain(grammar::words()).zip(0..).collect();
    let model = WordLevel::builder()
        .vocab(vocab)
        .unk_token(UNK.to_owned())
        .build()
        .map_err(tokenizer_error)?;
    let template = TemplateProcessing::builder()
        .try_single("[CLS] $A [SEP]")
        .and_then(|builder| builder.try_pair("[CLS] $A [SEP] $B:1 [SEP]:1"))
        .map_err(tokenizer_error)?
        .special_tokens(vec![CLS, SEP])
        .build()
        .map_err(tokenizer_error)?;
    let mut tokenizer = Tokenizer::new(model);
    tokenizer.with_normalizer(Some(Lowercase)).map_err(tokenizer_error)?;
    tokenizer.with_pre_tokenizer(Some(Whitespace {}));
    tokenizer.with_post_processor(Some(template));
    tokenizer
        .add_special_tokens(special.map(|token| AddedToken::from(token, true)))
        .map_err(tokenizer_error)?;
    Ok(tokenizer)
}

fn tokenizer_error(error: impl std::fmt::Display) -> Error {
    Error::invalid("tokenizer", format!("failed: {error}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn training_and_test_pairs_share_no_sentence_whatever_the_seed() {
        let sentences = |dataset: &ParaphraseDataset| -> HashSet<String> {
            let pairs = dataset.pairs().iter();
            pairs.flat_map(|pair| [pair.sentence1.clone(), pair.sentence2.clone()]).collect()
        };
        let train = sentences(&ParaphraseDataset::train(5000, 1).unwrap());
        for seed in 1..4 {
            assert!(train.is_disjoint(&sentences(&ParaphraseDataset::test(2000, seed).unwrap())));
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_pairs_and_another_seed_others() {
        let pairs = |seed| ParaphraseDataset::train(100, seed).unwrap().pairs().to_vec();
        assert_eq!(pairs(1), pairs(1));
        assert_ne!(pairs(1), pairs(2));
    }

    #[test]
    fn about_half_of_the_pairs_are_paraphrases_and_none_is_a_copy() {
        let dataset = ParaphraseDataset::test(2000, 0).unwrap();
        let positive = dataset.pairs().iter().filter(|pair| pair.label == 1).count();
        assert!((900..1100).contains(&positive), "{positive}");
        assert!(dataset.pairs().iter().all(|pair| pair.sentence1 != pair.sentence2));
    }

    #[test]
    fn every_word_is_known_and_a_pair_is_encoded_as_cls_a_sep_b_sep() {
        let dataset = ParaphraseDataset::train(500, 0).unwrap();
        for index in 0..dataset.len() {
            let ids = dataset.get(index).unwrap();
            let ids = ids.get("input_ids").unwrap().to_vec1::<u32>().unwrap();
            assert_eq!((ids[0], ids[ids.len() - 1]), (CLS.1, SEP.1));
            assert_eq!(ids.iter().filter(|id| **id == SEP.1).count(), 2);
            assert!(ids.iter().all(|id| *id != 1 && (*id as usize) < dataset.vocab_size()));
            let pair = &dataset.pairs()[index];
            let words = format!("{} {}", pair.sentence1, pair.sentence2).to_lowercase();
            let decoded = dataset.tokenizer().decode(&ids, true).unwrap();
            let letters = |text: &str| text.replace([' ', ',', '.'], "");
            assert_eq!(letters(&decoded), letters(&words));
        }
    }
}
