//! The cross-entropy loss.

use candle_core::backend::BackendStorage as _;
use candle_core::{CpuStorage, CustomOp1, D, DType, Device, Layout, Shape, Tensor};

use super::cpu::{self, Real, dispatch};
use crate::{Error, Result};

/// How the samples' losses become the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reduction {
    /// Their mean, weighted by the class weights of the targets: a scalar.
    #[default]
    Mean,
    /// Their sum: a scalar.
    Sum,
    /// All of them: `[n]`, 0 where the target is ignored.
    None,
}

/// The options of PyTorch's `cross_entropy`.
///
/// ```
/// use candle_accelerate::ops::{CrossEntropy, Reduction};
///
/// let options = CrossEntropy { label_smoothing: 0.1, ..CrossEntropy::default() };
/// assert_eq!((options.ignore_index, options.reduction), (Some(-100), Reduction::Mean));
/// ```
#[derive(Clone, Debug)]
pub struct CrossEntropy {
    /// The target of samples that do not count.
    pub ignore_index: Option<i64>,
    /// The share of the target that is spread evenly over all classes, 0 to 1.
    pub label_smoothing: f64,
    /// One weight per class.
    pub class_weights: Option<Vec<f64>>,
    /// How the samples' losses become the result.
    pub reduction: Reduction,
}

impl Default for CrossEntropy {
    fn default() -> Self {
        Self {
            ignore_index: Some(-100),
            label_smoothing: 0.0,
            class_weights: None,
            reduction: Reduction::Mean,
        }
    }
}

/// The cross-entropy of `logits` `[n, classes]` against `targets` `[n]` (integers), with PyTorch's
/// semantics.
///
/// For a sample with target y, smoothing ε, C classes and class weights w the loss is
/// `-(1-ε) w[y] log p[y] - ε/C Σ_c w[c] log p[c]`; `Mean` divides by the sum of `w[y]`. The mean of
/// no sample is NaN. The result has the dtype of the logits.
///
/// # Errors
/// A target that is no class and is not `ignore_index`; it is named with its position.
///
/// ```
/// use candle_accelerate::ops::{self, CrossEntropy};
/// use candle_core::{Device, Tensor};
///
/// let logits = Tensor::new(&[[0f32, 0.0], [5.0, 1.0]], &Device::Cpu)?;
/// let targets = Tensor::new(&[1i64, -100], &Device::Cpu)?;
/// let loss = ops::cross_entropy(&logits, &targets, &CrossEntropy::default())?;
/// assert!((loss.to_scalar::<f32>()? - 2f32.ln()).abs() < 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn cross_entropy(logits: &Tensor, targets: &Tensor, options: &CrossEntropy) -> Result<Tensor> {
    let (n, classes) = logits.dims2()?;
    if targets.dims() != [n] || !targets.dtype().is_int() {
        return Err(Error::invalid(
            "cross_entropy targets",
            format!(
                "are {:?} {:?}; logits {:?} need [{n}] integers",
                targets.dims(),
                targets.dtype(),
                logits.dims()
            ),
        ));
    }
    if !(0.0..=1.0).contains(&options.label_smoothing) {
        return Err(Error::invalid(
            "label_smoothing",
            format!("is {}; use 0 to 1", options.label_smoothing),
        ));
    }
    if let Some(weights) = options.class_weights.as_ref().filter(|w| w.len() != classes) {
        return Err(Error::invalid(
            "class_weights",
            format!("has {} values; there are {classes} classes", weights.len()),
        ));
    }
    let op = Samples::new(targets, classes, options)?;
    cpu::widened("cross_entropy", [logits], |[logits]| {
        let losses = if logits.device().is_cpu() {
            logits.apply_op1(op.clone())?
        } else {
            op.composed(&logits)?
        };
        match options.reduction {
            Reduction::None => Ok(losses),
            Reduction::Sum => losses.sum_all(),
            Reduction::Mean => losses.sum_all()? / op.total_weight(),
        }
    })
}

/// The loss of each sample.
#[derive(Clone)]
struct Samples {
    /// The class of each sample that counts.
    targets: Vec<Option<usize>>,
    weights: Vec<f64>,
    smoothing: f64,
}

