//! The same seed gives the same bits on any number of threads.

#![allow(clippy::unwrap_used)]

use candle_accelerate::data::Batch;
use candle_accelerate::model::{AutoConfig, AutoModelForSequenceClassification, Model};
use candle_accelerate::rng;
use candle_core::{Device, Tensor};

/// The loss and every gradient of a new model in training mode, as bits.
fn train(threads: usize) -> Vec<u32> {
    let config = AutoConfig::from_json(
        r#"{"model_type": "bert", "vocab_size": 500, "hidden_size": 96, "intermediate_size": 200,
            "num_hidden_layers": 2, "num_attention_heads": 3}"#,
    )
    .unwrap();
    let step = || {
        let model = AutoModelForSequenceClassification::from_config(config).unwrap();
        let ids: Vec<u32> = (0..8 * 90).map(|i| i * 7919 % 500).collect();
        let mask: Vec<u32> = (0..8 * 90).map(|i| u32::from(i % 90 < 40 + i / 90 * 7)).collect();
        let batch = Batch::new([
            ("input_ids", Tensor::from_vec(ids, (8, 90), &Device::Cpu).unwrap()),
            ("attention_mask", Tensor::from_vec(mask, (8, 90), &Device::Cpu).unwrap()),
            ("labels", Tensor::new(&[0u32, 1, 1, 0, 1, 0, 0, 1], &Device::Cpu).unwrap()),
        ]);
        let loss = model.forward(&batch).unwrap().loss;
        loss.backward().unwrap();
        let mut bits = vec![loss.item().unwrap().to_bits()];
        for parameter in &model.parameters() {
            let grad = parameter.grad().unwrap().flatten_all().unwrap();
            bits.extend(grad.to_vec1::<f32>().unwrap().iter().map(|value| value.to_bits()));
        }
        bits
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| rng::with_seed(5, step))
}

#[test]
fn a_training_step_has_the_same_bits_on_any_number_of_threads() {
    let one = train(1);
    for threads in [2, 3, 4] {
        assert!(one == train(threads), "{threads} threads");
    }
}
