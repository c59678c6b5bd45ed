//! Optimizers and schedules against PyTorch and transformers (see fixtures/make_training.py).
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use candle_accelerate::optim::{
    Adam, AdamConfig, AdamW, Optimizer, ParamGroup, ParamGroups, Sgd, SgdConfig,
};
use candle_accelerate::schedule::*;
use candle_accelerate::{Parameter, Parameters, Result};
use candle_core::{DType, Device, Tensor};

fn fixture(name: &str) -> HashMap<String, Tensor> {
    let path = format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    candle_core::safetensors::load(path, &Device::Cpu).unwrap()
}

fn parameter(name: &str, value: &Tensor) -> (Parameter, Parameters) {
    let parameter = Parameter::new(name, value).unwrap();
    (parameter.clone(), Parameters::from_iter([parameter]))
}

/// The largest difference, relative to the larger of 1 and the expected value.
fn difference(actual: &Tensor, expected: &Tensor) -> f64 {
    let to_vec = |tensor: &Tensor| tensor.to_dtype(DType::F64)?.flatten_all()?.to_vec1::<f64>();
    let (actual, expected) = (to_vec(actual).unwrap(), to_vec(expected).unwrap());
    actual.iter().zip(&expected).map(|(a, e)| (a - e).abs() / e.abs().max(1.0)).fold(0.0, f64::max)
}

type Make = fn(Parameters) -> Result<Box<dyn Optimizer>>;

const ADAM: AdamConfig = AdamConfig { beta1: 0.8, beta2: 0.95, eps: 1e-6, weight_decay: 0.1 };
const SGD: SgdConfig =
    SgdConfig { momentum: 0.9, dampening: 0.0, weight_decay: 0.0, nesterov: false };

const OPTIMIZERS: [(&str, Make); 8] = [
    ("adam", |p| Ok(Box::new(Adam::new(p, 1e-2)?))),
    ("adam_l2", |p| Ok(Box::new(Adam::with_config(p, 1e-2, ADAM)?))),
    ("adamw", |p| Ok(Box::new(AdamW::new(p, 1e-2)?))),
    ("adamw_decay", |p| Ok(Box::new(AdamW::with_config(p, 1e-2, ADAM)?))),
    ("sgd", |p| Ok(Box::new(Sgd::new(p, 1e-3)?))),
    ("sgd_decay", |p| {
        let config = SgdConfig { weight_decay: 0.1, ..SgdConfig::default() };
        Ok(Box::new(Sgd::with_config(p, 1e-3, config)?))
    }),
    ("sgd_momentum", |p| {
        Ok(Box::new(Sgd::with_config(p, 1e-3, SgdConfig { dampening: 0.5, ..SGD })?))
    }),
    ("sgd_nesterov", |p| {
        let config = SgdConfig { nesterov: true, weight_decay: 0.01, ..SGD };
        Ok(Box::new(Sgd::with_config(p, 1e-3, config)?))
    }),
];

#[test]
fn optimizers_equal_pytorch_over_100_steps() {
    let fixture = fixture("optimizers.safetensors");
    for (name, make) in OPTIMIZERS {
        for (dtype, suffix, tolerance) in [(DType::F32, "", 1e-6), (DType::F64, "_f64", 1e-13)] {
            let (parameter, parameters) =
                parameter("weight", &fixture["start"].to_dtype(dtype).unwrap());
            let optimizer = make(parameters).unwrap();
            let grads = fixture["grads"].to_dtype(dtype).unwrap();
            let expected = &fixture[&format!("{name}{suffix}")];
            for step in 0..100 {
                parameter.set_grad(Some(grads.get(step).unwrap()));
                optimizer.step().unwrap();
                let difference = difference(&parameter.tensor(), &expected.get(step).unwrap());
                assert!(difference < tolerance, "{name} {dtype:?} step {step}: {difference:e}");
            }
        }
    }
}

#[test]
fn half_precision_parameters_follow_the_f32_ones_within_their_rounding() {
    let fixture = fixture("optimizers.safetensors");
    for (name, make) in OPTIMIZERS {
        let (parameter, parameters) =
            parameter("weight", &fixture["start"].to_dtype(DType::F16).unwrap());
        let optimizer = make(parameters).unwrap();
        for step in 0..10 {
            let grad = fixture["grads"].get(step).unwrap().to_dtype(DType::F16).unwrap();
            parameter.set_grad(Some(grad));
            optimizer.step().unwrap();
        }
        let difference = difference(&parameter.tensor(), &fixture[name].get(9).unwrap());
        assert!(difference < 5e-3, "{name}: {difference:e}");
    }
}

