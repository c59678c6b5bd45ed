//! Everything that a notebook needs: `use candle_accelerate::prelude::*;`

pub use candle_core::{self, DType, Device, Tensor, Var};
pub use candle_nn;

pub use crate::data::Batch;
pub use crate::model::{Loss, Model};
pub use crate::{Parameter, Parameters, set_seed};
