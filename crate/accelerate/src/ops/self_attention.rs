//! The attention half of a transformer layer, as one operation.

use candle_core::{DType, Tensor};

use super::attention::{Attention, Kernel};
use super::cpu::{self, Real};
use super::dropout::DropMask;
use super::function::{Function, record};
use super::residual::{Residual, ResidualParameters};
use super::{dropout, layer_norm, linear, scaled_dot_product_attention};
use crate::Result;

/// The parameters and settings of [`self_attention`] for vectors of size n. Weights are [n, n],
/// all others `[n]`.
#[derive(Clone, Debug)]
pub struct SelfAttention {
    /// The queries' weight.
    pub query_weight: Tensor,
    /// The queries' bias.
    pub query_bias: Tensor,
    /// The keys' weight.
    pub key_weight: Tensor,
    /// The keys' bias.
    pub key_bias: Tensor,
    /// The values' weight.
    pub value_weight: Tensor,
    /// The values' bias.
    pub value_bias: Tensor,
    /// Heads, mask, and dropout of the attention weights.
    pub attention: Attention,
    /// The last product's weight.
    pub output_weight: Tensor,
    /// The last product's bias.
    pub output_bias: Tensor,
    /// The probability with which an element of the last product is dropped; 0 in evaluation.
    pub dropout: f64,
    /// The layer norm's weight.
    pub norm_weight: Tensor,
    /// The layer norm's bias.
    pub norm_bias: Tensor,
    /// The layer norm's epsilon.
    pub eps: f64,
}

/// `layer_norm(x + dropout(linear(attention(linear(x), linear(x), linear(x)))))`: [batch, length,
/// n] to the same.
///
/// The same as the single operations one after the other; on the CPU in f32 and f64 it is one node
/// of the graph, which saves memory and time.
///
/// ```
/// use candle_accelerate::ops::{Attention, SelfAttention, self_attention};
/// use candle_core::{DType, Device, Tensor};
///
/// let ones = |shape: &[usize]| Tensor::ones(shape, DType::F32, &Device::Cpu);
/// let (weight, bias) = (ones(&[4, 4])?, ones(&[4])?);
/// let layer = SelfAttention {
///     query_weight: weight.clone(),
///     query_bias: bias.clone(),
///     key_weight: weight.clone(),
///     key_bias: bias.clone(),
///     value_weight: weight.clone(),
///     value_bias: bias.clone(),
///     attention: Attention { num_heads: 2, mask: None, dropout: 0.0 },
///     output_weight: weight,
///     output_bias: bias.clone(),
///     dropout: 0.0,
///     norm_weight: bias.clone(),
///     norm_bias: bias,
///     eps: 1e-12,
/// };
/// assert_eq!(self_attention(&ones(&[1, 3, 4])?, &layer)?.dims(), [1, 3, 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn self_attention(x: &Tensor, layer: &SelfAttention) -> Result<Tensor> {
    let args = layer.args(x);
    if layer.fits(x)
        && cpu::can_fuse(&args)
        && let Some(kernel) = Kernel::of_self(x, &layer.attention)?
    {
        let dropout = DropMask::draw(layer.dropout)?;
        let args = cpu::contiguous(args)?;
        return Ok(match x.dtype() {
            DType::F32 => fused::<f32>(args, layer.eps, kernel, dropout),
            _ => fused::<f64>(args, layer.eps, kernel, dropout),
        }?);
    }
    composed(x, layer)
}

impl SelfAttention {
    fn args(&self, x: &Tensor) -> Vec<Tensor> {
        vec![
            x.clone(),
            self.query_weight.clone(),
            self.query_bias.clone(),
            self.key_weight.clone(),
            self.key_bias.clone(),
            self.value_weight.clone(),
            self.value_bias.clone(),
            self.output_weight.clone(),
            self.output_bias.clone(),
            self.norm_weight.clone(),
            self.norm_bias.clone(),
        ]
    }

    fn fits(&self, x: &Tensor) -> bool {
        let Ok((_, _, n)) = x.dims3() else { return false };
        let args = self.args(x);
        let weights = [1, 3, 5, 7].iter().all(|index| args[*index].dims() == [n, n]);
        weights && [2, 4, 6, 8, 9, 10].iter().all(|index| args[*index].dims() == [n])
    }
}

fn composed(x: &Tensor, layer: &SelfAttention) -> Result<Tensor> {
    let attended = scaled_dot_product_attention(
        &linear(x, &layer.query_weight, Some(&layer.query_bias))?,
        &linear(x, &layer.key_weight, Some(&layer.key_bias))?,
        &linear(x, &layer.value_weight, Some(&layer.value_bias))?,
        &layer.attention,
    )?;
    let out = linear(&attended, &layer.output_weight, Some(&layer.output_bias))?;
    let out = dropout(&out, layer.dropout)?;
    layer_norm(&(out + x)?, &layer.norm_weight, &layer.norm_bias, layer.eps)
}

