//! Title, legend and axes around a chart's marks.

use std::fmt::Write as _;
use std::ops::Range;

use plotters::prelude::*;

use super::Theme;
use super::axis::{Axis, is_drawable};
use crate::{Error, Result};

/// Font sizes in pixels.
const TITLE_SIZE: f64 = 16.0;
pub(super) const TEXT_SIZE: f64 = 13.0;

/// plotters' SVG backend divides font sizes by this.
const PLOTTERS_FONT_SCALE: f64 = 1.24;

/// Width and height in pixels.
pub(super) const DEFAULT_SIZE: (u32, u32) = (720, 400);

const MARGIN: f64 = 12.0;
const LEGEND_ROW: f64 = 20.0;
const LEGEND_SAMPLE: f64 = 30.0;

/// What charts have in common.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) title: String,
    pub(super) x_label: String,
    pub(super) y_label: String,
    pub(super) size: (u32, u32),
    pub(super) theme: Theme,
    pub(super) log_y: bool,
    /// The names on the vertical axis, where it has no numbers.
    pub(super) categories: Option<Vec<String>>,
}

/// A series' name, and the SVG elements that show what it looks like. They are drawn around
/// (0, 0), in a space of [`LEGEND_SAMPLE`] by [`LEGEND_ROW`].
pub(super) struct LegendEntry {
    pub(super) name: String,
    pub(super) sample: String,
}

/// Where data is on the page.
#[derive(Clone, Debug)]
pub(super) struct Mapping {
    x: Axis,
    y: Axis,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Mapping {
    pub(super) fn x(&self, x: f64) -> f64 {
        self.left + self.x.share(x) * (self.right - self.left)
    }

    pub(super) fn y(&self, y: f64) -> f64 {
        self.bottom - self.y.share(y) * (self.bottom - self.top)
    }
}

impl Frame {
    pub(super) fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            x_label: String::new(),
            y_label: String::new(),
            size: DEFAULT_SIZE,
            theme: Theme::Auto,
            log_y: false,
            categories: None,
        }
    }

    /// The error of a chart without finite data.
    pub(super) fn nothing_to_draw(&self) -> Error {
        let what = if self.log_y { "finite values above 0" } else { "finite values" };
        Error::invalid(format!("chart '{}'", self.title), format!("has no {what} to draw"))
    }

    /// Draws the frame around the marks that `marks` makes.
    pub(super) fn draw(
        &self,
        x: Range<f64>,
        y: Range<f64>,
        legend: &[LegendEntry],
        marks: impl FnOnce(&Mapping) -> String,
    ) -> Result<String> {
        let x = Axis::linear(x);
        let y = if self.log_y { Axis::log(y) } else { Axis::linear(y) };
        let y_ticks = (f64::from(self.size.1) / 50.0).clamp(2.0, 10.0) as usize;
        let [red, green, blue] = self.theme.ink();
        let ink = RGBColor(red, green, blue);
        let font = |size: f64| ("sans-serif", size * PLOTTERS_FONT_SCALE).into_font().color(&ink);
        let (legend, legend_height) = self.legend(legend);
        let head = if self.title.is_empty() { MARGIN } else { MARGIN + 26.0 } + legend_height;

        let names = match &self.categories {
            Some(names) => names.clone(),
            None => y.ticks(y_ticks).into_iter().map(Axis::label).collect(),
        };
        let tick_width = names.iter().map(|name| text_width(name)).fold(20.0, f64::max);
        let has_y_label = !self.y_label.is_empty();
        let y_area = tick_width + if has_y_label { 38.0 } else { 14.0 };
        let x_area = if self.x_label.is_empty() { 28.0 } else { 50.0 };

        let mut svg = String::new();
        let mapping = {
            let root = SVGBackend::with_string(&mut svg, self.size).into_drawing_area();
            let mut chart = ChartBuilder::on(&root)
                .margin_top(head)
                .margin_bottom(4)
                .margin_left(6)
                .margin_right(MARGIN + 12.0)
                .x_label_area_size(x_area)
                .y_label_area_size(y_area.min(f64::from(self.size.0) / 2.0))
                .build_cartesian_2d(x.clone(), y.clone())
                .map_err(|error| drawing_error(&error))?;
            let width = f64::from(self.size.0) - y_area;
            let mut mesh = chart.configure_mesh();
            mesh.x_labels((width / 80.0).clamp(2.0, 12.0) as usize)
                .y_labels(y_ticks)
                .label_style(font(TEXT_SIZE))
                .axis_desc_style(font(TEXT_SIZE))
                .axis_style(ink.mix(0.8))
                .bold_line_style(ink.mix(0.25))
                .light_line_style(ink.mix(0.0))
                .x_desc(&self.x_label)
                .y_desc(&self.y_label);
            if self.categories.is_some() {
                mesh.disable_y_mesh().y_labels(0);
            }
            mesh.draw().map_err(|error| drawing_error(&error))?;
            let (columns, rows) = chart.plotting_area().get_pixel_range();
            root.present().map_err(|error| drawing_error(&error))?;
            Mapping {
                x,
                y,
                left: f64::from(columns.start),
                right: f64::from(columns.end),
                top: f64::from(rows.start),
                bottom: f64::from(rows.end),
            }
        };
        let mut overlay = legend;
        if let Some(names) = &self.categories {
            for (index, name) in names.iter().enumerate() {
                let y = mapping.y(index as f64 + 0.5);
                overlay += &self.text(mapping.left - 8.0, y + 4.5, "end", name);
            }
        }
        overlay += &marks(&mapping);
        Ok(self.assemble(&svg, &overlay))
    }

    /// Puts the parts that plotters does not draw into its document.
    fn assemble(&self, svg: &str, overlay: &str) -> String {
        let (width, height) = self.size;
        let mut extra = String::new();
        if let Some(background) = self.theme.background() {
            let _ = writeln!(
                extra,
                "<rect width=\"{width}\" height=\"{height}\" fill=\"{background}\"/>"
            );
        }
        if !self.title.is_empty() {
            let [red, green, blue] = self.theme.ink();
            let _ = writeln!(
                extra,
                "<text x=\"{}\" y=\"26\" text-anchor=\"middle\" font-family=\"sans-serif\" \
                 font-size=\"{TITLE_SIZE}\" font-weight=\"bold\" \
                 fill=\"rgb({red},{green},{blue})\">{}</text>",
                f64::from(width) / 2.0,
                escape(&self.title)
            );
        }
        let open = format!("<svg role=\"img\" aria-label=\"{}\" ", escape(&self.title));
        let svg = svg.replacen("<svg ", &open, 1).replacen(">\n", &format!(">\n{extra}"), 1);
        match svg.rfind("</svg>") {
            Some(end) => format!("{}{overlay}{}", &svg[..end], &svg[end..]),
            None => svg,
        }
    }

    /// The legend's elements and height: rows below the title, so that it never covers data.
    fn legend(&self, entries: &[LegendEntry]) -> (String, f64) {
        let entries: Vec<_> = entries.iter().filter(|entry| !entry.name.is_empty()).collect();
        if entries.is_empty() {
            return (String::new(), 0.0);
        }
        let room = f64::from(self.size.0) - 2.0 * MARGIN;
        let width = |entry: &LegendEntry| LEGEND_SAMPLE + 8.0 + text_width(&entry.name) + 22.0;
        let mut rows: Vec<(Vec<&LegendEntry>, f64)> = Vec::new();
        for entry in entries {
            match rows.last_mut() {
                Some((row, used)) if *used + width(entry) <= room => {
                    row.push(entry);
                    *used += width(entry);
                }
                _ => rows.push((vec![entry], width(entry))),
            }
        }
        let top = if self.title.is_empty() { MARGIN } else { MARGIN + 26.0 };
        let mut svg = String::new();
        for (index, (row, used)) in rows.iter().enumerate() {
            let y = top + (index as f64 + 0.5) * LEGEND_ROW;
            let mut x = MARGIN + (room - used).max(0.0) / 2.0;
            for entry in row {
                let _ =
                    writeln!(svg, "<g transform=\"translate({x:.1} {y:.1})\">{}</g>", entry.sample);
                svg += &self.text(x + LEGEND_SAMPLE + 8.0, y + 4.5, "start", &entry.name);
                x += width(entry);
            }
        }
        (svg, rows.len() as f64 * LEGEND_ROW + 4.0)
    }

    pub(super) fn text(&self, x: f64, y: f64, anchor: &str, text: &str) -> String {
        let [red, green, blue] = self.theme.ink();
        format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-family=\"sans-serif\" \
             font-size=\"{TEXT_SIZE}\" fill=\"rgb({red},{green},{blue})\">{}</text>\n",
            escape(text)
        )
    }
}

