//! Charts that a notebook shows: lines, bars, histograms and points.
//!
//! A chart that is the last expression of a cell is shown as a figure. The default
//! [`Theme::Auto`] can be read on light and on dark pages; series differ in colour and in dash
//! pattern, so that they can be told apart without colour, and where they lie on top of each other.

mod axis;
mod bar;
mod frame;
mod histogram;
mod line;
mod live;
mod number;
mod scatter;
mod theme;
mod thin;

pub use bar::BarChart;
pub use histogram::Histogram;
pub use line::LineChart;
pub use live::LiveChart;
pub use number::Number;
pub use scatter::ScatterChart;
pub use theme::Theme;

/// What every chart can do; each has a `frame`, `draw` and `describe` of its own.
macro_rules! chart_methods {
    ($chart:ty) => {
        impl $chart {
            /// Sets the label of the horizontal axis, with the unit.
            pub fn x_label(mut self, label: impl Into<String>) -> Self {
                self.frame.x_label = label.into();
                self
            }

            /// Sets the label of the vertical axis, with the unit.
            pub fn y_label(mut self, label: impl Into<String>) -> Self {
                self.frame.y_label = label.into();
                self
            }

            /// Sets the colours; [`Theme::Auto`](crate::plot::Theme::Auto) by default.
            pub fn theme(mut self, theme: $crate::plot::Theme) -> Self {
                self.frame.theme = theme;
                self
            }

            /// Sets the size in pixels (at least 200 x 150).
            pub fn size(mut self, width: u32, height: u32) -> Self {
                self.frame.size = (width.max(200), height.max(150));
                self
            }

            /// The figure as an SVG document.
            ///
            /// # Errors
            /// There is nothing finite to draw.
            pub fn to_svg(&self) -> $crate::Result<String> {
                self.draw()
            }

            /// Writes the figure to an SVG file.
            ///
            /// # Errors
            /// There is nothing finite to draw, or the file cannot be written.
            pub fn save(&self, path: impl AsRef<std::path::Path>) -> $crate::Result<()> {
                let path = path.as_ref();
                std::fs::write(path, self.to_svg()?)
                    .map_err(|source| $crate::Error::io(path, source))
            }

            /// The figure, and a description in plain text for front ends without graphics.
            ///
            /// # Errors
            /// There is nothing finite to draw.
            pub fn content(&self) -> $crate::Result<$crate::notebook::Content> {
                let text = $crate::notebook::Content::plain(self.describe());
                Ok(text.with("image/svg+xml", self.to_svg()?))
            }

            /// Shows the figure as the value of a cell's last expression: evcxr calls this.
            pub fn evcxr_display(&self) {
                match self.content() {
                    Ok(content) => content.evcxr_display(),
                    Err(error) => {
                        $crate::notebook::Content::plain(error.to_string()).evcxr_display()
                    }
                }
            }
        }
    };
}
use chart_methods;
