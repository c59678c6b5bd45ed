//! One check for every operation: gradients, strides, dtypes and the composed path.

#![allow(clippy::unwrap_used)]

use candle_core::{DType, Device, Tensor, Var};

use crate::{Result, rng};

/// Normal numbers in f64.
pub(super) fn cpu_tensor(dims: &[usize], seed: u64) -> Tensor {
    rng::with_seed(seed, || rng::normal(dims, 0.0, 1.0, DType::F64, &Device::Cpu)).unwrap()
}

type Operation<'a, const N: usize> = Box<dyn Fn([&Tensor; N]) -> Result<Tensor> + 'a>;

pub(super) struct Case<'a, const N: usize> {
    name: &'static str,
    inputs: [Tensor; N],
    fused: Operation<'a, N>,
    composed: Option<Operation<'a, N>>,
}

impl<'a, const N: usize> Case<'a, N> {
    pub(super) fn new(
        name: &'static str,
        inputs: [Tensor; N],
        fused: impl Fn([&Tensor; N]) -> Result<Tensor> + 'a,
    ) -> Self {
        Self { name, inputs, fused: Box::new(fused), composed: None }
    }

    /// What runs on a GPU; it must agree.
    pub(super) fn composed(
        mut self,
        composed: impl Fn([&Tensor; N]) -> Result<Tensor> + 'a,
    ) -> Self {
        self.composed = Some(Box::new(composed));
        self
    }

    pub(super) fn check(self) {
        let (out, grads) = self.run(&self.fused, DType::F64, false);
        self.check_finite_differences(&grads);
        let wide = [&[out], &grads[..]].concat();
        let compare = |what: &str, got: (Tensor, [Tensor; N]), tolerance: f64| {
            for (index, (got, wide)) in
                [&[got.0], &got.1[..]].concat().iter().zip(&wide).enumerate()
            {
                let error = distance(got, wide);
                assert!(
                    error <= tolerance,
                    "{} {what}: result or gradient {index} is off by {error:e}",
                    self.name
                );
            }
        };
        compare("strided", self.run(&self.fused, DType::F64, true), 1e-12);
        compare("f32", self.run(&self.fused, DType::F32, false), 2e-6);
        compare("f16", self.run(&self.fused, DType::F16, false), 2e-2);
        compare("bf16", self.run(&self.fused, DType::BF16, false), 1e-1);
        if let Some(composed) = &self.composed {
            compare("composed", self.run(composed, DType::F64, false), 1e-12);
        }
    }

    /// The result, and the gradients of a fixed weighted sum of its elements.
    fn run(&self, op: &Operation<'a, N>, dtype: DType, strided: bool) -> (Tensor, [Tensor; N]) {
        let vars = self.inputs.clone().map(|input| {
            let input = input.to_dtype(dtype).unwrap();
            let last = input.rank() - 1;
            let stored = if strided { input.transpose(0, last).unwrap() } else { input };
            Var::from_tensor(&stored.contiguous().unwrap()).unwrap()
        });
        let views = vars.clone().map(|var| {
            let last = var.rank() - 1;
            if strided { var.transpose(0, last).unwrap() } else { var.as_tensor().clone() }
        });
        let out = op(std::array::from_fn(|i| &views[i])).unwrap();
        assert_eq!(out.dtype(), dtype, "{}", self.name);
        let grads = weighted_sum(&out).backward().unwrap();
        let grads = vars.map(|var| {
            let grad = grads.get(&var).unwrap_or_else(|| panic!("{}: no gradient", self.name));
            let last = grad.rank() - 1;
            let grad = if strided { grad.transpose(0, last).unwrap() } else { grad.clone() };
            grad.to_dtype(DType::F64).unwrap()
        });
        (out.to_dtype(DType::F64).unwrap().detach(), grads)
    }

    fn check_finite_differences(&self, grads: &[Tensor; N]) {
        const STEP: f64 = 1e-5;
        for (which, grad) in grads.iter().enumerate() {
            let values = self.inputs[which].flatten_all().unwrap().to_vec1::<f64>().unwrap();
            let numeric = (0..values.len()).map(|i| {
                let value_at = |shift: f64| {
                    let mut moved = values.clone();
                    moved[i] += shift;
                    let mut inputs = self.inputs.clone();
                    inputs[which] =
                        Tensor::from_vec(moved, inputs[which].shape(), &Device::Cpu).unwrap();
                    let out = (self.fused)(std::array::from_fn(|i| &inputs[i])).unwrap();
                    weighted_sum(&out).to_scalar::<f64>().unwrap()
                };
                (value_at(STEP) - value_at(-STEP)) / (2.0 * STEP)
            });
            let numeric = Tensor::from_iter(numeric, &Device::Cpu).unwrap();
            let error = distance(&numeric, &grad.flatten_all().unwrap());
            assert!(error < 1e-8, "{}: gradient of input {which} is off by {error:e}", self.name);
        }
    }
}

fn weighted_sum(out: &Tensor) -> Tensor {
    let weights = cpu_tensor(out.dims(), 99).to_dtype(out.dtype()).unwrap();
    (out * weights).unwrap().sum_all().unwrap()
}

/// The largest difference; relative to the largest element where that is above 1.
fn distance(a: &Tensor, b: &Tensor) -> f64 {
    let largest = |t: &Tensor| {
        let values = t.flatten_all().unwrap().to_vec1::<f64>().unwrap();
        values.into_iter().fold(0.0, |max: f64, v| if v.is_nan() { v } else { max.max(v.abs()) })
    };
    assert_eq!(a.dims(), b.dims());
    let difference = largest(&(a - b).unwrap());
    assert!(!difference.is_nan());
    difference / largest(b).max(1.0)
}
