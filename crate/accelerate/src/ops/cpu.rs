//! What the CPU kernels share: element types, access to tensors, loops over blocks, products.

use std::iter::Sum;
use std::marker::PhantomData;
use std::ops::{Deref, Neg, Range};

use candle_core::{
    CpuStorage, DType, Device, Layout, Shape, Storage, StorageRef, Tensor, WithDType,
};
use rayon::prelude::*;

use super::math;
use crate::{Error, Result};

/// Elements that one block of work holds: enough to pay for handing it to a thread.
const BLOCK_ELEMENTS: usize = 1 << 14;

/// Accumulators of a sum: wide enough for the vector units, and the same on every machine so that
/// sums are too.
const LANES: usize = 16;

/// The element types kernels are written for.
pub(super) trait Real: WithDType + Neg<Output = Self> + Sum + Default {
    /// e^x for x ≤ 0.
    fn exp_nonpositive(self) -> Self;
    /// The error function.
    fn erf(self) -> Self;
    fn sqrt(self) -> Self;
    fn ln(self) -> Self;
    fn abs(self) -> Self;
    fn is_nan(self) -> bool;
}

impl Real for f32 {
    #[inline(always)]
    fn exp_nonpositive(self) -> Self {
        math::exp_nonpositive(self)
    }

    #[inline(always)]
    fn erf(self) -> Self {
        math::erf(self)
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        self.sqrt()
    }

    #[inline(always)]
    fn ln(self) -> Self {
        self.ln()
    }

    #[inline(always)]
    fn abs(self) -> Self {
        self.abs()
    }

    #[inline(always)]
    fn is_nan(self) -> bool {
        self.is_nan()
    }
}

impl Real for f64 {
    #[inline(always)]
    fn exp_nonpositive(self) -> Self {
        self.exp()
    }

    #[inline(always)]
    fn erf(self) -> Self {
        libm::erf(self)
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        self.sqrt()
    }

    #[inline(always)]
    fn ln(self) -> Self {
        self.ln()
    }

    #[inline(always)]
    fn abs(self) -> Self {
        self.abs()
    }

    #[inline(always)]
    fn is_nan(self) -> bool {
        self.is_nan()
    }
}

/// Calls the generic kernel `$f::<T>` for the tensors' element type.
macro_rules! dispatch {
    ($dtype:expr, $f:ident($($arg:expr),* $(,)?)) => {
        match $dtype {
            candle_core::DType::F32 => $f::<f32>($($arg),*),
            candle_core::DType::F64 => $f::<f64>($($arg),*),
            dtype => Err(candle_core::Error::UnsupportedDTypeForOp(dtype, stringify!($f))),
        }
    };
}
pub(super) use dispatch;

/// The dtype to compute in: f32 for half precision.
fn compute_dtype(op: &'static str, dtype: DType) -> Result<DType> {
    match dtype {
        DType::F32 | DType::F64 => Ok(dtype),
        DType::F16 | DType::BF16 => Ok(DType::F32),
        other => Err(Error::invalid(op, format!("takes f32, f64, f16 or bf16, not {other:?}"))),
    }
}

/// Runs `op` on the tensors in the dtype to compute in, contiguous, and gives the result the dtype
/// of the first.
pub(super) fn widened<const N: usize>(
    name: &'static str,
    tensors: [&Tensor; N],
    op: impl FnOnce([Tensor; N]) -> candle_core::Result<Tensor>,
) -> Result<Tensor> {
    let dtype = tensors[0].dtype();
    let wide = compute_dtype(name, dtype)?;
    let mut converted = tensors.map(Tensor::clone);
    for tensor in &mut converted {
        *tensor = tensor.to_dtype(wide)?.contiguous()?;
    }
    Ok(op(converted)?.to_dtype(dtype)?)
}

/// Whether a kernel can take all of them: on the CPU, and all f32 or all f64.
pub(super) fn can_fuse(tensors: &[Tensor]) -> bool {
    tensors.iter().all(|tensor| {
        tensor.device().is_cpu()
            && matches!(tensor.dtype(), DType::F32 | DType::F64)
            && tensor.dtype() == tensors[0].dtype()
    })
}

/// The tensors, copied where they are not contiguous.
pub(super) fn contiguous(tensors: Vec<Tensor>) -> candle_core::Result<Vec<Tensor>> {
    tensors.into_iter().map(|tensor| tensor.contiguous()).collect()
}

