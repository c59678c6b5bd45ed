//! Metrics against scikit-learn (see fixtures/make_training.py).
#![allow(clippy::unwrap_used)]

use candle_accelerate::metrics::ClassificationMetrics;
use candle_core::{Device, Tensor};
use serde_json::Value;

fn classes(row: &Value, name: &str) -> Vec<i64> {
    row[name].as_array().unwrap().iter().map(|class| class.as_i64().unwrap()).collect()
}

fn tensor(classes: &[i64]) -> Tensor {
    Tensor::new(classes, &Device::Cpu).unwrap()
}

#[test]
fn metrics_equal_scikit_learns_however_the_samples_are_batched() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/metrics.json");
    let rows: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for row in rows.as_array().unwrap() {
        let (references, predictions) = (classes(row, "references"), classes(row, "predictions"));
        for batch_size in [1, 7, references.len()] {
            let mut metrics = ClassificationMetrics::new();
            let batches = predictions.chunks(batch_size).zip(references.chunks(batch_size));
            for (predictions, references) in batches {
                metrics.add_batch(&tensor(predictions), &tensor(references)).unwrap();
            }
            let check = |name: &str, value: f64| {
                if let Some(expected) = row[name].as_f64() {
                    assert!((value - expected).abs() < 1e-14, "{name}: {value} {expected}");
                }
            };
            check("accuracy", metrics.accuracy());
            check("f1", metrics.f1());
            check("f1_macro", metrics.f1_macro());
            check("matthews", metrics.matthews());
        }
    }
}

#[test]
fn logits_count_as_their_largest() {
    let mut metrics = ClassificationMetrics::new();
    let logits = Tensor::new(&[[0.1f32, 0.9], [2.0, -1.0]], &Device::Cpu).unwrap();
    metrics.add_batch(&logits, &tensor(&[1, 1])).unwrap();
    assert_eq!((metrics.accuracy(), metrics.num_samples()), (0.5, 2));
}

#[test]
fn shapes_that_do_not_fit_and_classes_that_are_not_whole_are_refused() {
    let mut metrics = ClassificationMetrics::new();
    let error = metrics.add_batch(&tensor(&[1]), &tensor(&[1, 2])).unwrap_err().to_string();
    assert!(error.contains("shape [1]") && error.contains("shape [2]"), "{error}");
    let floats = Tensor::new(&[1f32], &Device::Cpu).unwrap();
    assert!(metrics.add_batch(&tensor(&[1]), &floats).unwrap_err().to_string().contains("F32"));
    assert_eq!(metrics.accuracy(), 0.0);
}