#[test]
fn a_resumed_optimizer_goes_on_bit_for_bit() {
    let fixture = fixture("optimizers.safetensors");
    let run = |parameter: &Parameter, optimizer: &dyn Optimizer, steps: std::ops::Range<usize>| {
        for step in steps {
            parameter.set_grad(Some(fixture["grads"].get(step).unwrap()));
            optimizer.step().unwrap();
        }
    };
    for (name, make) in OPTIMIZERS {
        let (straight, parameters) = parameter("weight", &fixture["start"]);
        let first = make(parameters).unwrap();
        run(&straight, &*first, 0..50);
        let state = first.state_dict().unwrap();
        let (resumed, parameters) = parameter("weight", &straight.tensor());
        run(&straight, &*first, 50..100);

        let second = make(parameters).unwrap();
        second.load_state_dict(&state).unwrap();
        run(&resumed, &*second, 50..100);
        let values = |p: &Parameter| p.tensor().to_vec1::<f32>().unwrap();
        assert_eq!(values(&straight), values(&resumed), "{name}");
    }
}

#[test]
fn groups_have_their_own_learning_rate_and_decay() {
    let ones = Tensor::ones(4, DType::F32, &Device::Cpu).unwrap();
    let (fast, fast_list) = parameter("fast", &ones);
    let (slow, slow_list) = parameter("slow", &ones);
    let groups = vec![
        ParamGroup::new(fast_list),
        ParamGroup::new(slow_list).with_lr(0.01).with_weight_decay(0.0),
    ];
    let config = SgdConfig { weight_decay: 0.5, ..SgdConfig::default() };
    let optimizer = Sgd::with_config(groups, 0.1, config).unwrap();
    for parameter in optimizer.parameters().iter() {
        parameter.set_grad(Some(ones.clone()));
    }
    optimizer.step().unwrap();
    assert!(difference(&fast.tensor(), &(&ones * 0.85).unwrap()) < 1e-7);
    assert!(difference(&slow.tensor(), &(&ones * 0.99).unwrap()) < 1e-7);
}

#[test]
fn a_frozen_parameter_and_one_without_gradient_stay() {
    let ones = Tensor::ones(4, DType::F32, &Device::Cpu).unwrap();
    let (frozen, _) = parameter("frozen", &ones);
    let (untouched, _) = parameter("untouched", &ones);
    let optimizer =
        Adam::new(Parameters::from_iter([frozen.clone(), untouched.clone()]), 0.1).unwrap();
    frozen.set_grad(Some(ones.clone()));
    frozen.set_requires_grad(false);
    optimizer.step().unwrap();
    for parameter in [frozen, untouched] {
        assert_eq!(parameter.tensor().to_vec1::<f32>().unwrap(), [1.0; 4]);
    }
}

#[test]
fn a_strided_gradient_is_read_in_the_parameters_order() {
    let start = Tensor::zeros((2, 3), DType::F32, &Device::Cpu).unwrap();
    let (weight, parameters) = parameter("weight", &start);
    let grad = Tensor::arange(0f32, 6.0, &Device::Cpu).unwrap().reshape((3, 2)).unwrap();
    weight.set_grad(Some(grad.t().unwrap()));
    Sgd::new(parameters, 1.0).unwrap().step().unwrap();
    let expected = [[0.0, -2.0, -4.0], [-1.0, -3.0, -5.0]];
    assert_eq!(weight.tensor().to_vec2::<f32>().unwrap(), expected);
}

#[test]
fn clones_share_learning_rate_and_state() {
    let ones = Tensor::ones(1, DType::F32, &Device::Cpu).unwrap();
    let (weight, parameters) = parameter("weight", &ones);
    let optimizer = Adam::new(parameters, 0.1).unwrap();
    let clone = optimizer.clone();
    clone.set_learning_rate(0.5);
    assert_eq!(optimizer.learning_rate(), 0.5);
    weight.set_grad(Some(ones));
    clone.step().unwrap();
    assert_eq!(optimizer.state_dict().unwrap().parameters["weight"].step, 1);
}