fn fused<T: Real>(
    args: Vec<Tensor>,
    eps: f64,
    kernel: Kernel,
    dropout: Option<DropMask>,
) -> candle_core::Result<Tensor> {
    let values = args.iter().map(cpu::values::<T>).collect::<candle_core::Result<Vec<_>>>()?;
    let x = &*values[0];
    let [query, key, value] =
        [1, 3, 5].map(|index| cpu::affine(x, &values[index], &values[index + 1]));
    let (attended, statistics) = kernel.forward(&query, &key, &value)?;
    let parameters = residual_parameters(&values);
    let (out, residual) = Residual::forward(&attended, x, parameters, eps, dropout);
    drop(values);
    let shape = args[0].shape().clone();
    let saved = Saved { kernel, query, key, value, attended, statistics, residual };
    record(args, T::to_cpu_storage_owned(out), shape, saved)
}

fn residual_parameters<'a, T: Real>(values: &'a [cpu::Values<'_, T>]) -> ResidualParameters<'a, T> {
    ResidualParameters {
        weight: &values[7],
        bias: &values[8],
        norm_weight: &values[9],
        norm_bias: &values[10],
    }
}

/// What the backward pass needs beside the arguments.
struct Saved<T> {
    kernel: Kernel,
    query: Vec<T>,
    key: Vec<T>,
    value: Vec<T>,
    attended: Vec<T>,
    statistics: Vec<T>,
    residual: Residual<T>,
}

impl<T: Real> Function for Saved<T> {
    fn name(&self) -> &'static str {
        "self_attention"
    }

    fn backward(
        &self,
        args: &[Tensor],
        _out: &Tensor,
        grad: &Tensor,
    ) -> candle_core::Result<Vec<Option<Tensor>>> {
        let values = args.iter().map(cpu::values::<T>).collect::<candle_core::Result<Vec<_>>>()?;
        let x = &*values[0];
        let parameters = residual_parameters(&values);
        let outer = self.residual.backward(&self.attended, parameters, &cpu::values::<T>(grad)?);
        let inner = self.kernel.backward(
            &self.query,
            &self.key,
            &self.value,
            &self.attended,
            &outer.x,
            &self.statistics,
        )?;
        let mut grads = vec![outer.residual];
        for (grad, weight) in inner.iter().zip([1, 3, 5]) {
            let n = values[weight + 1].len();
            cpu::add_input_gradient(grad, &values[weight], n, &mut grads[0]);
            grads.extend([cpu::weight_gradient(grad, x, (n, n)), cpu::column_sums(grad, n)]);
        }
        grads.extend([outer.weight, outer.bias, outer.norm_weight, outer.norm_bias]);
        let pairs = grads.into_iter().zip(args);
        pairs.map(|(grad, arg)| cpu::tensor(grad, arg.shape()).map(Some)).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::testing::{Case, cpu_tensor};
    use super::*;
    use crate::rng;

    fn layer(p: &[&Tensor], attention: &Attention, dropout: f64) -> SelfAttention {
        SelfAttention {
            query_weight: p[0].clone(),
            query_bias: p[1].clone(),
            key_weight: p[2].clone(),
            key_bias: p[3].clone(),
            value_weight: p[4].clone(),
            value_bias: p[5].clone(),
            attention: attention.clone(),
            output_weight: p[6].clone(),
            output_bias: p[7].clone(),
            dropout,
            norm_weight: p[8].clone(),
            norm_bias: p[9].clone(),
            eps: 1e-5,
        }
    }

    #[test]
    fn gradients_equal_finite_differences_and_the_single_operations() {
        let weight: &[usize] = &[6, 6];
        let bias: &[usize] = &[6];
        let shapes: [&[usize]; 11] =
            [&[2, 4, 6], weight, bias, weight, bias, weight, bias, weight, bias, bias, bias];
        for p in [0.0, 0.3] {
            let mask = Some(cpu_tensor(&[2, 1, 1, 4], 50));
            let attention = Attention { num_heads: 2, mask, dropout: p };
            let inputs = std::array::from_fn(|i| cpu_tensor(shapes[i], i as u64));
            Case::new("self_attention", inputs, |args: [&Tensor; 11]| {
                let layer = layer(&args[1..], &attention, p);
                rng::with_seed(4, || self_attention(args[0], &layer))
            })
            .composed(|args| {
                let layer = layer(&args[1..], &attention, p);
                rng::with_seed(4, || composed(args[0], &layer))
            })
            .check();
        }
    }
}
