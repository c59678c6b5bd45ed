//! In one test of a process of its own: the flag is global, and tests run side by side.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use candle_accelerate::data::{DataLoader, TensorDataset};
use candle_accelerate::{Error, interrupt};
use candle_core::{Device, Tensor};

#[test]
fn sigint_ends_a_loop_over_batches_and_the_process_lives_on() {
    interrupt::install_handler().unwrap();
    let x = Tensor::arange(0u32, 10, &Device::Cpu).unwrap();
    let dataset = TensorDataset::new([("x", x)]).unwrap();
    let loader = DataLoader::builder(dataset).batch_size(2).build().unwrap();

    let mut batches = loader.iter();
    assert!(batches.next().unwrap().tensors().is_ok());
    assert!(batches.next().unwrap().tensors().is_ok());
    assert!(!interrupt::requested());
    // SAFETY: `raise` may be called at any time; the handler for SIGINT was installed above.
    assert_eq!(unsafe { libc::raise(libc::SIGINT) }, 0);
    assert!(interrupt::requested());

    let failed = batches.next().unwrap();
    let Err(Error::Shared(error)) = failed.tensors() else { panic!("{failed:?}") };
    assert!(matches!(*error, Error::Interrupted { step: 2 }), "{error}");
    assert!(batches.next().is_none());

    // The interrupt has been noticed: the next loop runs.
    assert!(!interrupt::requested());
    assert_eq!(loader.iter().count(), 5);
}
