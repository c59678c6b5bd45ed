//! A notebook's state, and how a cell changes it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::cell::{Binding, Cell, Command, ItemKey, Kind, LineStarts, words};
use crate::child::{Ask, Child, Sink, describe};
use crate::commands;
use crate::compile::{Compiled, Compiler, KEEP};
use crate::complete::{Definitions, Scope};
use crate::dependencies::Dependency;
use crate::diagnostics::{Diagnostic, hide_crate_name};
use crate::generate::{Origin, Source};
use crate::interrupts::{Interrupts, grace};
use crate::library::Library;
use crate::session::Session;

/// The names that every cell sees without a `use`.
const PRELUDE: &str = "candle_accelerate::prelude::*";

/// Lints that tell a student something; all others are silent.
const LINTS: &str = "#![allow(unused, nonstandard_style, dead_code, private_interfaces, \
    private_bounds, static_mut_refs)]\n#![warn(unused_must_use)]";

/// How often a cell is compiled again after taking out variables that it has moved away.
const ATTEMPTS: usize = 6;

/// Everything that outlives a cell.
pub struct Notebook {
    pub(crate) compiler: Compiler,
    pub(crate) variables: BTreeMap<String, Variable>,
    pub(crate) dependencies: Vec<Dependency>,
    /// Variables that cells defined but that could not be kept, and why.
    unkept: BTreeMap<String, String>,
    items: Vec<StoredItem>,
    attributes: BTreeSet<String>,
    sources: BTreeMap<usize, String>,
    child: Child,
    sink: Sink,
    ask: Ask,
    interrupts: Interrupts,
    scope: Scope,
    pub(crate) timing: bool,
    // Last, so that the folders go when nothing uses them any more.
    pub(crate) session: Session,
    _links: Option<Session>,
}

/// A variable that lives in the child.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its type, as Rust source.
    pub type_name: String,
    mutable: bool,
}

impl Variable {
    /// The type as a person would write it.
    pub fn shown_type(&self) -> String {
        hide_crate_name(&self.type_name)
    }
}

#[derive(Clone)]
struct StoredItem {
    keys: Vec<ItemKey>,
    defines_type: bool,
    text: String,
    cell: usize,
    start: usize,
}

impl StoredItem {
    fn is_impl(&self) -> bool {
        matches!(&self.keys[..], [ItemKey::Unnamed(head)] if head.starts_with("impl"))
    }

    /// Whether it is one leaf of a `use`.
    fn is_use(&self) -> bool {
        self.text.starts_with("use ") || self.text.contains("] use ")
    }
}

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

/// What a cell that ran to its end leaves to show.
#[derive(Debug, Default)]
pub struct Success {
    /// Plain text, such as a command's answer.
    pub text: Option<String>,
    /// Warnings for stderr.
    pub warnings: String,
}

/// A cell with the state that it leads to if it succeeds.
struct Prepared {
    items: Vec<StoredItem>,
    /// The cell's own `use` items as they were written, for messages that point at them.
    uses: Vec<BodyPart>,
    attributes: BTreeSet<String>,
    body: Vec<BodyPart>,
    defined: Vec<Binding>,
    /// Variables that exist and that the cell may use.
    used: BTreeSet<String>,
    /// Variables whose type the cell defines anew.
    outdated: Vec<String>,
}

struct BodyPart {
    text: String,
    start: usize,
    is_value: bool,
}

impl Notebook {
    /// An empty notebook whose cells print to `sink` and ask for input through `ask`, and which
    /// keeps `scope` up to date.
    pub fn new(
        library: Library,
        sink: Sink,
        ask: Ask,
        interrupts: Interrupts,
        scope: Scope,
    ) -> Result<Self> {
        let session = Session::new_in(&std::env::temp_dir())?;
        let (library, links) = library.link_for_session();
        let child = Child::start(&library, &sink, &ask)?;
        let compiler = Compiler::new(library, session.directory());
        let prelude = StoredItem {
            keys: vec![ItemKey::Unnamed(PRELUDE.to_owned())],
            defines_type: false,
            text: format!("use {PRELUDE};"),
            cell: 0,
            start: 0,
        };
        Ok(Self {
            compiler,
            variables: BTreeMap::new(),
            dependencies: Vec::new(),
            unkept: BTreeMap::new(),
            items: vec![prelude],
            attributes: BTreeSet::new(),
            sources: BTreeMap::new(),
            child,
            sink,
            ask,
            interrupts,
            scope,
            timing: false,
            session,
            _links: links,
        })
    }

