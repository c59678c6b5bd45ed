//! The Rust source that a cell is compiled as, with the way back to what the student wrote.

use std::collections::BTreeMap;
use std::ops::Range;

/// What a piece of generated source stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// Bytes of a cell, from this offset on.
    Cell {
        /// The cell's execution number.
        cell: usize,
        /// Where in the cell the piece starts.
        start: usize,
    },
    /// Taking this variable out of the store.
    Load(String),
    /// Putting this variable, which the cell only used, back into the store.
    Restore(String),
    /// Putting this variable, which the cell defined, into the store.
    Define(String),
    /// Showing the last expression's value.
    Show,
}

/// Source text that knows where each piece of it comes from.
#[derive(Clone, Debug, Default)]
pub struct Source {
    text: String,
    pieces: BTreeMap<usize, (usize, Origin)>,
}

impl Source {
    /// The text to compile.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Adds text that stands for nothing in particular.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// Adds text that comes from somewhere.
    pub fn push_from(&mut self, origin: Origin, text: &str) {
        let start = self.text.len();
        self.text.push_str(text);
        self.pieces.insert(start, (self.text.len(), origin));
        self.text.push('\n');
    }

    /// Where the byte at `offset` comes from.
    pub fn origin(&self, offset: usize) -> Option<&Origin> {
        let (_, (end, origin)) = self.pieces.range(..=offset).next_back()?;
        (offset <= *end).then_some(origin)
    }

    /// The first byte of a cell that stands at or behind `offset`.
    pub fn next_in_cell(&self, offset: usize) -> Option<(usize, usize)> {
        self.pieces.range(offset..).find_map(|(_, (_, origin))| match origin {
            &Origin::Cell { cell, start } => Some((cell, start)),
            _ => None,
        })
    }

    /// The cell and the bytes in it that a range of the text comes from.
    pub fn in_cell(&self, range: Range<usize>) -> Option<(usize, Range<usize>)> {
        let (&piece_start, (piece_end, origin)) = self.pieces.range(..=range.start).next_back()?;
        let &Origin::Cell { cell, start } = origin else { return None };
        (range.start <= *piece_end).then(|| {
            let from = range.start - piece_start;
            let to = range.end.min(*piece_end).max(range.start) - piece_start;
            (cell, start + from..start + to)
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_the_generated_text_leads_back_to_the_cell() {
        let mut source = Source::default();
        source.push("fn cell() {");
        source.push_from(Origin::Cell { cell: 3, start: 10 }, "let x = 1;");
        source.push_from(Origin::Define("x".into()), "keep(x);");
        let at = source.text().find('x').unwrap();
        assert_eq!(source.in_cell(at..at + 1), Some((3, 14..15)));
        let at = source.text().find("keep").unwrap();
        assert_eq!(source.origin(at), Some(&Origin::Define("x".into())));
        assert_eq!(source.in_cell(at..at + 4), None);
        assert_eq!(source.in_cell(0..2), None);
        assert_eq!(source.next_in_cell(0), Some((3, 10)));
    }
}
