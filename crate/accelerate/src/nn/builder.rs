//! Parameters by name: from a checkpoint where it has them, initialised where it has not.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candle_core::{DType, Device, Shape, Tensor};

use super::Mode;
use crate::{Error, Parameter, Parameters, Result, rng};

/// The most elements a new parameter may have; more means a wrong configuration.
const MAX_ELEMENTS: usize = 1 << 32;

/// Beyond a checkpoint's own size, the elements a model may have that the checkpoint lacks.
const MAX_BEYOND_CHECKPOINT: usize = 1 << 24;

/// How a parameter that is in no checkpoint starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// Every element has this value.
    Constant(f64),
    /// Evenly spread from `low` to `high`.
    Uniform {
        /// The smallest value.
        low: f64,
        /// The largest value.
        high: f64,
    },
    /// Normal with mean 0.
    Normal {
        /// The standard deviation.
        std: f64,
    },
    /// Normal with mean 0, but for one row of zeros.
    Embedding {
        /// The standard deviation.
        std: f64,
        /// The row of zeros.
        zero_row: Option<usize>,
    },
}

impl Init {
    fn tensor(self, shape: &Shape, dtype: DType, device: &Device) -> Result<Tensor> {
        match self {
            Self::Constant(value) => Ok(Tensor::full(value, shape, device)?.to_dtype(dtype)?),
            Self::Uniform { low, high } => rng::uniform(shape, low, high, dtype, device),
            Self::Normal { std } => rng::normal(shape, 0.0, std, dtype, device),
            Self::Embedding { std, zero_row } => {
                let rows = rng::normal(shape, 0.0, std, dtype, device)?;
                match zero_row.filter(|row| *row < shape.dims()[0]) {
                    Some(row) => {
                        let zeros = rows.narrow(0, row, 1)?.zeros_like()?;
                        Ok(rows.slice_scatter0(&zeros, row)?)
                    }
                    None => Ok(rows),
                }
            }
        }
    }
}

/// Which parameters a checkpoint lacked and which of its tensors the model lacks.
///
/// ```
/// let report = candle_accelerate::nn::LoadingReport {
///     newly_initialized: vec!["classifier.weight".into()],
///     unexpected: vec![],
/// };
/// assert!(report.to_string().starts_with("newly initialized: classifier.weight"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadingReport {
    /// Parameters that are not in the checkpoint; they need training.
    pub newly_initialized: Vec<String>,
    /// Tensors of the checkpoint that the model has no use for.
    pub unexpected: Vec<String>,
}

impl fmt::Display for LoadingReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.newly_initialized.as_slice() {
            [] => write!(f, "newly initialized: none")?,
            names => write!(f, "newly initialized: {} (train these)", names.join(", "))?,
        }
        match self.unexpected.as_slice() {
            [] => write!(f, "\nunexpected: none"),
            names => write!(f, "\nunexpected: {} (not used)", names.join(", ")),
        }
    }
}

/// Makes the parameters of a model, in order, under their full names.
///
/// Children share the list of parameters and the mode; each adds a part to the name.
///
/// ```
/// use candle_accelerate::nn::{Init, ParameterBuilder};
/// use candle_core::{DType, Device};
///
/// let builder = ParameterBuilder::new(DType::F32, &Device::Cpu);
/// let scale = builder.child("layer").child("0").get("scale", 4, Init::Constant(1.0))?;
/// assert_eq!(scale.name(), "layer.0.scale");
/// assert_eq!(builder.parameters().len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ParameterBuilder {
    prefix: String,
    dtype: DType,
    device: Device,
    initializer_range: Option<f64>,
    mode: Mode,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    parameters: Vec<Parameter>,
    names: BTreeSet<String>,
    checkpoint: Option<Checkpoint>,
    newly_initialized: Vec<String>,
}

#[derive(Debug)]
struct Checkpoint {
    path: PathBuf,
    tensors: BTreeMap<String, Tensor>,
    /// How many elements may still be made that the checkpoint lacks.
    allowance: usize,
}

impl ParameterBuilder {
    /// Parameters of this dtype on this device, all newly initialised.
    pub fn new(dtype: DType, device: &Device) -> Self {
        Self {
            prefix: String::new(),
            dtype,
            device: device.clone(),
            initializer_range: None,
            mode: Mode::default(),
            state: Arc::default(),
        }
    }

    /// Takes parameters from `tensors`, read from `path`, where the names are there.
    pub fn with_checkpoint(self, path: &Path, tensors: BTreeMap<String, Tensor>) -> Self {
        let elements: usize = tensors.values().map(Tensor::elem_count).sum();
        self.state().checkpoint = Some(Checkpoint {
            path: path.to_owned(),
            allowance: elements.saturating_add(MAX_BEYOND_CHECKPOINT),
            tensors,
        });
        self
    }

    /// Lets layers initialise as transformers does: weights normal with this standard deviation,
    /// biases zero.
    pub fn with_initializer_range(mut self, std: f64) -> Self {
        self.initializer_range = Some(std);
        self
    }

    /// The standard deviation that [`with_initializer_range`](Self::with_initializer_range) set.
    pub fn initializer_range(&self) -> Option<f64> {
        self.initializer_range
    }

    /// The builder of a part of the model: `name.` goes before the names of its parameters.
    pub fn child(&self, name: &str) -> Self {
        Self { prefix: format!("{}{name}.", self.prefix), ..self.clone() }
    }

