//! Says in words why a cell did not run, at the place in the cell that the student wrote.

use std::collections::{BTreeMap, BTreeSet};

use crate::cell::LineStarts;
use crate::diagnostics::{Diagnostic, hide_crate_name};
use crate::generate::{Origin, Source};

/// Why a cell did not run to its end, as Jupyter's error message wants it.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The kind of error.
    pub name: String,
    /// What happened.
    pub message: String,
    /// The same with the place, for reading.
    pub traceback: Vec<String>,
}

impl Failure {
    /// A failure whose message says it all.
    pub fn new(name: &str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            name: name.to_owned(),
            traceback: message.lines().map(|line| format!("\x1b[31m{line}\x1b[0m")).collect(),
            message,
        }
    }
}

/// A generated source, the name it is compiled under, and the cells that it comes from.
#[derive(Clone, Copy)]
pub struct Explainer<'a> {
    /// The generated source.
    pub source: &'a Source,
    /// Its file name in messages.
    pub file: &'a str,
    /// The sources of all cells by number.
    pub cells: &'a BTreeMap<usize, String>,
}

impl Explainer<'_> {
    /// Explains why a cell does not compile. `unkept` are the variables that earlier cells could not
    /// keep, and why.
    pub fn compile_failure(
        &self,
        errors: &[Diagnostic],
        unkept: &BTreeMap<String, String>,
    ) -> Failure {
        let &Self { source, file, cells } = self;
        if let Some(failure) = self.unshowable(errors) {
            return failure;
        }
        let in_cell: Vec<_> =
            errors.iter().filter(|error| error.is_in_cell(source, file)).collect();
        let shown = if in_cell.is_empty() { errors.iter().collect() } else { in_cell };
        // rustc ends with a count, which has no place and says nothing.
        let shown: Vec<_> = shown
            .into_iter()
            .filter(|error| !error.spans.is_empty() || !error.message.starts_with("aborting"))
            .collect();
        let mut traceback: Vec<String> = shown
            .iter()
            .map(|error| match (error.is_in_cell(source, file), &error.rendered) {
                (false, Some(rendered)) => rendered.clone(),
                _ => error.render(source, file, cells),
            })
            .collect();
        let first = shown.first().map_or("the cell does not compile", |error| &error.message);
        let message = match shown.first().and_then(|e| e.position(source, file, cells)) {
            Some((cell, line, column)) => {
                format!("{} (In [{cell}], line {line}, column {column})", hide_crate_name(first))
            }
            None => hide_crate_name(first),
        };
        let missing = shown.iter().filter(|error| error.code() == "E0425");
        for (name, reason) in unkept {
            if missing.clone().any(|error| error.message.contains(&format!("`{name}`"))) {
                traceback.push(format!("'{name}' was not kept for later cells: it {reason}."));
            }
        }
        let name = shown.first().map_or("", |error| error.code());
        let name = if name.is_empty() { "CompileError".to_owned() } else { name.to_owned() };
        Failure { name, message, traceback }
    }

    /// Explains a panic: its message, file, line and column, as the child sends them.
    pub fn panic_failure(&self, message: &str) -> Failure {
        let &Self { source, file: own_file, cells } = self;
        let mut fields = message.splitn(4, '\u{1f}');
        let (text, file) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        let line = fields.next().and_then(|field| field.parse().ok()).unwrap_or(0);
        let column: usize = fields.next().and_then(|field| field.parse().ok()).unwrap_or(1);
        let place = (file == own_file)
            .then(|| {
                let at = LineStarts::new(source.text()).offset(line, column.saturating_sub(1));
                let found = source.in_cell(at..at + 1).map(|(cell, range)| (cell, range.start));
                // The bracket around the last expression is generated, the expression is not.
                let (cell, start) = found.or_else(|| source.next_in_cell(at))?;
                let (line, column) = LineStarts::new(cells.get(&cell)?).position(start);
                Some(format!("In [{cell}], line {line}, column {column}"))
            })
            .flatten()
            .unwrap_or_else(|| format!("{file}:{line}:{column}"));
        Failure::new("Panic", format!("{text} ({place})"))
    }

    /// Explains that the cell's last expression has no printable form.
    fn unshowable(&self, errors: &[Diagnostic]) -> Option<Failure> {
        let error = errors.iter().find(|error| {
            matches!(error.code(), "E0599" | "E0277")
                && error.origins(self.source, self.file).contains(&&Origin::Show)
        })?;
        Some(Failure::new(
            error.code(),
            format!(
                "the last value of the cell cannot be shown: {}. Add #[derive(Debug)] to its type, or \
                 end the line with ;",
                hide_crate_name(&error.message)
            ),
        ))
    }

    /// The variables that hold references into the cell, and why they cannot be kept.
    pub fn borrowers(&self, errors: &[Diagnostic]) -> BTreeMap<String, String> {
        let defined = |error: &Diagnostic| -> Vec<String> {
            let origins = error.all_origins(self.source, self.file).into_iter();
            origins
                .filter_map(|origin| match origin {
                    Origin::Define(name) => Some(name.clone()),
                    _ => None,
                })
                .collect()
        };
        let outlived = errors.iter().filter(|error| {
            matches!(error.code(), "E0597" | "E0716" | "E0521" | "E0310" | "E0373")
        });
        let mut names: BTreeSet<String> = outlived.flat_map(defined).collect();
        if names.is_empty() {
            // Keeping a value moves it, which a later use of the reference forbids.
            let moved = errors.iter().filter(|error| error.code() == "E0505");
            names.extend(moved.flat_map(defined));
        }
        let reason =
            "borrows from a value of that cell; own it instead (clone(), to_owned(), collect())";
        names.into_iter().map(|name| (name, reason.to_owned())).collect()
    }
}

/// The variables whose type cannot be written down, and why.
pub fn nameless(types: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let reason = |ty: &str| {
        if ty.contains("{closure") {
            Some(
                "is a closure, whose type has no name; box it (let f: Box<dyn Fn(i32) -> i32> = …)",
            )
        } else if ty.contains("{async") {
            Some("is a future, whose type has no name; await it in that cell, or box it")
        } else if ty.contains('{') || ty.contains("impl ") {
            Some("has a type without a name; give it one (let f: fn(i32) -> i32 = …), or box it")
        } else {
            None
        }
    };
    types.iter().filter_map(|(name, ty)| Some((name.clone(), reason(ty)?.to_owned()))).collect()
}
