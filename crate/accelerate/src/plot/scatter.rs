//! Points.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::axis::is_drawable;
use super::frame::{Frame, LegendEntry, SAMPLE_CENTER, escape, range};
use super::{Number, chart_methods, number};
use crate::Result;

/// Points, such as the samples of a generator beside real ones.
///
/// Points that are not finite are left out; of several that would lie on the same pixels, one is
/// drawn.
///
/// ```
/// use candle_accelerate::plot::ScatterChart;
///
/// let chart = ScatterChart::new("Samples")
///     .series("real", [(0.0, 1.0), (1.0, 0.0)])
///     .series("generated", [(0.1, 0.8), (0.9, 0.2)]);
/// assert!(chart.to_svg()?.starts_with("<svg"));
/// # Ok::<(), candle_accelerate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ScatterChart {
    frame: Frame,
    series: Vec<Series>,
}

#[derive(Clone, Debug)]
struct Series {
    name: String,
    points: Vec<(f64, f64)>,
}

chart_methods!(ScatterChart);

impl ScatterChart {
    /// An empty chart with this title.
    pub fn new(title: impl Into<String>) -> Self {
        Self { frame: Frame::new(title), series: Vec::new() }
    }

    /// Adds points `(x, y)`.
    pub fn series(
        mut self,
        name: impl Into<String>,
        points: impl IntoIterator<Item = (impl Number, impl Number)>,
    ) -> Self {
        let points = points.into_iter().map(|(x, y)| (x.to_f64(), y.to_f64())).collect();
        self.series.push(Series { name: name.into(), points });
        self
    }

    fn draw(&self) -> Result<String> {
        let points = || {
            let points = self.series.iter().flat_map(|series| series.points.iter().copied());
            points.filter(|(x, y)| is_drawable(*x) && is_drawable(*y))
        };
        let x = range(points().map(|point| point.0), 0.05);
        let y = range(points().map(|point| point.1), 0.05);
        let (Some(x), Some(y)) = (x, y) else { return Err(self.frame.nothing_to_draw()) };
        let legend: Vec<_> = self
            .series
            .iter()
            .enumerate()
            .map(|(index, series)| LegendEntry {
                name: series.name.clone(),
                sample: format!(
                    "<g {}>{}</g>",
                    self.style(index),
                    marker(index, SAMPLE_CENTER, 0.0)
                ),
            })
            .collect();
        self.frame.draw(x, y, &legend, |mapping| {
            let mut svg = String::new();
            for (index, series) in self.series.iter().enumerate() {
                let title = escape(&series.name);
                let _ = writeln!(svg, "<g {}><title>{title}</title>", self.style(index));
                let mut taken = HashSet::new();
                for (x, y) in &series.points {
                    if !is_drawable(*x) || !is_drawable(*y) {
                        continue;
                    }
                    let (x, y) = (mapping.x(*x), mapping.y(*y));
                    if taken.insert((x.round() as i64, y.round() as i64)) {
                        let _ = writeln!(svg, "{}", marker(index, x, y));
                    }
                }
                svg.push_str("</g>\n");
            }
            svg
        })
    }

    fn style(&self, index: usize) -> String {
        let color = self.frame.theme.color(index);
        format!("fill=\"{color}\" fill-opacity=\"0.55\" stroke=\"{color}\"")
    }

    fn describe(&self) -> String {
        let mut text = format!("Points: {}", self.frame.title);
        for series in &self.series {
            let count = series.points.len() as f64;
            let mean = |part: fn(&(f64, f64)) -> f64| {
                number::format(series.points.iter().map(part).sum::<f64>() / count, 4)
            };
            let _ = write!(
                text,
                "\n  {}: {count} points around ({}, {})",
                series.name,
                mean(|point| point.0),
                mean(|point| point.1)
            );
        }
        text
    }
}

/// A shape for each series, so that colour is not needed to tell them apart.
fn marker(series: usize, x: f64, y: f64) -> String {
    match series % 4 {
        0 => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"/>"),
        1 => format!("<path d=\"M{x:.1} {y:.1}m0 -4.5l4.2 7.5h-8.4z\"/>"),
        2 => format!("<path d=\"M{x:.1} {y:.1}m-3.2 -3.2h6.4v6.4h-6.4z\"/>"),
        _ => format!("<path d=\"M{x:.1} {y:.1}m0 -4.6l4.6 4.6l-4.6 4.6l-4.6 -4.6z\"/>"),
    }
}
