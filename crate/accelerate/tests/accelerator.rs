//! The accelerator: placement, gradients, accumulation, clipping.
#![allow(clippy::unwrap_used)]

use candle_accelerate::data::{Batch, DataLoader, TensorDataset};
use candle_accelerate::model::{Loss, Mode, Model};
use candle_accelerate::optim::{Adam, Optimizer, Sgd};
use candle_accelerate::schedule::{LrScheduler, get_linear_schedule_with_warmup};
use candle_accelerate::{Accelerator, Error, Parameter, Parameters, Result};
use candle_core::{DType, Device, Tensor};

/// A line through given points.
#[derive(Clone, Debug)]
struct Line {
    slope: Parameter,
    offset: Parameter,
    mode: Mode,
}

impl Line {
    fn new(name: &str) -> Self {
        let parameter = |part, value: f64| {
            let value = Tensor::new(value, &Device::Cpu).unwrap();
            Parameter::new(format!("{name}.{part}"), &value).unwrap()
        };
        let (slope, offset) = (parameter("slope", 0.5), parameter("offset", -1.0));
        Self { slope, offset, mode: Mode::default() }
    }

    fn predict(&self, x: &Tensor) -> Result<Tensor> {
        Ok(x.broadcast_mul(&self.slope.tensor())?.broadcast_add(&self.offset.tensor())?)
    }

    /// The mean squared distance to `x * x`.
    fn loss(&self, batch: &Batch) -> Result<Loss> {
        let x = batch.get("x")?;
        let loss = (self.predict(x)? - x.sqr()?)?.sqr()?.mean_all()?;
        Ok(Loss::new(loss, self.parameters()))
    }

    fn values(&self) -> [f64; 2] {
        [&self.slope, &self.offset].map(|p| p.tensor().to_scalar().unwrap())
    }

    fn grads(&self) -> Option<[f64; 2]> {
        Some([self.slope.grad()?, self.offset.grad()?].map(|g| g.to_scalar().unwrap()))
    }
}

impl Model for Line {
    fn parameters(&self) -> Parameters {
        Parameters::from_iter([self.slope.clone(), self.offset.clone()])
    }

    fn mode(&self) -> &Mode {
        &self.mode
    }
}

fn points(len: usize) -> TensorDataset {
    let x: Vec<f64> = (0..len).map(|i| (i as f64 * 0.7).sin()).collect();
    TensorDataset::new([("x", Tensor::new(x, &Device::Cpu).unwrap())]).unwrap()
}

fn loader(len: usize, batch_size: usize) -> DataLoader {
    DataLoader::builder(points(len)).batch_size(batch_size).build().unwrap()
}

fn whole(len: usize) -> Batch {
    loader(len, len).iter().next().unwrap()
}

fn close(a: [f64; 2], b: [f64; 2]) -> bool {
    a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12)
}

#[test]
fn the_device_prints_as_in_pytorch_and_is_a_candle_device() {
    let accelerator = Accelerator::builder().cpu(true).build().unwrap();
    assert_eq!(accelerator.device().to_string(), "cpu");
    assert!(Tensor::zeros(1, DType::F32, &accelerator.device()).unwrap().device().is_cpu());
}

#[test]
fn prepare_takes_one_thing_or_a_tuple_in_any_order() {
    let accelerator = Accelerator::new().unwrap();
    let model = Line::new("line");
    let optimizer = Adam::new(model.parameters(), 0.1).unwrap();
    let scheduler = get_linear_schedule_with_warmup(&optimizer, 0, 10);
    let (_scheduler, model, loader, optimizer): (LrScheduler, Line, DataLoader, Adam) =
        accelerator.prepare((scheduler, model, loader(4, 2), optimizer)).unwrap();
    let model = accelerator.prepare(model).unwrap();
    assert_eq!(loader.len(), 2);
    assert!(optimizer.parameters().iter().next().unwrap().same(&model.slope));
}