    /// The parameter `name` below the builder's prefix, added to the model's list.
    ///
    /// # Errors
    /// A name that is taken; a shape the checkpoint's tensor does not have; a size that no model
    /// has.
    pub fn get(&self, name: &str, shape: impl Into<Shape>, init: Init) -> Result<Parameter> {
        let (name, shape) = (format!("{}{name}", self.prefix), shape.into());
        let mut state = self.state();
        if !state.names.insert(name.clone()) {
            return Err(Error::invalid(name, "exists already; give each parameter its own name"));
        }
        let value = match state.take(&name, &shape)? {
            Some(tensor) => tensor.to_dtype(self.dtype)?.to_device(&self.device)?,
            None => {
                state.newly_initialized.push(name.clone());
                init.tensor(&shape, self.dtype, &self.device)?
            }
        };
        let parameter = Parameter::new(name, &value)?;
        state.parameters.push(parameter.clone());
        Ok(parameter)
    }

    /// All parameters made so far, those of other children too.
    pub fn parameters(&self) -> Parameters {
        self.state().parameters.iter().cloned().collect()
    }

    /// The switch that the dropout layers follow.
    pub fn mode(&self) -> Mode {
        self.mode.clone()
    }

    /// What was and was not found in the checkpoint. The tensors that are left are freed.
    pub fn finish(&self) -> LoadingReport {
        let mut state = self.state();
        let left = state.checkpoint.take().map(|checkpoint| checkpoint.tensors);
        LoadingReport {
            newly_initialized: std::mem::take(&mut state.newly_initialized),
            unexpected: left.unwrap_or_default().into_keys().collect(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The checkpoint's tensor of this name, if it has one.
    fn take(&mut self, name: &str, shape: &Shape) -> Result<Option<Tensor>> {
        let elements = shape
            .dims()
            .iter()
            .try_fold(1usize, |product, dim| product.checked_mul(*dim))
            .filter(|elements| *elements <= MAX_ELEMENTS)
            .ok_or_else(|| {
                Error::invalid(name, format!("has shape {shape:?}, which is too large to be meant"))
            })?;
        let Some(checkpoint) = &mut self.checkpoint else { return Ok(None) };
        let Some(tensor) = checkpoint.tensors.remove(name) else {
            let Some(allowance) = checkpoint.allowance.checked_sub(elements) else {
                return Err(Error::file(
                    &checkpoint.path,
                    format!(
                        "lacks '{name}' and far too much else of what config.json describes; the \
                         two files do not belong together"
                    ),
                ));
            };
            checkpoint.allowance = allowance;
            return Ok(None);
        };
        if tensor.shape() == shape {
            return Ok(Some(tensor));
        }
        Err(Error::file(
            &checkpoint.path,
            format!(
                "tensor '{name}' has shape {:?}; config.json describes {:?}",
                tensor.dims(),
                shape.dims()
            ),
        ))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn builder() -> ParameterBuilder {
        ParameterBuilder::new(DType::F32, &Device::Cpu)
    }

    #[test]
    fn parameters_come_from_the_checkpoint_or_are_reported() {
        let tensor = Tensor::new(&[1f32, 2.0], &Device::Cpu).unwrap();
        let tensors = [("a.found", &tensor), ("b.left", &tensor)];
        let tensors = tensors.map(|(name, tensor)| (name.to_owned(), tensor.clone())).into();
        let builder = builder().with_checkpoint(Path::new("model.safetensors"), tensors);
        let found = builder.child("a").get("found", 2, Init::Constant(0.0)).unwrap();
        builder.child("a").get("new", 3, Init::Constant(0.0)).unwrap();
        assert_eq!(found.tensor().to_vec1::<f32>().unwrap(), [1.0, 2.0]);
        assert_eq!(
            builder.finish().to_string(),
            "newly initialized: a.new (train these)\nunexpected: b.left (not used)"
        );
        let names: Vec<_> = builder.parameters().iter().map(|p| p.name().to_owned()).collect();
        assert_eq!(names, ["a.found", "a.new"]);
    }

    #[test]
    fn a_wrong_shape_names_tensor_shapes_and_file() {
        let tensors = BTreeMap::from([(
            "weight".to_owned(),
            Tensor::new(&[1f32, 2.0], &Device::Cpu).unwrap(),
        )]);
        let builder = builder().with_checkpoint(Path::new("model.safetensors"), tensors);
        assert_eq!(
            builder.get("weight", (2, 3), Init::Constant(0.0)).unwrap_err().to_string(),
            "model.safetensors: tensor 'weight' has shape [2]; config.json describes [2, 3]"
        );
    }

    #[test]
    fn sizes_no_model_has_are_refused_before_memory_is_taken() {
        let huge = builder().get("weight", (usize::MAX, 4), Init::Constant(0.0));
        assert!(huge.unwrap_err().to_string().contains("too large"));
        let builder = builder().with_checkpoint(Path::new("model.safetensors"), BTreeMap::new());
        let error = builder.get("weight", (1 << 16, 1 << 15), Init::Constant(0.0)).unwrap_err();
        assert!(error.to_string().contains("do not belong together"), "{error}");
    }

    #[test]
    fn a_name_can_be_used_once() {
        let builder = builder();
        builder.get("weight", 1, Init::Constant(0.0)).unwrap();
        let error = builder.get("weight", 1, Init::Constant(0.0)).unwrap_err();
        assert_eq!(error.to_string(), "weight exists already; give each parameter its own name");
    }

    #[test]
    fn the_padding_row_starts_as_zeros_and_the_others_do_not() {
        let init = Init::Embedding { std: 0.02, zero_row: Some(1) };
        let rows = builder().get("weight", (3, 4), init).unwrap().tensor();
        let rows = rows.to_vec2::<f32>().unwrap();
        assert_eq!(rows[1], [0.0; 4]);
        assert!(rows[0].iter().chain(&rows[2]).all(|value| *value != 0.0));
    }
}