    /// Runs a cell.
    pub fn execute(&mut self, number: usize, code: &str) -> Result<Success, Failure> {
        let result = self.execute_cell(number, code);
        self.describe_scope();
        result
    }

    fn execute_cell(&mut self, number: usize, code: &str) -> Result<Success, Failure> {
        let cell = Cell::parse(code);
        let mut success = Success::default();
        for command in &cell.commands {
            let answer = match command {
                Command::Kernel { name, arguments } => commands::run(self, name, arguments)?,
                Command::Shell(command) => Some(commands::shell(command)?),
            };
            if let Some(answer) = answer {
                success.text = Some(success.text.unwrap_or_default() + &answer);
            }
        }
        if cell.segments.is_empty() {
            return Ok(success);
        }
        self.sources.insert(number, code.to_owned());
        let mut prepared = self.prepare(number, code, &cell);
        let started = Instant::now();
        let built = self.build(number, &mut prepared)?;
        let compiled_in = started.elapsed();
        success.warnings = built.warnings.clone();
        if !prepared.outdated.is_empty() {
            let names = std::mem::take(&mut prepared.outdated);
            for name in &names {
                self.variables.remove(name);
                self.child.forget(name).map_err(|status| self.restart(status, 0))?;
            }
            success.warnings.push_str(&format!(
                "dropped {}: this cell defines a type of it anew\n",
                names.join(", ")
            ));
        }
        if prepared.body.is_empty() {
            self.commit(prepared);
            return Ok(success);
        }
        let started = Instant::now();
        self.run(number, &built, prepared)?;
        if self.timing {
            success.warnings.push_str(&timing(compiled_in, started.elapsed()));
        }
        Ok(success)
    }

    /// Starts with no variables and no items, in a new process.
    pub fn clear(&mut self) -> Result<()> {
        self.child = Child::start(self.compiler.library(), &self.sink, &self.ask)?;
        self.variables.clear();
        self.items.truncate(1);
        self.attributes.clear();
        Ok(())
    }

    fn prepare(&self, number: usize, code: &str, cell: &Cell) -> Prepared {
        let mut prepared = Prepared {
            items: self.items.clone(),
            uses: Vec::new(),
            attributes: self.attributes.clone(),
            body: Vec::new(),
            defined: Vec::new(),
            used: BTreeSet::new(),
            outdated: Vec::new(),
        };
        let mut redefined = BTreeSet::new();
        for segment in &cell.segments {
            let text = &code[segment.range.clone()];
            let start = segment.range.start;
            let stored = |keys, defines_type, text: &str| StoredItem {
                keys,
                defines_type,
                text: text.to_owned(),
                cell: number,
                start,
            };
            match &segment.kind {
                Kind::InnerAttribute => {
                    prepared.attributes.insert(text.to_owned());
                }
                Kind::Item { keys, defines_type } => {
                    let item = stored(keys.clone(), *defines_type, text);
                    let old = add_item(&mut prepared.items, item);
                    if let Some(old) = old.filter(|old| *defines_type && old.text != text) {
                        let names: BTreeSet<_> = keys.iter().filter_map(type_name).collect();
                        // What stood in one cell with the old definition belongs to it.
                        prepared.items.retain(|item| {
                            item.cell != old.cell
                                || !item.is_impl()
                                || !mentions(&item.text, &names)
                        });
                        redefined.extend(names);
                    }
                }
                Kind::Use(leaves) => {
                    prepared.uses.push(BodyPart { text: text.to_owned(), start, is_value: false });
                    for (key, leaf) in leaves {
                        add_item(&mut prepared.items, stored(vec![key.clone()], false, leaf));
                    }
                }
                Kind::Statement(bindings) => {
                    for binding in bindings {
                        prepared.defined.retain(|known| known.name != binding.name);
                        prepared.defined.push(binding.clone());
                    }
                    prepared.body.push(BodyPart { text: text.to_owned(), start, is_value: false });
                }
                Kind::LastExpression => {
                    prepared.body.push(BodyPart { text: text.to_owned(), start, is_value: true });
                }
            }
        }
        prepared.outdated = self.outdated(&prepared.items, redefined);
        let words = words(code);
        prepared.used = self
            .variables
            .keys()
            .filter(|name| words.contains(name.trim_start_matches("r#")))
            .filter(|name| !prepared.outdated.contains(name))
            .cloned()
            .collect();
        prepared
    }

