//! Multi-head scaled dot-product attention.

use candle_core::{DType, Tensor};
use rayon::prelude::*;

use super::cpu::{self, Matrix, Real, Threads, dispatch};
use super::dropout::DropMask;
use super::function::{Function, record};
use super::softmax::{self, softmax_row};
use crate::{Error, Result};

/// Queries handled at a time: the scores held are this many rows per head.
const QUERY_BLOCK: usize = 64;

/// How [`scaled_dot_product_attention`] attends.
#[derive(Clone, Debug)]
pub struct Attention {
    /// Into how many heads the last dimension is cut.
    pub num_heads: usize,
    /// Added to the scores before the softmax; each dimension is that of [batch, heads, queries,
    /// keys] or 1. See [`attention_mask`].
    pub mask: Option<Tensor>,
    /// The probability with which an attention weight is dropped; 0 in evaluation.
    pub dropout: f64,
}

/// The additive mask [batch, 1, 1, keys] of a tokenizer's `attention_mask` [batch, keys], in which
/// 1 (any non-zero) is a token to attend to and 0 is padding: 0 and the smallest number of `dtype`.
///
/// ```
/// use candle_accelerate::ops::attention_mask;
/// use candle_core::{DType, Device, Tensor};
///
/// let mask = attention_mask(&Tensor::new(&[[1u32, 0]], &Device::Cpu)?, DType::F32)?;
/// assert_eq!(mask.dims(), [1, 1, 1, 2]);
/// assert_eq!(mask.flatten_all()?.to_vec1::<f32>()?, [0.0, f32::MIN]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn attention_mask(mask: &Tensor, dtype: DType) -> Result<Tensor> {
    let (batch, keys) = mask.dims2()?;
    // The smallest number, not minus infinity, of which a row of padding would make NaN.
    let smallest = match dtype {
        DType::F64 => f64::MIN,
        DType::F16 => -65_504.0,
        DType::BF16 => -3.389e38,
        _ => f64::from(f32::MIN),
    };
    let padding = mask.eq(&mask.zeros_like()?)?;
    let zeros = Tensor::zeros((batch, keys), dtype, mask.device())?;
    let smallest = Tensor::full(smallest, (batch, keys), mask.device())?.to_dtype(dtype)?;
    Ok(padding.where_cond(&smallest, &zeros)?.reshape((batch, 1, 1, keys))?)
}

/// `softmax(q · kᵀ / sqrt(d) + mask) · v` for each head (Vaswani et al., 2017).
///
/// `query` is [batch, queries, heads * d]; `key` and `value` are [batch, keys, heads * d]; the
/// result is [batch, queries, heads * d] in the dtype of `query`. On the CPU the scores are held
/// for a few rows at a time, never as a whole, and are computed again in the backward pass (Dao et
/// al., 2022). Dropout of the weights follows [`set_seed`](crate::set_seed).
///
/// ```
/// use candle_accelerate::ops::{Attention, scaled_dot_product_attention};
/// use candle_core::{Device, Tensor};
///
/// let x = Tensor::new(&[[[1f32, 0.0], [0.0, 1.0]]], &Device::Cpu)?;
/// let options = Attention { num_heads: 1, mask: None, dropout: 0.0 };
/// let y = scaled_dot_product_attention(&x, &x, &x, &options)?;
/// assert_eq!(y.dims(), [1, 2, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn scaled_dot_product_attention(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    options: &Attention,
) -> Result<Tensor> {
    let sizes = Sizes::new(query, key, value, options.num_heads)?;
    let dropout = DropMask::draw(options.dropout)?;
    let mask = options.mask.as_ref().map(|mask| sizes.check_mask(mask)).transpose()?;
    cpu::widened("scaled_dot_product_attention", [query, key, value], |[query, key, value]| {
        let mask = mask.map(|mask| mask.to_dtype(query.dtype())?.contiguous()).transpose()?;
        // A mask that trains needs a gradient, which only the composition gives.
        let trains = mask.as_ref().is_some_and(Tensor::track_op);
        if !query.device().is_cpu() || trains {
            return composed(&query, &key, &value, sizes, mask.as_ref(), dropout);
        }
        let dtype = query.dtype();
        let kernel = Kernel { sizes, mask, dropout };
        dispatch!(dtype, fused(vec![query, key, value], kernel))
    })
}

