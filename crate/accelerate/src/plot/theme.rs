//! Colours and dash patterns.

/// The colours of a chart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// A transparent background, and colours that can be read on white and on near-black.
    ///
    /// Text has a contrast of at least 4:1 and lines one of at least 3:1 on both.
    #[default]
    Auto,
    /// Dark on white.
    Light,
    /// Light on near-black.
    Dark,
}

/// Okabe and Ito's colour-blind-safe palette (2008): the colours of middle lightness.
const MIDDLE: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#b8629a", "#8a7000", "#6f7f8f"];

/// The same hues, lighter, for dark backgrounds.
const BRIGHT: [&str; 6] = ["#56b4e9", "#f5a04a", "#3fd0a4", "#e3a0c8", "#e6d45a", "#b4c0cc"];

/// Dashes and gaps in pixels; the first is solid.
const DASHES: [&str; 6] = ["", "9 6", "2 5", "12 4 2 4", "5 3", "1 3"];

impl Theme {
    pub(super) fn background(self) -> Option<&'static str> {
        match self {
            Self::Auto => None,
            Self::Light => Some("#ffffff"),
            Self::Dark => Some("#111111"),
        }
    }

    /// The colour of text, axes and (thinned out) the grid, as red, green and blue.
    pub(super) fn ink(self) -> [u8; 3] {
        match self {
            Self::Auto => [0x75; 3],
            Self::Light => [0x22; 3],
            Self::Dark => [0xdd; 3],
        }
    }

    pub(super) fn color(self, series: usize) -> &'static str {
        let palette = if self == Self::Dark { BRIGHT } else { MIDDLE };
        palette[series % palette.len()]
    }

    /// How the line of a series is drawn, as SVG attributes.
    ///
    /// The first of several lines is broad, the others are thin and dashed: all of them
    /// can be seen where they coincide.
    pub(super) fn stroke(self, series: usize, count: usize) -> String {
        let color = self.color(series);
        let (width, opacity) = match (series, count) {
            (_, 1) => (2, "1"),
            (0, _) => (6, "0.8"),
            _ => (2, "1"),
        };
        let dash = match DASHES[series % DASHES.len()] {
            "" => String::new(),
            dash => format!(" stroke-dasharray=\"{dash}\""),
        };
        format!("stroke=\"{color}\" stroke-width=\"{width}\" stroke-opacity=\"{opacity}\"{dash}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The contrast ratio of WCAG 2.2.
    fn contrast(a: [u8; 3], b: [u8; 3]) -> f64 {
        let luminance = |rgb: [u8; 3]| {
            let linear = rgb.map(|part| {
                let part = f64::from(part) / 255.0;
                if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
            });
            0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
        };
        let (a, b) = (luminance(a) + 0.05, luminance(b) + 0.05);
        a.max(b) / a.min(b)
    }

    fn rgb(hex: &str) -> [u8; 3] {
        [1, 3, 5].map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap_or_default())
    }

    #[test]
    fn colours_can_be_told_from_their_backgrounds() {
        let backgrounds = |theme: Theme| match theme.background() {
            Some(background) => vec![rgb(background)],
            None => vec![[0xff; 3], [0x11; 3]],
        };
        for theme in [Theme::Auto, Theme::Light, Theme::Dark] {
            for background in backgrounds(theme) {
                assert!(contrast(theme.ink(), background) >= 4.0, "{theme:?} text");
                for series in 0..MIDDLE.len() {
                    let contrast = contrast(rgb(theme.color(series)), background);
                    assert!(contrast >= 3.0, "{theme:?} {series}: {contrast:.2}");
                }
            }
        }
    }
}
