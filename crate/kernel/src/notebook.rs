//! A notebook's state, and how a cell changes it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::cell::{Binding, Cell, Command, ItemKey, Kind, words};
use crate::child::{Ask, Child, Sink, describe};
use crate::commands;
use crate::compile::{Compiled, Compiler, KEEP};
use crate::complete::{Definitions, Scope};
use crate::dependencies::Dependency;
use crate::diagnostics::hide_crate_name;
use crate::explain::{self, Explainer, Failure};
use crate::generate::{Origin, Source};
use crate::interrupts::{Interrupts, grace};
use crate::items::{Items, StoredItem, mentions};
use crate::library::Library;
use crate::session::Session;

/// The names that every cell sees without a `use`.
const PRELUDE: &str = "candle_accelerate::prelude::*";

/// Lints that tell a student something; all others are silent.
const LINTS: &str = "#![allow(unused, nonstandard_style, dead_code, private_interfaces, \
    private_bounds, static_mut_refs)]\n#![warn(unused_must_use)]";

/// Shows a value that has no `evcxr_display` of its own: a trait's method has the lower priority.
// In the cell and not in the library: a stock evcxr kernel that loads the library finds the trait,
// and then no longer falls back to the debug form.
const SHOW: &str = "trait __Show { fn evcxr_display(&self); } \
    impl<T: ::std::fmt::Debug + ?Sized> __Show for T { \
    fn evcxr_display(&self) { candle_accelerate::cell::show_debug(self) } }";

/// How often a cell is compiled again after taking out variables that it has moved away.
const ATTEMPTS: usize = 6;

/// Everything that outlives a cell.
pub struct Notebook {
    pub(crate) compiler: Compiler,
    pub(crate) variables: BTreeMap<String, Variable>,
    pub(crate) dependencies: Vec<Dependency>,
    /// Variables that cells defined but that could not be kept, and why.
    unkept: BTreeMap<String, String>,
    items: Items,
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
    items: Items,
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
            is_use: true,
            text: format!("use {PRELUDE};"),
            cell: 0,
            start: 0,
        };
        let mut items = Items::default();
        items.add(prelude);
        Ok(Self {
            compiler,
            variables: BTreeMap::new(),
            dependencies: Vec::new(),
            unkept: BTreeMap::new(),
            items,
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
                self.child.forget(name).ok_or_else(|| self.restart(0))?;
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
            let stored = |keys, defines_type, is_use, text: &str| StoredItem {
                keys,
                defines_type,
                is_use,
                text: text.to_owned(),
                cell: number,
                start,
            };
            match &segment.kind {
                Kind::InnerAttribute => {
                    prepared.attributes.insert(text.to_owned());
                }
                Kind::Item { keys, defines_type } => {
                    let item = stored(keys.clone(), *defines_type, false, text);
                    redefined.extend(prepared.items.add(item));
                }
                Kind::Use(leaves) => {
                    prepared.uses.push(BodyPart { text: text.to_owned(), start, is_value: false });
                    for (key, leaf) in leaves {
                        prepared.items.add(stored(vec![key.clone()], false, true, leaf));
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
        // Values of a type that is defined anew still have the old layout, so using them would be
        // undefined behaviour.
        let redefined = prepared.items.with_dependents(redefined);
        prepared.outdated = self
            .variables
            .iter()
            .filter(|(_, variable)| mentions(&variable.type_name, &redefined))
            .map(|(name, _)| name.clone())
            .collect();
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

    /// Compiles the cell, again when it turns out that it moves variables away.
    fn build(&mut self, number: usize, prepared: &mut Prepared) -> Result<Built, Failure> {
        let file = file_name(number);
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
                    let nameless = explain::nameless(&types);
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
            let explainer = Explainer { source: &source, file: &file, cells: &self.sources };
            unkept.extend(explainer.borrowers(&errors));
            if moved.len() + unkept.len() == before {
                return Err(explainer.compile_failure(&errors, &self.unkept));
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
        for item in prepared.items.iter() {
            if item.cell < number || !item.is_use {
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
                source.push_from(Origin::Show, &format!("{{ {SHOW} ("));
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
        let reply = reply.ok_or_else(|| self.restart(requests))?;
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
            for name in built.moved.iter().filter(|name| !self.variables.contains_key(*name)) {
                self.unkept.insert(name.clone(), format!("was moved away by In [{number}]"));
            }
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
            "panicked" => {
                let (source, file) = (&built.source, &file_name(number));
                Explainer { source, file, cells: &self.sources }.panic_failure(&reply.message)
            }
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

    /// A new child after the old one has ended.
    fn restart(&mut self, interrupt_requests: usize) -> Failure {
        let status = self.child.stop();
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
}

struct Built {
    path: PathBuf,
    types: BTreeMap<String, String>,
    warnings: String,
    source: Source,
    moved: BTreeSet<String>,
    unkept: BTreeMap<String, String>,
}

/// The name under which a cell is compiled.
fn file_name(number: usize) -> String {
    format!("cell_{number}.rs")
}

fn symbol(number: usize) -> String {
    format!("candle_accelerate_cell_{number}")
}

fn timing(compiled: Duration, ran: Duration) -> String {
    format!("compiled in {:.3} s, ran for {:.3} s\n", compiled.as_secs_f64(), ran.as_secs_f64())
}