#[test]
fn the_accelerated_loop_equals_the_manual_loop_bit_for_bit() {
    let manual = Line::new("line");
    let optimizer = Adam::new(manual.parameters(), 0.1).unwrap();
    let scheduler = get_linear_schedule_with_warmup(&optimizer, 2, 20);
    for batch in &loader(40, 4) {
        optimizer.zero_grad();
        manual.loss(&batch).unwrap().backward().unwrap();
        optimizer.step().unwrap();
        scheduler.step().unwrap();
    }

    let accelerator = Accelerator::new().unwrap();
    let model = Line::new("line");
    let optimizer = Adam::new(model.parameters(), 0.1).unwrap();
    let scheduler = get_linear_schedule_with_warmup(&optimizer, 2, 20);
    let (model, optimizer, loader, scheduler) =
        accelerator.prepare((model, optimizer, loader(40, 4), scheduler)).unwrap();
    for batch in &loader {
        optimizer.zero_grad();
        accelerator.backward(&model.loss(&batch).unwrap()).unwrap();
        optimizer.step().unwrap();
        scheduler.step().unwrap();
    }
    assert_eq!(model.values(), manual.values());
}

#[test]
fn a_parameter_without_gradient_is_named_and_nothing_is_changed() {
    let accelerator = Accelerator::new().unwrap();
    let model = accelerator.prepare(Line::new("line")).unwrap();
    let loss = model.slope.tensor().sqr().unwrap();
    let error = accelerator.backward(&loss).unwrap_err();
    assert!(matches!(&error, Error::MissingGradient { names } if names == &["line.offset"]));
    assert!(model.slope.grad().is_none());

    model.offset.set_requires_grad(false);
    accelerator.backward(&loss).unwrap();
    assert!(model.slope.grad().is_some());
}

#[test]
fn find_unused_parameters_allows_missing_gradients() {
    let accelerator = Accelerator::builder().find_unused_parameters(true).build().unwrap();
    let model = accelerator.prepare(Line::new("line")).unwrap();
    accelerator.backward(&model.slope.tensor().sqr().unwrap()).unwrap();
    assert!(model.slope.grad().is_some() && model.offset.grad().is_none());
}

#[test]
fn the_other_network_of_a_gan_is_left_alone() {
    let accelerator = Accelerator::new().unwrap();
    let (generator, discriminator) =
        accelerator.prepare((Line::new("generator"), Line::new("discriminator"))).unwrap();
    let batch = whole(8);
    let x = batch.get("x").unwrap();
    let fake = generator.predict(x).unwrap().detach();
    let loss = discriminator.predict(&fake).unwrap().sqr().unwrap().mean_all().unwrap();
    accelerator.backward(&loss).unwrap();
    assert!(generator.grads().is_none() && discriminator.grads().is_some());

    let fake = generator.predict(x).unwrap();
    let loss = discriminator.predict(&fake).unwrap().sqr().unwrap().mean_all().unwrap();
    accelerator.backward(&loss).unwrap();
    assert!(generator.grads().is_some());
}

#[test]
fn a_loss_of_nothing_and_a_loss_of_many_numbers_are_refused() {
    let accelerator = Accelerator::new().unwrap();
    let model = accelerator.prepare(Line::new("line")).unwrap();
    let constant = Tensor::new(1.0, &Device::Cpu).unwrap();
    let error = accelerator.backward(&constant).unwrap_err().to_string();
    assert!(error.contains("no trainable parameter"), "{error}");
    let many = model.predict(whole(8).get("x").unwrap()).unwrap();
    let error = accelerator.backward(&many).unwrap_err().to_string();
    assert!(error.contains("has shape [8]"), "{error}");
}

#[test]
fn a_loss_trains_its_model_even_if_only_the_optimizer_was_prepared() {
    let accelerator = Accelerator::new().unwrap();
    let model = Line::new("line");
    let optimizer = accelerator.prepare(Sgd::new(model.parameters(), 0.1).unwrap()).unwrap();
    let before = model.values();
    accelerator.backward(model.loss(&whole(8)).unwrap().tensor().unwrap()).unwrap();
    optimizer.step().unwrap();
    assert_ne!(model.values(), before);
}