    /// The variables whose type depends on one of the redefined types. Their values still have the
    /// old layout, so using them would be undefined behaviour.
    fn outdated(&self, items: &[StoredItem], mut redefined: BTreeSet<String>) -> Vec<String> {
        if redefined.is_empty() {
            return Vec::new();
        }
        loop {
            let dependents: Vec<String> = items
                .iter()
                .filter(|item| item.defines_type && mentions(&item.text, &redefined))
                .flat_map(|item| item.keys.iter().filter_map(type_name))
                .filter(|name| !redefined.contains(name))
                .collect();
            if dependents.is_empty() {
                break;
            }
            redefined.extend(dependents);
        }
        self.variables
            .iter()
            .filter(|(_, variable)| mentions(&variable.type_name, &redefined))
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Compiles the cell, again when it turns out that it moves variables away.
    fn build(&mut self, number: usize, prepared: &mut Prepared) -> Result<Built, Failure> {
        let file = format!("cell_{number}.rs");
        let mut moved = BTreeSet::new();
        let mut unkept = BTreeMap::new();
        for _ in 0..ATTEMPTS {
            let source = self.generate(number, prepared, &moved, &unkept);
            let compiled = self
                .compiler
                .compile(&source, &file, &self.interrupts)
                .map_err(|error| Failure::new("KernelError", format!("{error:#}")))?;
            let errors = match compiled {
                Compiled::Interrupted => {
                    return Err(Failure::new("Interrupted", "interrupted while compiling"));
                }
                Compiled::Object { path, types, warnings } => {
                    let nameless = nameless(&types);
                    if !nameless.is_empty() {
                        unkept.extend(nameless);
                        continue;
                    }
                    let warnings = warnings
                        .iter()
                        .filter(|warning| warning.is_in_cell(&source, &file))
                        .map(|warning| warning.render(&source, &file, &self.sources) + "\n")
                        .collect();
                    return Ok(Built { path, types, warnings, source, moved, unkept });
                }
                Compiled::Errors(errors) => errors,
            };
            let before = moved.len() + unkept.len();
            for error in errors.iter().filter(|error| error.code() == "E0382") {
                for origin in error.origins(&source, &file) {
                    match origin {
                        Origin::Restore(name) => moved.insert(name.clone()),
                        Origin::Define(name) => unkept
                            .insert(name.clone(), "was moved by that cell".to_owned())
                            .is_none(),
                        _ => false,
                    };
                }
            }
            unkept.extend(borrowers(&errors, &source, &file));
            if moved.len() + unkept.len() == before {
                return Err(self.compile_failure(&errors, &source, &file));
            }
        }
        Err(Failure::new("CompileError", "the cell moves too many variables; split it up"))
    }

    fn generate(
        &self,
        number: usize,
        prepared: &Prepared,
        moved: &BTreeSet<String>,
        unkept: &BTreeMap<String, String>,
    ) -> Source {
        let mut source = Source::default();
        source.push(LINTS);
        for attribute in &prepared.attributes {
            source.push(attribute);
        }
        for (name, _) in &self.compiler.linked {
            source.push(&format!("extern crate {name} as _;"));
        }
        for item in &prepared.items {
            if item.cell < number || !item.is_use() {
                let origin = Origin::Cell { cell: item.cell, start: item.start };
                source.push_from(origin, &item.text);
            }
        }
        for part in &prepared.uses {
            source.push_from(Origin::Cell { cell: number, start: part.start }, &part.text);
        }
        if prepared.body.is_empty() {
            return source;
        }
        let kept: Vec<&str> = prepared
            .defined
            .iter()
            .map(|binding| binding.name.as_str())
            .filter(|name| !unkept.contains_key(*name))
            .collect();
        for name in &kept {
            let plain = name.trim_start_matches("r#");
            source.push(&format!(
                "#[inline(never)] fn {KEEP}{plain}<T: 'static>(\
                 variables: &mut candle_accelerate::cell::Variables, value: T) {{ \
                 variables.keep(\"{plain}\", value) }}"
            ));
        }
        source.push(&format!(
            "#[unsafe(no_mangle)] pub fn {}(\
             __variables: &mut candle_accelerate::cell::Variables) \
             -> candle_accelerate::cell::Outcome {{",
            symbol(number)
        ));
        for name in &prepared.used {
            let Some(variable) = self.variables.get(name) else { continue };
            let mutable = if variable.mutable { "mut " } else { "" };
            source.push_from(
                Origin::Load(name.clone()),
                &format!(
                    "let Some({mutable}r#{name}) = __variables.take::<{}>(\"{name}\") else \
                     {{ return candle_accelerate::cell::Outcome::Missing(\"{name}\") }};",
                    variable.type_name
                ),
            );
        }
        source.push(
            "let __outcome = candle_accelerate::cell::run(__variables, || -> \
             ::std::result::Result<candle_accelerate::cell::Variables, \
             candle_accelerate::cell::CellError> {",
        );
        for part in &prepared.body {
            let origin = Origin::Cell { cell: number, start: part.start };
            if part.is_value {
                source.push_from(Origin::Show, "{ use candle_accelerate::cell::Show as _; (");
                source.push_from(origin, &part.text);
                source.push_from(Origin::Show, ").evcxr_display(); }");
            } else {
                source.push_from(origin, &part.text);
                // A macro call without semicolon, or a block, at the end of the cell.
                source.push(";");
            }
        }
        source.push("let mut __new = candle_accelerate::cell::Variables::new();");
        for name in &kept {
            let plain = name.trim_start_matches("r#");
            source.push_from(
                Origin::Define((*name).to_owned()),
                &format!("{KEEP}{plain}(&mut __new, {name});"),
            );
        }
        source.push("::std::result::Result::Ok(__new) });");
        for name in prepared.used.iter().filter(|name| !moved.contains(*name)) {
            // A variable of the same name that this cell defines has replaced it.
            let is_replaced = prepared.defined.iter().any(|binding| binding.name == *name);
            let condition = if is_replaced {
                "if !matches!(__outcome, candle_accelerate::cell::Outcome::Done) "
            } else {
                ""
            };
            source.push_from(
                Origin::Restore(name.clone()),
                &format!("{condition}{{ __variables.keep(\"{name}\", r#{name}) }}"),
            );
        }
        source.push("__outcome }");
        source
    }

    fn run(&mut self, number: usize, built: &Built, prepared: Prepared) -> Result<(), Failure> {
        let (reply, requests) =
            self.interrupts.clone().while_running(self.child.pid(), number, || {
                self.child.run(&symbol(number), &built.path)
            });
        let reply = reply.map_err(|status| self.restart(status, requests))?;
        // The child's word counts: a variable that is not there must not be loaded.
        let mut variables = std::mem::take(&mut self.variables);
        if reply.outcome == "done" {
            for binding in &prepared.defined {
                let name = binding.name.trim_start_matches("r#");
                if let Some(type_name) = built.types.get(name) {
                    variables.insert(
                        name.to_owned(),
                        Variable { type_name: type_name.clone(), mutable: binding.mutable },
                    );
                }
            }
        }
        variables.retain(|name, _| reply.variables.contains(name));
        self.variables = variables;
        if reply.outcome == "done" {
            self.unkept.retain(|name, _| !self.variables.contains_key(name));
            self.unkept.extend(built.unkept.clone());
            self.commit(prepared);
            return Ok(());
        }
        let lost: Vec<&str> = built
            .moved
            .iter()
            .map(String::as_str)
            .filter(|name| !reply.variables.iter().any(|kept| kept == name))
            .collect();
        let mut failure = match reply.outcome.as_str() {
            "failed" if reply.message.starts_with("interrupted") => {
                Failure::new("Interrupted", reply.message)
            }
            "failed" => Failure::new("Error", reply.message),
            "panicked" => self.panic_failure(&reply.message, built, number),
            "missing" => Failure::new(
                "KernelError",
                format!("the variable {} is gone; run the cell that defines it", reply.message),
            ),
            _ => Failure::new("KernelError", reply.message),
        };
        if !lost.is_empty() {
            failure.traceback.push(format!(
                "The cell had moved {} before it stopped; run the cell that defines it again.",
                lost.join(", ")
            ));
        }
        Err(failure)
    }

    fn commit(&mut self, prepared: Prepared) {
        self.items = prepared.items;
        self.attributes = prepared.attributes;
    }

    /// Tells completion and inspection what there is.
    fn describe_scope(&self) {
        let variables = self.variables.iter();
        self.scope.set(Definitions {
            variables: variables.map(|(name, v)| (name.clone(), v.type_name.clone())).collect(),
            items: self.items.iter().map(|item| item.text.clone()).collect(),
        });
    }

    /// A new child after the old one has ended with `status`.
    fn restart(&mut self, status: ExitStatus, interrupt_requests: usize) -> Failure {
        let (name, what) = match interrupt_requests {
            0 => ("ProcessEnded", describe(status)),
            1 => (
                "Interrupted",
                format!(
                    "the cell did not look at the interrupt for {} s and was stopped",
                    grace().as_secs_f64()
                ),
            ),
            _ => ("Interrupted", "the cell was stopped by a second interrupt".to_owned()),
        };
        self.variables.clear();
        match Child::start(self.compiler.library(), &self.sink, &self.ask) {
            Ok(child) => {
                self.child = child;
                Failure::new(
                    name,
                    format!(
                        "{what}. All variables are lost; functions, types and imports are still \
                         there. Run the cells that define the variables again"
                    ),
                )
            }
            Err(error) => {
                Failure::new("KernelError", format!("{what}, and no new process starts: {error:#}"))
            }
        }
    }

    fn compile_failure(&self, errors: &[Diagnostic], source: &Source, file: &str) -> Failure {
        if let Some(failure) = unshowable(errors, source, file) {
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
                _ => error.render(source, file, &self.sources),
            })
            .collect();
        let first = shown.first().map_or("the cell does not compile", |error| &error.message);
        let message = match shown.first().and_then(|e| e.position(source, file, &self.sources)) {
            Some((cell, line, column)) => {
                format!("{} (In [{cell}], line {line}, column {column})", hide_crate_name(first))
            }
            None => hide_crate_name(first),
        };
        let missing = shown.iter().filter(|error| error.code() == "E0425");
        for (name, reason) in &self.unkept {
            if missing.clone().any(|error| error.message.contains(&format!("`{name}`"))) {
                traceback.push(format!("'{name}' was not kept for later cells: it {reason}."));
            }
        }
        let name = shown.first().map_or("", |error| error.code());
        let name = if name.is_empty() { "CompileError".to_owned() } else { name.to_owned() };
        Failure { name, message, traceback }
    }