/// The elements of a contiguous CPU tensor, read-locked.
pub(super) struct Values<'a, T> {
    storage: StorageRef<'a>,
    range: Range<usize>,
    element: PhantomData<T>,
}

/// The elements of `tensor`, which must be contiguous and on the CPU.
pub(super) fn values<T: Real>(tensor: &Tensor) -> candle_core::Result<Values<'_, T>> {
    let (storage, layout) = tensor.storage_and_layout();
    let range = contiguous_range(layout)?;
    match &*storage {
        Storage::Cpu(cpu) => T::cpu_storage_as_slice(cpu).map(drop)?,
        _ => candle_core::bail!("a CPU kernel got a tensor on {:?}", tensor.device()),
    }
    Ok(Values { storage, range, element: PhantomData })
}

impl<T: Real> Deref for Values<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &*self.storage {
            Storage::Cpu(cpu) => {
                T::cpu_storage_as_slice(cpu).map_or(&[], |all| &all[self.range.clone()])
            }
            _ => &[],
        }
    }
}

/// The elements a kernel was given, which must be contiguous.
pub(super) fn slice<'a, T: Real>(
    storage: &'a CpuStorage,
    layout: &Layout,
) -> candle_core::Result<&'a [T]> {
    Ok(&storage.as_slice::<T>()?[contiguous_range(layout)?])
}

fn contiguous_range(layout: &Layout) -> candle_core::Result<Range<usize>> {
    match layout.contiguous_offsets() {
        Some((start, end)) => Ok(start..end),
        None => candle_core::bail!("a CPU kernel got a tensor that is not contiguous"),
    }
}

/// A CPU tensor of these elements.
pub(super) fn tensor<T: Real>(
    values: Vec<T>,
    shape: impl Into<Shape>,
) -> candle_core::Result<Tensor> {
    Tensor::from_vec(values, shape.into(), &Device::Cpu)
}

/// How many rows of `cols` elements make a block of work.
pub(super) fn block_rows(cols: usize) -> usize {
    (BLOCK_ELEMENTS / cols.max(1)).max(1)
}

/// Runs `f` compiled for the widest vector units this processor has.
pub(super) fn vectorised<R>(f: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(f)
}

/// Fills `out` block by block, in parallel: `f(start, block)` gets each block and the index of its
/// first element. Blocks hold whole rows of `cols` elements.
pub(super) fn fill_blocks<T: Real>(out: &mut [T], cols: usize, f: impl Fn(usize, &mut [T]) + Sync) {
    fill_in_blocks_of(block_rows(cols) * cols.max(1), out, f);
}

/// As [`fill_blocks`], where each element of `out` stands for a row of `cols` elements.
pub(super) fn fill_per_row<T: Real>(
    out: &mut [T],
    cols: usize,
    f: impl Fn(usize, &mut [T]) + Sync,
) {
    fill_in_blocks_of(block_rows(cols), out, f);
}

fn fill_in_blocks_of<T: Real>(block: usize, out: &mut [T], f: impl Fn(usize, &mut [T]) + Sync) {
    match out.len() {
        0 => {}
        // Not worth waking another thread.
        len if len <= block => vectorised(|| f(0, out)),
        _ => out
            .par_chunks_mut(block)
            .enumerate()
            .for_each(|(index, out)| vectorised(|| f(index * block, out))),
    }
}

/// As [`fill_blocks`], for two results of one size.
pub(super) fn fill_blocks_of_two<T: Real>(
    a: &mut [T],
    b: &mut [T],
    cols: usize,
    f: impl Fn(usize, &mut [T], &mut [T]) + Sync,
) {
    let block = block_rows(cols) * cols.max(1);
    a.par_chunks_mut(block)
        .zip(b.par_chunks_mut(block))
        .enumerate()
        .for_each(|(index, (a, b))| vectorised(|| f(index * block, a, b)));
}

/// As [`fill_blocks`], where each block also adds to sums over all rows: `f(start, block, sums)`.
/// The blocks' sums are added in their order.
pub(super) fn fill_blocks_and_sum<T: Real>(
    out: &mut [T],
    cols: usize,
    sums: usize,
    f: impl Fn(usize, &mut [T], &mut [T]) + Sync,
) -> Vec<T> {
    let block = block_rows(cols) * cols.max(1);
    let partial: Vec<Vec<T>> = out
        .par_chunks_mut(block)
        .enumerate()
        .map(|(index, out)| {
            let mut partial = vec![T::zero(); sums];
            vectorised(|| f(index * block, out, &mut partial));
            partial
        })
        .collect();
    add_in_order(partial, sums)
}

