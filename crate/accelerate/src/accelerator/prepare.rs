//! What `prepare` does to each kind of object.

use super::Accelerator;
use crate::Result;
use crate::data::DataLoader;
use crate::model::Model;
use crate::optim::{Adam, AdamW, Sgd};
use crate::schedule::LrScheduler;

/// Something that [`Accelerator::prepare`] makes ready for training: a model, an optimizer, a
/// loader, a scheduler, or a tuple of up to eight of them in any order.
///
/// Every [`Model`] can be prepared. An optimizer of your own needs one line:
///
/// ```
/// use candle_accelerate::optim::{Optimizer, ParameterState, Settings, Sgd, Shared};
/// use candle_accelerate::{Accelerator, Parameter, Prepare, Result};
/// use candle_core::Tensor;
///
/// /// Gradient descent along the sign of the gradient.
/// #[derive(Clone, Debug)]
/// struct SignSgd(Shared);
///
/// impl Optimizer for SignSgd {
///     fn shared(&self) -> &Shared {
///         &self.0
///     }
///
///     fn update(
///         &self,
///         parameter: &Parameter,
///         grad: &Tensor,
///         settings: Settings,
///         _state: &mut ParameterState,
///     ) -> Result<()> {
///         parameter.set(&(parameter.tensor() - (grad.sign()? * settings.lr)?)?)
///     }
/// }
///
/// impl Prepare for SignSgd {
///     fn prepare(self, accelerator: &Accelerator) -> Result<Self> {
///         accelerator.prepare_optimizer(self)
///     }
/// }
/// ```
pub trait Prepare: Sized {
    /// The same thing, ready for training with `accelerator`.
    fn prepare(self, accelerator: &Accelerator) -> Result<Self>;
}

impl<M: Model> Prepare for M {
    fn prepare(self, accelerator: &Accelerator) -> Result<Self> {
        accelerator.prepare_model(self)
    }
}

impl Prepare for DataLoader {
    fn prepare(self, accelerator: &Accelerator) -> Result<Self> {
        accelerator.prepare_data_loader(self)
    }
}

impl Prepare for LrScheduler {
    fn prepare(self, accelerator: &Accelerator) -> Result<Self> {
        accelerator.prepare_scheduler(self)
    }
}

macro_rules! prepare_optimizer {
    ($($optimizer:ty),*) => {$(
        impl Prepare for $optimizer {
            fn prepare(self, accelerator: &Accelerator) -> Result<Self> {
                accelerator.prepare_optimizer(self)
            }
        }
    )*};
}

prepare_optimizer!(Adam, AdamW, Sgd);

macro_rules! prepare_tuple {
    ($($part:ident),*) => {
        impl<$($part: Prepare),*> Prepare for ($($part,)*) {
            fn prepare(self, accelerator: &Accelerator) -> Result<Self> {
                #[allow(non_snake_case)]
                let ($($part,)*) = self;
                Ok(($($part.prepare(accelerator)?,)*))
            }
        }
    };
}

prepare_tuple!(A, B);
prepare_tuple!(A, B, C);
prepare_tuple!(A, B, C, D);
prepare_tuple!(A, B, C, D, E);
prepare_tuple!(A, B, C, D, E, F);
prepare_tuple!(A, B, C, D, E, F, G);
prepare_tuple!(A, B, C, D, E, F, G, H);