impl Samples {
    fn new(targets: &Tensor, classes: usize, options: &CrossEntropy) -> Result<Self> {
        let targets = targets.to_dtype(DType::I64)?.to_vec1::<i64>()?;
        let class = |(sample, target): (usize, i64)| match usize::try_from(target) {
            _ if Some(target) == options.ignore_index => Ok(None),
            Ok(class) if class < classes => Ok(Some(class)),
            _ => Err(Error::invalid(
                "cross_entropy targets",
                format!(
                    "hold {target} at position {sample}; the classes are 0 to {}",
                    classes as i64 - 1
                ),
            )),
        };
        Ok(Self {
            targets: targets.into_iter().enumerate().map(class).collect::<Result<_>>()?,
            weights: options.class_weights.clone().unwrap_or_else(|| vec![1.0; classes]),
            smoothing: options.label_smoothing,
        })
    }

    fn total_weight(&self) -> f64 {
        self.targets.iter().flatten().map(|class| self.weights[*class]).sum()
    }

    /// How much each class's `-log p` counts in the loss of a sample of this class.
    fn shares<T: Real>(&self, target: usize) -> impl Fn(usize) -> T + '_ {
        let spread = self.smoothing / self.weights.len() as f64;
        move |class| {
            let mut share = spread * self.weights[class];
            if class == target {
                share += (1.0 - self.smoothing) * self.weights[class];
            }
            T::from_f64(share)
        }
    }

    fn composed(&self, logits: &Tensor) -> candle_core::Result<Tensor> {
        let (n, classes) = logits.dims2()?;
        let mut shares = vec![0f64; n * classes];
        for (row, target) in shares.chunks_exact_mut(classes.max(1)).zip(&self.targets) {
            if let Some(target) = target {
                let share = self.shares::<f64>(*target);
                row.iter_mut().enumerate().for_each(|(class, value)| *value = share(class));
            }
        }
        let shares = Tensor::from_vec(shares, (n, classes), &Device::Cpu)?
            .to_dtype(logits.dtype())?
            .to_device(logits.device())?;
        let centred = logits.broadcast_sub(&logits.max_keepdim(D::Minus1)?.detach())?;
        let log_total = centred.exp()?.sum_keepdim(D::Minus1)?.log()?;
        log_total.broadcast_sub(&centred)?.mul(&shares)?.sum(D::Minus1)
    }
}

impl CustomOp1 for Samples {
    fn name(&self) -> &'static str {
        "cross_entropy"
    }

    fn cpu_fwd(
        &self,
        logits: &CpuStorage,
        layout: &Layout,
    ) -> candle_core::Result<(CpuStorage, Shape)> {
        fn run<T: Real>(
            op: &Samples,
            logits: &CpuStorage,
            layout: &Layout,
        ) -> candle_core::Result<CpuStorage> {
            let logits = cpu::slice::<T>(logits, layout)?;
            let classes = layout.dims()[1];
            let mut losses = vec![T::zero(); op.targets.len()];
            cpu::fill_per_row(&mut losses, classes, |start, losses| {
                for (sample, loss) in (start..).zip(losses) {
                    let Some(target) = op.targets[sample] else { continue };
                    let row = &logits[sample * classes..][..classes];
                    let log_total = log_sum_exp(row);
                    let share = op.shares::<T>(target);
                    *loss = if op.smoothing == 0.0 {
                        share(target) * (log_total - row[target])
                    } else {
                        cpu::sum(classes, |class| share(class) * (log_total - row[class]))
                    };
                }
            });
            Ok(T::to_cpu_storage_owned(losses))
        }
        let losses = dispatch!(logits.dtype(), run(self, logits, layout))?;
        Ok((losses, self.targets.len().into()))
    }

    fn bwd(
        &self,
        logits: &Tensor,
        _losses: &Tensor,
        grad: &Tensor,
    ) -> candle_core::Result<Option<Tensor>> {
        fn run<T: Real>(
            op: &Samples,
            logits: &Tensor,
            grad: &Tensor,
        ) -> candle_core::Result<Option<Tensor>> {
            let classes = logits.dims()[1];
            let grad = grad.contiguous()?;
            let (values, grad) = (cpu::values::<T>(logits)?, cpu::values::<T>(&grad)?);
            let (values, grad) = (&*values, &*grad);
            let mut out = vec![T::zero(); values.len()];
            cpu::fill_blocks(&mut out, classes, |start, out| {
                let samples = start / classes..;
                for (sample, out) in samples.zip(out.chunks_exact_mut(classes)) {
                    let Some(target) = op.targets[sample] else { continue };
                    let row = &values[sample * classes..][..classes];
                    let log_total = log_sum_exp(row);
                    let share = op.shares::<T>(target);
                    let total_share = cpu::sum(classes, &share);
                    for (class, out) in out.iter_mut().enumerate() {
                        let p = (row[class] - log_total).exp_nonpositive();
                        *out = grad[sample] * (p * total_share - share(class));
                    }
                }
            });
            Ok(Some(cpu::tensor(out, logits.shape())?))
        }
        dispatch!(logits.dtype(), run(self, logits, grad))
    }
}

