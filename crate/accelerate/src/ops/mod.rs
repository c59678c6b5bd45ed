//! Differentiable operations, each with a hand-written backward on the CPU.
//!
//! candle-nn's fused layer norm and softmax have no backward: the graph ends there without an
//! error, and everything below never trains. These have one. Input may be f32, f64, f16 or bf16
//! (half precision is computed in f32) and of any strides. On a GPU each operation is a
//! composition of candle operations that has the same result and the same gradients.
//!
//! Results do not depend on the number of threads: work is cut into blocks of a fixed size, and
//! partial sums are added in the order of the blocks.

mod activation;
mod attention;
mod cpu;
mod cross_entropy;
mod dropout;
mod embedding;
mod feed_forward;
mod function;
mod layer_norm;
mod linear;
mod math;
mod residual;
mod rms_norm;
mod self_attention;
mod softmax;
#[cfg(test)]
mod testing;

pub use activation::{Activation, gelu, gelu_tanh};
pub use attention::{Attention, attention_mask, scaled_dot_product_attention};
pub use cross_entropy::{CrossEntropy, Reduction, cross_entropy};
pub use dropout::dropout;
pub use embedding::embedding;
pub use feed_forward::{FeedForward, feed_forward};
pub use layer_norm::layer_norm;
pub use linear::linear;
pub use rms_norm::rms_norm;
pub use self_attention::{SelfAttention, self_attention};
pub use softmax::softmax;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::testing::cpu_tensor;
    use super::*;
    use crate::Result;
    use candle_core::{DType, Device, Tensor, Var};

    #[test]
    fn empty_input_gives_empty_results_and_zero_gradients() {
        type Operation<'a> = &'a dyn Fn(&Tensor) -> Result<Tensor>;
        let [weight, bias] = [cpu_tensor(&[3, 4], 1), cpu_tensor(&[3], 2)];
        let norm = cpu_tensor(&[4], 3);
        let attention = Attention { num_heads: 2, mask: None, dropout: 0.1 };
        let operations: [(&str, Operation<'_>); 7] = [
            ("layer_norm", &|x| layer_norm(x, &norm, &norm, 1e-5)),
            ("rms_norm", &|x| rms_norm(x, &norm, 1e-5)),
            ("softmax", &softmax),
            ("gelu", &gelu),
            ("dropout", &|x| dropout(x, 0.1)),
            ("linear", &|x| linear(x, &weight, Some(&bias))),
            ("attention", &|x| scaled_dot_product_attention(x, x, x, &attention)),
        ];
        for (name, operation) in operations {
            for dims in [[0, 2, 4], [2, 0, 4]] {
                let x = Tensor::zeros(&dims, DType::F64, &Device::Cpu).unwrap();
                let x = Var::from_tensor(&x).unwrap();
                let out = operation(&x).unwrap();
                assert_eq!(out.dims()[..2], dims[..2], "{name}");
                let grads = out.sum_all().unwrap().backward().unwrap();
                assert_eq!(grads.get(&x).unwrap().dims(), dims, "{name}");
            }
        }
        let weight = Var::from_tensor(&weight).unwrap();
        let x = Tensor::zeros((0, 4), DType::F64, &Device::Cpu).unwrap();
        let out = linear(&x, &weight, None).unwrap();
        let grads = out.sum_all().unwrap().backward().unwrap();
        assert_eq!(grads.get(&weight).unwrap().to_vec2::<f64>().unwrap(), [[0.0; 4]; 3]);
    }

    #[test]
    fn vectors_of_no_elements_do_not_panic() {
        let x = Tensor::zeros((2, 0), DType::F32, &Device::Cpu).unwrap();
        let none = Tensor::zeros(0, DType::F32, &Device::Cpu).unwrap();
        assert_eq!(layer_norm(&x, &none, &none, 1e-5).unwrap().dims(), [2, 0]);
        assert_eq!(rms_norm(&x, &none, 1e-5).unwrap().dims(), [2, 0]);
        assert_eq!(softmax(&x).unwrap().dims(), [2, 0]);
        let weight = Tensor::zeros((0, 0), DType::F32, &Device::Cpu).unwrap();
        assert_eq!(linear(&x, &weight, Some(&none)).unwrap().dims(), [2, 0]);
    }
}