fn fused<T: Real>(args: Vec<Tensor>, kernel: Kernel) -> candle_core::Result<Tensor> {
    let [query, key, value] = [0, 1, 2].map(|index| cpu::values::<T>(&args[index]));
    let (out, statistics) = kernel.forward(&query?, &key?, &value?)?;
    let shape = args[0].shape().clone();
    record(args, T::to_cpu_storage_owned(out), shape, Saved { kernel, statistics })
}

/// What the backward pass needs beside the arguments.
struct Saved<T> {
    kernel: Kernel,
    statistics: Vec<T>,
}

impl<T: Real> Function for Saved<T> {
    fn name(&self) -> &'static str {
        "scaled_dot_product_attention"
    }

    fn backward(
        &self,
        args: &[Tensor],
        out: &Tensor,
        grad: &Tensor,
    ) -> candle_core::Result<Vec<Option<Tensor>>> {
        let [query, key, value] = [0, 1, 2].map(|index| cpu::values::<T>(&args[index]));
        let grads = self.kernel.backward(
            &query?,
            &key?,
            &value?,
            &cpu::values(out)?,
            &cpu::values(grad)?,
            &self.statistics,
        )?;
        let pairs = grads.into_iter().zip(args);
        pairs.map(|(grad, arg)| cpu::tensor(grad, arg.shape()).map(Some)).collect()
    }
}

#[derive(Clone, Copy)]
struct Sizes {
    batch: usize,
    heads: usize,
    queries: usize,
    keys: usize,
    head_dim: usize,
}

impl Sizes {
    fn new(query: &Tensor, key: &Tensor, value: &Tensor, heads: usize) -> Result<Self> {
        let (batch, queries, width) = query.dims3()?;
        let (_, keys, _) = key.dims3()?;
        if key.dims() != [batch, keys, width] || value.dims() != key.dims() {
            return Err(Error::invalid(
                "attention",
                format!(
                    "takes key and value of one shape [{batch}, keys, {width}] for query {:?}, not \
                     {:?} and {:?}",
                    query.dims(),
                    key.dims(),
                    value.dims()
                ),
            ));
        }
        if heads == 0 || width % heads != 0 {
            return Err(Error::invalid("num_heads", format!("is {heads}; it must divide {width}")));
        }
        Ok(Self { batch, heads, queries, keys, head_dim: width / heads })
    }

    fn check_mask<'a>(&self, mask: &'a Tensor) -> Result<&'a Tensor> {
        let full = [self.batch, self.heads, self.queries, self.keys];
        let fits = mask.rank() == 4
            && mask.dims().iter().zip(full).all(|(dim, full)| *dim == 1 || *dim == full);
        if fits {
            Ok(mask)
        } else {
            Err(Error::invalid(
                "attention mask",
                format!(
                    "has shape {:?}; each dimension must be that of {full:?} or 1",
                    mask.dims()
                ),
            ))
        }
    }

    fn width(&self) -> usize {
        self.heads * self.head_dim
    }

    fn scale(&self) -> f64 {
        1.0 / (self.head_dim as f64).sqrt()
    }

    /// One head of sample `item / heads` in a [batch, rows, width] tensor.
    fn head<'a, T>(&self, values: &'a [T], rows: usize, item: usize) -> Matrix<'a, T> {
        let start = (item / self.heads) * rows * self.width() + (item % self.heads) * self.head_dim;
        Matrix::rows(values.get(start..).unwrap_or_default(), self.width())
    }

    /// [batch, rows, width] of the heads' matrices [rows, head_dim], in the order of the items.
    fn merge<T: Real>(&self, heads: &[&[T]], rows: usize) -> Vec<T> {
        let mut out = vec![T::zero(); self.batch * rows * self.width()];
        cpu::fill_blocks(&mut out, self.width(), |start, out| {
            for (row, out) in (start / self.width()..).zip(out.chunks_exact_mut(self.width())) {
                let (sample, row) = (row / rows, row % rows);
                for (head, out) in out.chunks_exact_mut(self.head_dim).enumerate() {
                    let head = heads[sample * self.heads + head];
                    out.copy_from_slice(&head[row * self.head_dim..][..self.head_dim]);
                }
            }
        });
        out
    }
}

