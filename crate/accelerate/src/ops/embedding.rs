//! Looking rows up in a table.

use candle_core::backend::BackendStorage as _;
use candle_core::{CpuStorage, CustomOp1, DType, Layout, Shape, Tensor};

use super::cpu::{self, Real, dispatch};
use crate::{Error, Result, gradient_sink};

/// The rows of `weight` [n, d] that `ids` (any shape, integers below n) name: [.., d].
///
/// The row `padding_id` gets no gradient, as with PyTorch's `padding_idx`.
///
/// # Errors
/// An id of n or more, which is named.
///
/// ```
/// use candle_accelerate::ops;
/// use candle_core::{Device, Tensor};
///
/// let table = Tensor::new(&[[0f32, 0.0], [1.0, 2.0], [3.0, 4.0]], &Device::Cpu)?;
/// let rows = ops::embedding(&Tensor::new(&[2u32, 1], &Device::Cpu)?, &table, Some(0))?;
/// assert_eq!(rows.to_vec2::<f32>()?, [[3.0, 4.0], [1.0, 2.0]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn embedding(ids: &Tensor, weight: &Tensor, padding_id: Option<u32>) -> Result<Tensor> {
    let (n, d) = weight.dims2()?;
    if !ids.dtype().is_int() {
        return Err(Error::invalid(
            "embedding ids",
            format!("are {:?}, not integers", ids.dtype()),
        ));
    }
    let mut dims = ids.dims().to_vec();
    dims.push(d);
    let ids = ids.to_dtype(DType::U32)?.flatten_all()?;
    let on_host = ids.to_vec1::<u32>()?;
    if let Some(id) = on_host.iter().find(|id| **id as usize >= n) {
        return Err(Error::invalid(
            "embedding ids",
            format!("contain {id}; the table has {n} rows (0 to {})", n.saturating_sub(1)),
        ));
    }
    if !weight.device().is_cpu() {
        return Ok(composed(&ids, weight, padding_id)?.reshape(dims)?);
    }
    cpu::widened("embedding", [weight], |[weight]| {
        weight.apply_op1(Embedding { ids: on_host, padding_id })?.reshape(dims)
    })
}

fn composed(ids: &Tensor, weight: &Tensor, padding_id: Option<u32>) -> candle_core::Result<Tensor> {
    let rows = weight.index_select(ids, 0)?;
    let Some(padding_id) = padding_id else { return Ok(rows) };
    let is_padding = ids.eq(padding_id)?.unsqueeze(1)?.broadcast_as(rows.shape())?;
    is_padding.where_cond(&rows.detach(), &rows)
}

struct Embedding {
    ids: Vec<u32>,
    padding_id: Option<u32>,
}

impl CustomOp1 for Embedding {
    fn name(&self) -> &'static str {
        "embedding"
    }

    fn cpu_fwd(
        &self,
        weight: &CpuStorage,
        layout: &Layout,
    ) -> candle_core::Result<(CpuStorage, Shape)> {
        fn run<T: Real>(
            weight: &CpuStorage,
            layout: &Layout,
            ids: &[u32],
        ) -> candle_core::Result<CpuStorage> {
            let d = layout.dims()[1];
            let weight = cpu::slice::<T>(weight, layout)?;
            let mut out = Vec::with_capacity(ids.len() * d);
            for id in ids {
                out.extend_from_slice(&weight[*id as usize * d..][..d]);
            }
            Ok(T::to_cpu_storage_owned(out))
        }
        let out = dispatch!(weight.dtype(), run(weight, layout, &self.ids))?;
        Ok((out, (self.ids.len(), layout.dims()[1]).into()))
    }

    fn bwd(
        &self,
        weight: &Tensor,
        _out: &Tensor,
        grad: &Tensor,
    ) -> candle_core::Result<Option<Tensor>> {
        fn run<T: Real>(
            weight: &Tensor,
            grad: &Tensor,
            ids: &[u32],
            padding_id: Option<u32>,
        ) -> candle_core::Result<Tensor> {
            let d = weight.dims()[1];
            let grad = grad.contiguous()?;
            let grad = cpu::values::<T>(&grad)?;
            let mut out = vec![T::zero(); weight.elem_count()];
            for (id, grad) in ids.iter().zip(grad.chunks_exact(d)) {
                if Some(*id) != padding_id {
                    cpu::add_assign(&mut out[*id as usize * d..][..d], grad);
                }
            }
            cpu::tensor(out, weight.shape())
        }
        let grad = dispatch!(weight.dtype(), run(weight, grad, &self.ids, self.padding_id))?;
        gradient_sink::hand_over(weight, grad)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::testing::{Case, cpu_tensor};
    use super::*;
    use candle_core::Device;

    fn ids() -> Tensor {
        Tensor::new(&[[1u32, 4, 4], [0, 1, 4]], &Device::Cpu).unwrap()
    }

    #[test]
    fn gradients_equal_finite_differences_on_strided_input_and_every_dtype() {
        Case::new("embedding", [cpu_tensor(&[6, 5], 1)], |[w]| embedding(&ids(), w, None))
            .composed(|[w]| Ok(composed(&ids().flatten_all()?, w, None)?.reshape((2, 3, 5))?))
            .check();
    }

    #[test]
    fn the_padding_row_gets_no_gradient_on_either_path() {
        let weight = candle_core::Var::from_tensor(&cpu_tensor(&[6, 5], 1)).unwrap();
        let fused = embedding(&ids(), &weight, Some(4)).unwrap();
        let composed = composed(&ids().flatten_all().unwrap(), &weight, Some(4)).unwrap();
        for rows in [fused, composed] {
            let grads = rows.sum_all().unwrap().backward().unwrap();
            let grad = grads.get(&weight).unwrap().to_vec2::<f64>().unwrap();
            let per_row: Vec<f64> = grad.iter().map(|row| row[0]).collect();
            assert_eq!(per_row, [1.0, 2.0, 0.0, 0.0, 0.0, 0.0]);
        }
    }

    #[test]
    fn an_id_beyond_the_table_is_an_error() {
        let error = embedding(&ids(), &cpu_tensor(&[3, 2], 1), None).unwrap_err().to_string();
        assert_eq!(error, "embedding ids contain 4; the table has 3 rows (0 to 2)");
    }
}
