//! Access to the elements of CPU tensors, for updates in one pass without temporaries.

use std::cell::RefCell;
use std::marker::PhantomData;

use candle_core::{
    CpuStorage, Device, InplaceOp1, Layout, Result, Storage, Tensor, WithDType, bail,
};

/// An element type that the fused updates are written for.
pub(crate) trait Element: WithDType {
    /// The elements of a storage of this type.
    fn slice_mut(storage: &mut CpuStorage) -> Option<&mut [Self]>;

    /// The square root.
    fn sqrt(self) -> Self;
}

macro_rules! element {
    ($type:ty, $variant:ident) => {
        impl Element for $type {
            fn slice_mut(storage: &mut CpuStorage) -> Option<&mut [Self]> {
                match storage {
                    CpuStorage::$variant(values) => Some(values),
                    _ => None,
                }
            }

            fn sqrt(self) -> Self {
                <$type>::sqrt(self)
            }
        }
    };
}

element!(f32, F32);
element!(f64, F64);

/// Whether [`with_mut`] can be used: every tensor is on the CPU, with elements of type `T`.
pub(crate) fn is_fusable<T: Element>(tensors: &[&Tensor]) -> bool {
    tensors
        .iter()
        .all(|tensor| tensor.dtype() == T::DTYPE && matches!(tensor.device(), Device::Cpu))
}

/// Calls `f` with the elements of a contiguous tensor, in place.
pub(crate) fn with_mut<T: Element>(
    tensor: &Tensor,
    f: impl FnMut(&mut [T]) -> Result<()>,
) -> Result<()> {
    tensor.inplace_op1(&WithMut { f: RefCell::new(f), element: PhantomData })
}

/// Calls `f` with the elements of a contiguous tensor.
pub(crate) fn with_ref<T: Element>(
    tensor: &Tensor,
    f: impl FnOnce(&[T]) -> Result<()>,
) -> Result<()> {
    let (storage, layout) = tensor.storage_and_layout();
    let Storage::Cpu(storage) = &*storage else { bail!("the tensor is not on the CPU") };
    let (start, end) = contiguous_range(layout)?;
    f(&storage.as_slice::<T>()?[start..end])
}

/// Adds `other` to `sum`: in the memory of `sum` where that is possible.
pub(crate) fn add(sum: &mut Tensor, other: &Tensor) -> Result<()> {
    let other = other.contiguous()?;
    if is_fusable::<f32>(&[sum, &other]) {
        add_elements::<f32>(sum, &other)
    } else if is_fusable::<f64>(&[sum, &other]) {
        add_elements::<f64>(sum, &other)
    } else {
        *sum = (&*sum + other)?;
        Ok(())
    }
}

fn add_elements<T: Element>(sum: &Tensor, other: &Tensor) -> Result<()> {
    with_ref::<T>(other, |other| {
        with_mut::<T>(sum, |sum| {
            sum.iter_mut().zip(other).for_each(|(sum, other)| *sum += *other);
            Ok(())
        })
    })
}

struct WithMut<T, F> {
    f: RefCell<F>,
    element: PhantomData<T>,
}

impl<T: Element, F: FnMut(&mut [T]) -> Result<()>> InplaceOp1 for WithMut<T, F> {
    fn name(&self) -> &'static str {
        "with-mut"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let (start, end) = contiguous_range(layout)?;
        match T::slice_mut(storage) {
            Some(values) => (self.f.borrow_mut())(&mut values[start..end]),
            None => bail!("the tensor is not of type {:?}", T::DTYPE),
        }
    }
}

fn contiguous_range(layout: &Layout) -> Result<(usize, usize)> {
    match layout.contiguous_offsets() {
        Some(range) => Ok(range),
        None => bail!("the tensor is not contiguous"),
    }
}