fn composed(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    sizes: Sizes,
    mask: Option<&Tensor>,
    dropout: Option<DropMask>,
) -> candle_core::Result<Tensor> {
    let split = |x: &Tensor, rows| {
        x.reshape((sizes.batch, rows, sizes.heads, sizes.head_dim))?.transpose(1, 2)?.contiguous()
    };
    let query = split(query, sizes.queries)?;
    let (key, value) = (split(key, sizes.keys)?, split(value, sizes.keys)?);
    let mut scores = (query.matmul(&key.t()?)? * sizes.scale())?;
    if let Some(mask) = mask {
        scores = scores.broadcast_add(mask)?;
    }
    let mut weights = softmax::composed(&scores)?;
    if let Some(dropout) = dropout {
        weights = dropout.apply(&weights)?;
    }
    weights.matmul(&value)?.transpose(1, 2)?.reshape((sizes.batch, sizes.queries, sizes.width()))
}

/// Attention on the elements of contiguous CPU tensors.
pub(super) struct Kernel {
    sizes: Sizes,
    mask: Option<Tensor>,
    dropout: Option<DropMask>,
}

/// A block of queries of one head of one sample.
#[derive(Clone, Copy)]
struct Block {
    item: usize,
    first: usize,
    rows: usize,
}

impl Sizes {
    fn items(&self) -> usize {
        self.batch * self.heads
    }

    fn blocks(self, item: usize) -> impl Iterator<Item = Block> {
        (0..self.queries).step_by(QUERY_BLOCK).map(move |first| Block {
            item,
            first,
            rows: QUERY_BLOCK.min(self.queries - first),
        })
    }
}

/// The mask's elements with the distance between neighbours in each dimension, 0 where it is 1.
struct Mask<'a, T> {
    values: &'a [T],
    strides: [usize; 4],
}

impl<'a, T: Real> Mask<'a, T> {
    fn new(values: &'a [T], dims: &[usize]) -> Self {
        let mut strides = [0; 4];
        let mut stride = 1;
        for (index, dim) in dims.iter().enumerate().rev() {
            if *dim != 1 {
                strides[index] = stride;
            }
            stride *= dim;
        }
        Self { values, strides }
    }

    #[inline(always)]
    fn add_to(&self, scores: &mut [T], sample: usize, head: usize, query: usize) {
        let [s0, s1, s2, s3] = self.strides;
        let row = &self.values[sample * s0 + head * s1 + query * s2..];
        if s3 == 0 {
            scores.iter_mut().for_each(|score| *score += row[0]);
        } else {
            cpu::add_assign(scores, row);
        }
    }
}

impl Kernel {
    /// Attention of a tensor of shape [batch, length, width] to itself; none if the options do not
    /// fit it or need the composition.
    pub(super) fn of_self(x: &Tensor, options: &Attention) -> Result<Option<Self>> {
        let sizes = Sizes::new(x, x, x, options.num_heads)?;
        let mask = options.mask.as_ref().map(|mask| sizes.check_mask(mask)).transpose()?;
        if mask.is_some_and(Tensor::track_op) {
            return Ok(None);
        }
        let mask = mask.map(|mask| mask.to_dtype(x.dtype())?.contiguous()).transpose()?;
        Ok(Some(Self { sizes, mask, dropout: DropMask::draw(options.dropout)? }))
    }

    /// The scores of a block of queries, masked: [rows, keys].
    fn scores<T: Real>(
        &self,
        query: &[T],
        key: &[T],
        mask: Option<&Mask<'_, T>>,
        block: Block,
        scores: &mut [T],
    ) {
        let sizes = self.sizes;
        let query = sizes.head(query, sizes.queries, block.item).skip_rows(block.first);
        let key = sizes.head(key, sizes.keys, block.item);
        cpu::matmul(
            (block.rows, sizes.head_dim, sizes.keys),
            T::from_f64(sizes.scale()),
            query,
            key.t(),
            false,
            scores,
            sizes.keys,
            Threads::One,
        );
        if let Some(mask) = mask {
            for (query, scores) in (block.first..).zip(scores.chunks_exact_mut(sizes.keys)) {
                mask.add_to(scores, block.item / sizes.heads, block.item % sizes.heads, query);
            }
        }
    }

