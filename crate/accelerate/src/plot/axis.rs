//! An axis: its range, its scale and its ticks.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use super::number;

/// Differences of larger values are not finite.
const LARGEST: f64 = 1e300;

/// Whether a value has a place on an axis.
pub(super) fn is_drawable(value: f64) -> bool {
    value.abs() < LARGEST
}

/// A linear or logarithmic axis. It brings its own ticks, since those of plotters assume that
/// neither values nor their differences are tiny.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    range: Range<f64>,
    log: bool,
}

impl Axis {
    pub(super) fn linear(range: Range<f64>) -> Self {
        Self { range, log: false }
    }

    /// `range` is above 0.
    pub(super) fn log(range: Range<f64>) -> Self {
        Self { range, log: true }
    }

    /// Where a value is: 0 at the start of the axis, 1 at its end.
    pub(super) fn share(&self, value: f64) -> f64 {
        let scale = |value: f64| if self.log { value.log10() } else { value };
        let (start, end) = (scale(self.range.start), scale(self.range.end));
        (scale(value) - start) / (end - start)
    }

    /// Round numbers on the axis: at most `max`, but where there are any, room for two.
    pub(super) fn ticks(&self, max: usize) -> Vec<f64> {
        if max == 0 {
            return Vec::new();
        }
        let Range { start, end } = self.range;
        let max = max.max(2);
        if !self.log {
            return multiples(start, end, max);
        }
        let (low, high) = (start.log10().ceil(), end.log10().floor());
        if high - low >= 2.0 {
            return multiples(low, high, max)
                .into_iter()
                .filter(|exponent| exponent.fract() == 0.0)
                .map(|exponent| 10f64.powf(exponent))
                .collect();
        }
        let within = |factors: &[f64]| -> Vec<f64> {
            let decades = [low - 1.0, low, low + 1.0, low + 2.0].map(|e| 10f64.powf(e));
            let ticks = decades.iter().flat_map(|decade| factors.iter().map(move |f| decade * f));
            ticks.filter(|tick| (start..=end).contains(tick)).collect()
        };
        let ticks = within(&[1.0, 2.0, 5.0]);
        if (2..=max).contains(&ticks.len()) { ticks } else { multiples(start, end, max) }
    }

    pub(super) fn label(value: f64) -> String {
        number::format(value, 4)
    }
}

/// The multiples of 1, 2 or 5 times a power of ten from `start` to `end`, at most `max`.
fn multiples(start: f64, end: f64, max: usize) -> Vec<f64> {
    let power = 10f64.powf(((end - start) / max as f64).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0, 20.0].map(|factor| factor * power);
    let count = |step: f64| (end / step).floor() - (start / step).ceil() + 1.0;
    let Some(step) = steps.into_iter().find(|step| count(*step) <= max as f64) else {
        return vec![start, end];
    };
    let first = (start / step).ceil();
    (0..max).map(|index| (first + index as f64) * step).take_while(|tick| *tick <= end).collect()
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let length = f64::from(limit.1 - limit.0);
        limit.0 + (self.share(*value) * length).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        self.ticks(hint.max_num_points())
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Axis {
    fn format(value: &f64) -> String {
        Self::label(*value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, max: usize) -> Vec<String> {
        axis.ticks(max).into_iter().map(Axis::label).collect()
    }

    #[test]
    fn ticks_are_round_and_not_too_many() {
        assert_eq!(labels(&Axis::linear(0.0..1.0), 6), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(labels(&Axis::linear(-3.0..13.0), 4), ["0", "5", "10"]);
        assert_eq!(
            labels(&Axis::linear(0.0..5e-5), 6),
            ["0", "1e-5", "2e-5", "3e-5", "4e-5", "5e-5"]
        );
        assert_eq!(labels(&Axis::log(0.02..310.0), 8), ["0.1", "1", "10", "100"]);
        assert_eq!(labels(&Axis::log(0.3..4.0), 8), ["0.5", "1", "2"]);
        assert_eq!(labels(&Axis::log(1e-12..1e12), 5), ["1e-10", "1e-5", "1", "100000", "1e10"]);
    }

    #[test]
    fn ticks_end_for_every_range() {
        for start in [-1e299, -1.0, -1e-300, 0.0, 1e-300, 1.0, 1e16, 1e299] {
            for width in [1e-300, 1e-16, 1.0, 1e16, 1e299] {
                for max in [0, 1, 5, 50] {
                    let axis = Axis::linear(start..start + width);
                    assert!(axis.ticks(max).len() <= max.max(2));
                }
            }
        }
    }
}
