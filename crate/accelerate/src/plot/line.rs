//! Line charts.

use std::fmt::Write as _;

use super::axis::is_drawable;
use super::frame::{Frame, LegendEntry, Mapping, escape, line_sample, range};
use super::{Number, chart_methods, number, thin::thin};
use crate::Result;

/// Curves over a common axis, such as losses over steps.
///
/// Values that are not finite (and on a logarithmic axis those that are not above 0) are gaps. Long
/// series are thinned to what can be seen, without losing peaks.
///
/// ```
/// use candle_accelerate::plot::LineChart;
///
/// let chart = LineChart::new("Training loss")
///     .x_label("step")
///     .y_label("cross-entropy (nats)")
///     .series("manual loop", [0.69, 0.52, 0.31])
///     .series("accelerated loop", [0.69, 0.52, 0.31]);
/// assert!(chart.to_svg()?.starts_with("<svg"));
/// # Ok::<(), candle_accelerate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct LineChart {
    frame: Frame,
    series: Vec<Series>,
}

#[derive(Clone, Debug)]
struct Series {
    name: String,
    points: Vec<(f64, f64)>,
}

chart_methods!(LineChart);

impl LineChart {
    /// An empty chart with this title.
    pub fn new(title: impl Into<String>) -> Self {
        Self { frame: Frame::new(title), series: Vec::new() }
    }

    /// Adds a curve of values at 0, 1, 2, …
    pub fn series(
        self,
        name: impl Into<String>,
        values: impl IntoIterator<Item = impl Number>,
    ) -> Self {
        self.xy_series(name, values.into_iter().enumerate())
    }

    /// Adds a curve of points `(x, y)`.
    pub fn xy_series(
        mut self,
        name: impl Into<String>,
        points: impl IntoIterator<Item = (impl Number, impl Number)>,
    ) -> Self {
        let points = points.into_iter().map(|(x, y)| (x.to_f64(), y.to_f64())).collect();
        self.series.push(Series { name: name.into(), points });
        self
    }

    /// Whether the vertical axis is logarithmic.
    pub fn log_y(mut self, log_y: bool) -> Self {
        self.frame.log_y = log_y;
        self
    }

    fn is_drawn(&self, (x, y): (f64, f64)) -> bool {
        is_drawable(x) && is_drawable(y) && (!self.frame.log_y || y > 0.0)
    }

    fn draw(&self) -> Result<String> {
        let drawn = || {
            let points = self.series.iter().flat_map(|series| series.points.iter().copied());
            points.filter(|point| self.is_drawn(*point))
        };
        let x = range(drawn().map(|point| point.0), 0.0);
        let y = if self.frame.log_y {
            range(drawn().map(|point| point.1.log10()), 0.05)
                .map(|y| 10f64.powf(y.start)..10f64.powf(y.end))
        } else {
            range(drawn().map(|point| point.1), 0.05)
        };
        let (Some(x), Some(y)) = (x, y) else { return Err(self.frame.nothing_to_draw()) };
        let strokes: Vec<_> = (0..self.series.len())
            .map(|index| self.frame.theme.stroke(index, self.series.len()))
            .collect();
        let legend: Vec<_> = self
            .series
            .iter()
            .zip(&strokes)
            .map(|(series, stroke)| LegendEntry {
                name: series.name.clone(),
                sample: line_sample(stroke),
            })
            .collect();
        self.frame.draw(x, y, &legend, |mapping| {
            let curves = self.series.iter().zip(&strokes).enumerate();
            curves
                .map(|(index, (series, stroke))| self.curve(index, series, stroke, mapping))
                .collect()
        })
    }

    fn curve(&self, index: usize, series: &Series, stroke: &str, mapping: &Mapping) -> String {
        let mut svg = format!("<g fill=\"none\" stroke-linejoin=\"round\" {stroke}>\n");
        let _ = writeln!(svg, "<title>{}</title>", escape(&series.name));
        let segments = series.points.chunk_by(|a, b| self.is_drawn(*a) == self.is_drawn(*b));
        for segment in segments.filter(|segment| self.is_drawn(segment[0])) {
            let points: Vec<_> =
                segment.iter().map(|(x, y)| (mapping.x(*x), mapping.y(*y))).collect();
            if let [(x, y)] = points[..] {
                let color = self.frame.theme.color(index);
                let _ = writeln!(
                    svg,
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{color}\" stroke=\"none\"/>"
                );
                continue;
            }
            svg.push_str("<polyline points=\"");
            for (x, y) in thin(&points) {
                let _ = write!(svg, "{x:.1},{y:.1} ");
            }
            svg.push_str("\"/>\n");
        }
        svg + "</g>\n"
    }

    fn describe(&self) -> String {
        let mut text = format!("Line chart: {}", self.frame.title);
        for series in &self.series {
            let drawn: Vec<_> =
                series.points.iter().filter(|point| self.is_drawn(**point)).collect();
            let (Some(first), Some(last)) = (drawn.first(), drawn.last()) else { continue };
            let _ = write!(
                text,
                "\n  {}: {} points, from {} to {}",
                series.name,
                series.points.len(),
                number::format(first.1, 4),
                number::format(last.1, 4)
            );
        }
        text
    }
}
