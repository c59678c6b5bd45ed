//! A cell's source, taken apart into commands, items, statements and a last expression.

use std::collections::BTreeSet;
use std::ops::Range;

use proc_macro2::{LineColumn, Span};
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Attribute, Block, Expr, Item, Pat, Stmt, UseTree};

/// A parsed cell.
#[derive(Debug, Default)]
pub struct Cell {
    /// Lines such as `:dep …`, `:help` and `!ls`, in order.
    pub commands: Vec<Command>,
    /// Everything else, in order.
    pub segments: Vec<Segment>,
}

/// A line that is meant for the kernel.
#[derive(Debug, PartialEq)]
pub enum Command {
    /// `:name arguments`
    Kernel {
        /// Without the colon.
        name: String,
        /// The rest of the line, trimmed.
        arguments: String,
    },
    /// `!command`
    Shell(String),
}

/// A piece of Rust in a cell.
#[derive(Debug)]
pub struct Segment {
    /// What it is.
    pub kind: Kind,
    /// Its bytes in the cell's source.
    pub range: Range<usize>,
}

/// What a [`Segment`] is.
#[derive(Debug)]
pub enum Kind {
    /// `#![…]`
    InnerAttribute,
    /// A `fn`, `struct`, `impl`, `macro_rules!` …, which later cells see too.
    Item {
        /// What a later item must share to replace this one.
        keys: Vec<ItemKey>,
        /// Whether it defines a type or trait, so that replacing it invalidates values.
        defines_type: bool,
    },
    /// A `use`, as its leaves: key and a `use` item each.
    Use(Vec<(ItemKey, String)>),
    /// A statement and the variables that it defines.
    Statement(Vec<Binding>),
    /// The cell's last expression, whose value is shown.
    LastExpression,
}

/// A variable defined by a `let` of the cell's outermost level.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// The variable's name.
    pub name: String,
    /// Whether it was declared `mut`.
    pub mutable: bool,
}

/// What identifies an item: a later one with the same key replaces it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ItemKey {
    /// A type, trait or module.
    Type(String),
    /// A function, constant or static.
    Value(String),
    /// A macro.
    Macro(String),
    /// A name brought in by `use`, which may be of any kind.
    Imported(String),
    /// An `impl`, glob import or other item without a name, by its text (an `impl` by its head).
    Unnamed(String),
}

impl ItemKey {
    /// Whether both cannot stand in one module.
    pub fn clashes(&self, other: &Self) -> bool {
        use ItemKey::{Imported, Macro, Type, Unnamed, Value};
        match (self, other) {
            (Imported(a), Type(b) | Value(b) | Macro(b))
            | (Type(a) | Value(a) | Macro(a), Imported(b)) => a == b,
            (Unnamed(a), Unnamed(b)) => a == b,
            _ => self == other,
        }
    }
}

impl Cell {
    /// Takes `source` apart. What does not parse becomes one statement, for rustc to explain.
    pub fn parse(source: &str) -> Self {
        let (commands, rust) = split_commands(source);
        let segments = parse_segments(&rust).unwrap_or_else(|_| {
            vec![Segment { kind: Kind::Statement(Vec::new()), range: 0..source.len() }]
        });
        // The parser keeps every source it has seen until told otherwise.
        proc_macro2::extra::invalidate_current_thread_spans();
        let segments = if rust.trim().is_empty() { Vec::new() } else { segments };
        Self { commands, segments }
    }
}

/// Whether a cell is finished, for front ends that ask before they run it on Enter.
#[derive(Debug, PartialEq)]
pub enum Completeness {
    /// It can run.
    Complete,
    /// More lines must follow.
    Incomplete,
    /// No further line can make it right.
    Invalid,
}

/// Judges whether `source` is a finished cell.
pub fn completeness(source: &str) -> Completeness {
    let (_, rust) = split_commands(source);
    if parse_segments(&rust).is_ok() {
        return Completeness::Complete;
    }
    match open_delimiters(&rust) {
        Some(open) if open > 0 => Completeness::Incomplete,
        Some(0) if rust.trim_end().ends_with(['=', ',', '+', '-', '*', '|', '&', '.', '{']) => {
            Completeness::Incomplete
        }
        Some(_) => Completeness::Invalid,
        None => Completeness::Incomplete,
    }
}

