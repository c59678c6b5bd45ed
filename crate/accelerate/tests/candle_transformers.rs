//! The models against candle-transformers' own, which can only infer.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use candle_accelerate::data::Batch;
use candle_accelerate::model::AutoModel;
use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::{bert, distilbert};

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn weights(name: &str) -> VarBuilder<'static> {
    let tensors =
        candle_core::safetensors::load(folder(name).join("model.safetensors"), &Device::Cpu);
    VarBuilder::from_tensors(tensors.unwrap(), DType::F32, &Device::Cpu)
}

fn input_ids() -> Tensor {
    Tensor::new(&[[5u32, 7, 11, 3, 4], [9, 3, 30, 2, 8]], &Device::Cpu).unwrap()
}

fn attention_mask() -> Tensor {
    Tensor::new(&[[1u32, 1, 1, 1, 0], [1, 1, 1, 0, 0]], &Device::Cpu).unwrap()
}

fn ours(name: &str, edit: impl Fn(String) -> String) -> Tensor {
    let copy = tempfile::tempdir().unwrap();
    let config = std::fs::read_to_string(folder(name).join("config.json")).unwrap();
    std::fs::write(copy.path().join("config.json"), edit(config)).unwrap();
    let file = "model.safetensors";
    std::fs::copy(folder(name).join(file), copy.path().join(file)).unwrap();
    let model = AutoModel::from_pretrained(copy.path()).unwrap();
    let batch = Batch::new([("input_ids", input_ids()), ("attention_mask", attention_mask())]);
    model.forward(&batch).unwrap().last_hidden_state
}

fn distance(a: &Tensor, b: &Tensor) -> f32 {
    let difference = (a - b).unwrap().abs().unwrap().flatten_all().unwrap();
    difference.max(0).unwrap().to_scalar().unwrap()
}

#[test]
fn bert_gives_the_hidden_states_of_candle_transformers() {
    let config = std::fs::read_to_string(folder("bert").join("config.json")).unwrap();
    let config: serde_json::Value = serde_json::from_str(&config).unwrap();
    // Its configuration knows "geluapproximate", the tanh form, under that name only.
    let mut config = config.as_object().unwrap().clone();
    config.insert("hidden_act".into(), "geluapproximate".into());
    config.insert("position_embedding_type".into(), "absolute".into());
    let config: bert::Config = serde_json::from_value(config.into()).unwrap();
    let theirs = bert::BertModel::load(weights("bert"), &config).unwrap();
    let token_types = input_ids().zeros_like().unwrap();
    let theirs = theirs.forward(&input_ids(), &token_types, Some(&attention_mask())).unwrap();
    let distance = distance(&ours("bert", |config| config), &theirs);
    assert!(distance < 1e-5, "off by {distance:e}");
}

#[test]
fn distilbert_gives_the_hidden_states_of_candle_transformers_but_for_its_gelu_and_mask() {
    let config = std::fs::read_to_string(folder("distilbert").join("config.json")).unwrap();
    let config: distilbert::Config = serde_json::from_str(&config).unwrap();
    let theirs = distilbert::DistilBertModel::load(weights("distilbert"), &config).unwrap();
    // Its mask is 1 for padding, [batch, 1, 1, keys]; its "gelu" is the tanh form.
    let mask = attention_mask().eq(0u32).unwrap().reshape((2, 1, 1, 5)).unwrap();
    let theirs = theirs.forward(&input_ids(), &mask).unwrap();
    let ours = ours("distilbert", |config| config.replace(r#""gelu""#, r#""gelu_new""#));
    let distance = distance(&ours, &theirs);
    assert!(distance < 1e-5, "off by {distance:e}");
}
