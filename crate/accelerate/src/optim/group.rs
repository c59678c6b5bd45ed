//! Parameter groups: parameters that share a learning rate and a weight decay.

use std::collections::HashSet;

use crate::{Parameter, Parameters, Result, error::Error};

/// Parameters with settings of their own, as a dictionary in PyTorch's `params` list.
///
/// What is not set here is taken from the optimizer.
///
/// ```
/// use candle_accelerate::Parameters;
/// use candle_accelerate::optim::ParamGroup;
///
/// let head = Parameters::default();
/// let group = ParamGroup::new(head).with_lr(1e-3).with_weight_decay(0.0);
/// ```
#[derive(Clone, Debug)]
pub struct ParamGroup {
    pub(super) parameters: Parameters,
    pub(super) lr: Option<f64>,
    pub(super) weight_decay: Option<f64>,
}

impl ParamGroup {
    /// A group with the optimizer's own settings.
    pub fn new(parameters: Parameters) -> Self {
        Self { parameters, lr: None, weight_decay: None }
    }

    /// Sets the learning rate of this group.
    pub fn with_lr(self, lr: f64) -> Self {
        Self { lr: Some(lr), ..self }
    }

    /// Sets the weight decay of this group.
    pub fn with_weight_decay(self, weight_decay: f64) -> Self {
        Self { weight_decay: Some(weight_decay), ..self }
    }
}

/// What an optimizer trains: one group, or several.
///
/// Made from [`Parameters`] (one group), or from a list of [`ParamGroup`]s.
///
/// ```
/// use candle_accelerate::Parameter;
/// use candle_accelerate::optim::{AdamW, Optimizer, ParamGroups};
/// use candle_core::{Device, Tensor};
///
/// let zeros = Tensor::zeros(2, candle_core::DType::F32, &Device::Cpu)?;
/// let parameters = ["q_lin.weight", "q_lin.bias", "sa_layer_norm.weight"]
///     .iter()
///     .map(|name| Parameter::new(*name, &zeros))
///     .collect::<Result<_, _>>()?;
/// // Biases and layer norms do not decay, as in transformers' Trainer.
/// let optimizer = AdamW::new(ParamGroups::split_decay(&parameters), 5e-5)?;
/// assert_eq!(optimizer.learning_rates().len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ParamGroups(Vec<ParamGroup>);

impl ParamGroups {
    /// Two groups: the first with the optimizer's weight decay, the second (biases and
    /// normalisation layers, by name) without, as transformers' `Trainer` does it.
    pub fn split_decay(parameters: &Parameters) -> Self {
        let (decay, keep): (Vec<_>, Vec<_>) =
            parameters.iter().cloned().partition(|parameter| decays(parameter.name()));
        Self(vec![
            ParamGroup::new(decay.into_iter().collect()),
            ParamGroup::new(keep.into_iter().collect()).with_weight_decay(0.0),
        ])
    }

    pub(super) fn into_vec(self) -> Vec<ParamGroup> {
        self.0
    }

    /// State is keyed by name, so a name may stand for one parameter only.
    pub(super) fn check_names(&self) -> Result<()> {
        let mut seen = HashSet::new();
        let all = self.0.iter().flat_map(|group| group.parameters.iter());
        match all.map(Parameter::name).find(|name| !seen.insert(*name)) {
            None => Ok(()),
            Some(name) => Err(Error::invalid(
                "optimizer",
                format!(
                    "got two parameters called '{name}'; list each parameter once and give \
                     every parameter a name of its own"
                ),
            )),
        }
    }
}

impl From<Parameters> for ParamGroups {
    fn from(parameters: Parameters) -> Self {
        Self(vec![ParamGroup::new(parameters)])
    }
}

impl From<Vec<ParamGroup>> for ParamGroups {
    fn from(groups: Vec<ParamGroup>) -> Self {
        Self(groups)
    }
}

/// Whether weight decay applies to the parameter with this full name.
fn decays(name: &str) -> bool {
    let name = name.to_lowercase();
    let norm = ["layernorm", "layer_norm", "rmsnorm", "rms_norm", ".norm.", "_norm."]
        .iter()
        .any(|part| name.contains(part));
    !norm && !name.ends_with("bias")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn biases_and_norms_do_not_decay() {
        assert!(decays("distilbert.transformer.layer.0.attention.q_lin.weight"));
        assert!(decays("distilbert.embeddings.word_embeddings.weight"));
        assert!(!decays("distilbert.transformer.layer.0.attention.q_lin.bias"));
        assert!(!decays("distilbert.transformer.layer.0.sa_layer_norm.weight"));
        assert!(!decays("bert.embeddings.LayerNorm.weight"));
    }
}
