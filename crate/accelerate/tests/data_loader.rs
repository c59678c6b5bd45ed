//! Datasets, collating and the loader.
#![allow(clippy::unwrap_used)]

use candle_accelerate::data::{
    Batch, Collate, DataCollatorWithPadding, DataLoader, Dataset, DefaultCollate, InMemoryDataset,
    Sample, TensorDataset,
};
use candle_accelerate::{Accelerator, Error, Result};
use candle_core::{Device, Tensor};
use proptest::prelude::*;

fn numbers(len: usize) -> TensorDataset {
    let x = Tensor::arange(0u32, len as u32, &Device::Cpu).unwrap();
    TensorDataset::new([("x", x)]).unwrap()
}

fn values(batch: &Batch) -> Vec<u32> {
    batch.get("x").unwrap().to_vec1().unwrap()
}

fn epoch(loader: &DataLoader) -> Vec<u32> {
    loader.iter().flat_map(|batch| values(&batch)).collect()
}

fn shuffled(len: usize, seed: u64) -> DataLoader {
    DataLoader::builder(numbers(len)).batch_size(4).shuffle(true).seed(seed).build().unwrap()
}

proptest! {
    #[test]
    fn len_is_the_number_of_batches_and_each_sample_comes_once(
        len in 0usize..60,
        batch_size in 1usize..20,
        drop_last: bool,
        shuffle: bool,
        skipped in 0usize..8,
        prepare: bool,
    ) {
        let builder = DataLoader::builder(numbers(len)).batch_size(batch_size);
        let mut loader = builder.drop_last(drop_last).shuffle(shuffle).seed(1).build().unwrap();
        if prepare {
            loader = Accelerator::new().unwrap().prepare(loader).unwrap();
        }
        let rest = loader.skip_first_batches(skipped);
        for _ in 0..2 {
            prop_assert_eq!(loader.iter().len(), loader.len());
            prop_assert_eq!(rest.iter().count(), rest.len());
            let batches: Vec<_> = loader.iter().map(|batch| values(&batch)).collect();
            prop_assert_eq!(batches.len(), loader.len());
            let mut seen = batches.concat();
            seen.sort_unstable();
            seen.dedup();
            prop_assert_eq!(seen.len(), batches.concat().len());
            prop_assert_eq!(seen.len(), if drop_last { len / batch_size * batch_size } else { len });
        }
    }

    #[test]
    fn padding_keeps_every_token_and_fills_up_with_the_pad_value(
        rows in prop::collection::vec(prop::collection::vec(1u32..100, 0..12), 1..6),
        multiple in 1usize..9,
    ) {
        let samples: Vec<_> = rows
            .iter()
            .map(|row| {
                let ids = Tensor::from_slice(row, row.len(), &Device::Cpu).unwrap();
                Sample::new([("input_ids", ids)])
            })
            .collect();
        let collate = DataCollatorWithPadding::new(0).pad_to_multiple_of(multiple);
        let batch = collate.collate(&samples).unwrap();
        let padded = batch.get("input_ids").unwrap().to_vec2::<u32>().unwrap();
        let length = rows.iter().map(Vec::len).max().unwrap().next_multiple_of(multiple);
        for (row, mut padded) in rows.iter().zip(padded) {
            prop_assert_eq!(padded.len(), length);
            let padding = padded.split_off(row.len());
            prop_assert_eq!(row, &padded);
            prop_assert!(padding.iter().all(|token| *token == 0));
        }
    }
}

#[test]
fn the_order_is_a_function_of_seed_and_epoch_only() {
    let loader = shuffled(20, 7);
    let epochs: Vec<_> = (0..3).map(|_| epoch(&loader)).collect();
    assert_ne!(epochs[0], epochs[1]);
    assert_ne!(epochs[1], epochs[2]);

    let resumed = shuffled(20, 7);
    resumed.set_epoch(2);
    assert_eq!(epoch(&resumed), epochs[2]);
    resumed.set_epoch(1);
    assert_eq!(epoch(&resumed), epochs[1]);
    assert_eq!(epoch(&resumed), epochs[2]);
    assert_ne!(epoch(&shuffled(20, 8)), epochs[0]);
}

