//! Reading and writing safetensors files.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use candle_core::safetensors::Load;
use candle_core::{Device, Tensor};
use safetensors::SafeTensors;

use crate::{Error, Result};

/// Every tensor of a safetensors file, on the CPU.
///
/// # Errors
/// A header that lies about sizes or offsets, a dtype candle lacks: the file and the reason. No
/// more memory is taken than the file is long (twice).
pub(crate) fn load(path: &Path) -> Result<BTreeMap<String, Tensor>> {
    let bytes = std::fs::read(path).map_err(|source| Error::io(path, source))?;
    let broken = |reason: String| {
        Error::file(path, format!("is not a whole safetensors file ({reason}); get it again"))
    };
    let file = SafeTensors::deserialize(&bytes).map_err(|error| broken(error.to_string()))?;
    let mut tensors = BTreeMap::new();
    for (name, view) in file.iter() {
        let tensor = view
            .load(&Device::Cpu)
            .map_err(|error| Error::file(path, format!("tensor '{name}': {error}")))?;
        tensors.insert(name.to_owned(), tensor);
    }
    Ok(tensors)
}

/// Writes the tensors with the metadata that transformers expects.
pub(crate) fn save<'a>(
    path: &Path,
    tensors: impl IntoIterator<Item = (&'a str, Tensor)>,
) -> Result<()> {
    let mut on_host = Vec::new();
    for (name, tensor) in tensors {
        on_host.push((name, tensor.to_device(&Device::Cpu)?.contiguous()?));
    }
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    safetensors::serialize_to_file(on_host, Some(metadata), path)
        .map_err(|error| Error::file(path, format!("could not be written: {error}")))
}
