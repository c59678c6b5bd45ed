//! Accelerator-style training loops on [candle](https://docs.rs/candle-core).
//!
//! The loop is yours, line by line as with Hugging Face Accelerate; the [`Accelerator`] puts
//! models and batches on the device there is, accumulates and clips gradients, and refuses to go
//! on when a parameter would silently not be trained.
//!
//! ```
//! use candle_accelerate::model::DistilBertConfig;
//! use candle_accelerate::prelude::*;
//!
//! set_seed(42);
//! let dataset = ParaphraseDataset::train(64, 42)?;
//! let config = DistilBertConfig {
//!     vocab_size: dataset.vocab_size(),
//!     dim: 32,
//!     hidden_dim: 64,
//!     n_layers: 1,
//!     n_heads: 4,
//!     max_position_embeddings: 64,
//!     ..DistilBertConfig::default()
//! };
//! let model = AutoModelForSequenceClassification::from_config(AutoConfig::DistilBert(config))?;
//! let dataloader = DataLoader::builder(dataset.clone())
//!     .batch_size(16)
//!     .shuffle(true)
//!     .collate(dataset.collate())
//!     .build()?;
//! let optimizer = Adam::new(model.parameters(), 1e-3)?;
//! let lr_scheduler = get_linear_schedule_with_warmup(&optimizer, 1, dataloader.len());
//!
//! let accelerator = Accelerator::new()?;
//! let (model, optimizer, dataloader, lr_scheduler) =
//!     accelerator.prepare((model, optimizer, dataloader, lr_scheduler))?;
//! model.train();
//! for batch in &dataloader {
//!     optimizer.zero_grad();
//!     let outputs = model.forward(&batch)?;
//!     accelerator.backward(&outputs.loss)?;
//!     optimizer.step()?;
//!     lr_scheduler.step()?;
//!     println!("{:.4}", outputs.loss.item()?);
//! }
//! # Ok::<(), candle_accelerate::Error>(())
//! ```
//!
//! | to | see |
//! |---|---|
//! | run a loop | [`Accelerator`] |
//! | load or make a model | [`model`], [`nn`], [`ops`], [`tokenizer`] |
//! | make batches | [`data`] |
//! | change parameters | [`optim`], [`schedule`] |
//! | measure and show | [`metrics`], [`plot`], [`notebook`] |
//! | repeat a run | [`rng`] |
//! | stop a run | [`interrupt`] |

mod accelerator;
pub mod data;
mod error;
mod gradient_sink;
mod gradient_state;
mod in_place;
pub mod interrupt;
pub mod metrics;
pub mod model;
pub mod nn;
pub mod notebook;
pub mod ops;
pub mod optim;
mod parameter;
pub mod plot;
pub mod prelude;
mod progress;
pub mod rng;
pub mod schedule;
mod tensor_file;
pub mod tokenizer;

pub use accelerator::{Accelerator, AcceleratorBuilder, AcceleratorDevice, AsLoss, Prepare};
pub use error::{Error, Result};
pub use gradient_state::GradientState;
pub use parameter::{Parameter, Parameters};
pub use progress::Progress;
pub use rng::set_seed;

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
