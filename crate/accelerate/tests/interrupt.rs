//! In a process of its own: the flag is global, and tests of one process run side by side.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use candle_accelerate::interrupt;

#[test]
fn sigint_raises_the_flag_and_the_process_lives_on() {
    interrupt::install_handler().unwrap();
    assert!(!interrupt::requested());
    // SAFETY: `raise` may be called at any time; the handler for SIGINT was installed above.
    assert_eq!(unsafe { libc::raise(libc::SIGINT) }, 0);
    assert!(interrupt::requested());
    interrupt::clear();
    assert!(!interrupt::requested());
}
