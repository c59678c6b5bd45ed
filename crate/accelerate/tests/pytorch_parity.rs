//! Operations and models against PyTorch; `fixtures/make_fixtures.py` made the expected values.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::path::PathBuf;

use candle_accelerate::data::Batch;
use candle_accelerate::model::{
    AutoConfig, AutoModel, AutoModelForSequenceClassification, Model, PretrainedOptions,
};
use candle_accelerate::ops::{self, Attention, CrossEntropy, Reduction};
use candle_core::{DType, Device, Tensor, Var};

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn tensors(name: &str) -> HashMap<String, Tensor> {
    candle_core::safetensors::load(fixture(name), &Device::Cpu).unwrap()
}

fn flat(tensor: &Tensor) -> Vec<f64> {
    tensor.to_dtype(DType::F64).unwrap().flatten_all().unwrap().to_vec1().unwrap()
}

/// The largest difference.
fn distance(got: &Tensor, expected: &Tensor) -> f64 {
    assert_eq!(got.dims(), expected.dims());
    let pairs = flat(got).into_iter().zip(flat(expected));
    pairs
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, |max, d| if d > max || d.is_nan() { d } else { max })
}

/// The largest difference, relative to the largest expected value.
fn relative(got: &Tensor, expected: &Tensor) -> f64 {
    distance(got, expected) / largest(expected)
}

fn largest(tensor: &Tensor) -> f64 {
    flat(tensor).into_iter().fold(0.0, |max, value| max.max(value.abs()))
}

fn check<const N: usize>(name: &str, op: impl Fn([&Tensor; N]) -> Tensor) {
    let tensors = tensors("operations.safetensors");
    for (dtype, tolerance) in [(DType::F64, 1e-12), (DType::F32, 2e-6)] {
        let get = |key: &str| tensors[&format!("{name}.{key}")].to_dtype(dtype).unwrap();
        let vars: [Var; N] =
            std::array::from_fn(|i| Var::from_tensor(&get(&format!("input.{i}"))).unwrap());
        let output = op(vars.each_ref().map(|var| var.as_tensor()));
        let error = relative(&output, &get("output"));
        assert!(error < tolerance, "{name} {dtype:?}: result off by {error:e}");
        let loss = (output * get("weights")).unwrap().sum_all().unwrap();
        let grads = loss.backward().unwrap();
        for (index, var) in vars.iter().enumerate() {
            let error = relative(grads.get(var).unwrap(), &get(&format!("grad.{index}")));
            assert!(error < tolerance, "{name} {dtype:?}: gradient {index} off by {error:e}");
        }
    }
}

#[test]
fn operations_and_their_gradients_equal_pytorch() {
    check("layer_norm", |[x, w, b]| ops::layer_norm(x, w, b, 1e-5).unwrap());
    check("rms_norm", |[x, w]| ops::rms_norm(x, w, 1e-6).unwrap());
    check("softmax", |[x]| ops::softmax(x).unwrap());
    check("gelu", |[x]| ops::gelu(x).unwrap());
    check("gelu_tanh", |[x]| ops::gelu_tanh(x).unwrap());
    check("linear", |[x, w, b]| ops::linear(x, w, Some(b)).unwrap());
    let mask = Some(tensors("operations.safetensors")["attention.mask"].clone());
    let options = Attention { num_heads: 3, mask, dropout: 0.0 };
    check("attention", |[q, k, v]| ops::scaled_dot_product_attention(q, k, v, &options).unwrap());
}

#[test]
fn cross_entropy_equals_pytorch_in_every_variant() {
    let tensors = tensors("operations.safetensors");
    let targets = &tensors["cross_entropy.targets"];
    let weights = tensors["cross_entropy.class_weights"].to_vec1::<f64>().unwrap();
    let reductions =
        [("mean", Reduction::Mean), ("sum", Reduction::Sum), ("none", Reduction::None)];
    for (reduction_name, reduction) in reductions {
        for (smoothing_name, label_smoothing) in [("0.0", 0.0), ("0.2", 0.2)] {
            for (weighted, class_weights) in [("False", None), ("True", Some(weights.clone()))] {
                let options = CrossEntropy {
                    label_smoothing,
                    class_weights,
                    reduction,
                    ..CrossEntropy::default()
                };
                let name = format!("cross_entropy.{reduction_name}.{smoothing_name}.{weighted}");
                check(&name, |[logits]| ops::cross_entropy(logits, targets, &options).unwrap());
            }
        }
    }
}