    fn panic_failure(&self, message: &str, built: &Built, number: usize) -> Failure {
        let mut fields = message.splitn(4, '\u{1f}');
        let (text, file) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        let line = fields.next().and_then(|field| field.parse().ok()).unwrap_or(0);
        let column: usize = fields.next().and_then(|field| field.parse().ok()).unwrap_or(1);
        let place = (file == format!("cell_{number}.rs"))
            .then(|| {
                let at =
                    LineStarts::new(built.source.text()).offset(line, column.saturating_sub(1));
                let (cell, range) = built.source.in_cell(at..at + 1)?;
                let (line, column) =
                    LineStarts::new(self.sources.get(&cell)?).position(range.start);
                Some(format!("In [{cell}], line {line}, column {column}"))
            })
            .flatten()
            .unwrap_or_else(|| format!("{file}:{line}:{column}"));
        Failure::new("Panic", format!("{text} ({place})"))
    }
}

struct Built {
    path: PathBuf,
    types: BTreeMap<String, String>,
    warnings: String,
    source: Source,
    moved: BTreeSet<String>,
    unkept: BTreeMap<String, String>,
}

fn symbol(number: usize) -> String {
    format!("candle_accelerate_cell_{number}")
}

fn timing(compiled: Duration, ran: Duration) -> String {
    format!("compiled in {:.3} s, ran for {:.3} s\n", compiled.as_secs_f64(), ran.as_secs_f64())
}

