//! A line chart that grows while a cell runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::LineChart;
use crate::Result;
use crate::notebook::{Display, Frontend, display};

/// The chart is drawn at most this often.
const INTERVAL: Duration = Duration::from_millis(400);

/// Drawing takes at most one part in this many of the time.
const SHARE: u32 = 120;

/// A [`LineChart`] that is drawn anew while the loop that feeds it runs.
///
/// It is drawn at most a few times a second, and so that drawing costs less than 1 % of the time.
/// Where nothing can be drawn over (a stock evcxr kernel, a terminal), only
/// [`finish`](Self::finish) shows it. Clones are handles to the same chart.
///
/// ```
/// use candle_accelerate::plot::LiveChart;
///
/// let chart = LiveChart::new("Loss").x_label("step").y_label("cross-entropy (nats)");
/// for loss in [0.7, 0.5, 0.4] {
///     chart.push("loss", loss)?;
/// }
/// chart.finish()?;
/// # Ok::<(), candle_accelerate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct LiveChart(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// Title, labels and theme, without series.
    blank: LineChart,
    series: Vec<(String, Vec<(f64, f64)>)>,
    display: Option<Display>,
    next_drawing: Instant,
    is_drawn: bool,
}

impl LiveChart {
    /// An empty chart with this title.
    pub fn new(title: impl Into<String>) -> Self {
        Self(Arc::new(Mutex::new(State {
            blank: LineChart::new(title),
            series: Vec::new(),
            display: None,
            next_drawing: Instant::now(),
            is_drawn: false,
        })))
    }

    /// Sets the label of the horizontal axis, with the unit.
    pub fn x_label(self, label: impl Into<String>) -> Self {
        self.change(|chart| chart.x_label(label))
    }

    /// Sets the label of the vertical axis, with the unit.
    pub fn y_label(self, label: impl Into<String>) -> Self {
        self.change(|chart| chart.y_label(label))
    }

    /// Draws the vertical axis logarithmically.
    pub fn log_y(self, log_y: bool) -> Self {
        self.change(|chart| chart.log_y(log_y))
    }

    /// Adds the next value of a series, at 0, 1, 2, … of the horizontal axis.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn push(&self, series: &str, value: impl super::Number) -> Result<()> {
        let x = self.lock().values(series).len();
        self.push_at(series, x as f64, value)
    }

    /// Adds a point of a series.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn push_at(&self, series: &str, x: f64, value: impl super::Number) -> Result<()> {
        let mut state = self.lock();
        state.values(series).push((x, value.to_f64()));
        state.is_drawn = false;
        if Frontend::current() == Frontend::Live && Instant::now() >= state.next_drawing {
            state.draw()?;
        }
        Ok(())
    }

    /// Draws the chart with all of its points.
    ///
    /// # Errors
    /// There is nothing finite to draw, or the output cannot be written.
    pub fn finish(&self) -> Result<()> {
        let mut state = self.lock();
        if state.is_drawn { Ok(()) } else { state.draw() }
    }

    /// The chart as it is now.
    pub fn chart(&self) -> LineChart {
        self.lock().chart()
    }

    fn change(self, change: impl FnOnce(LineChart) -> LineChart) -> Self {
        let mut state = self.lock();
        state.blank = change(state.blank.clone());
        drop(state);
        self
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn values(&mut self, series: &str) -> &mut Vec<(f64, f64)> {
        let found = self.series.iter().position(|(name, _)| name == series);
        let index = found.unwrap_or_else(|| {
            self.series.push((series.to_owned(), Vec::new()));
            self.series.len() - 1
        });
        &mut self.series[index].1
    }

    fn chart(&self) -> LineChart {
        self.series.iter().fold(self.blank.clone(), |chart, (name, points)| {
            chart.xy_series(name, points.iter().copied())
        })
    }

    fn draw(&mut self) -> Result<()> {
        let start = Instant::now();
        let content = self.chart().content()?;
        match &self.display {
            Some(shown) => shown.update(&content)?,
            None => self.display = Some(display(&content)?),
        }
        self.is_drawn = true;
        self.next_drawing = Instant::now() + INTERVAL.max(start.elapsed() * SHARE);
        Ok(())
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // A loop that an error has left still shows what it had measured.
        if !self.is_drawn && self.display.is_some() {
            // Nobody is left who could be told.
            let _ = self.draw();
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn points_are_collected_per_series() {
        let live = LiveChart::new("Loss").x_label("step");
        live.push("train", 2.0).unwrap();
        live.push("train", 1.0).unwrap();
        live.clone().push_at("test", 1.0, 1.5).unwrap();
        let expected = LineChart::new("Loss")
            .x_label("step")
            .xy_series("train", [(0.0, 2.0), (1.0, 1.0)])
            .xy_series("test", [(1.0, 1.5)]);
        assert_eq!(live.chart().to_svg().unwrap(), expected.to_svg().unwrap());
    }
}
