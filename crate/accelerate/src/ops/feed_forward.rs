//! The feed-forward half of a transformer layer, as one operation.

use candle_core::{DType, Tensor};

use super::activation::Activation;
use super::cpu::{self, Real};
use super::dropout::DropMask;
use super::function::{Function, record};
use super::residual::{Residual, ResidualParameters};
use super::{layer_norm, linear};
use crate::Result;

/// The parameters and settings of [`feed_forward`] for vectors of size n.
#[derive(Clone, Debug)]
pub struct FeedForward {
    /// The first product's weight, [m, n].
    pub intermediate_weight: Tensor,
    /// The first product's bias, `[m]`.
    pub intermediate_bias: Tensor,
    /// Between the products.
    pub activation: Activation,
    /// The second product's weight, [n, m].
    pub output_weight: Tensor,
    /// The second product's bias, `[n]`.
    pub output_bias: Tensor,
    /// The probability with which an element of the second product is dropped; 0 in evaluation.
    pub dropout: f64,
    /// The layer norm's weight, `[n]`.
    pub norm_weight: Tensor,
    /// The layer norm's bias, `[n]`.
    pub norm_bias: Tensor,
    /// The layer norm's epsilon.
    pub eps: f64,
}

/// `layer_norm(x + dropout(linear(activation(linear(x)))))`: [.., n] to [.., n].
///
/// The same as the single operations one after the other; on the CPU in f32 and f64 it is one node
/// of the graph, which saves memory and time.
///
/// ```
/// use candle_accelerate::ops::{Activation, FeedForward, feed_forward};
/// use candle_core::{DType, Device, Tensor};
///
/// let ones = |shape: &[usize]| Tensor::ones(shape, DType::F32, &Device::Cpu);
/// let layer = FeedForward {
///     intermediate_weight: ones(&[8, 2])?,
///     intermediate_bias: ones(&[8])?,
///     activation: Activation::Gelu,
///     output_weight: ones(&[2, 8])?,
///     output_bias: ones(&[2])?,
///     dropout: 0.0,
///     norm_weight: ones(&[2])?,
///     norm_bias: ones(&[2])?,
///     eps: 1e-12,
/// };
/// assert_eq!(feed_forward(&ones(&[3, 2])?, &layer)?.dims(), [3, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn feed_forward(x: &Tensor, layer: &FeedForward) -> Result<Tensor> {
    let dropout = DropMask::draw(layer.dropout)?;
    let args = layer.args(x);
    if !layer.fits(x) || !cpu::can_fuse(&args) {
        return composed(x, layer, dropout);
    }
    let args = cpu::contiguous(args)?;
    Ok(match x.dtype() {
        DType::F32 => fused::<f32>(args, layer, dropout),
        _ => fused::<f64>(args, layer, dropout),
    }?)
}

impl FeedForward {
    fn args(&self, x: &Tensor) -> Vec<Tensor> {
        vec![
            x.clone(),
            self.intermediate_weight.clone(),
            self.intermediate_bias.clone(),
            self.output_weight.clone(),
            self.output_bias.clone(),
            self.norm_weight.clone(),
            self.norm_bias.clone(),
        ]
    }

    fn fits(&self, x: &Tensor) -> bool {
        let (Some(n), [m]) = (x.dims().last().copied(), self.intermediate_bias.dims()) else {
            return false;
        };
        self.intermediate_weight.dims() == [*m, n]
            && self.output_weight.dims() == [n, *m]
            && [&self.output_bias, &self.norm_weight, &self.norm_bias]
                .iter()
                .all(|t| t.dims() == [n])
    }
}

fn composed(x: &Tensor, layer: &FeedForward, dropout: Option<DropMask>) -> Result<Tensor> {
    let hidden = linear(x, &layer.intermediate_weight, Some(&layer.intermediate_bias))?;
    let hidden = layer.activation.forward(&hidden)?;
    let mut out = linear(&hidden, &layer.output_weight, Some(&layer.output_bias))?;
    if let Some(dropout) = dropout {
        out = dropout.apply_to_any(&out)?;
    }
    layer_norm(&(out + x)?, &layer.norm_weight, &layer.norm_bias, layer.eps)
}

fn fused<T: Real>(
    args: Vec<Tensor>,
    layer: &FeedForward,
    dropout: Option<DropMask>,
) -> candle_core::Result<Tensor> {
    let values = args.iter().map(cpu::values::<T>).collect::<candle_core::Result<Vec<_>>>()?;
    let [x, weight, bias] = [0, 1, 2].map(|index| &*values[index]);
    let intermediate = cpu::affine(x, weight, bias);
    let mut activated = vec![T::zero(); intermediate.len()];
    layer.activation.apply(&intermediate, &mut activated);
    let parameters = residual_parameters(&values);
    let (out, residual) = Residual::forward(&activated, x, parameters, layer.eps, dropout);
    drop(values);
    let shape = args[0].shape().clone();
    let saved = Saved { activation: layer.activation, intermediate, residual };
    record(args, T::to_cpu_storage_owned(out), shape, saved)
}

