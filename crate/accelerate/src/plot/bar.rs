//! Bar charts.

use std::fmt::Write as _;

use super::axis::is_drawable;
use super::frame::{DEFAULT_SIZE, Frame, LegendEntry, TEXT_SIZE, escape, fill_sample, range};
use super::{Number, chart_methods, number};
use crate::Result;

/// Height of a bar, and of the gap between two categories, in pixels.
const BAR: f64 = 22.0;
const GAP: f64 = 12.0;

/// Horizontal bars with their values, one or several for each category.
///
/// The height follows the number of bars, unless `size` sets it.
///
/// ```
/// use candle_accelerate::plot::BarChart;
///
/// let chart = BarChart::new("Time for one training step")
///     .x_label("time (ms)")
///     .bar("one thread", 31.5)
///     .bar("two threads", 17.2);
/// assert!(chart.to_svg()?.contains("17.2"));
///
/// let chart = BarChart::new("Matrix product")
///     .x_label("time (ms)")
///     .categories(["256 x 256", "512 x 512"])
///     .series("CPU", [1.2, 8.9])
///     .series("GPU", [0.3, 0.5]);
/// # Ok::<(), candle_accelerate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct BarChart {
    frame: Frame,
    categories: Vec<String>,
    series: Vec<Series>,
}

#[derive(Clone, Debug)]
struct Series {
    name: String,
    values: Vec<f64>,
}

chart_methods!(BarChart);

impl BarChart {
    /// An empty chart with this title.
    pub fn new(title: impl Into<String>) -> Self {
        Self { frame: Frame::new(title), categories: Vec::new(), series: Vec::new() }
    }

    /// Adds one bar of a chart with one bar for each category.
    pub fn bar(mut self, label: impl Into<String>, value: impl Number) -> Self {
        self.categories.push(label.into());
        if self.series.is_empty() {
            self.series.push(Series { name: String::new(), values: Vec::new() });
        }
        self.series[0].values.push(value.to_f64());
        self
    }

    /// Sets the categories of a chart with several bars for each.
    pub fn categories(mut self, labels: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.categories = labels.into_iter().map(Into::into).collect();
        self
    }

    /// Adds one bar to each category. A missing value leaves its place empty.
    pub fn series(
        mut self,
        name: impl Into<String>,
        values: impl IntoIterator<Item = impl Number>,
    ) -> Self {
        let values = values.into_iter().map(|value| value.to_f64()).collect();
        self.series.push(Series { name: name.into(), values });
        self
    }

    fn draw(&self) -> Result<String> {
        let values = || self.series.iter().flat_map(|series| series.values.iter().copied());
        let Some(x) = range(values().chain([0.0]), 0.0).filter(|_| values().any(is_drawable))
        else {
            return Err(self.frame.nothing_to_draw());
        };
        // Room for the number at the end of the longest bar.
        let room = 0.12 * (x.end - x.start);
        let x = if x.start < 0.0 { x.start - room } else { 0.0 }..x.end.max(0.0) + room;
        let count = self.categories.len();
        let mut frame = self.frame.clone();
        // The first category is on top.
        frame.categories = Some(self.categories.iter().rev().cloned().collect());
        if frame.size == DEFAULT_SIZE {
            let bars = count as f64 * (self.series.len() as f64 * BAR + GAP);
            frame.size.1 = (bars + 130.0).max(180.0) as u32;
        }
        let fill = |index: usize| format!("fill=\"{}\"", frame.theme.color(index));
        let legend: Vec<_> = self
            .series
            .iter()
            .enumerate()
            .map(|(index, series)| LegendEntry {
                name: series.name.clone(),
                sample: fill_sample(&fill(index)),
            })
            .collect();
        frame.draw(x, 0.0..count as f64, &legend, |mapping| {
            let mut svg = String::new();
            let slot = (mapping.bottom - mapping.top) / count as f64;
            let height = (slot - GAP).max(slot * 0.5) / self.series.len() as f64;
            for (index, series) in self.series.iter().enumerate() {
                let values = series.values.iter().zip(&self.categories).enumerate();
                for (row, (value, category)) in
                    values.filter(|(_, (value, _))| is_drawable(**value))
                {
                    let middle = mapping.top + (row as f64 + 0.5) * slot;
                    let offset = index as f64 - self.series.len() as f64 / 2.0;
                    let top = middle + offset * height;
                    let (zero, end) = (mapping.x(0.0), mapping.x(*value));
                    let _ = writeln!(
                        svg,
                        "<rect x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
                         {}><title>{}</title></rect>",
                        zero.min(end),
                        (end - zero).abs(),
                        height - 2.0,
                        fill(index),
                        escape(category)
                    );
                    let (x, anchor) =
                        if *value < 0.0 { (end - 5.0, "end") } else { (end + 5.0, "start") };
                    let y = top + height / 2.0 - 1.0 + TEXT_SIZE * 0.36;
                    svg += &frame.text(x, y, anchor, &number::format(*value, 4));
                }
            }
            svg
        })
    }

    fn describe(&self) -> String {
        let mut text = format!("Bar chart: {}", self.frame.title);
        for (row, category) in self.categories.iter().enumerate() {
            let _ = write!(text, "\n  {category}:");
            for series in &self.series {
                let Some(value) = series.values.get(row) else { continue };
                let name = if series.name.is_empty() { "" } else { " " };
                let _ = write!(text, "{name}{} {}", series.name, number::format(*value, 4));
            }
        }
        text
    }
}
