//! rustc's messages, shown at the place in the cell that the student wrote.

use std::collections::BTreeMap;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde::Deserialize;

use crate::cell::LineStarts;
use crate::generate::{Origin, Source};

/// One message of the compiler.
#[derive(Clone, Debug, Deserialize)]
pub struct Diagnostic {
    /// What is wrong.
    pub message: String,
    /// `error`, `warning`, `note`, `help` …
    pub level: String,
    /// The code, such as `E0382`.
    pub code: Option<Code>,
    /// The places that it is about.
    pub spans: Vec<Place>,
    /// Notes and help.
    pub children: Vec<Diagnostic>,
    /// The message as rustc itself shows it.
    pub rendered: Option<String>,
}

/// An error code.
#[derive(Clone, Debug, Deserialize)]
pub struct Code {
    /// The code itself.
    pub code: String,
}

/// A place in a source file.
#[derive(Clone, Debug, Deserialize)]
pub struct Place {
    file_name: String,
    byte_start: usize,
    byte_end: usize,
    is_primary: bool,
    label: Option<String>,
    suggested_replacement: Option<String>,
    expansion: Option<Box<Expansion>>,
}

#[derive(Clone, Debug, Deserialize)]
struct Expansion {
    span: Place,
}

impl Place {
    /// The bytes in the generated file; for a place inside a macro, those of the macro's call.
    fn range(&self, file: &str) -> Option<Range<usize>> {
        if self.file_name == file {
            return Some(self.byte_start..self.byte_end);
        }
        self.expansion.as_ref()?.span.range(file)
    }
}

impl Diagnostic {
    /// Reads the messages that rustc wrote, one JSON object a line.
    pub fn parse_all(stderr: &str) -> Vec<Self> {
        stderr.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Whether this keeps the cell from running.
    pub fn is_error(&self) -> bool {
        self.level.starts_with("error")
    }

    /// The error code, or "".
    pub fn code(&self) -> &str {
        self.code.as_ref().map_or("", |code| code.code.as_str())
    }

    /// Where the primary places come from.
    pub fn origins<'a>(&self, source: &'a Source, file: &str) -> Vec<&'a Origin> {
        self.places(source, file, true)
    }

    /// Where all places come from.
    pub fn all_origins<'a>(&self, source: &'a Source, file: &str) -> Vec<&'a Origin> {
        self.places(source, file, false)
    }

    fn places<'a>(&self, source: &'a Source, file: &str, primary_only: bool) -> Vec<&'a Origin> {
        self.spans
            .iter()
            .filter(|span| span.is_primary || !primary_only)
            .filter_map(|span| source.origin(span.range(file)?.start))
            .collect()
    }

    /// Whether a primary place is in a cell.
    pub fn is_in_cell(&self, source: &Source, file: &str) -> bool {
        self.origins(source, file).iter().any(|origin| matches!(origin, Origin::Cell { .. }))
    }

    /// The message with the cell's own lines, numbered as in the cell.
    pub fn render(&self, source: &Source, file: &str, cells: &BTreeMap<usize, String>) -> String {
        let names: BTreeMap<usize, String> =
            cells.keys().map(|cell| (*cell, format!("In [{cell}]"))).collect();
        let title = level(&self.level).primary_title(&self.message).id(self.code());
        let mut groups = vec![Group::with_title(title)];
        let mut by_cell: BTreeMap<usize, Vec<(Range<usize>, &Place)>> = BTreeMap::new();
        for span in &self.spans {
            let place = span.range(file).and_then(|range| source.in_cell(range));
            if let Some((cell, range)) = place {
                by_cell.entry(cell).or_default().push((range, span));
            }
        }
        // The place of the error itself comes first.
        let mut by_cell: Vec<_> = by_cell.into_iter().collect();
        by_cell.sort_by_key(|(_, places)| !places.iter().any(|(_, span)| span.is_primary));
        for (cell, places) in &by_cell {
            let (Some(text), Some(name)) = (cells.get(cell), names.get(cell)) else { continue };
            let mut snippet = Snippet::source(text).path(name);
            for (range, span) in places {
                let kind =
                    if span.is_primary { AnnotationKind::Primary } else { AnnotationKind::Context };
                let annotation = kind.span(clamp(range, text));
                snippet = snippet.annotation(match span.label.as_deref().map(hide_crate_name) {
                    Some(label) => annotation.label(label),
                    None => annotation,
                });
            }
            if let Some(group) = groups.pop() {
                groups.push(group.element(snippet));
            }
        }
        for child in self.children.iter().filter(|child| !child.is_about_rustc()) {
            let Some(group) = groups.pop() else { break };
            groups.push(
                group.element(
                    level(&child.level).message(child.with_suggestion(cells, source, file)),
                ),
            );
        }
        Renderer::styled().render(&groups)
    }

    /// Whether a note speaks of rustc's own workings, which a notebook hides.
    fn is_about_rustc(&self) -> bool {
        [
            "the full name for the type has been written",
            "consider using `--verbose`",
            "the lint level is defined here",
            "`#[warn(",
        ]
        .iter()
        .any(|start| self.message.starts_with(start))
    }

    /// The first place as line and column of a cell.
    pub fn position(
        &self,
        source: &Source,
        file: &str,
        cells: &BTreeMap<usize, String>,
    ) -> Option<(usize, usize, usize)> {
        let span = self.spans.iter().find(|span| span.is_primary)?;
        let (cell, range) = source.in_cell(span.range(file)?)?;
        let (line, column) = LineStarts::new(cells.get(&cell)?).position(range.start);
        Some((cell, line, column))
    }

    /// A note's text, with the code that it suggests.
    fn with_suggestion(
        &self,
        cells: &BTreeMap<usize, String>,
        source: &Source,
        file: &str,
    ) -> String {
        let mut text = hide_crate_name(&self.message);
        for span in &self.spans {
            let Some(replacement) = &span.suggested_replacement else { continue };
            let place = span.range(file).and_then(|range| source.in_cell(range));
            let Some((cell, range)) = place else {
                // Such as an import, which rustc would put at the top of the generated source.
                text.push_str(&format!("\n{}", hide_crate_name(replacement.trim())));
                continue;
            };
            let Some(code) = cells.get(&cell) else { continue };
            let range = clamp(&range, code);
            let start = code[..range.start].rfind('\n').map_or(0, |at| at + 1);
            let end = code[range.end..].find('\n').map_or(code.len(), |at| range.end + at);
            let line =
                format!("{}{replacement}{}", &code[start..range.start], &code[range.end..end]);
            text.push_str(&format!(": {}", line.trim()));
        }
        text
    }
}

/// The dylib's name is how cells are built, not something that a student has written.
pub fn hide_crate_name(text: &str) -> String {
    text.replace("candle_accelerate_dylib::candle_", "candle_")
        .replace("candle_accelerate_dylib::", "candle_accelerate::")
}

fn clamp(range: &Range<usize>, text: &str) -> Range<usize> {
    let floor = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    floor(range.start)..floor(range.end)
}

fn level(name: &str) -> Level<'static> {
    match name {
        "warning" => Level::WARNING,
        "note" | "failure-note" => Level::NOTE,
        "help" => Level::HELP,
        _ => Level::ERROR,
    }
}