/// How many brackets are still open at the end, or `None` inside a string or comment.
fn open_delimiters(rust: &str) -> Option<i64> {
    let mut open = 0;
    let mut characters = rust.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '(' | '[' | '{' => open += 1,
            ')' | ']' | '}' => open -= 1,
            '/' if rust[at..].starts_with("//") => {
                while characters.next_if(|(_, c)| *c != '\n').is_some() {}
            }
            '/' if rust[at..].starts_with("/*") => {
                let end = at + rust[at..].find("*/")?;
                while characters.next_if(|(i, _)| *i < end + 2).is_some() {}
            }
            '"' => loop {
                match characters.next()?.1 {
                    '\\' => {
                        characters.next()?;
                    }
                    '"' => break,
                    _ => {}
                }
            },
            // A character literal, not a lifetime.
            '\'' if rust[at + 1..].starts_with('\\')
                || rust[at + 1..].chars().nth(1) == Some('\'') =>
            {
                if characters.next()?.1 == '\\' {
                    characters.next()?;
                }
                while characters.next_if(|(_, c)| *c != '\'').is_some() {}
                characters.next();
            }
            _ => {}
        }
    }
    Some(open)
}

/// Takes the lines for the kernel out, leaving blanks so that every other byte keeps its place.
fn split_commands(source: &str) -> (Vec<Command>, String) {
    let mut commands = Vec::new();
    let mut rust = String::with_capacity(source.len());
    for line in source.split_inclusive('\n') {
        match parse_command(line.trim()) {
            Some(command) => {
                commands.push(command);
                rust.extend(line.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
            }
            None => rust.push_str(line),
        }
    }
    (commands, rust)
}

fn parse_command(line: &str) -> Option<Command> {
    if let Some(command) = line.strip_prefix('!') {
        let is_shell = command.starts_with(|c: char| c.is_ascii_alphabetic() || "./~".contains(c));
        // `!flag` alone may be the last line of a multi-line Rust expression.
        return (is_shell && !line.ends_with([';', ')', '}']))
            .then(|| Command::Shell(command.trim().to_owned()));
    }
    let rest = line.strip_prefix(':')?;
    if !rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name
        .then(|| Command::Kernel { name: name.to_owned(), arguments: arguments.trim().to_owned() })
}

fn parse_segments(rust: &str) -> syn::Result<Vec<Segment>> {
    let parse = |input: ParseStream| {
        let attributes = input.call(Attribute::parse_inner)?;
        let statements = input.call(Block::parse_within)?;
        Ok((attributes, statements))
    };
    let (attributes, statements): (Vec<Attribute>, Vec<Stmt>) = parse.parse_str(rust)?;
    let lines = LineStarts::new(rust);
    let mut segments: Vec<Segment> = attributes
        .iter()
        .map(|attribute| Segment {
            kind: Kind::InnerAttribute,
            range: lines.range(attribute.span()),
        })
        .collect();
    let last = statements.len().checked_sub(1);
    for (index, statement) in statements.iter().enumerate() {
        segments.push(Segment {
            kind: kind_of(statement, Some(index) == last),
            range: lines.range(statement.span()),
        });
    }
    Ok(segments)
}

fn kind_of(statement: &Stmt, is_last: bool) -> Kind {
    match statement {
        Stmt::Local(local) => {
            let mut bindings = Bindings::default();
            bindings.visit_pat(&local.pat);
            Kind::Statement(bindings.0)
        }
        Stmt::Item(Item::Use(item)) => {
            let mut leaves = Vec::new();
            let prefix = if item.leading_colon.is_some() { "::" } else { "" };
            let attributes: String =
                item.attrs.iter().map(|a| quote::quote!(#a).to_string() + " ").collect();
            use_leaves(&item.tree, prefix.to_owned(), &mut |key, path| {
                leaves.push((key, format!("{attributes}use {path};")));
            });
            Kind::Use(leaves)
        }
        Stmt::Item(item) => item_kind(item),
        Stmt::Macro(statement) => {
            let is_value = is_last
                && statement.semi_token.is_none()
                && !is_statement_macro(&statement.mac.path);
            if is_value { Kind::LastExpression } else { Kind::Statement(Vec::new()) }
        }
        Stmt::Expr(expression, semicolon) => {
            let is_value = is_last
                && semicolon.is_none()
                && !matches!(
                    expression,
                    Expr::ForLoop(_)
                        | Expr::While(_)
                        | Expr::Loop(_)
                        | Expr::Return(_)
                        | Expr::Assign(_)
                )
                && !matches!(expression, Expr::Macro(m) if is_statement_macro(&m.mac.path));
            if is_value { Kind::LastExpression } else { Kind::Statement(Vec::new()) }
        }
    }
}

/// Macros whose value is `()` or `!`: there is nothing to show.
fn is_statement_macro(path: &syn::Path) -> bool {
    const NAMES: [&str; 12] = [
        "print",
        "println",
        "eprint",
        "eprintln",
        "panic",
        "todo",
        "unimplemented",
        "unreachable",
        "assert",
        "assert_eq",
        "assert_ne",
        "writeln",
    ];
    path.segments.last().is_some_and(|last| NAMES.iter().any(|name| last.ident == name))
}

fn item_kind(item: &Item) -> Kind {
    let named = |key: ItemKey, defines_type| Kind::Item { keys: vec![key], defines_type };
    match item {
        Item::Fn(item) => named(ItemKey::Value(item.sig.ident.to_string()), false),
        Item::Const(item) if item.ident != "_" => {
            named(ItemKey::Value(item.ident.to_string()), false)
        }
        Item::Static(item) => named(ItemKey::Value(item.ident.to_string()), false),
        // Unit and tuple structs are values too.
        Item::Struct(item) => {
            let name = item.ident.to_string();
            let mut keys = vec![ItemKey::Type(name.clone())];
            if !matches!(item.fields, syn::Fields::Named(_)) {
                keys.push(ItemKey::Value(name));
            }
            Kind::Item { keys, defines_type: true }
        }
        Item::Enum(item) => named(ItemKey::Type(item.ident.to_string()), true),
        Item::Union(item) => named(ItemKey::Type(item.ident.to_string()), true),
        Item::Trait(item) => named(ItemKey::Type(item.ident.to_string()), true),
        Item::TraitAlias(item) => named(ItemKey::Type(item.ident.to_string()), true),
        Item::Type(item) => named(ItemKey::Type(item.ident.to_string()), true),
        Item::Mod(item) => named(ItemKey::Type(item.ident.to_string()), true),
        Item::ExternCrate(item) => named(ItemKey::Imported(item.ident.to_string()), false),
        Item::Macro(item) => match &item.ident {
            Some(name) => named(ItemKey::Macro(name.to_string()), false),
            None => named(ItemKey::Unnamed(text_of(item)), false),
        },
        Item::Impl(item) => {
            let mut head = item.clone();
            head.items.clear();
            named(ItemKey::Unnamed(text_of(head)), false)
        }
        item => named(ItemKey::Unnamed(text_of(item)), false),
    }
}

fn text_of(tokens: impl quote::ToTokens) -> String {
    tokens.to_token_stream().to_string()
}

/// Calls `leaf` with the key and the full path of every name that a `use` brings in.
fn use_leaves(tree: &UseTree, prefix: String, leaf: &mut impl FnMut(ItemKey, String)) {
    let imported = |name: &syn::Ident| ItemKey::Imported(name.to_string());
    match tree {
        UseTree::Path(path) => use_leaves(&path.tree, format!("{prefix}{}::", path.ident), leaf),
        UseTree::Name(name) if name.ident == "self" => {
            // `use a::b::{self}` is `use a::b`.
            let path = prefix.trim_end_matches("::").to_owned();
            let last = path.rsplit("::").next().unwrap_or_default().to_owned();
            leaf(ItemKey::Imported(last), path);
        }
        UseTree::Name(name) => leaf(imported(&name.ident), format!("{prefix}{}", name.ident)),
        UseTree::Rename(rename) => {
            let source = if rename.ident == "self" {
                prefix.trim_end_matches("::").to_owned()
            } else {
                format!("{prefix}{}", rename.ident)
            };
            let path = format!("{source} as {}", rename.rename);
            let key = if rename.rename == "_" {
                ItemKey::Unnamed(path.clone())
            } else {
                imported(&rename.rename)
            };
            leaf(key, path);
        }
        UseTree::Glob(_) => {
            let path = format!("{prefix}*");
            leaf(ItemKey::Unnamed(path.clone()), path);
        }
        UseTree::Group(group) => {
            for tree in &group.items {
                use_leaves(tree, prefix.clone(), leaf);
            }
        }
    }
}

/// Collects the variables of a pattern.
#[derive(Default)]
struct Bindings(Vec<Binding>);

impl<'ast> Visit<'ast> for Bindings {
    fn visit_pat(&mut self, pattern: &'ast Pat) {
        if let Pat::Ident(ident) = pattern {
            let name = ident.ident.to_string();
            // `None` and `MAX` look like variables to a parser, but are constants by convention.
            if !name.trim_start_matches("r#").starts_with(char::is_uppercase) {
                self.0.retain(|binding| binding.name != name);
                self.0.push(Binding { name, mutable: ident.mutability.is_some() });
            }
        }
        syn::visit::visit_pat(self, pattern);
    }

    // The initialiser and types hold no bindings of this `let`.
    fn visit_expr(&mut self, _: &'ast Expr) {}
}

/// All identifiers in a text, also those in format strings, comments and macros: a superset of
/// the variables that it can use.
pub fn words(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| !word.is_empty())
        .collect()
}

/// Where lines start, to turn the parser's lines and columns into byte offsets.
pub struct LineStarts<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> LineStarts<'a> {
    /// Indexes `text`.
    pub fn new(text: &'a str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
        Self { starts: starts.collect(), text }
    }

    /// The byte offset of a one-based line and a zero-based column in characters.
    pub fn offset(&self, line: usize, column: usize) -> usize {
        let Some(&start) = self.starts.get(line.saturating_sub(1)) else { return self.text.len() };
        let rest = &self.text[start..];
        start + rest.char_indices().nth(column).map_or(rest.len(), |(at, _)| at)
    }

    /// The one-based line and column (in characters) of a byte offset.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|&start| start <= offset).max(1);
        let start = self.starts[line - 1];
        let column = self.text.get(start..offset).map_or(0, |text| text.chars().count());
        (line, column + 1)
    }

    fn range(&self, span: Span) -> Range<usize> {
        let at = |position: LineColumn| self.offset(position.line, position.column);
        at(span.start())..at(span.end())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<(&str, String)> {
        let cell = Cell::parse(source);
        cell.segments
            .iter()
            .map(|segment| {
                let kind = match &segment.kind {
                    Kind::InnerAttribute => "attribute",
                    Kind::Item { .. } => "item",
                    Kind::Use(_) => "use",
                    Kind::Statement(_) => "statement",
                    Kind::LastExpression => "value",
                };
                (kind, source[segment.range.clone()].to_owned())
            })
            .collect()
    }

    #[test]
    fn a_cell_is_taken_apart_in_order() {
        let source = ":dep foo = \"1\"\nuse a::b;\n// ä comment\nstruct S;\nlet x = \"ü\"; x.len()";
        assert_eq!(
            texts(source),
            [
                ("use", "use a::b;".to_owned()),
                ("item", "struct S;".to_owned()),
                ("statement", "let x = \"ü\";".to_owned()),
                ("value", "x.len()".to_owned()),
            ]
        );
        assert_eq!(
            Cell::parse(source).commands,
            [Command::Kernel { name: "dep".into(), arguments: "foo = \"1\"".into() }]
        );
    }

    #[test]
    fn only_a_value_without_semicolon_is_shown() {
        for source in ["1;", "for i in 0..3 {}", "println!()", "x = 1", "panic!(\"no\")"] {
            assert_eq!(texts(source)[0].0, "statement", "{source}");
        }
        for source in ["1", "x?", "vec![1]", "if a { 1 } else { 2 }", "{ 3 }"] {
            assert_eq!(texts(source)[0].0, "value", "{source}");
        }
    }

    #[test]
    fn variables_are_found_in_every_pattern() {
        let cell = Cell::parse("let (mut a, P { b, c: [d, ..] }, Some(e)) = f() else { return };");
        let Kind::Statement(bindings) = &cell.segments[0].kind else { panic!("{cell:?}") };
        let names: Vec<_> = bindings.iter().map(|b| (b.name.as_str(), b.mutable)).collect();
        assert_eq!(names, [("a", true), ("b", false), ("d", false), ("e", false)]);
    }

    #[test]
    fn a_use_is_stored_by_the_names_it_brings_in() {
        let cell = Cell::parse("use a::{b, c as d, e::{self, f}, g::*};");
        let Kind::Use(leaves) = &cell.segments[0].kind else { panic!("{cell:?}") };
        let texts: Vec<_> = leaves.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(
            texts,
            ["use a::b;", "use a::c as d;", "use a::e;", "use a::e::f;", "use a::g::*;"]
        );
        assert!(leaves[1].0.clashes(&ItemKey::Type("d".into())));
    }

    #[test]
    fn unfinished_cells_are_told_from_wrong_ones() {
        assert_eq!(completeness("let x = 1;"), Completeness::Complete);
        assert_eq!(completeness("fn f() {"), Completeness::Incomplete);
        assert_eq!(completeness("let s = \"abc"), Completeness::Incomplete);
        assert_eq!(completeness("let x ="), Completeness::Incomplete);
        assert_eq!(completeness("/* open"), Completeness::Incomplete);
        assert_eq!(completeness("let = 3;"), Completeness::Invalid);
        assert_eq!(completeness("f())"), Completeness::Invalid);
        assert_eq!(completeness(":dep a = \"1\""), Completeness::Complete);
        assert_eq!(
            completeness("let c = '{'; let l: &'static str = \"\";"),
            Completeness::Complete
        );
    }
}
