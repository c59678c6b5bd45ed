//! Everything that a notebook needs: `use candle_accelerate::prelude::*;`

pub use candle_core::{self, DType, Device, Tensor, Var};
pub use candle_nn;

pub use crate::data::paraphrase::ParaphraseDataset;
pub use crate::data::{
    Batch, DataCollatorWithPadding, DataLoader, Dataset, InMemoryDataset, Sample, TensorDataset,
};
pub use crate::metrics::ClassificationMetrics;
pub use crate::model::{
    AutoConfig, AutoModel, AutoModelForSequenceClassification, Loss, Model, PretrainedOptions,
};
pub use crate::optim::{
    Adam, AdamConfig, AdamW, Optimizer, ParamGroup, ParamGroups, Sgd, SgdConfig,
};
pub use crate::plot::{BarChart, Histogram, LineChart, LiveChart, ScatterChart, Theme};
pub use crate::schedule::*;
pub use crate::tokenizer::AutoTokenizer;
pub use crate::{Accelerator, Parameter, Parameters, Prepare, nn, notebook, ops, set_seed};