/// Trains with accumulation and returns the values after each optimizer step.
fn accumulated(steps: usize, loader: DataLoader, zero_first: bool) -> Vec<[f64; 2]> {
    let accelerator = Accelerator::builder().gradient_accumulation_steps(steps).build().unwrap();
    let model = Line::new("line");
    let optimizer = Sgd::new(model.parameters(), 0.1).unwrap();
    let scheduler = get_linear_schedule_with_warmup(&optimizer, 0, 10);
    let (model, optimizer, loader, scheduler) =
        accelerator.prepare((model, optimizer, loader, scheduler)).unwrap();
    let mut values = Vec::new();
    for batch in &loader {
        accelerator
            .accumulate(|| {
                if zero_first {
                    optimizer.zero_grad();
                }
                accelerator.backward(&model.loss(&batch)?)?;
                optimizer.step()?;
                scheduler.step()?;
                if !zero_first {
                    optimizer.zero_grad();
                }
                Ok(())
            })
            .unwrap();
        if accelerator.sync_gradients() {
            values.push(model.values());
        }
    }
    values
}

#[test]
fn accumulated_gradients_are_those_of_the_concatenated_batch_also_in_a_short_last_window() {
    // 26 samples in batches of 3: windows of 4, 4 and 1 batches, the last of them of 2 samples.
    for (len, batch_size, steps) in [(24, 3, 4), (26, 3, 4), (26, 3, 1), (10, 3, 8), (12, 2, 6)] {
        let large = accumulated(1, loader(len, batch_size * steps), false);
        for zero_first in [false, true] {
            let small = accumulated(steps, loader(len, batch_size), zero_first);
            assert_eq!(small.len(), len.div_ceil(batch_size * steps));
            assert_eq!(small.len(), large.len());
            for (small, large) in small.iter().zip(&large) {
                assert!(close(*small, *large), "{len} {batch_size} {steps}: {small:?} {large:?}");
            }
        }
    }
}

#[test]
fn the_schedule_counts_optimizer_steps_not_batches() {
    let accelerator = Accelerator::builder().gradient_accumulation_steps(4).build().unwrap();
    let model = Line::new("line");
    let optimizer = Sgd::new(model.parameters(), 0.1).unwrap();
    let scheduler = get_linear_schedule_with_warmup(&optimizer, 0, 10);
    let (model, optimizer, loader, scheduler) =
        accelerator.prepare((model, optimizer, loader(10, 1), scheduler)).unwrap();
    for batch in &loader {
        accelerator
            .accumulate(|| {
                accelerator.backward(&model.loss(&batch)?)?;
                optimizer.step()?;
                scheduler.step()
            })
            .unwrap();
    }
    assert_eq!(scheduler.state_dict().step, 3);
}

#[test]
fn evaluating_inside_the_training_loop_does_not_disturb_accumulation() {
    let accelerator = Accelerator::builder().gradient_accumulation_steps(2).build().unwrap();
    let (training, evaluation) = accelerator.prepare((loader(6, 1), loader(3, 1))).unwrap();
    let mut synced = Vec::new();
    for _ in &training {
        for _ in &evaluation {}
        assert!(evaluation.iter().next().is_some());
        synced.push(accelerator.accumulate(|| Ok(accelerator.sync_gradients())).unwrap());
    }
    assert_eq!(synced, [false, true, false, true, false, true]);
}

#[test]
fn the_end_of_an_inner_loader_forces_a_step_unless_switched_off() {
    let count = |sync: bool| {
        let builder = Accelerator::builder().gradient_accumulation_steps(4);
        let accelerator = builder.sync_with_dataloader(sync).build().unwrap();
        let inner = accelerator.prepare(loader(2, 1)).unwrap();
        let mut steps = 0;
        for _ in 0..4 {
            for _ in &inner {
                let sync = accelerator.accumulate(|| Ok(accelerator.sync_gradients())).unwrap();
                steps += usize::from(sync);
            }
        }
        steps
    };
    assert_eq!((count(true), count(false)), (4, 2));
}

