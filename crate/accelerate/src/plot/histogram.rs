//! Histograms.

use std::fmt::Write as _;
use std::ops::Range;

use super::axis::is_drawable;
use super::frame::{Frame, LegendEntry, escape, fill_sample, range};
use super::{Number, chart_methods, number};
use crate::Result;

/// How often values fall into each of equally wide bins.
///
/// Values that are not finite are left out. The last bin holds its upper limit too, as NumPy's.
///
/// ```
/// use candle_accelerate::plot::Histogram;
///
/// let chart = Histogram::new("Sentence lengths")
///     .x_label("tokens")
///     .y_label("sentences")
///     .bins(4)
///     .series("train", [12, 14, 15, 15, 19]);
/// assert!(chart.to_svg()?.starts_with("<svg"));
/// # Ok::<(), candle_accelerate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Histogram {
    frame: Frame,
    bins: usize,
    series: Vec<Series>,
}

#[derive(Clone, Debug)]
struct Series {
    name: String,
    values: Vec<f64>,
}

chart_methods!(Histogram);

impl Histogram {
    /// An empty histogram with this title and 20 bins.
    pub fn new(title: impl Into<String>) -> Self {
        Self { frame: Frame::new(title), bins: 20, series: Vec::new() }
    }

    /// Sets the number of bins (at least 1).
    pub fn bins(self, bins: usize) -> Self {
        Self { bins: bins.max(1), ..self }
    }

    /// Adds values to be counted.
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
        let values = self.series.iter().flat_map(|series| series.values.iter().copied());
        let Some(x) = range(values, 0.0) else { return Err(self.frame.nothing_to_draw()) };
        let counts: Vec<_> =
            self.series.iter().map(|series| count(&series.values, &x, self.bins)).collect();
        let highest = counts.iter().flatten().copied().max().unwrap_or(0).max(1) as f64;
        let opacity = if self.series.len() > 1 { 0.5 } else { 0.9 };
        let fill = |index: usize| {
            let color = self.frame.theme.color(index);
            format!("fill=\"{color}\" fill-opacity=\"{opacity}\" stroke=\"{color}\"")
        };
        let legend: Vec<_> = self
            .series
            .iter()
            .enumerate()
            .map(|(index, series)| LegendEntry {
                name: series.name.clone(),
                sample: fill_sample(&fill(index)),
            })
            .collect();
        self.frame.draw(x, 0.0..highest * 1.05, &legend, |mapping| {
            let mut svg = String::new();
            let width = (mapping.right - mapping.left) / self.bins as f64;
            for (index, (series, counts)) in self.series.iter().zip(&counts).enumerate() {
                let _ = writeln!(svg, "<g {}><title>{}</title>", fill(index), escape(&series.name));
                for (bin, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                    let (x, y) = (mapping.left + bin as f64 * width, mapping.y(*count as f64));
                    let _ = writeln!(
                        svg,
                        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
                        width - 1.0,
                        mapping.bottom - y
                    );
                }
                svg.push_str("</g>\n");
            }
            svg
        })
    }

    fn describe(&self) -> String {
        let mut text = format!("Histogram: {}", self.frame.title);
        for series in &self.series {
            let finite = || series.values.iter().copied().filter(|value| is_drawable(*value));
            let Some(x) = range(finite(), 0.0) else { continue };
            let mean = finite().sum::<f64>() / finite().count() as f64;
            let _ = write!(
                text,
                "\n  {}: {} values from {} to {}, mean {}",
                series.name,
                series.values.len(),
                number::format(x.start, 4),
                number::format(x.end, 4),
                number::format(mean, 4)
            );
        }
        text
    }
}

fn count(values: &[f64], range: &Range<f64>, bins: usize) -> Vec<usize> {
    let mut counts = vec![0; bins];
    for value in values.iter().filter(|value| is_drawable(**value)) {
        let share = (value - range.start) / (range.end - range.start);
        counts[((share * bins as f64) as usize).min(bins - 1)] += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_equal_numpys() {
        // numpy.histogram([0, 1, 1, 2.5, 4], bins=4)[0]
        assert_eq!(count(&[0.0, 1.0, 1.0, 2.5, 4.0], &(0.0..4.0), 4), [1, 2, 1, 1]);
        assert_eq!(count(&[f64::NAN, 1.0], &(0.0..4.0), 2), [1, 0]);
    }
}
