//! What an interrupt request does, depending on what the kernel is doing.

use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use tokio::sync::Notify;

/// How long a running cell may take to notice an interrupt before it is stopped for good.
const GRACE: Duration = Duration::from_secs(15);

/// Environment variable that overrides [`GRACE`], in seconds.
const GRACE_VARIABLE: &str = "CANDLE_ACCELERATE_INTERRUPT_GRACE";

/// Shared between the thread that runs cells and the one that hears interrupt requests.
#[derive(Clone, Default)]
pub struct Interrupts {
    activity: Arc<Mutex<Activity>>,
    /// Told of each request, for who waits for something else than a process.
    requests: Arc<Notify>,
}

#[derive(Default)]
enum Activity {
    #[default]
    Idle,
    Compiling {
        rustc: Child,
        stopped: bool,
    },
    Running {
        pid: i32,
        /// Counts cells, so that a late grace timer does not hit the next one.
        cell: usize,
        requests: usize,
    },
}

impl Interrupts {
    fn activity(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `wait` while an interrupt kills `rustc`. `None`: it was killed.
    pub fn while_compiling(&self, rustc: Child, wait: impl FnOnce()) -> Result<Option<ExitStatus>> {
        *self.activity() = Activity::Compiling { rustc, stopped: false };
        wait();
        match std::mem::take(&mut *self.activity()) {
            Activity::Compiling { mut rustc, stopped } => {
                let status = rustc.wait()?;
                Ok((!stopped).then_some(status))
            }
            _ => Ok(None),
        }
    }

    /// Runs `wait` while a first interrupt asks the process `pid` to stop its loop, and a second
    /// one, or the end of the grace time, kills it. Says how many requests there were. `wait` must
    /// not reap the process, or its number could belong to another one.
    pub fn while_running<T>(&self, pid: u32, cell: usize, wait: impl FnOnce() -> T) -> (T, usize) {
        let pid = i32::try_from(pid).unwrap_or(i32::MAX);
        *self.activity() = Activity::Running { pid, cell, requests: 0 };
        let result = wait();
        match std::mem::take(&mut *self.activity()) {
            Activity::Running { requests, .. } => (result, requests),
            _ => (result, 0),
        }
    }

    /// The kernel ends: nothing may keep it.
    pub fn kill(&self) {
        match &mut *self.activity() {
            Activity::Idle => {}
            Activity::Compiling { rustc, stopped } => {
                *stopped = true;
                // It has ended by itself if it cannot be killed.
                let _ = rustc.kill();
            }
            Activity::Running { pid, .. } => signal(*pid, libc::SIGKILL),
        }
    }

    /// Returns at the next request.
    pub async fn requested(&self) {
        self.requests.notified().await;
    }

    /// An interrupt was asked for.
    pub fn request(&self) {
        self.requests.notify_waiters();
        match &mut *self.activity() {
            Activity::Idle => {}
            Activity::Compiling { rustc, stopped } => {
                *stopped = true;
                // It has ended by itself if it cannot be killed.
                let _ = rustc.kill();
            }
            Activity::Running { pid, cell, requests } => {
                *requests += 1;
                if *requests > 1 {
                    signal(*pid, libc::SIGKILL);
                    return;
                }
                signal(*pid, libc::SIGINT);
                let (pid, cell, interrupts) = (*pid, *cell, self.clone());
                std::thread::spawn(move || {
                    std::thread::sleep(grace());
                    // Held while signalling: the cell cannot end, nor its process be replaced.
                    let activity = interrupts.activity();
                    if matches!(&*activity, Activity::Running { cell: now, .. } if *now == cell) {
                        signal(pid, libc::SIGKILL);
                    }
                });
            }
        }
    }
}

/// The time between an interrupt and the end of a cell that does not look.
pub fn grace() -> Duration {
    std::env::var(GRACE_VARIABLE)
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds.parse().ok()?).ok())
        .unwrap_or(GRACE)
}

fn signal(pid: i32, signal: i32) {
    // SAFETY: `pid` is a child of this process that has not been waited for, so the number cannot
    // belong to another process.
    unsafe {
        libc::kill(pid, signal);
    }
}