#[test]
fn bad_settings_and_foreign_states_are_refused_with_a_reason() {
    let ones = Tensor::ones(1, DType::F32, &Device::Cpu).unwrap();
    let (weight, parameters) = parameter("weight", &ones);
    let message = |error: candle_accelerate::Error| error.to_string();
    let error = Adam::new(parameters.clone(), -1.0).unwrap_err();
    assert_eq!(message(error), "lr is -1; use a finite number of at least 0");
    assert!(message(Adam::new(Parameters::default(), 0.1).unwrap_err()).contains("no parameters"));
    let config = AdamConfig { beta1: 1.0, ..AdamConfig::default() };
    assert!(
        message(Adam::with_config(parameters.clone(), 0.1, config).unwrap_err()).contains("beta1")
    );
    let config = SgdConfig { nesterov: true, ..SgdConfig::default() };
    assert!(
        message(Sgd::with_config(parameters.clone(), 0.1, config).unwrap_err())
            .contains("nesterov")
    );
    let twice = Parameters::from_iter([weight.clone(), weight.clone()]);
    assert!(message(Sgd::new(twice, 0.1).unwrap_err()).contains("two parameters called 'weight'"));

    weight.set_grad(Some(ones));
    let optimizer = AdamW::new(parameters.clone(), 0.1).unwrap();
    optimizer.step().unwrap();
    let state = optimizer.state_dict().unwrap();
    let (_, others) = parameter("other", &Tensor::ones(1, DType::F32, &Device::Cpu).unwrap());
    let error = AdamW::new(others, 0.1).unwrap().load_state_dict(&state).unwrap_err();
    assert!(message(error).contains("'weight', which this optimizer does not train"));
    let (_, wider) = parameter("weight", &Tensor::ones(2, DType::F32, &Device::Cpu).unwrap());
    let error = AdamW::new(wider, 0.1).unwrap().load_state_dict(&state).unwrap_err();
    assert!(message(error).contains("has shape [1]; the parameter has [2]"));
}

#[test]
fn schedules_equal_transformers_over_1000_steps() {
    let fixture = fixture("schedules.safetensors");
    type MakeSchedule = fn(&Sgd) -> LrScheduler;
    let schedules: [(&str, MakeSchedule); 7] = [
        ("constant", |o| get_constant_schedule(o)),
        ("constant_with_warmup", |o| get_constant_schedule_with_warmup(o, 70)),
        ("linear", |o| get_linear_schedule_with_warmup(o, 70, 950)),
        ("cosine", |o| get_cosine_schedule_with_warmup(o, 70, 1000)),
        ("cosine_with_restarts", |o| {
            get_cosine_with_hard_restarts_schedule_with_warmup(o, 70, 950, 3)
        }),
        ("polynomial", |o| get_polynomial_decay_schedule_with_warmup(o, 70, 950, 1e-5, 2.0)),
        ("one_cycle", |o| get_one_cycle_schedule(o, 0.1, 1000)),
    ];
    for (name, make) in schedules {
        let zeros = Tensor::zeros(1, DType::F32, &Device::Cpu).unwrap();
        let group = |name, lr| ParamGroup::new(parameter(name, &zeros).1).with_lr(lr);
        let groups: ParamGroups = vec![group("a", 1e-2), group("b", 3e-4)].into();
        let optimizer = Sgd::new(groups, 1e-2).unwrap();
        let scheduler = make(&optimizer);
        for (step, expected) in fixture[name].to_vec2::<f64>().unwrap().iter().enumerate() {
            let rates = optimizer.learning_rates();
            assert_eq!(rates, scheduler.get_last_lr());
            for (rate, expected) in rates.iter().zip(expected) {
                assert!((rate - expected).abs() < 1e-16, "{name} {step}: {rate} {expected}");
            }
            scheduler.step().unwrap();
        }
    }
}

#[test]
fn a_resumed_schedule_goes_on_where_it_was() {
    let zeros = Tensor::zeros(1, DType::F32, &Device::Cpu).unwrap();
    let make = || Sgd::new(parameter("weight", &zeros).1, 0.1).unwrap();
    let first = get_linear_schedule_with_warmup(&make(), 3, 10);
    (0..5).for_each(|_| first.step().unwrap());
    let optimizer = make();
    let second = get_linear_schedule_with_warmup(&optimizer, 3, 10);
    second.load_state_dict(&first.state_dict()).unwrap();
    assert_eq!(second.get_last_lr(), first.get_last_lr());
    assert_eq!(optimizer.learning_rates(), first.get_last_lr());
}