#[test]
fn a_loop_that_is_left_in_the_middle_of_a_window_leaves_nothing_behind() {
    let accelerator = Accelerator::builder().gradient_accumulation_steps(4).build().unwrap();
    let model = Line::new("line");
    let optimizer = Sgd::new(model.parameters(), 0.1).unwrap();
    let (model, optimizer, training) =
        accelerator.prepare((model, optimizer, loader(8, 1))).unwrap();
    let window = |batch: &Batch| {
        accelerator
            .accumulate(|| {
                accelerator.backward(&model.loss(batch)?)?;
                optimizer.step()?;
                optimizer.zero_grad();
                Ok(())
            })
            .unwrap();
    };
    training.iter().take(2).for_each(|batch| window(&batch));
    assert!(accelerator.sync_gradients());
    training.iter().take(4).for_each(|batch| window(&batch));

    let fresh = Line::new("line");
    fresh.loss(&whole_of_first(4)).unwrap().backward().unwrap();
    Sgd::new(fresh.parameters(), 0.1).unwrap().step().unwrap();
    assert!(close(model.values(), fresh.values()), "{:?} {:?}", model.values(), fresh.values());
}

fn whole_of_first(len: usize) -> Batch {
    loader(8, len).iter().next().unwrap()
}

#[test]
fn gradients_that_share_memory_are_accumulated_apart() {
    let ones = Tensor::ones(3, DType::F32, &Device::Cpu).unwrap();
    let (a, b) = (Parameter::new("a", &ones).unwrap(), Parameter::new("b", &ones).unwrap());
    let both = Parameters::from_iter([a.clone(), b.clone()]);
    for _ in 0..4 {
        let sum = (a.tensor() + b.tensor()).unwrap();
        both.backward(&sum.sqr().unwrap().sum_all().unwrap()).unwrap();
    }
    // d/da of the sum of (a + b)^2 is 2 (a + b) = 4, in each of the four passes.
    for parameter in [a, b] {
        assert_eq!(parameter.grad().unwrap().to_vec1::<f32>().unwrap(), [16.0; 3]);
    }
}

#[test]
fn clipping_scales_to_the_given_norm_or_value_on_sync_steps_only() {
    let accelerator = Accelerator::builder().gradient_accumulation_steps(2).build().unwrap();
    let model = Line::new("line");
    let set = || {
        model.slope.set_grad(Some(Tensor::new(3.0, &Device::Cpu).unwrap()));
        model.offset.set_grad(Some(Tensor::new(-4.0, &Device::Cpu).unwrap()));
    };
    let parameters = model.parameters();
    set();
    assert_eq!(accelerator.clip_grad_norm(&parameters, 10.0).unwrap(), Some(5.0));
    assert_eq!(model.grads().unwrap(), [3.0, -4.0]);
    assert_eq!(accelerator.clip_grad_norm(&parameters, 1.0).unwrap(), Some(5.0));
    let factor = 1.0 / (5.0 + 1e-6);
    assert!(close(model.grads().unwrap(), [3.0 * factor, -4.0 * factor]));
    set();
    accelerator.clip_grad_value(&parameters, 3.5).unwrap();
    assert_eq!(model.grads().unwrap(), [3.0, -3.5]);
    assert!(accelerator.clip_grad_norm(&parameters, 0.0).is_err());

    set();
    let norm = accelerator.accumulate(|| accelerator.clip_grad_norm(&parameters, 1.0)).unwrap();
    assert_eq!(norm, None);
    assert_eq!(model.grads().unwrap(), [3.0, -4.0]);
}

#[test]
fn a_scalar_is_refused_by_gather_for_metrics() {
    let accelerator = Accelerator::new().unwrap();
    let scalar = Tensor::new(1.0, &Device::Cpu).unwrap();
    assert!(accelerator.gather_for_metrics(&scalar).unwrap_err().to_string().contains("scalar"));
    let rows = Tensor::new(&[1.0, 2.0], &Device::Cpu).unwrap();
    assert_eq!(accelerator.gather_for_metrics(&rows).unwrap().dims(), [2]);
}

#[test]
fn memory_of_gradients_stays_flat_over_many_accumulations() {
    let model = Line::new("line");
    let batch = whole(8);
    model.loss(&batch).unwrap().backward().unwrap();
    model.loss(&batch).unwrap().backward().unwrap();
    let grad = model.slope.grad().unwrap();
    for _ in 0..100 {
        model.loss(&batch).unwrap().backward().unwrap();
    }
    // In place: the tensor taken before follows.
    assert_eq!(grad.to_scalar::<f64>().unwrap(), model.grads().unwrap()[0]);
}
