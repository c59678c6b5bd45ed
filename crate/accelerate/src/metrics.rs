//! Classification metrics, added up batch by batch; equal to scikit-learn's.

use std::collections::BTreeMap;

use candle_core::{DType, Tensor};

use crate::{Error, Result};

/// Counts how often each class was predicted for each class, and computes metrics from that.
///
/// The figures do not depend on how the samples were cut into batches.
///
/// ```
/// use candle_accelerate::metrics::ClassificationMetrics;
/// use candle_core::{Device, Tensor};
///
/// let mut metrics = ClassificationMetrics::new();
/// let predictions = Tensor::new(&[1u32, 0, 1, 1], &Device::Cpu)?;
/// let references = Tensor::new(&[1u32, 0, 0, 1], &Device::Cpu)?;
/// metrics.add_batch(&predictions, &references)?;
/// assert_eq!(metrics.accuracy(), 0.75);
/// assert_eq!(metrics.f1(), 0.8);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassificationMetrics {
    /// How many samples there are of each (reference, prediction).
    counts: BTreeMap<(i64, i64), u64>,
}

impl ClassificationMetrics {
    /// Without any samples.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a batch.
    ///
    /// `references` holds classes, `[batch]`. `predictions` holds classes, `[batch]`, or logits,
    /// `[batch, classes]`, of which the largest counts.
    ///
    /// # Errors
    /// Other shapes, or references that are not whole numbers.
    pub fn add_batch(&mut self, predictions: &Tensor, references: &Tensor) -> Result<()> {
        let predictions = match predictions.rank() {
            2 => predictions.argmax(1)?,
            _ => predictions.clone(),
        };
        if predictions.rank() != 1 || predictions.dims() != references.dims() {
            return Err(Error::invalid(
                "metrics",
                format!(
                    "got predictions of shape {:?} for references of shape {:?}; they must be \
                     [batch] (or [batch, classes]) and [batch]",
                    predictions.dims(),
                    references.dims()
                ),
            ));
        }
        let pairs = classes(references)?.into_iter().zip(classes(&predictions)?);
        pairs.for_each(|pair| *self.counts.entry(pair).or_default() += 1);
        Ok(())
    }

    /// How many samples have been added.
    pub fn num_samples(&self) -> u64 {
        self.counts.values().sum()
    }

    /// The share of samples whose class was predicted; 0 without samples.
    pub fn accuracy(&self) -> f64 {
        let right = self.sum(|reference, prediction| reference == prediction);
        ratio(right, self.num_samples() as f64)
    }

    /// The F1 score of class 1, `2 tp / (2 tp + fp + fn)`; 0 where that is undefined.
    pub fn f1(&self) -> f64 {
        self.f1_of(1)
    }

    /// The mean F1 score of all classes that occur.
    pub fn f1_macro(&self) -> f64 {
        let classes = self.classes();
        let sum: f64 = classes.iter().map(|class| self.f1_of(*class)).sum();
        ratio(sum, classes.len() as f64)
    }

    /// Matthews' correlation coefficient, from -1 to 1; 0 where it is undefined.
    ///
    /// For more than two classes it is Gorodkin's R_K (2004), as in scikit-learn.
    pub fn matthews(&self) -> f64 {
        let samples = self.num_samples() as f64;
        let right = self.sum(|reference, prediction| reference == prediction);
        let (mut both, mut predicted_squares, mut true_squares) = (0.0, 0.0, 0.0);
        for class in self.classes() {
            let predicted = self.sum(|_, prediction| prediction == class);
            let truly = self.sum(|reference, _| reference == class);
            both += predicted * truly;
            predicted_squares += predicted * predicted;
            true_squares += truly * truly;
        }
        let spread = |squares: f64| samples * samples - squares;
        ratio(right * samples - both, (spread(predicted_squares) * spread(true_squares)).sqrt())
    }

    fn f1_of(&self, class: i64) -> f64 {
        let hits = self.sum(|reference, prediction| reference == class && prediction == class);
        let others =
            self.sum(|reference, prediction| (reference == class) != (prediction == class));
        ratio(2.0 * hits, 2.0 * hits + others)
    }

    fn sum(&self, counts: impl Fn(i64, i64) -> bool) -> f64 {
        let pairs = self.counts.iter();
        pairs.filter(|((r, p), _)| counts(*r, *p)).map(|(_, count)| *count as f64).sum()
    }

    /// Every class that occurs, as reference or prediction.
    fn classes(&self) -> Vec<i64> {
        let mut classes: Vec<i64> = self.counts.keys().flat_map(|(r, p)| [*r, *p]).collect();
        classes.sort_unstable();
        classes.dedup();
        classes
    }
}

fn classes(tensor: &Tensor) -> Result<Vec<i64>> {
    if tensor.dtype().is_float() {
        return Err(Error::invalid(
            "metrics",
            format!("got classes of type {:?}; they must be whole numbers", tensor.dtype()),
        ));
    }
    Ok(tensor.to_dtype(DType::I64)?.to_vec1()?)
}

fn ratio(numerator: f64, denominator: f64) -> f64 {
    if denominator == 0.0 { 0.0 } else { numerator / denominator }
}
