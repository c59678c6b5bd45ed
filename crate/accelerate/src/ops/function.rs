//! Operations of any number of arguments, where candle's own take three.

use std::sync::{Arc, Mutex, PoisonError};

use candle_core::{CpuStorage, CustomOp2, CustomOp3, DType, Device, Layout, Shape, Tensor};

use crate::gradient_sink;

/// How gradients go back through an operation.
pub(super) trait Function: Send + Sync + 'static {
    fn name(&self) -> &'static str;

    /// The gradient of each of `args`, at least of those that are tracked, each in memory of its
    /// own.
    fn backward(
        &self,
        args: &[Tensor],
        out: &Tensor,
        grad: &Tensor,
    ) -> candle_core::Result<Vec<Option<Tensor>>>;
}

/// What `function` computed from `args`, as one node of the graph. All on the CPU.
///
/// The node itself has two arguments: the first of `args`, and a token whose own arguments are the
/// others, by twos. The backward pass reaches the node first, which works out all gradients, and
/// then the tokens, which give them out.
pub(super) fn record(
    args: Vec<Tensor>,
    out: CpuStorage,
    shape: Shape,
    function: impl Function,
) -> candle_core::Result<Tensor> {
    let first = args[0].clone();
    let others: Vec<usize> = (1..args.len()).filter(|index| args[*index].track_op()).collect();
    let grads = Mutex::new(vec![None; args.len()]);
    let call = Arc::new(Call { args, grads, function: Box::new(function) });
    let mut token = Tensor::zeros((), DType::F32, &Device::Cpu)?;
    for pair in others.chunks(2) {
        let [a, b] = [pair[0], pair[pair.len() - 1]];
        let op = Token { call: call.clone(), args: [a, b] };
        token = token.apply_op3(&call.args[a], &call.args[b], op)?;
    }
    first.apply_op2(&token, Node { call, out: Mutex::new(Some((out, shape))) })
}

struct Call {
    args: Vec<Tensor>,
    /// What the tokens are to give out.
    grads: Mutex<Vec<Option<Tensor>>>,
    function: Box<dyn Function>,
}

struct Node {
    call: Arc<Call>,
    out: Mutex<Option<(CpuStorage, Shape)>>,
}

struct Token {
    call: Arc<Call>,
    args: [usize; 2],
}

impl CustomOp2 for Node {
    fn name(&self) -> &'static str {
        self.call.function.name()
    }

    fn cpu_fwd(
        &self,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> candle_core::Result<(CpuStorage, Shape)> {
        let out = self.out.lock().unwrap_or_else(PoisonError::into_inner).take();
        out.ok_or_else(|| candle_core::Error::Msg("an operation was recorded twice".into()))
    }

    fn bwd(
        &self,
        first: &Tensor,
        token: &Tensor,
        out: &Tensor,
        grad: &Tensor,
    ) -> candle_core::Result<(Option<Tensor>, Option<Tensor>)> {
        let args = &self.call.args;
        let mut grads = self.call.function.backward(args, out, &grad.contiguous()?)?;
        for (arg, grad) in args.iter().zip(&mut grads) {
            *grad = match grad.take().filter(|_| arg.track_op()) {
                Some(grad) => gradient_sink::hand_over(arg, grad)?,
                None => None,
            };
        }
        let of_first = grads[0].take();
        *self.call.grads.lock().unwrap_or_else(PoisonError::into_inner) = grads;
        debug_assert!(first.id() == args[0].id());
        Ok((of_first, of_token(token)?))
    }
}

impl CustomOp3 for Token {
    fn name(&self) -> &'static str {
        self.call.function.name()
    }

    fn cpu_fwd(
        &self,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> candle_core::Result<(CpuStorage, Shape)> {
        Ok((CpuStorage::F32(vec![0.0]), ().into()))
    }

    fn bwd(
        &self,
        token: &Tensor,
        _: &Tensor,
        _: &Tensor,
        _: &Tensor,
        _: &Tensor,
    ) -> candle_core::Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let mut grads = self.call.grads.lock().unwrap_or_else(PoisonError::into_inner);
        let [a, b] = self.args;
        // A last argument without a partner stands in both places; it is given out once.
        Ok((of_token(token)?, grads[a].take(), if a == b { None } else { grads[b].take() }))
    }
}

/// The first token is a constant and is not asked for.
fn of_token(token: &Tensor) -> candle_core::Result<Option<Tensor>> {
    token.track_op().then(|| token.zeros_like()).transpose()
}