#[test]
fn an_epoch_that_is_left_early_is_over() {
    let (left_early, whole) = (shuffled(20, 7), shuffled(20, 7));
    assert!(left_early.iter().next().is_some());
    epoch(&whole);
    assert_eq!(epoch(&left_early), epoch(&whole));
}

#[test]
fn resuming_in_the_middle_of_an_epoch_yields_the_rest_of_it() {
    let (straight, interrupted, resumed) = (shuffled(20, 7), shuffled(20, 7), shuffled(20, 7));
    epoch(&straight);
    epoch(&interrupted);
    let before: Vec<_> = interrupted.iter().take(2).flat_map(|batch| values(&batch)).collect();
    let state = interrupted.state_dict();
    assert_eq!((state.epoch, state.batches), (1, 2));

    resumed.load_state_dict(state);
    let after = epoch(&resumed.skip_first_batches(state.batches));
    assert_eq!([before, after].concat(), epoch(&straight));
    assert_eq!(epoch(&resumed), epoch(&straight));
}

#[test]
fn clones_share_the_epoch() {
    let loader = shuffled(20, 7);
    let clone = loader.clone();
    let first = epoch(&loader);
    let second = epoch(&clone);
    assert_ne!(first, second);
    assert_eq!(loader.state_dict().epoch, 2);
}

#[test]
fn sequence_labels_are_padded_with_what_losses_ignore_and_scalars_are_stacked() {
    let sample = |labels: &[i64], x: f32| {
        let labels = Tensor::new(labels, &Device::Cpu).unwrap();
        Sample::new([("labels", labels), ("x", Tensor::new(x, &Device::Cpu).unwrap())])
    };
    let batch = DataCollatorWithPadding::new(0)
        .collate(&[sample(&[1, 2], 0.5), sample(&[3], 1.5)])
        .unwrap();
    assert_eq!(batch.get("labels").unwrap().to_vec2::<i64>().unwrap(), [[1, 2], [3, -100]]);
    assert_eq!(batch.get("x").unwrap().to_vec1::<f32>().unwrap(), [0.5, 1.5]);
}

#[test]
fn samples_that_do_not_fit_together_are_named() {
    let sample = |name: &str, len: usize| {
        Sample::new([(name, Tensor::ones(len, candle_core::DType::U32, &Device::Cpu).unwrap())])
    };
    let message = |samples: &[Sample]| DefaultCollate.collate(samples).unwrap_err().to_string();
    assert!(message(&[sample("x", 1), sample("x", 2)]).contains("'x' has shape [1]"));
    assert!(message(&[sample("x", 1), sample("y", 1)]).contains("no 'x'"));
    assert!(DefaultCollate.collate(&[]).is_err());
}

#[derive(Debug)]
struct FailsAt(usize);

impl Dataset for FailsAt {
    fn len(&self) -> usize {
        8
    }

    fn get(&self, index: usize) -> Result<Sample> {
        if index == self.0 {
            return Err(Error::invalid("row 5", "is broken"));
        }
        Ok(Sample::new([("x", Tensor::new(index as u32, &Device::Cpu)?)]))
    }
}

#[test]
fn a_bad_sample_fails_its_batch_and_ends_the_iteration() {
    let loader = DataLoader::builder(FailsAt(5)).batch_size(2).build().unwrap();
    let batches: Vec<_> = loader.iter().collect();
    assert_eq!(batches.len(), 3);
    assert_eq!(values(&batches[1]), [2, 3]);
    assert_eq!(batches[2].get("x").unwrap_err().to_string(), "row 5 is broken");
}

#[test]
fn a_batch_size_of_zero_and_uneven_tensors_are_refused() {
    let error = DataLoader::builder(numbers(3)).batch_size(0).build().unwrap_err();
    assert_eq!(error.to_string(), "batch_size is 0; use at least 1");
    let tensor = |len: usize| Tensor::ones(len, candle_core::DType::F32, &Device::Cpu).unwrap();
    let error = TensorDataset::new([("a", tensor(2)), ("b", tensor(3))]).unwrap_err();
    assert!(error.to_string().contains("'b' has shape [3]"));
    assert!(InMemoryDataset::new(vec![]).get(0).is_err());
}
