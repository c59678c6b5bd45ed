//! One training step of a DistilBERT-shaped classifier, against PyTorch in the same run.
//!
//! `CANDLE_ACCELERATE_PYTHON` names a Python with torch and transformers; without it only our own
//! times are measured. Rounds of both sides alternate, so that a noisy machine disturbs both.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

use candle_accelerate::optim::{AdamW, Optimizer};
use candle_accelerate::prelude::*;

const ROUNDS: usize = 6;
const STEPS: usize = 10;
const BATCH: usize = 16;
const LENGTH: usize = 64;
/// The fastest tells most on a machine that has other work.
const QUANTILES: [(&str, f64); 2] = [("median", 0.5), ("fastest", 0.0)];

fn main() -> anyhow::Result<()> {
    let config = AutoConfig::from_json(
        r#"{"model_type": "distilbert", "vocab_size": 5000, "dim": 256, "hidden_dim": 1024,
            "n_layers": 4, "n_heads": 4, "max_position_embeddings": 128}"#,
    )?;
    let model = AutoModelForSequenceClassification::from_config(config)?;
    let optimizer = AdamW::new(model.parameters(), 1e-4)?;
    let count = (BATCH * LENGTH) as u32;
    let ids: Vec<u32> = (0..count).map(|i| 1 + i * 7919 % 4999).collect();
    let labels: Vec<u32> = (0..BATCH as u32).map(|i| i % 2).collect();
    let batch = Batch::new([
        ("input_ids", Tensor::from_vec(ids, (BATCH, LENGTH), &Device::Cpu)?),
        ("attention_mask", Tensor::ones((BATCH, LENGTH), DType::U32, &Device::Cpu)?),
        ("labels", Tensor::from_vec(labels, BATCH, &Device::Cpu)?),
    ]);
    let mut python = std::env::var_os("CANDLE_ACCELERATE_PYTHON")
        .map(|python| {
            let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/training_step.py");
            let mut child = Command::new(python)
                .args([script, &BATCH.to_string(), &LENGTH.to_string(), &STEPS.to_string()])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?;
            let pipes = child.stdin.take().zip(child.stdout.take());
            let (input, output) = pipes.ok_or_else(|| anyhow::anyhow!("no pipe to python"))?;
            anyhow::Ok((child, input, BufReader::new(output)))
        })
        .transpose()?;

    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        for _ in 0..STEPS {
            let start = Instant::now();
            let outputs = model.forward(&batch)?;
            let forward = start.elapsed();
            outputs.loss.backward()?;
            let backward = start.elapsed();
            optimizer.step()?;
            optimizer.zero_grad();
            let step = start.elapsed();
            if round > 0 {
                let parts = [step, forward, backward - forward, step - backward];
                ours.push(parts.map(|part| part.as_secs_f64() * 1e3));
            }
        }
        if let Some((_, input, output)) = &mut python {
            writeln!(input, "go")?;
            for _ in 0..STEPS {
                let mut line = String::new();
                output.read_line(&mut line)?;
                let mut parts = line.split_whitespace().map(str::parse::<f64>);
                let mut part = || parts.next().ok_or_else(|| anyhow::anyhow!("python: {line}"));
                let parts = [part()??, part()??, part()??, part()??];
                if round > 0 {
                    theirs.push(parts);
                }
            }
        }
    }
    println!("ms of {} steps: whole step, forward, backward, optimizer", ours.len());
    report("candle-accelerate", &ours);
    if let Some((mut child, input, _)) = python {
        drop(input);
        child.wait()?;
        report("PyTorch", &theirs);
        for (name, quantile) in QUANTILES {
            let (ours, theirs) = (at_quantile(&ours, quantile), at_quantile(&theirs, quantile));
            let ratio: [f64; 4] = std::array::from_fn(|part| ours[part] / theirs[part]);
            println!("{:<18} {name:<8} {ratio:>7.2?}", "ratio");
        }
    }
    Ok(())
}

fn report(name: &str, samples: &[[f64; 4]]) {
    for (quantile_name, quantile) in QUANTILES {
        println!("{name:<18} {quantile_name:<8} {:>7.1?}", at_quantile(samples, quantile));
    }
}

fn at_quantile(samples: &[[f64; 4]], quantile: f64) -> [f64; 4] {
    std::array::from_fn(|part| {
        let mut values: Vec<f64> = samples.iter().map(|sample| sample[part]).collect();
        values.sort_by(f64::total_cmp);
        values[(quantile * (values.len() - 1) as f64) as usize]
    })
}