fn type_name(key: &ItemKey) -> Option<String> {
    match key {
        ItemKey::Type(name) => Some(name.clone()),
        _ => None,
    }
}

/// Whether a text names one of these.
fn mentions(text: &str, names: &BTreeSet<String>) -> bool {
    words(text).iter().any(|word| names.contains(*word))
}

/// Adds an item in place of those that it replaces. Returns the first of them.
fn add_item(items: &mut Vec<StoredItem>, item: StoredItem) -> Option<StoredItem> {
    let clashes =
        |old: &StoredItem| old.keys.iter().any(|old| item.keys.iter().any(|new| new.clashes(old)));
    let old = items.iter().find(|old| clashes(old)).cloned();
    items.retain(|old| !clashes(old));
    items.push(item);
    old
}

/// The variables whose type cannot be written down, and why.
fn nameless(types: &BTreeMap<String, String>) -> BTreeMap<String, String> {
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

/// Explains that the cell's last expression has no printable form.
fn unshowable(errors: &[Diagnostic], source: &Source, file: &str) -> Option<Failure> {
    let error = errors.iter().find(|error| {
        matches!(error.code(), "E0599" | "E0277")
            && error.origins(source, file).contains(&&Origin::Show)
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
fn borrowers(errors: &[Diagnostic], source: &Source, file: &str) -> BTreeMap<String, String> {
    let defined = |error: &Diagnostic| -> Vec<String> {
        let origins = error.all_origins(source, file).into_iter();
        origins
            .filter_map(|origin| match origin {
                Origin::Define(name) => Some(name.clone()),
                _ => None,
            })
            .collect()
    };
    let outlived = errors
        .iter()
        .filter(|error| matches!(error.code(), "E0597" | "E0716" | "E0521" | "E0310" | "E0373"));
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