fn residual_parameters<'a, T: Real>(values: &'a [cpu::Values<'_, T>]) -> ResidualParameters<'a, T> {
    ResidualParameters {
        weight: &values[3],
        bias: &values[4],
        norm_weight: &values[5],
        norm_bias: &values[6],
    }
}

/// What the backward pass needs beside the arguments.
struct Saved<T> {
    activation: Activation,
    /// The first product.
    intermediate: Vec<T>,
    residual: Residual<T>,
}

impl<T: Real> Function for Saved<T> {
    fn name(&self) -> &'static str {
        "feed_forward"
    }

    fn backward(
        &self,
        args: &[Tensor],
        _out: &Tensor,
        grad: &Tensor,
    ) -> candle_core::Result<Vec<Option<Tensor>>> {
        let values = args.iter().map(cpu::values::<T>).collect::<candle_core::Result<Vec<_>>>()?;
        let [x, weight, bias] = [0, 1, 2].map(|index| &*values[index]);
        // The activation is not kept: its value and its slope have most of their work in common.
        let mut activated = vec![T::zero(); self.intermediate.len()];
        self.activation.apply(&self.intermediate, &mut activated);
        let mut grads = self.residual.backward(
            &activated,
            residual_parameters(&values),
            &cpu::values::<T>(grad)?,
        );
        self.activation.apply_backward(&self.intermediate, &mut activated, &mut grads.x);
        let hidden = &grads.x;
        cpu::add_input_gradient(hidden, weight, bias.len(), &mut grads.residual);
        let ready = [
            grads.residual,
            cpu::weight_gradient(hidden, x, args[1].dims2()?),
            cpu::column_sums(hidden, bias.len()),
            grads.weight,
            grads.bias,
            grads.norm_weight,
            grads.norm_bias,
        ];
        let pairs = ready.into_iter().zip(args);
        pairs.map(|(grad, arg)| cpu::tensor(grad, arg.shape()).map(Some)).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::testing::{Case, cpu_tensor};
    use super::*;
    use crate::rng;

    fn layer(
        [w1, b1, w2, b2, g, b]: [&Tensor; 6],
        activation: Activation,
        dropout: f64,
    ) -> FeedForward {
        FeedForward {
            intermediate_weight: w1.clone(),
            intermediate_bias: b1.clone(),
            activation,
            output_weight: w2.clone(),
            output_bias: b2.clone(),
            dropout,
            norm_weight: g.clone(),
            norm_bias: b.clone(),
            eps: 1e-5,
        }
    }

    #[test]
    fn gradients_equal_finite_differences_and_the_single_operations() {
        for (activation, p) in [(Activation::Gelu, 0.0), (Activation::GeluTanh, 0.3)] {
            let shapes: [&[usize]; 7] = [&[2, 3, 5], &[7, 5], &[7], &[5, 7], &[5], &[5], &[5]];
            let inputs = std::array::from_fn(|i| cpu_tensor(shapes[i], i as u64));
            Case::new("feed_forward", inputs, |[x, w1, b1, w2, b2, g, b]| {
                let layer = layer([w1, b1, w2, b2, g, b], activation, p);
                rng::with_seed(4, || feed_forward(x, &layer))
            })
            .composed(|[x, w1, b1, w2, b2, g, b]| {
                let dropout = rng::with_seed(4, || DropMask::draw(p))?;
                composed(x, &layer([w1, b1, w2, b2, g, b], activation, p), dropout)
            })
            .check();
        }
    }

    #[test]
    fn parameters_train_below_a_constant_input_and_frozen_ones_get_nothing() {
        let shapes: [&[usize]; 6] = [&[7, 5], &[7], &[5, 7], &[5], &[5], &[5]];
        let vars = shapes.map(|s| candle_core::Var::from_tensor(&cpu_tensor(s, 3)).unwrap());
        let mut parameters = vars.each_ref().map(|var| var.as_tensor().clone());
        parameters[2] = parameters[2].detach();
        let layer = layer(parameters.each_ref(), Activation::Gelu, 0.0);
        let out = feed_forward(&cpu_tensor(&[4, 5], 1), &layer).unwrap();
        let grads = out.sqr().unwrap().sum_all().unwrap().backward().unwrap();
        let has: Vec<bool> = vars.iter().map(|var| grads.get(var).is_some()).collect();
        assert_eq!(has, [true, true, false, true, true, true]);
    }

    #[test]
    fn shapes_that_do_not_fit_are_named() {
        let shapes: [&[usize]; 6] = [&[7, 5], &[7], &[5, 7], &[5], &[5], &[5]];
        let parameters = shapes.map(|shape| cpu_tensor(shape, 3));
        let layer = layer(parameters.each_ref(), Activation::Gelu, 0.0);
        assert_eq!(
            feed_forward(&cpu_tensor(&[4, 6], 1), &layer).unwrap_err().to_string(),
            "linear input has shape [4, 6]; a weight of shape [7, 5] needs [.., 5]"
        );
    }
}
