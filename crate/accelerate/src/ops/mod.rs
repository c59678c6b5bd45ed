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