fn batch(expected: &HashMap<String, Tensor>) -> Batch {
    let names = ["input_ids", "attention_mask", "token_type_ids", "labels"];
    Batch::new(names.iter().filter_map(|name| Some((*name, expected.get(*name)?.clone()))))
}

fn classifier_equals_transformers(folder: &str) {
    let expected = tensors(&format!("{folder}/expected.safetensors"));
    let model = AutoModelForSequenceClassification::from_pretrained(fixture(folder)).unwrap();
    assert!(model.loading_report().newly_initialized.is_empty());
    assert!(model.loading_report().unexpected.is_empty());

    let outputs = model.forward(&batch(&expected)).unwrap();
    let error = distance(&outputs.logits, &expected["logits"]);
    assert!(error < 1e-5, "{folder}: logits off by {error:e}");
    let error = distance(outputs.loss.tensor().unwrap(), &expected["loss"]);
    assert!(error < 1e-6, "{folder}: loss off by {error:e}");

    outputs.loss.backward().unwrap();
    let parameters = model.parameters();
    let gradients = expected.keys().filter(|name| name.starts_with("grad.")).count();
    assert_eq!(parameters.len(), gradients);
    for parameter in &parameters {
        let name = format!("grad.{}", parameter.name());
        let got = parameter.grad().unwrap();
        // Softmax does not see a shift of all keys: this gradient is zero but for rounding, so it
        // is measured against that of the weight.
        let is_key_bias = name.ends_with("key.bias") || name.ends_with("k_lin.bias");
        let scale = if is_key_bias { name.replace("bias", "weight") } else { name.clone() };
        let error = distance(&got, &expected[&name]) / largest(&expected[&scale]);
        assert!(error < 1e-5, "{folder}: gradient of {} off by {error:e}", parameter.name());
    }
}

#[test]
fn distilbert_equals_transformers_in_logits_loss_and_every_gradient() {
    classifier_equals_transformers("distilbert");
}

#[test]
fn bert_equals_transformers_in_logits_loss_and_every_gradient() {
    classifier_equals_transformers("bert");
}

#[test]
fn roberta_equals_transformers_in_logits_loss_and_every_gradient() {
    classifier_equals_transformers("roberta");
}

#[test]
fn saved_models_load_again_with_the_same_logits() {
    for folder in ["distilbert", "bert", "roberta"] {
        let expected = tensors(&format!("{folder}/expected.safetensors"));
        let model = AutoModelForSequenceClassification::from_pretrained(fixture(folder)).unwrap();
        let saved = tempfile::tempdir().unwrap();
        model.save_pretrained(saved.path()).unwrap();
        let again = AutoModelForSequenceClassification::from_pretrained(saved.path()).unwrap();
        let logits = |model: &AutoModelForSequenceClassification| {
            flat(&model.forward(&batch(&expected)).unwrap().logits)
        };
        assert_eq!(logits(&model), logits(&again));
        assert_eq!(model.config().num_labels(), again.config().num_labels());
    }
}

#[test]
#[ignore = "needs CANDLE_ACCELERATE_PYTHON, a Python with torch and transformers"]
fn saved_models_load_in_transformers_with_the_same_logits() {
    const SCRIPT: &str = "
import sys, torch, transformers
from safetensors.torch import load_file
folder, expected = sys.argv[1], load_file(sys.argv[2])
model, report = transformers.AutoModelForSequenceClassification.from_pretrained(
    folder, output_loading_info=True)
assert not report['missing_keys'] and not report['unexpected_keys'], report
names = ['input_ids', 'attention_mask', 'token_type_ids']
logits = model.eval()(**{n: expected[n] for n in names if n in expected}).logits
assert (logits - expected['logits']).abs().max() < 1e-5
";
    let python = std::env::var_os("CANDLE_ACCELERATE_PYTHON").unwrap();
    for folder in ["distilbert", "bert", "roberta"] {
        let model = AutoModelForSequenceClassification::from_pretrained(fixture(folder)).unwrap();
        let saved = tempfile::tempdir().unwrap();
        model.save_pretrained(saved.path()).unwrap();
        let status = std::process::Command::new(&python)
            .args(["-c", SCRIPT])
            .arg(saved.path())
            .arg(fixture(&format!("{folder}/expected.safetensors")))
            .status()
            .unwrap();
        assert!(status.success(), "{folder}");
    }
}

