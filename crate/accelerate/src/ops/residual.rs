//! The end of both halves of a transformer layer: product, dropout, residual, layer norm.

use super::cpu::{self, Real};
use super::dropout::DropMask;
use super::layer_norm;

/// `layer_norm(residual + dropout(x · weightᵀ + bias))`, its gradients, and what they need.
pub(super) struct Residual<T> {
    dropout: Option<DropMask>,
    eps: f64,
    /// What the layer norm was given.
    sum: Vec<T>,
}

/// The values of the parameters.
#[derive(Clone, Copy)]
pub(super) struct ResidualParameters<'a, T> {
    pub weight: &'a [T],
    pub bias: &'a [T],
    pub norm_weight: &'a [T],
    pub norm_bias: &'a [T],
}

/// The gradients, each in memory of its own.
pub(super) struct ResidualGradients<T> {
    pub x: Vec<T>,
    pub residual: Vec<T>,
    pub weight: Vec<T>,
    pub bias: Vec<T>,
    pub norm_weight: Vec<T>,
    pub norm_bias: Vec<T>,
}

impl<T: Real> Residual<T> {
    /// The result, and what the backward pass needs.
    pub(super) fn forward(
        x: &[T],
        residual: &[T],
        parameters: ResidualParameters<'_, T>,
        eps: f64,
        dropout: Option<DropMask>,
    ) -> (Vec<T>, Self) {
        let ResidualParameters { weight, bias, norm_weight, norm_bias } = parameters;
        let mut sum = cpu::affine(x, weight, bias);
        let mut out = vec![T::zero(); sum.len()];
        cpu::fill_blocks_of_two(&mut sum, &mut out, bias.len(), |start, sum, out| {
            if let Some(dropout) = &dropout {
                dropout.lay(start, sum);
            }
            cpu::add_assign(sum, &residual[start..]);
            layer_norm::normalise_rows(sum, norm_weight, norm_bias, eps, out);
        });
        (out, Self { dropout, eps, sum })
    }

    /// The gradients, given that of the result.
    pub(super) fn backward(
        &self,
        x: &[T],
        parameters: ResidualParameters<'_, T>,
        grad: &[T],
    ) -> ResidualGradients<T> {
        let outputs = parameters.bias.len();
        let inputs = parameters.weight.len() / outputs.max(1);
        let [residual, norm_weight, norm_bias] =
            layer_norm::backward(&self.sum, parameters.norm_weight, grad, self.eps);
        let dropped = self.dropout.map(|dropout| {
            let mut dropped = residual.clone();
            cpu::fill_blocks(&mut dropped, outputs, |start, grad| dropout.lay(start, grad));
            dropped
        });
        let grad = dropped.as_deref().unwrap_or(&residual);
        let mut grad_x = vec![T::zero(); x.len()];
        cpu::add_input_gradient(grad, parameters.weight, outputs, &mut grad_x);
        ResidualGradients {
            x: grad_x,
            weight: cpu::weight_gradient(grad, x, (outputs, inputs)),
            bias: cpu::column_sums(grad, outputs),
            residual,
            norm_weight,
            norm_bias,
        }
    }
}