/// The legend sample of a line.
pub(super) fn line_sample(stroke: &str) -> String {
    format!("<line x1=\"0\" y1=\"0\" x2=\"{LEGEND_SAMPLE}\" y2=\"0\" {stroke}/>")
}

/// The legend sample of a filled area.
pub(super) fn fill_sample(fill: &str) -> String {
    format!("<rect x=\"8\" y=\"-6\" width=\"{}\" height=\"12\" {fill}/>", LEGEND_SAMPLE - 8.0)
}

/// The middle of a legend sample.
pub(super) const SAMPLE_CENTER: f64 = LEGEND_SAMPLE - 10.0;

/// The smallest range with room that holds all values; `None` if there is none.
pub(super) fn range(values: impl Iterator<Item = f64>, room: f64) -> Option<Range<f64>> {
    let (low, high) = values
        .filter(|value| is_drawable(*value))
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
    if low > high {
        return None;
    }
    let difference = high - low;
    if difference <= low.abs().max(high.abs()) * 1e-12 {
        let room = if low == 0.0 { 1.0 } else { low.abs() * 0.1 };
        return Some(low - room..high + room);
    }
    Some(low - difference * room..high + difference * room)
}

/// About how wide a text is, in pixels.
fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * TEXT_SIZE * 0.6
}

pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for char in text.chars() {
        match char {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            // Not allowed in XML.
            char if char.is_control() => escaped.push(' '),
            char => escaped.push(char),
        }
    }
    escaped
}

fn drawing_error(error: &dyn std::fmt::Display) -> Error {
    Error::invalid("chart", format!("cannot be drawn: {error}"))
}
