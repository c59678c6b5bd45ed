//! Jupyter's stop button: a flag that training loops look at between batches.
//!
//! An interrupt must not kill the process, or the trained model would be gone. So the handler only
//! raises a flag, and what loops over batches ends with [`Error::Interrupted`](crate::Error).

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Whether an interrupt is waiting to be noticed.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// Raises the flag, as SIGINT does.
pub fn raise() {
    REQUESTED.store(true, Ordering::Relaxed);
}

/// Forgets an interrupt.
pub fn clear() {
    REQUESTED.store(false, Ordering::Relaxed);
}

/// Notices a waiting interrupt: whether there was one, which is then forgotten.
pub fn take() -> bool {
    REQUESTED.swap(false, Ordering::Relaxed)
}

/// Makes SIGINT raise the flag instead of ending the process.
///
/// # Errors
/// The operating system refused the handler.
#[cfg(unix)]
pub fn install_handler() -> io::Result<()> {
    extern "C" fn on_signal(_: libc::c_int) {
        // Storing to an atomic is all that is allowed and needed here.
        raise();
    }
    // SAFETY: the handler is async-signal-safe: it only stores to a lock-free atomic. The action is
    // zeroed before use, as sigaction asks.
    let failed = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigemptyset(&mut action.sa_mask);
        libc::sigaction(libc::SIGINT, &action, std::ptr::null_mut()) != 0
    };
    if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
}