    /// Multiplies a block's weights (or their gradients) by the dropout mask.
    fn drop<T: Real>(&self, block: Block, weights: &mut [T]) {
        if let Some(dropout) = &self.dropout {
            let row = block.item * self.sizes.queries + block.first;
            dropout.lay(row * self.sizes.keys, weights);
        }
    }

    /// The result, and the largest score and the inverse sum of exponentials for each sample, head
    /// and query: what the backward pass needs to compute the weights again.
    pub(super) fn forward<T: Real>(
        &self,
        query: &[T],
        key: &[T],
        value: &[T],
    ) -> candle_core::Result<(Vec<T>, Vec<T>)> {
        let sizes = self.sizes;
        let mask = self.mask.as_ref().map(cpu::values::<T>).transpose()?;
        let mask = self.mask.as_ref().zip(mask.as_deref());
        let mask = mask.map(|(mask, values)| Mask::new(values, mask.dims()));
        let heads: Vec<(Vec<T>, Vec<T>)> = (0..sizes.items())
            .into_par_iter()
            .map(|item| {
                let mut out = vec![T::zero(); sizes.queries * sizes.head_dim];
                let mut statistics = Vec::with_capacity(2 * sizes.queries);
                let mut weights = vec![T::zero(); QUERY_BLOCK.min(sizes.queries) * sizes.keys];
                for block in sizes.blocks(item) {
                    let weights = &mut weights[..block.rows * sizes.keys];
                    self.scores(query, key, mask.as_ref(), block, weights);
                    cpu::vectorised(|| {
                        for row in weights.chunks_exact_mut(sizes.keys.max(1)) {
                            statistics.extend(softmax_row(row));
                        }
                        self.drop(block, weights);
                    });
                    cpu::matmul(
                        (block.rows, sizes.keys, sizes.head_dim),
                        T::one(),
                        Matrix::rows(weights, sizes.keys),
                        sizes.head(value, sizes.keys, item),
                        false,
                        &mut out[block.first * sizes.head_dim..],
                        sizes.head_dim,
                        Threads::One,
                    );
                }
                (out, statistics)
            })
            .collect();
        let statistics: Vec<T> =
            heads.iter().flat_map(|(_, statistics)| statistics).copied().collect();
        let outs: Vec<&[T]> = heads.iter().map(|(out, _)| out.as_slice()).collect();
        Ok((sizes.merge(&outs, sizes.queries), statistics))
    }