#[test]
fn a_base_model_loads_from_a_classifier_and_a_classifier_from_a_base_model() {
    for folder in ["distilbert", "bert"] {
        let expected = tensors(&format!("{folder}/expected.safetensors"));
        let base = AutoModel::from_pretrained(fixture(folder)).unwrap();
        assert!(base.loading_report().newly_initialized.is_empty(), "{:?}", base.loading_report());
        assert!(base.loading_report().unexpected.iter().all(|name| name.contains("classifier")));
        let saved = tempfile::tempdir().unwrap();
        base.save_pretrained(saved.path()).unwrap();

        let options = PretrainedOptions { num_labels: Some(5), ..PretrainedOptions::default() };
        let classifier =
            AutoModelForSequenceClassification::from_pretrained_with(saved.path(), &options)
                .unwrap();
        let report = classifier.loading_report();
        assert!(report.newly_initialized.iter().all(|name| name.contains("classifier")));
        assert!(report.unexpected.is_empty());
        let inputs = Batch::new([("input_ids", expected["input_ids"].clone())]);
        let outputs = classifier.forward(&inputs).unwrap();
        assert_eq!(outputs.logits.dims(), [3, 5]);
        assert!(outputs.loss.backward().unwrap_err().to_string().contains("no 'labels' tensor"));
    }
}

#[test]
fn another_number_of_labels_than_the_checkpoint_names_tensor_shapes_and_file() {
    let options = PretrainedOptions { num_labels: Some(7), ..PretrainedOptions::default() };
    let error =
        AutoModelForSequenceClassification::from_pretrained_with(fixture("distilbert"), &options)
            .unwrap_err()
            .to_string();
    let expected = "model.safetensors: tensor 'classifier.weight' has shape [3, 16]; config.json \
                    describes [7, 16]";
    assert!(error.ends_with(expected), "{error}");
}

#[test]
fn dropout_is_on_in_training_repeats_with_the_seed_and_is_off_in_evaluation() {
    let expected = tensors("distilbert/expected.safetensors");
    let model = AutoModelForSequenceClassification::from_pretrained(fixture("distilbert")).unwrap();
    let logits = || flat(&model.forward(&batch(&expected)).unwrap().logits);
    let seeded = |seed| candle_accelerate::rng::with_seed(seed, logits);
    let evaluated = logits();
    assert_eq!(evaluated, logits());
    model.train();
    assert_ne!(evaluated, logits());
    assert_eq!(seeded(1), seeded(1));
    assert_ne!(seeded(1), seeded(2));
}

#[test]
fn training_mode_gives_every_parameter_a_gradient() {
    for folder in ["distilbert", "bert", "roberta"] {
        let expected = tensors(&format!("{folder}/expected.safetensors"));
        let model = AutoModelForSequenceClassification::from_pretrained(fixture(folder)).unwrap();
        model.train();
        let outputs = model.forward(&batch(&expected)).unwrap();
        outputs.loss.backward().unwrap();
        for parameter in &model.parameters() {
            let grad = flat(&parameter.grad().unwrap());
            assert!(grad.iter().any(|value| *value != 0.0), "{}", parameter.name());
        }
    }
}

#[test]
fn frozen_parameters_get_no_gradient_and_the_others_do() {
    let expected = tensors("bert/expected.safetensors");
    let model = AutoModelForSequenceClassification::from_pretrained(fixture("bert")).unwrap();
    model.freeze("bert.").unwrap();
    model.forward(&batch(&expected)).unwrap().loss.backward().unwrap();
    for parameter in &model.parameters() {
        assert_eq!(parameter.grad().is_some(), parameter.name().starts_with("classifier"));
    }
    let error = model.freeze("distilbert.").unwrap_err().to_string();
    assert_eq!(error, "freeze found no parameter whose name begins 'distilbert.'");
}

#[test]
fn an_unused_pooler_is_named_by_backward_until_it_is_frozen() {
    let expected = tensors("bert/expected.safetensors");
    let model = AutoModel::from_pretrained(fixture("bert")).unwrap();
    let loss = || {
        let hidden = model.forward(&batch(&expected)).unwrap().last_hidden_state;
        hidden.sqr().unwrap().mean_all().unwrap()
    };
    let error = model.parameters().backward(&loss()).unwrap_err().to_string();
    assert!(error.contains("pooler.dense.weight"), "{error}");
    model.freeze("pooler.").unwrap();
    model.parameters().backward(&loss()).unwrap();
}

