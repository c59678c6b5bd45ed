//! A short way for the gradients of variables out of a backward pass.
//!
//! candle's backward pass adds every gradient it is given to a tensor of zeros it makes first. For
//! parameters that is three passes over memory as large as the model. Within [`backward`] the
//! operations of this library leave the gradients of variables here instead.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use candle_core::backprop::GradStore;
use candle_core::{Tensor, TensorId};

use crate::{Result, in_place};

thread_local! {
    static SINK: RefCell<Option<HashMap<TensorId, Tensor>>> = const { RefCell::new(None) };
}

/// The gradients of `loss`, as candle's `loss.backward()` gives them.
pub(crate) fn backward(loss: &Tensor) -> Result<GradStore> {
    let outer = SINK.replace(Some(HashMap::new()));
    let grads = loss.backward();
    let sunk = SINK.replace(outer).unwrap_or_default();
    let mut grads = grads?;
    for (id, grad) in sunk {
        let total = match grads.get_id(id) {
            Some(other) => (other + grad)?,
            None => grad,
        };
        grads.insert_id(id, total);
    }
    Ok(grads)
}

/// Hands over the gradient of an operation's argument `arg`. What comes back is for candle.
pub(crate) fn hand_over(arg: &Tensor, grad: Tensor) -> candle_core::Result<Option<Tensor>> {
    if !arg.is_variable() {
        return Ok(Some(grad));
    }
    SINK.with_borrow_mut(|sink| {
        let Some(sink) = sink else { return Ok(Some(grad)) };
        match sink.entry(arg.id()) {
            Entry::Occupied(mut sum) => in_place::add(sum.get_mut(), &grad)?,
            Entry::Vacant(empty) => {
                empty.insert(grad);
            }
        }
        Ok(None)
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::ops;
    use candle_core::{Device, Var};

    #[test]
    fn gradients_equal_candles_also_for_a_variable_used_several_times() {
        let new = |values: &[f64], shape: (usize, usize)| {
            Var::from_tensor(&Tensor::new(values, &Device::Cpu).unwrap().reshape(shape).unwrap())
        };
        let weight = new(&[1.0, 2.0, -1.0, 0.5], (2, 2)).unwrap();
        let x = new(&[0.3, -0.7, 0.2, 1.1], (2, 2)).unwrap();
        // Twice by our operation, once by candle's.
        let hidden = ops::gelu(&ops::linear(&x, &weight, None).unwrap()).unwrap();
        let out = ops::linear(&hidden, &weight, None).unwrap();
        let loss = (out + weight.sqr().unwrap()).unwrap().sum_all().unwrap();
        let (ours, candles) = (backward(&loss).unwrap(), loss.backward().unwrap());
        for var in [&weight, &x] {
            let all =
                |grads: &GradStore| grads.get(var).unwrap().to_vec2::<f64>().unwrap().concat();
            let pairs = all(&ours).into_iter().zip(all(&candles));
            assert!(pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) < 1e-14);
        }
    }
}