/// The sum of each column of `rows` (row-major, `cols` wide).
pub(super) fn column_sums<T: Real>(rows: &[T], cols: usize) -> Vec<T> {
    let block = block_rows(cols) * cols.max(1);
    let partial: Vec<Vec<T>> = rows
        .par_chunks(block)
        .map(|rows| {
            let mut sums = vec![T::zero(); cols];
            vectorised(|| rows.chunks_exact(cols).for_each(|row| add_assign(&mut sums, row)));
            sums
        })
        .collect();
    add_in_order(partial, cols)
}

fn add_in_order<T: Real>(partial: Vec<Vec<T>>, len: usize) -> Vec<T> {
    let mut blocks = partial.into_iter();
    let mut total = blocks.next().unwrap_or_else(|| vec![T::zero(); len]);
    blocks.for_each(|block| add_assign(&mut total, &block));
    total
}

/// `sum += terms`, element by element.
#[inline(always)]
pub(super) fn add_assign<T: Real>(sum: &mut [T], terms: &[T]) {
    for (sum, term) in sum.iter_mut().zip(terms) {
        *sum += *term;
    }
}

/// The sum of `f(i)` for `i` in `0..n`, in an order that vector units can follow.
#[inline(always)]
pub(super) fn sum<T: Real>(n: usize, f: impl Fn(usize) -> T) -> T {
    let mut lanes = [T::zero(); LANES];
    let whole = n - n % LANES;
    for start in (0..whole).step_by(LANES) {
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum += f(start + lane);
        }
    }
    let mut total = T::zero();
    for lane in lanes {
        total += lane;
    }
    for i in whole..n {
        total += f(i);
    }
    total
}

/// The largest element; NaN if there is one.
#[inline(always)]
pub(super) fn max<T: Real>(row: &[T]) -> T {
    let mut lanes = [T::from_f64(f64::NEG_INFINITY); LANES];
    let chunks = row.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = larger(*lane, *value);
        }
    }
    let mut largest = T::from_f64(f64::NEG_INFINITY);
    for value in lanes.iter().chain(rest) {
        largest = larger(largest, *value);
    }
    largest
}

#[inline(always)]
fn larger<T: Real>(a: T, b: T) -> T {
    if a >= b || a.is_nan() { a } else { b }
}

/// A matrix inside a slice: element (r, c) is at `r * row_stride + c * col_stride`.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a, T> {
    pub values: &'a [T],
    pub row_stride: usize,
    pub col_stride: usize,
}

impl<'a, T> Matrix<'a, T> {
    /// Row-major with rows `row_stride` elements apart.
    pub(super) fn rows(values: &'a [T], row_stride: usize) -> Self {
        Self { values, row_stride, col_stride: 1 }
    }

    /// Without the first `rows` rows.
    pub(super) fn skip_rows(self, rows: usize) -> Self {
        let values = self.values.get(rows * self.row_stride..).unwrap_or_default();
        Self { values, ..self }
    }

    /// Swaps rows and columns; nothing is copied.
    pub(super) fn t(self) -> Self {
        Self { values: self.values, row_stride: self.col_stride, col_stride: self.row_stride }
    }

    fn holds(&self, rows: usize, cols: usize) -> bool {
        rows == 0
            || cols == 0
            || (rows - 1) * self.row_stride + (cols - 1) * self.col_stride < self.values.len()
    }
}

/// Whether a product may use all threads. Inside a parallel loop it may not.
#[derive(Clone, Copy)]
pub(super) enum Threads {
    One,
    All,
}

/// `out = alpha * a · b`, or `out += alpha * a · b` when `add`: `a` is m × k, `b` is k × n, `out`
/// is row-major with rows `out_stride` elements apart.
#[allow(clippy::too_many_arguments)]
pub(super) fn matmul<T: Real>(
    (m, k, n): (usize, usize, usize),
    alpha: T,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    add: bool,
    out: &mut [T],
    out_stride: usize,
    threads: Threads,
) {
    assert!(a.holds(m, k) && b.holds(k, n) && Matrix::rows(&*out, out_stride).holds(m, n));
    assert!(out_stride >= n || m <= 1, "rows of the result must not overlap");
    let parallelism = match threads {
        Threads::One => gemm::Parallelism::None,
        Threads::All => match rayon::current_num_threads() {
            1 => gemm::Parallelism::None,
            n => gemm::Parallelism::Rayon(n),
        },
    };
    // SAFETY: the assertions above keep every access inside the three slices, and `out` is
    // borrowed mutably, so that it overlaps neither `a` nor `b`.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            out_stride as isize,
            add,
            a.values.as_ptr(),
            a.col_stride as isize,
            a.row_stride as isize,
            b.values.as_ptr(),
            b.col_stride as isize,
            b.row_stride as isize,
            T::one(),
            alpha,
            false,
            false,
            false,
            parallelism,
        );
    }
}