    /// The gradients of query, key and value.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn backward<T: Real>(
        &self,
        query: &[T],
        key: &[T],
        value: &[T],
        out: &[T],
        grad: &[T],
        statistics: &[T],
    ) -> candle_core::Result<[Vec<T>; 3]> {
        let sizes = self.sizes;
        let mask = self.mask.as_ref().map(cpu::values::<T>).transpose()?;
        let mask = self.mask.as_ref().zip(mask.as_deref());
        let mask = mask.map(|(mask, values)| Mask::new(values, mask.dims()));
        let heads: Vec<[Vec<T>; 3]> = (0..sizes.items())
            .into_par_iter()
            .map(|item| {
                let mut grad_query = vec![T::zero(); sizes.queries * sizes.head_dim];
                let mut grad_key = vec![T::zero(); sizes.keys * sizes.head_dim];
                let mut grad_value = grad_key.clone();
                let scores = QUERY_BLOCK.min(sizes.queries) * sizes.keys;
                let (mut weights, mut dropped) = (vec![T::zero(); scores], vec![T::zero(); scores]);
                for block in sizes.blocks(item) {
                    let weights = &mut weights[..block.rows * sizes.keys];
                    let dropped = &mut dropped[..block.rows * sizes.keys];
                    let grad = sizes.head(grad, sizes.queries, item).skip_rows(block.first);
                    let out = sizes.head(out, sizes.queries, item).skip_rows(block.first);
                    let statistics = &statistics[2 * (item * sizes.queries + block.first)..];
                    self.scores(query, key, mask.as_ref(), block, weights);
                    cpu::vectorised(|| {
                        let rows = weights.chunks_exact_mut(sizes.keys.max(1));
                        for (weights, statistics) in rows.zip(statistics.chunks_exact(2)) {
                            for weight in weights {
                                *weight =
                                    (*weight - statistics[0]).exp_nonpositive() * statistics[1];
                            }
                        }
                        dropped.copy_from_slice(weights);
                        self.drop(block, dropped);
                    });
                    cpu::matmul(
                        (sizes.keys, block.rows, sizes.head_dim),
                        T::one(),
                        Matrix::rows(dropped, sizes.keys).t(),
                        grad,
                        true,
                        &mut grad_value,
                        sizes.head_dim,
                        Threads::One,
                    );
                    // From here on `dropped` holds the gradient of the weights, then the scores'.
                    cpu::matmul(
                        (block.rows, sizes.head_dim, sizes.keys),
                        T::one(),
                        grad,
                        sizes.head(value, sizes.keys, item).t(),
                        false,
                        dropped,
                        sizes.keys,
                        Threads::One,
                    );
                    cpu::vectorised(|| {
                        self.drop(block, dropped);
                        let scale = T::from_f64(sizes.scale());
                        let rows = dropped.chunks_exact_mut(sizes.keys.max(1));
                        let rows = rows.zip(weights.chunks_exact(sizes.keys.max(1)));
                        for (row, (grad_scores, weights)) in rows.enumerate() {
                            let grad = &grad.values[row * sizes.width()..];
                            let out = &out.values[row * sizes.width()..];
                            let dot = cpu::sum(sizes.head_dim, |i| grad[i] * out[i]);
                            for (grad_score, weight) in grad_scores.iter_mut().zip(weights) {
                                *grad_score = *weight * (*grad_score - dot) * scale;
                            }
                        }
                    });
                    cpu::matmul(
                        (block.rows, sizes.keys, sizes.head_dim),
                        T::one(),
                        Matrix::rows(dropped, sizes.keys),
                        sizes.head(key, sizes.keys, item),
                        false,
                        &mut grad_query[block.first * sizes.head_dim..],
                        sizes.head_dim,
                        Threads::One,
                    );
                    cpu::matmul(
                        (sizes.keys, block.rows, sizes.head_dim),
                        T::one(),
                        Matrix::rows(dropped, sizes.keys).t(),
                        sizes.head(query, sizes.queries, item).skip_rows(block.first),
                        true,
                        &mut grad_key,
                        sizes.head_dim,
                        Threads::One,
                    );
                }
                [grad_query, grad_key, grad_value]
            })
            .collect();
        let merge = |which: usize, rows| {
            let parts: Vec<&[T]> = heads.iter().map(|head| head[which].as_slice()).collect();
            sizes.merge(&parts, rows)
        };
        Ok([merge(0, sizes.queries), merge(1, sizes.keys), merge(2, sizes.keys)])
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::testing::{Case, cpu_tensor};
    use super::*;
    use crate::rng;
    use candle_core::Device;

    fn inputs() -> [Tensor; 3] {
        [cpu_tensor(&[2, 5, 6], 1), cpu_tensor(&[2, 4, 6], 2), cpu_tensor(&[2, 4, 6], 3)]
    }

    fn check(name: &'static str, options: Attention) {
        Case::new(name, inputs(), |[q, k, v]| {
            rng::with_seed(8, || scaled_dot_product_attention(q, k, v, &options))
        })
        .composed(|[q, k, v]| {
            let sizes = Sizes::new(q, k, v, options.num_heads)?;
            let dropout = rng::with_seed(8, || DropMask::draw(options.dropout))?;
            let mask = options.mask.as_ref().map(|m| m.to_dtype(q.dtype())).transpose()?;
            Ok(composed(q, k, v, sizes, mask.as_ref(), dropout)?)
        })
        .check();
    }

    #[test]
    fn gradients_equal_finite_differences_on_strided_input_and_every_dtype() {
        check("attention", Attention { num_heads: 2, mask: None, dropout: 0.0 });
    }

    #[test]
    fn masks_of_every_broadcast_shape_have_right_gradients() {
        for dims in [[2, 1, 1, 4], [1, 1, 5, 4], [2, 3, 5, 4], [1, 3, 1, 1], [1, 1, 5, 1]] {
            let mask = Some(cpu_tensor(&dims, 5));
            check("attention with a mask", Attention { num_heads: 3, mask, dropout: 0.0 });
        }
    }

    #[test]
    fn dropout_of_the_weights_has_right_gradients() {
        check("attention with dropout", Attention { num_heads: 2, mask: None, dropout: 0.3 });
    }

    #[test]
    fn more_queries_than_a_block_give_what_the_composition_gives() {
        let n = 2 * QUERY_BLOCK + 9;
        let inputs = [1, 2, 3]
            .map(|seed| candle_core::Var::from_tensor(&cpu_tensor(&[1, n, 8], seed)).unwrap());
        let [q, k, v] = inputs.each_ref().map(|var| var.as_tensor());
        let options = Attention { num_heads: 2, mask: None, dropout: 0.2 };
        let fused = rng::with_seed(8, || scaled_dot_product_attention(q, k, v, &options)).unwrap();
        let dropout = rng::with_seed(8, || DropMask::draw(0.2)).unwrap();
        let sizes = Sizes::new(q, k, v, 2).unwrap();
        let composed = composed(q, k, v, sizes, None, dropout).unwrap();
        let all = |t: &Tensor| t.flatten_all().unwrap().to_vec1::<f64>().unwrap();
        let close =
            |a: &Tensor, b: &Tensor| all(a).iter().zip(all(b)).all(|(a, b)| (a - b).abs() < 1e-10);
        assert!(close(&fused, &composed));
        let sum = |t: &Tensor| t.sqr().unwrap().sum_all().unwrap().backward().unwrap();
        let (fused, composed) = (sum(&fused), sum(&composed));
        for var in &inputs {
            assert!(close(fused.get(var).unwrap(), composed.get(var).unwrap()));
        }
    }

    #[test]
    fn padding_changes_nothing_for_real_tokens_and_a_sample_of_padding_stays_finite() {
        let [q, k, v] = inputs();
        let mask = Tensor::new(&[[1u32, 1, 0, 0], [0, 0, 0, 0]], &Device::Cpu).unwrap();
        let mask = Some(attention_mask(&mask, DType::F64).unwrap());
        let masked = Attention { num_heads: 2, mask, dropout: 0.0 };
        let out = scaled_dot_product_attention(&q, &k, &v, &masked).unwrap();
        let (k, v) = (k.narrow(1, 0, 2).unwrap(), v.narrow(1, 0, 2).unwrap());
        let plain = Attention { num_heads: 2, mask: None, dropout: 0.0 };
        let short = scaled_dot_product_attention(&q, &k, &v, &plain).unwrap();
        let all = |t: &Tensor, sample| t.get(sample).unwrap().to_vec2::<f64>().unwrap().concat();
        let difference = all(&out, 0).into_iter().zip(all(&short, 0)).map(|(a, b)| (a - b).abs());
        assert!(difference.fold(0.0, f64::max) < 1e-14);
        assert!(all(&out, 1).iter().all(|x| x.is_finite()));
    }

    #[test]
    fn a_mask_that_trains_gets_a_gradient() {
        let [q, k, v] = inputs();
        let bias = candle_core::Var::from_tensor(&cpu_tensor(&[1, 2, 5, 4], 5)).unwrap();
        let mask = Some(bias.as_tensor().clone());
        let options = Attention { num_heads: 2, mask, dropout: 0.0 };
        let out = scaled_dot_product_attention(&q, &k, &v, &options).unwrap();
        let grads = out.sqr().unwrap().sum_all().unwrap().backward().unwrap();
        assert!(grads.get(&bias).is_some());
    }

    #[test]
    fn shapes_that_do_not_fit_are_named() {
        let [q, k, v] = inputs();
        let error = |heads, mask: Option<Tensor>| {
            let options = Attention { num_heads: heads, mask, dropout: 0.0 };
            scaled_dot_product_attention(&q, &k, &v, &options).unwrap_err().to_string()
        };
        assert_eq!(error(4, None), "num_heads is 4; it must divide 6");
        assert_eq!(
            error(2, Some(cpu_tensor(&[2, 4], 1))),
            "attention mask has shape [2, 4]; each dimension must be that of [2, 2, 5, 4] or 1"
        );
    }
}
