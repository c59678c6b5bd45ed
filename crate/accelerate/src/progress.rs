//! A progress bar around any iterator, as tqdm has it.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use candle_core::{DType, Tensor};

use crate::interrupt;
use crate::notebook::{Content, Display, Frontend, display};

/// The bar is drawn at most this often, so that it costs nothing that can be measured.
const INTERVAL: Duration = Duration::from_millis(250);

/// Where nothing can be drawn over, a line is printed at most this often.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// The width of the bar in characters.
const WIDTH: usize = 20;

/// The loss that the bar shows: the last one that `backward` has seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastLoss(Arc<Mutex<Option<Tensor>>>);

impl LastLoss {
    /// Remembers `loss`. Its value is not read before it is shown, which on a GPU would wait.
    pub(crate) fn set(&self, loss: &Tensor) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(loss.detach());
    }

    fn value(&self) -> Option<f32> {
        let loss = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        loss.to_dtype(DType::F32).and_then(|loss| loss.to_scalar()).ok()
    }
}

/// An iterator with a progress bar: [`Accelerator::progress`](crate::Accelerator::progress).
///
/// The bar shows how far the loop is, its rate, the time left, and the loss that was last given to
/// `backward`. In the project's kernel and in a terminal it is drawn in place, at most four times a
/// second; elsewhere it is a line now and then. An interrupt ends the loop at the next item.
///
/// ```
/// use candle_accelerate::Accelerator;
///
/// let accelerator = Accelerator::new()?;
/// let sum: u32 = accelerator.progress(1..=4u32).sum();
/// assert_eq!(sum, 10);
/// # Ok::<(), candle_accelerate::Error>(())
/// ```
#[derive(Debug)]
pub struct Progress<I> {
    items: I,
    bar: Bar,
}

impl<I: Iterator> Progress<I> {
    pub(crate) fn new(items: I, loss: LastLoss) -> Self {
        let total = match items.size_hint() {
            (low, Some(high)) if low == high => Some(high),
            _ => None,
        };
        Self { items, bar: Bar::new(total, loss, Frontend::current()) }
    }
}

impl<I: Iterator> Iterator for Progress<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        let item = self.items.next();
        match item {
            None => {
                self.bar.finish("");
                None
            }
            // A data loader has noticed the interrupt itself and says so in its batch.
            Some(_) if interrupt::take() => {
                self.bar.finish(", interrupted");
                None
            }
            Some(item) => {
                self.bar.advance();
                Some(item)
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.items.size_hint()
    }
}

impl<I: ExactSizeIterator> ExactSizeIterator for Progress<I> {}

#[derive(Debug)]
struct Bar {
    total: Option<usize>,
    /// Items handed out; the last of them is still being worked on.
    started: usize,
    begin: Instant,
    drawn: Option<Instant>,
    finished: bool,
    loss: LastLoss,
    frontend: Frontend,
    display: Option<Display>,
}

impl Bar {
    fn new(total: Option<usize>, loss: LastLoss, frontend: Frontend) -> Self {
        Self {
            total,
            started: 0,
            begin: Instant::now(),
            drawn: None,
            finished: false,
            loss,
            frontend,
            display: None,
        }
    }

    fn advance(&mut self) {
        self.started += 1;
        let interval = match self.frontend {
            Frontend::Live | Frontend::Terminal => INTERVAL,
            Frontend::Evcxr | Frontend::Plain => LINE_INTERVAL,
        };
        let is_due = match self.drawn {
            Some(drawn) => drawn.elapsed() >= interval,
            // Short loops need no line before the last.
            None => matches!(self.frontend, Frontend::Live | Frontend::Terminal),
        };
        if is_due {
            let text = self.text(self.started.saturating_sub(1), "");
            self.draw(&text, false);
        } else if self.drawn.is_none() {
            self.drawn = Some(self.begin);
        }
    }

    fn finish(&mut self, remark: &str) {
        if !self.finished {
            self.finished = true;
            let done =
                if remark.is_empty() { self.started } else { self.started.saturating_sub(1) };
            let text = self.text(done, remark);
            self.draw(&text, true);
        }
    }

    fn draw(&mut self, text: &str, is_last: bool) {
        self.drawn = Some(Instant::now());
        // A bar that cannot be drawn must not stop the training.
        match (self.frontend, &self.display) {
            (Frontend::Live, Some(shown)) => drop(shown.update(&Content::plain(text))),
            (Frontend::Live, None) => self.display = display(&Content::plain(text)).ok(),
            (Frontend::Terminal, _) => {
                let end = if is_last { "\n" } else { "" };
                let mut out = io::stderr().lock();
                drop(write!(out, "\r\x1b[K{text}{end}").and_then(|()| out.flush()));
            }
            (Frontend::Evcxr | Frontend::Plain, _) => println!("{text}"),
        }
    }

    fn text(&self, done: usize, remark: &str) -> String {
        describe(done, self.total, self.begin.elapsed(), self.loss.value(), remark)
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        // A loop that was left early, by `break` or by an error.
        self.finish(", stopped");
    }
}

fn describe(
    done: usize,
    total: Option<usize>,
    elapsed: Duration,
    loss: Option<f32>,
    remark: &str,
) -> String {
    let seconds = elapsed.as_secs_f64();
    let rate = if seconds > 0.0 { done as f64 / seconds } else { 0.0 };
    let mut text = match total {
        Some(total) if total > 0 => {
            let filled = (done.min(total) * WIDTH) / total;
            format!(
                "{:3} % {}{} {done}/{total}",
                done.min(total) * 100 / total,
                "█".repeat(filled),
                "░".repeat(WIDTH - filled)
            )
        }
        _ => format!("{done}"),
    };
    text.push_str(&format!(", {}", clock(seconds)));
    let left = total.map_or(0, |total| total.saturating_sub(done));
    if left > 0 && rate > 0.0 && remark.is_empty() {
        text.push_str(&format!(", {} left", clock(left as f64 / rate)));
    }
    if rate >= 1.0 || rate == 0.0 {
        text.push_str(&format!(", {rate:.1} it/s"));
    } else {
        text.push_str(&format!(", {:.1} s/it", 1.0 / rate));
    }
    if let Some(loss) = loss {
        text.push_str(&format!(", loss {loss:.4}"));
    }
    text + remark
}

fn clock(seconds: f64) -> String {
    let whole = seconds as u64;
    match whole {
        0..60 => format!("{seconds:.1} s"),
        60..3600 => format!("{}:{:02} min", whole / 60, whole % 60),
        _ => format!("{}:{:02} h", whole / 3600, whole % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_says_how_far_how_fast_and_how_long() {
        assert_eq!(
            describe(5, Some(20), Duration::from_secs(2), Some(0.25), ""),
            " 25 % █████░░░░░░░░░░░░░░░ 5/20, 2.0 s, 6.0 s left, 2.5 it/s, loss 0.2500"
        );
        assert_eq!(
            describe(20, Some(20), Duration::from_secs(90), None, ""),
            "100 % ████████████████████ 20/20, 1:30 min, 4.5 s/it"
        );
        assert_eq!(
            describe(3, None, Duration::from_secs(1), None, ", stopped"),
            "3, 1.0 s, 3.0 it/s, stopped"
        );
    }

    #[test]
    fn every_item_passes_and_the_length_is_known() {
        let progress = Progress::new([1, 2, 3].into_iter(), LastLoss::default());
        assert_eq!(progress.len(), 3);
        assert_eq!(progress.collect::<Vec<_>>(), [1, 2, 3]);
    }
}
