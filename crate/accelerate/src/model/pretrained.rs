//! Model folders: reading and writing `config.json` and the weights.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use serde::Deserialize;
use serde_json::json;

use super::{AutoConfig, ProblemType};
use crate::nn::ParameterBuilder;
use crate::{Error, Parameters, Result, tensor_file};

const WEIGHTS: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// How `from_pretrained_with` differs from `from_pretrained`.
///
/// ```
/// use candle_accelerate::model::PretrainedOptions;
///
/// let options = PretrainedOptions { num_labels: Some(3), ..PretrainedOptions::default() };
/// assert!(options.problem_type.is_none());
/// ```
#[derive(Clone, Debug)]
pub struct PretrainedOptions {
    /// How many outputs the classifier has; otherwise as `config.json` says, or 2.
    pub num_labels: Option<usize>,
    /// What the outputs mean; otherwise as `config.json` says.
    pub problem_type: Option<ProblemType>,
    /// The dtype of the parameters: f32 unless given.
    pub dtype: DType,
    /// The device of the parameters: the CPU unless given.
    pub device: Device,
}

impl Default for PretrainedOptions {
    fn default() -> Self {
        Self { num_labels: None, problem_type: None, dtype: DType::F32, device: Device::Cpu }
    }
}

impl PretrainedOptions {
    /// The configuration in the folder, with these options.
    pub(super) fn config(&self, folder: &Path) -> Result<AutoConfig> {
        let mut config = AutoConfig::from_pretrained(folder)?;
        if let Some(count) = self.num_labels.filter(|count| *count != config.num_labels()) {
            config = config.with_num_labels(count);
        }
        if let Some(problem_type) = self.problem_type {
            config = config.with_problem_type(problem_type);
        }
        Ok(config)
    }
}

/// The folder of a model.
pub(super) fn resolve(path_or_name: impl AsRef<Path>) -> Result<PathBuf> {
    let path = path_or_name.as_ref();
    if path.join("config.json").is_file() {
        return Ok(path.to_owned());
    }
    Err(Error::invalid(
        format!("'{}'", path.display()),
        "is not a folder with a config.json; give the path of a model's folder",
    ))
}

/// The builder for a model whose base is under `prefix` if `with_head`, else without it.
pub(super) fn builder(
    folder: &Path,
    config: &AutoConfig,
    with_head: bool,
    options: &PretrainedOptions,
) -> Result<ParameterBuilder> {
    let (path, tensors) = load(folder)?;
    let prefix = format!("{}.", config.model_type());
    // A checkpoint of a base model has no prefix, one of a model with a head has.
    let prefixed = tensors.keys().any(|name| name.starts_with(&prefix));
    let renamed = tensors.into_iter().filter_map(|(name, tensor)| {
        let name = name
            .replace("LayerNorm.gamma", "LayerNorm.weight")
            .replace("LayerNorm.beta", "LayerNorm.bias");
        // A buffer of old checkpoints, not a parameter.
        if name.ends_with("embeddings.position_ids") {
            return None;
        }
        let name = match (with_head, prefixed) {
            (true, false) => format!("{prefix}{name}"),
            (false, true) => name.strip_prefix(&prefix).map(str::to_owned).unwrap_or(name),
            _ => name,
        };
        Some((name, tensor))
    });
    Ok(ParameterBuilder::new(options.dtype, &options.device)
        .with_initializer_range(config.initializer_range())
        .with_checkpoint(&path, renamed.collect()))
}

/// All tensors of a model folder, from one file or from the shards an index lists; and the file.
fn load(folder: &Path) -> Result<(PathBuf, BTreeMap<String, Tensor>)> {
    #[derive(Deserialize)]
    struct Index {
        weight_map: BTreeMap<String, String>,
    }

    let path = folder.join(WEIGHTS);
    let index_path = folder.join(INDEX);
    if path.is_file() || !index_path.is_file() {
        return tensor_file::load(&path).map(|tensors| (path, tensors));
    }
    let text =
        std::fs::read_to_string(&index_path).map_err(|source| Error::io(&index_path, source))?;
    let index: Index = serde_json::from_str(&text)
        .map_err(|error| Error::file(&index_path, format!("is no index of weights: {error}")))?;
    let mut tensors = BTreeMap::new();
    for shard in index.weight_map.into_values().collect::<BTreeSet<_>>() {
        let mut parts = Path::new(&shard).components();
        if !matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) {
            return Err(Error::file(
                &index_path,
                format!("names '{shard}'; only files in the same folder are read"),
            ));
        }
        tensors.extend(tensor_file::load(&folder.join(shard))?);
    }
    Ok((index_path, tensors))
}

/// Writes `config.json` and `model.safetensors`, which transformers reads, into `folder`.
pub(super) fn save(
    folder: &Path,
    config: &AutoConfig,
    architecture: &str,
    parameters: &Parameters,
) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|source| Error::io(folder, source))?;
    let tensors: Vec<_> = parameters.iter().map(|p| (p.name(), p.tensor().detach())).collect();
    tensor_file::save(&folder.join(WEIGHTS), tensors)?;
    let mut config = config.clone();
    config.extra_mut().insert("architectures".into(), json!([architecture]));
    let path = folder.join("config.json");
    std::fs::write(&path, config.to_json() + "\n").map_err(|source| Error::io(&path, source))
}
