//! The built-in task is learned by a small model, as its documentation says.
#![allow(clippy::unwrap_used)]

use candle_accelerate::data::DataLoader;
use candle_accelerate::data::paraphrase::ParaphraseDataset;
use candle_accelerate::metrics::ClassificationMetrics;
use candle_accelerate::model::{
    AutoConfig, AutoModelForSequenceClassification, DistilBertConfig, Model,
};
use candle_accelerate::optim::{Adam, Optimizer};
use candle_accelerate::schedule::get_linear_schedule_with_warmup;
use candle_accelerate::{Accelerator, rng};

/// The accuracy on held-out pairs after three epochs.
fn train(seed: u64) -> f64 {
    rng::with_seed(seed, || {
        let dataset = ParaphraseDataset::train(8000, seed).unwrap();
        let test = ParaphraseDataset::test(1000, seed).unwrap();
        let model = AutoModelForSequenceClassification::from_config(AutoConfig::DistilBert(
            DistilBertConfig {
                vocab_size: dataset.vocab_size(),
                dim: 96,
                hidden_dim: 384,
                n_layers: 2,
                n_heads: 12,
                max_position_embeddings: 64,
                initializer_range: 0.1,
                dropout: 0.0,
                attention_dropout: 0.0,
                seq_classif_dropout: 0.0,
                ..DistilBertConfig::default()
            },
        ))
        .unwrap();
        let loader = DataLoader::builder(dataset.clone()).batch_size(32).shuffle(true);
        let loader = loader.collate(dataset.collate()).build().unwrap();
        let test = DataLoader::builder(test).batch_size(100).collate(dataset.collate());
        let optimizer = Adam::new(model.parameters(), 1e-3).unwrap();
        let steps = 3 * loader.len();
        let scheduler = get_linear_schedule_with_warmup(&optimizer, steps / 10, steps);
        let accelerator = Accelerator::builder().cpu(true).build().unwrap();
        let (model, optimizer, loader, test, scheduler) = accelerator
            .prepare((model, optimizer, loader, test.build().unwrap(), scheduler))
            .unwrap();
        for epoch in 0..3 {
            let mut sum = 0.0;
            for batch in &loader {
                optimizer.zero_grad();
                let loss = model.forward(&batch).unwrap().loss;
                accelerator.backward(&loss).unwrap();
                optimizer.step().unwrap();
                scheduler.step().unwrap();
                sum += loss.item().unwrap();
            }
            println!("seed {seed} epoch {epoch}: loss {:.3}", sum / loader.len() as f32);
        }
        model.eval();
        let mut metrics = ClassificationMetrics::new();
        for batch in &test {
            let logits = model.forward(&batch).unwrap().logits;
            metrics.add_batch(&logits, batch.get("labels").unwrap()).unwrap();
        }
        println!("seed {seed}: accuracy {:.3} f1 {:.3}", metrics.accuracy(), metrics.f1());
        metrics.accuracy()
    })
}

#[test]
fn a_small_model_clearly_beats_the_majority_class_on_held_out_pairs() {
    let accuracy = train(42);
    assert!(accuracy > 0.8, "{accuracy}");
}

#[test]
#[ignore = "half a minute for each of five seeds"]
fn every_seed_beats_the_majority_class() {
    for seed in 0..5 {
        let accuracy = train(seed);
        assert!(accuracy > 0.8, "seed {seed}: {accuracy}");
    }
}