/// `x · weightᵀ + bias`: `x` is [rows, inputs], `weight` is [outputs, inputs].
pub(super) fn affine<T: Real>(x: &[T], weight: &[T], bias: &[T]) -> Vec<T> {
    let outputs = bias.len();
    let inputs = weight.len() / outputs.max(1);
    let rows = x.len() / inputs.max(1);
    let mut out = vec![T::zero(); rows * outputs];
    fill_blocks(&mut out, outputs, |_, out| {
        out.chunks_exact_mut(outputs).for_each(|row| row.copy_from_slice(bias));
    });
    let (x, weight) = (Matrix::rows(x, inputs), Matrix::rows(weight, inputs).t());
    matmul((rows, inputs, outputs), T::one(), x, weight, true, &mut out, outputs, Threads::All);
    out
}

/// `gradᵀ · x`: the gradient of the weight of [`affine`], [outputs, inputs].
pub(super) fn weight_gradient<T: Real>(
    grad: &[T],
    x: &[T],
    (outputs, inputs): (usize, usize),
) -> Vec<T> {
    let rows = grad.len() / outputs.max(1);
    let mut out = vec![T::zero(); outputs * inputs];
    let (grad, x) = (Matrix::rows(grad, outputs).t(), Matrix::rows(x, inputs));
    matmul((outputs, rows, inputs), T::one(), grad, x, false, &mut out, inputs, Threads::All);
    out
}

/// `sum += grad · weight`: adds the gradient of the input of [`affine`], [rows, inputs].
pub(super) fn add_input_gradient<T: Real>(grad: &[T], weight: &[T], outputs: usize, sum: &mut [T]) {
    let rows = grad.len() / outputs.max(1);
    let inputs = weight.len() / outputs.max(1);
    let (grad, weight) = (Matrix::rows(grad, outputs), Matrix::rows(weight, inputs));
    matmul((rows, outputs, inputs), T::one(), grad, weight, true, sum, inputs, Threads::All);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn matmul_reads_strides_and_adds() {
        // a is 2 x 3 inside rows of 4; b is given transposed (2 x 3 holds the 3 x 2 matrix).
        let a = [1f64, 2.0, 3.0, 9.0, 4.0, 5.0, 6.0, 9.0];
        let b = [1f64, 0.0, 1.0, 2.0, 1.0, 0.0];
        let mut out = [1f64; 6];
        let (a, b) = (Matrix::rows(&a, 4), Matrix::rows(&b, 3).t());
        matmul((2, 3, 2), 2.0, a, b, true, &mut out, 3, Threads::One);
        assert_eq!(out, [9.0, 9.0, 1.0, 21.0, 27.0, 1.0]);
        matmul((2, 3, 2), 1.0, a, b, false, &mut out, 3, Threads::All);
        assert_eq!(out, [4.0, 4.0, 1.0, 10.0, 13.0, 1.0]);
    }

    #[test]
    fn products_and_sums_have_the_same_bits_on_any_number_of_threads() {
        let a: Vec<f32> = (0..300 * 257).map(|i| (i as f32 * 0.37).sin()).collect();
        let b: Vec<f32> = (0..257 * 190).map(|i| (i as f32 * 0.71).cos()).collect();
        let run = |threads| {
            rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| {
                let mut out = vec![0f32; 300 * 190];
                let (a, b) = (Matrix::rows(&a, 257), Matrix::rows(&b, 190));
                matmul((300, 257, 190), 1.0, a, b, false, &mut out, 190, Threads::All);
                (out, column_sums(a.values, 257))
            })
        };
        let one = run(1);
        for threads in [2, 3, 5] {
            assert_eq!(one, run(threads), "{threads} threads");
        }
    }

    #[test]
    fn max_passes_nan_on() {
        let mut row = vec![1f32; 40];
        row[17] = 3.0;
        assert_eq!(max(&row), 3.0);
        row[5] = f32::NAN;
        assert!(max(&row).is_nan());
        row[5] = 0.0;
        row[39] = f32::NAN;
        assert!(max(&row).is_nan());
    }
}