/// log(sum(e^x)) of a row.
#[inline(always)]
fn log_sum_exp<T: Real>(row: &[T]) -> T {
    let largest = cpu::max(row);
    largest + cpu::sum(row.len(), |i| (row[i] - largest).exp_nonpositive()).ln()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::testing::{Case, cpu_tensor};
    use super::*;

    fn targets() -> Tensor {
        Tensor::new(&[3i64, -100, 0, 18, 3, 7], &Device::Cpu).unwrap()
    }

    fn variants() -> Vec<CrossEntropy> {
        let mut variants = Vec::new();
        for reduction in [Reduction::Mean, Reduction::Sum, Reduction::None] {
            for label_smoothing in [0.0, 0.3] {
                for class_weights in [None, Some((1..=19).map(|w| f64::from(w) / 7.0).collect())] {
                    variants.push(CrossEntropy {
                        label_smoothing,
                        class_weights,
                        reduction,
                        ..CrossEntropy::default()
                    });
                }
            }
        }
        variants
    }

    #[test]
    fn gradients_equal_finite_differences_on_strided_input_and_every_dtype() {
        for options in variants() {
            Case::new("cross_entropy", [cpu_tensor(&[6, 19], 1)], |[x]| {
                cross_entropy(x, &targets(), &options)
            })
            .composed(|[x]| {
                let samples = Samples::new(&targets(), 19, &options)?;
                let losses = samples.composed(x)?;
                Ok(match options.reduction {
                    Reduction::None => losses,
                    Reduction::Sum => losses.sum_all()?,
                    Reduction::Mean => (losses.sum_all()? / samples.total_weight())?,
                })
            })
            .check();
        }
    }

    #[test]
    fn the_mean_of_ignored_samples_is_nan_and_their_sum_is_zero() {
        let logits = cpu_tensor(&[2, 4], 1);
        let targets = Tensor::new(&[-100i64, -100], &Device::Cpu).unwrap();
        let loss = |reduction| {
            let options = CrossEntropy { reduction, ..CrossEntropy::default() };
            cross_entropy(&logits, &targets, &options).unwrap().to_scalar::<f64>().unwrap()
        };
        assert!(loss(Reduction::Mean).is_nan());
        assert_eq!(loss(Reduction::Sum), 0.0);
    }

    #[test]
    fn a_target_that_is_no_class_is_named() {
        let error = cross_entropy(&cpu_tensor(&[6, 5], 1), &targets(), &CrossEntropy::default());
        assert_eq!(
            error.unwrap_err().to_string(),
            "cross_entropy targets hold 18 at position 3; the classes are 0 to 4"
        );
    }

    #[test]
    fn huge_logits_stay_finite() {
        let logits = Tensor::new(&[[1e30f32, -1e30]], &Device::Cpu).unwrap();
        let target = Tensor::new(&[0u32], &Device::Cpu).unwrap();
        let loss = cross_entropy(&logits, &target, &CrossEntropy::default()).unwrap();
        assert_eq!(loss.to_scalar::<f32>().unwrap(), 0.0);
    }
}