#[test]
fn new_models_start_as_in_transformers() {
    let config = AutoConfig::from_pretrained(fixture("distilbert")).unwrap();
    let model = candle_accelerate::rng::with_seed(3, || {
        AutoModelForSequenceClassification::from_config(config)
    })
    .unwrap();
    assert!(model.mode().is_training());
    for parameter in &model.parameters() {
        let values = flat(&parameter.tensor());
        let name = parameter.name();
        if name.ends_with("bias") {
            assert!(values.iter().all(|value| *value == 0.0), "{name}");
        } else if name.contains("orm.weight") {
            assert!(values.iter().all(|value| *value == 1.0), "{name}");
        } else {
            // The fixture's initializer_range is 0.3.
            let std = (values.iter().map(|v| v * v).sum::<f64>() / values.len() as f64).sqrt();
            assert!((0.2..0.4).contains(&std), "{name}: {std}");
        }
    }
    let words =
        model.parameters().get("distilbert.embeddings.word_embeddings.weight").unwrap().tensor();
    assert!(flat(&words.get(0).unwrap()).iter().all(|value| *value == 0.0));
}

#[test]
fn damaged_weights_are_an_error_that_names_the_file() {
    let copy = |bytes: &[u8]| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::copy(fixture("bert/config.json"), folder.path().join("config.json")).unwrap();
        std::fs::write(folder.path().join("model.safetensors"), bytes).unwrap();
        AutoModelForSequenceClassification::from_pretrained(folder.path()).unwrap_err().to_string()
    };
    let bytes = std::fs::read(fixture("bert/model.safetensors")).unwrap();
    let lie = |header: &str| {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes
    };
    let absurd = r#"{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,16]}}"#;
    for damaged in [
        &bytes[..bytes.len() / 2],
        &bytes[..4],
        &[],
        &[0xff; 64],
        &lie(absurd),
        &lie(r#"{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,999999999999]}}"#),
        &lie(&"[".repeat(100_000)),
    ] {
        let error = copy(damaged);
        assert!(error.contains("model.safetensors"), "{error}");
    }
}

#[test]
fn shards_are_read_and_paths_out_of_the_folder_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::copy(fixture("bert/config.json"), at("config.json")).unwrap();
    let tensors = tensors("bert/model.safetensors");
    let (mut one, mut two) = (HashMap::new(), HashMap::new());
    let mut map = HashMap::new();
    for (index, (name, tensor)) in tensors.into_iter().enumerate() {
        let (file, shard) = if index % 2 == 0 { ("one", &mut one) } else { ("two", &mut two) };
        map.insert(name.clone(), format!("{file}.safetensors"));
        shard.insert(name, tensor);
    }
    candle_core::safetensors::save(&one, at("one.safetensors")).unwrap();
    candle_core::safetensors::save(&two, at("two.safetensors")).unwrap();
    let index = serde_json::json!({ "metadata": {}, "weight_map": map });
    std::fs::write(at("model.safetensors.index.json"), index.to_string()).unwrap();
    let model = AutoModelForSequenceClassification::from_pretrained(folder.path()).unwrap();
    assert!(model.loading_report().newly_initialized.is_empty());

    for outside in ["../one.safetensors", "/etc/passwd", "..", "a/b"] {
        let index = serde_json::json!({ "weight_map": { "x": outside } });
        std::fs::write(at("model.safetensors.index.json"), index.to_string()).unwrap();
        let error = AutoModelForSequenceClassification::from_pretrained(folder.path()).unwrap_err();
        assert!(error.to_string().contains("only files in the same folder"), "{error}");
    }
}

#[test]
fn batches_that_do_not_fit_are_named() {
    let model = AutoModelForSequenceClassification::from_pretrained(fixture("bert")).unwrap();
    let error =
        |tensors: Vec<(&str, Tensor)>| model.forward(&Batch::new(tensors)).unwrap_err().to_string();
    let ids = Tensor::zeros((2, 17), DType::U32, &Device::Cpu).unwrap();
    assert_eq!(
        error(vec![("input_ids", ids)]),
        "input_ids have 17 tokens per sample; the model has positions for 16. Truncate when \
         tokenizing"
    );
    let ids = Tensor::zeros((2, 3), DType::U32, &Device::Cpu).unwrap();
    let mask = Tensor::zeros((2, 4), DType::U32, &Device::Cpu).unwrap();
    assert_eq!(
        error(vec![("input_ids", ids), ("attention_mask", mask)]),
        "attention_mask are [2, 4] U32; the model takes integers [2, 3]"
    );
    assert!(error(vec![]).contains("has no tensor 'input_ids'"));
    let error = AutoModel::from_pretrained(fixture("nowhere")).unwrap_err().to_string();
    assert!(error.contains("is not a folder with a config.json"), "{error}");
}
