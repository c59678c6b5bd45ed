//! Completion and inspection, from what the notebook has defined and the library's documentation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use syn::{Expr, Item, Type};

use crate::diagnostics::hide_crate_name;
use crate::index::{Index, Member, MemberKind, TypeEntry};

const KEYWORDS: [&str; 25] = [
    "as", "async", "await", "break", "const", "continue", "else", "enum", "false", "fn", "for",
    "if", "impl", "let", "loop", "match", "mod", "mut", "pub", "return", "struct", "trait", "true",
    "use", "while",
];

const MACROS: [&str; 10] = [
    "assert!",
    "assert_eq!",
    "dbg!",
    "eprintln!",
    "format!",
    "matches!",
    "panic!",
    "print!",
    "println!",
    "vec!",
];

/// The deepest chain of calls and definitions that is followed.
const DEPTH: usize = 16;

/// What a notebook has defined so far. Shared with the thread that runs cells.
#[derive(Clone, Default)]
pub struct Scope(Arc<Mutex<Definitions>>);

/// Variables with their types, and items as Rust source.
#[derive(Clone, Default)]
pub struct Definitions {
    /// Variables: name and type.
    pub variables: BTreeMap<String, String>,
    /// Items of all cells.
    pub items: Vec<String>,
}

impl Scope {
    /// Replaces what is known.
    pub fn set(&self, definitions: Definitions) {
        *self.lock() = definitions;
    }

    fn lock(&self) -> MutexGuard<'_, Definitions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What can stand at the cursor.
#[derive(Debug, Default, PartialEq)]
pub struct Completions {
    /// The bytes that a completion replaces.
    pub start: usize,
    /// The texts, best first.
    pub matches: Vec<String>,
}

/// Documentation of what stands at the cursor.
#[derive(Debug, PartialEq)]
pub struct Documentation {
    /// The declaration.
    pub signature: String,
    /// The text, Markdown.
    pub docs: String,
}

/// Answers questions about a cell that is being written.
pub struct Assistant {
    library: Index,
    scope: Scope,
}

impl Assistant {
    /// An assistant that knows the library's `index` and what `scope` holds.
    pub fn new(library: Index, scope: Scope) -> Self {
        Self { library, scope }
    }

    /// Completes the word that ends at byte `cursor`.
    pub fn complete(&self, code: &str, cursor: usize) -> Completions {
        let before = &code[..cursor];
        let prefix = trailing_word(before);
        let start = cursor - prefix.len();
        let analysis = self.analyse(code, cursor);
        let mut names: Vec<String> = match context(&before[..start]) {
            Context::Member(receiver) => analysis
                .type_of_text(receiver)
                .map(|ty| analysis.members(&ty, |kind| kind.is_dotted()))
                .unwrap_or_default(),
            Context::Path(path) => analysis.path_members(path),
            Context::Command => COMMANDS.iter().map(|name| (*name).to_owned()).collect(),
            Context::Plain => analysis.plain_names(),
        };
        names.retain(|name| name.starts_with(prefix) && name != prefix);
        let mut seen = BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        Completions { start, matches: names }
    }

    /// Documents the word at byte `cursor`.
    pub fn inspect(&self, code: &str, cursor: usize) -> Option<Documentation> {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let end = cursor + code[cursor..].find(|c| !is_word(c)).unwrap_or(code.len() - cursor);
        let word = trailing_word(&code[..end]);
        // Inside an open bracket the call itself is meant.
        if word.is_empty() {
            let open = code[..cursor].rfind('(')?;
            return (open > 0 && open < cursor)
                .then(|| self.inspect(&code[..open], open))
                .flatten();
        }
        let start = end - word.len();
        let analysis = self.analyse(code, start);
        match context(&code[..start]) {
            Context::Member(receiver) => {
                let ty = analysis.type_of_text(receiver)?;
                analysis.member(&ty, word).map(|member| member.documentation(&ty))
            }
            Context::Path(path) => {
                let name = path.rsplit("::").next().unwrap_or(path).trim();
                match analysis.member(name, word) {
                    Some(member) => Some(member.documentation(name)),
                    None => analysis.documentation(word),
                }
            }
            Context::Command => None,
            Context::Plain => analysis.documentation(word),
        }
    }

    fn analyse<'a>(&'a self, code: &'a str, cursor: usize) -> Analysis<'a> {
        let definitions = self.scope.lock().clone();
        let mut own = BTreeMap::new();
        let mut functions = BTreeMap::new();
        for item in &definitions.items {
            read_item(item, &mut own, &mut functions);
        }
        Analysis { library: &self.library, definitions, own, functions, code: &code[..cursor] }
    }
}

/// The kernel's commands, as `:help` lists them.
const COMMANDS: [&str; 7] = ["clear", "dep", "help", "opt", "timing", "type", "vars"];

impl MemberKind {
    fn is_dotted(self) -> bool {
        matches!(self, Self::Method | Self::Field)
    }
}

impl Member {
    fn documentation(&self, of: &str) -> Documentation {
        let signature = match self.kind {
            MemberKind::Variant => self.signature.clone(),
            _ => {
                let of = head_and_arguments(of).map_or(of.to_owned(), |(head, _)| head);
                format!("{of}: {}", self.signature)
            }
        };
        Documentation { signature, docs: self.docs.clone() }
    }
}

impl Documentation {
    /// The text without the lines of examples that rustdoc hides.
    pub fn visible_docs(&self) -> String {
        let mut in_code = false;
        let is_visible = |line: &&str| {
            in_code ^= line.starts_with("```");
            !in_code || !(*line == "#" || line.starts_with("# "))
        };
        self.docs.lines().filter(is_visible).collect::<Vec<_>>().join("\n")
    }
}

/// What stands before the word at the cursor.
#[derive(Debug, PartialEq)]
enum Context<'a> {
    /// `receiver.`
    Member(&'a str),
    /// `path::`
    Path(&'a str),
    /// `:` at the start of a line
    Command,
    Plain,
}

fn context(before: &str) -> Context<'_> {
    let line = before.rsplit('\n').next().unwrap_or_default();
    if line.trim() == ":" {
        return Context::Command;
    }
    let trimmed = before.trim_end();
    if let Some(receiver) = trimmed.strip_suffix('.')
        && !receiver.ends_with('.')
    {
        return Context::Member(trailing_expression(receiver));
    }
    if let Some(path) = trimmed.strip_suffix("::") {
        let start = path
            .rfind(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'))
            .map_or(0, |at| at + path[at..].chars().next().map_or(1, char::len_utf8));
        return Context::Path(&path[start..]);
    }
    Context::Plain
}

fn trailing_word(text: &str) -> &str {
    let start = text
        .rfind(|c: char| !(c.is_alphanumeric() || c == '_'))
        .map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
    &text[start..]
}

/// The postfix expression that `text` ends with: names, calls, indices, `?`, dots and paths.
fn trailing_expression(text: &str) -> &str {
    let bytes = text.as_bytes();
    let mut at = text.trim_end().len();
    loop {
        // One operand with its calls, indices and question marks, backwards.
        while at > 0 && matches!(bytes[at - 1], b'?' | b')' | b']') {
            at = match bytes[at - 1] {
                b'?' => at - 1,
                close => match opening(&text[..at], close) {
                    Some(open) => open,
                    None => return &text[at..],
                },
            };
        }
        at -= trailing_word(&text[..at]).len();
        let rest = text[..at].trim_end();
        if rest.ends_with("::") {
            at = rest.len() - 2;
        } else if rest.ends_with('.') && !rest.ends_with("..") {
            at = rest[..rest.len() - 1].trim_end().len();
        } else {
            return text[at..].trim();
        }
    }
}

/// Where the bracket that `text` ends with was opened.
fn opening(text: &str, close: u8) -> Option<usize> {
    let open = if close == b')' { b'(' } else { b'[' };
    let mut depth = 0;
    for (at, byte) in text.bytes().enumerate().rev() {
        if byte == close {
            depth += 1;
        } else if byte == open {
            depth -= 1;
            if depth == 0 {
                return Some(at);
            }
        }
    }
    None
}

/// A cell up to the cursor, with everything that it can refer to.
struct Analysis<'a> {
    library: &'a Index,
    definitions: Definitions,
    /// The notebook's own types.
    own: BTreeMap<String, TypeEntry>,
    /// The notebook's own functions.
    functions: BTreeMap<String, Member>,
    code: &'a str,
}

impl Analysis<'_> {
    fn entry(&self, name: &str) -> Option<&TypeEntry> {
        self.own.get(name).or_else(|| self.library.types.get(name))
    }

    fn function(&self, name: &str) -> Option<&Member> {
        self.functions.get(name).or_else(|| self.library.functions.get(name))
    }

    fn member(&self, ty: &str, name: &str) -> Option<&Member> {
        let (head, inner) = head_and_arguments(ty)?;
        let found = self
            .entry(&head)
            .and_then(|entry| entry.members.iter().find(|member| member.name == name));
        match (found, inner.first()) {
            (None, Some(inner)) if is_pointer(&head) => self.member(inner, name),
            _ => found,
        }
    }

    fn members(&self, ty: &str, wanted: impl Fn(MemberKind) -> bool) -> Vec<String> {
        let Some((head, inner)) = head_and_arguments(ty) else { return Vec::new() };
        let Some(entry) = self.entry(&head) else {
            return match inner.first() {
                Some(inner) if is_pointer(&head) => self.members(inner, wanted),
                _ => Vec::new(),
            };
        };
        let members = entry.members.iter().filter(|member| wanted(member.kind));
        members.map(|member| member.name.clone()).collect()
    }

    fn path_members(&self, path: &str) -> Vec<String> {
        let path = path.trim_start_matches("::");
        if let Some(names) = self.library.modules.get(path) {
            return names.clone();
        }
        let last = path.rsplit("::").next().unwrap_or(path);
        self.members(last, |kind| kind != MemberKind::Field)
    }

    fn plain_names(&self) -> Vec<String> {
        let locals = self.locals().into_keys();
        locals
            .chain(self.definitions.variables.keys().cloned())
            .chain(self.own.keys().cloned())
            .chain(self.functions.keys().cloned())
            .chain(self.library.types.keys().cloned())
            .chain(self.library.functions.keys().cloned())
            .chain(self.library.modules.keys().filter(|path| !path.contains("::")).cloned())
            .chain(KEYWORDS.into_iter().chain(MACROS).map(str::to_owned))
            .collect()
    }

    fn documentation(&self, word: &str) -> Option<Documentation> {
        let variable = || Some((word.to_owned(), self.variable(word, 0)?));
        if let Some((name, ty)) = variable() {
            let docs = head_and_arguments(&ty)
                .and_then(|(head, _)| self.entry(&head).map(|entry| entry.docs.clone()));
            let signature = format!("{name}: {}", hide_crate_name(&ty));
            return Some(Documentation { signature, docs: docs.unwrap_or_default() });
        }
        if let Some(entry) = self.entry(word) {
            let documentation =
                Documentation { signature: entry.signature.clone(), docs: entry.docs.clone() };
            return Some(documentation);
        }
        self.function(word).map(|function| Documentation {
            signature: function.signature.clone(),
            docs: function.docs.clone(),
        })
    }

    /// The names that the cell itself has bound before the cursor, with the way to their type.
    fn locals(&self) -> BTreeMap<String, Local> {
        let mut locals = BTreeMap::new();
        for line in statements(self.code) {
            if let Some(rest) = line.strip_prefix("let ") {
                let Some((pattern, value)) = rest.split_once('=') else { continue };
                let value = value.trim().trim_end_matches(';').to_owned();
                let (pattern, ty) = match pattern.split_once(':') {
                    Some((pattern, ty)) => (pattern, Some(ty.trim().to_owned())),
                    None => (pattern, None),
                };
                let names: Vec<_> = pattern
                    .trim_matches(|c: char| "() ".contains(c))
                    .split(',')
                    .map(|name| name.trim().trim_start_matches("mut ").to_owned())
                    .collect();
                let is_tuple = pattern.trim_start().starts_with('(');
                for (place, name) in names.into_iter().enumerate() {
                    let place = is_tuple.then_some(place);
                    let value = value.clone();
                    locals.insert(name, Local::Let { value, ty: ty.clone(), place });
                }
            } else if let Some(rest) = line.strip_prefix("for ") {
                let Some((name, of)) = rest.split_once(" in ") else { continue };
                let of = of.trim_end().trim_end_matches('{').trim().to_owned();
                locals.insert(name.trim().to_owned(), Local::Item { of });
            }
        }
        locals
    }

    fn variable(&self, name: &str, depth: usize) -> Option<String> {
        if depth > DEPTH {
            return None;
        }
        let known = self.definitions.variables.get(name);
        match self.locals().get(name) {
            Some(Local::Let { ty: Some(ty), .. }) => Some(ty.clone()),
            Some(Local::Let { value, place, .. }) => {
                let value = syn::parse_str(value).ok()?;
                let inferred = match (&value, place) {
                    // A name that is bound again from itself: what it was before counts.
                    _ if mentions(&value, name) && known.is_some() => known.cloned(),
                    (value, Some(place)) => tuple_part(&self.type_of(value, depth + 1)?, *place),
                    (value, None) => self.type_of(value, depth + 1),
                };
                inferred.or_else(|| known.cloned())
            }
            Some(Local::Item { of }) => {
                let (head, _) =
                    head_and_arguments(&self.type_of(&syn::parse_str(of).ok()?, depth + 1)?)?;
                self.entry(&head)?.item.clone()
            }
            None => known.cloned(),
        }
    }

    fn type_of_text(&self, expression: &str) -> Option<String> {
        self.type_of(&syn::parse_str(expression).ok()?, 0)
    }

    fn type_of(&self, expression: &Expr, depth: usize) -> Option<String> {
        if depth > DEPTH {
            return None;
        }
        let inner = |expression| self.type_of(expression, depth + 1);
        match expression {
            Expr::Path(path) => match path.path.get_ident() {
                Some(name) => self.variable(&name.to_string(), depth),
                // A variant or constant: `Device::Cpu`.
                None => {
                    let mut segments = path.path.segments.iter().rev();
                    let (name, of) = (segments.next()?, segments.next()?);
                    self.member(&of.ident.to_string(), &name.ident.to_string())?.returns.clone()
                }
            },
            Expr::MethodCall(call) => {
                let receiver = inner(&call.receiver)?;
                let member = self.member(&receiver, &call.method.to_string())?;
                self.result(member, &receiver, call.args.iter(), depth)
            }
            Expr::Call(call) => {
                let Expr::Path(path) = &*call.func else { return None };
                let mut segments = path.path.segments.iter().rev();
                let name = segments.next()?.ident.to_string();
                let of = segments.next().map(|segment| segment.ident.to_string());
                let member = of.as_deref().and_then(|of| self.member(of, &name));
                let member = member.or_else(|| self.function(&name))?;
                self.result(member, of.as_deref().unwrap_or_default(), call.args.iter(), depth)
            }
            Expr::Try(tried) => {
                let ty = inner(&tried.expr)?;
                let (head, arguments) = head_and_arguments(&ty)?;
                matches!(head.as_str(), "Result" | "Option").then(|| arguments.first().cloned())?
            }
            Expr::Field(field) => {
                let of = inner(&field.base)?;
                match &field.member {
                    syn::Member::Named(name) => {
                        self.member(&of, &name.to_string())?.returns.clone()
                    }
                    syn::Member::Unnamed(index) => tuple_part(&of, index.index as usize),
                }
            }
            Expr::Tuple(tuple) => {
                let types: Option<Vec<_>> = tuple.elems.iter().map(inner).collect();
                Some(format!("({})", types?.join(", ")))
            }
            Expr::Reference(reference) => inner(&reference.expr),
            Expr::Paren(paren) => inner(&paren.expr),
            Expr::Struct(literal) => Some(literal.path.segments.last()?.ident.to_string()),
            _ => None,
        }
    }

    /// What a call returns: `Self` is the receiver, a type parameter is what was passed for it.
    fn result<'e>(
        &self,
        member: &Member,
        receiver: &str,
        arguments: impl Iterator<Item = &'e Expr>,
        depth: usize,
    ) -> Option<String> {
        let mut returns = member.returns.clone()?;
        for (parameter, argument) in member.parameters.iter().zip(arguments) {
            let is_type_parameter =
                parameter.len() <= 2 && parameter.starts_with(char::is_uppercase);
            if is_type_parameter && let Some(passed) = self.type_of(argument, depth + 1) {
                returns = replace_word(&returns, parameter, &passed);
            }
        }
        Some(replace_word(&returns, "Self", receiver))
    }
}

/// How a name got its value.
enum Local {
    Let { value: String, ty: Option<String>, place: Option<usize> },
    Item { of: String },
}

/// The lines of a text, those of one statement joined.
fn statements(code: &str) -> Vec<String> {
    let mut statements = Vec::new();
    let mut current = String::new();
    for line in code.lines() {
        current.push_str(line.trim());
        current.push(' ');
        if line.trim_end().ends_with([';', '{', '}']) {
            statements.push(std::mem::take(&mut current).trim().to_owned());
        }
    }
    statements
}

fn mentions(expression: &Expr, name: &str) -> bool {
    let text = quote::quote!(#expression).to_string();
    crate::cell::words(&text).contains(name)
}

fn replace_word(text: &str, word: &str, with: &str) -> String {
    let pattern = regex::Regex::new(&format!(r"\b{}\b", regex::escape(word)));
    pattern.map_or_else(|_| text.to_owned(), |p| p.replace_all(text, regex::NoExpand(with)).into())
}

fn is_pointer(head: &str) -> bool {
    matches!(head, "Arc" | "Rc" | "Box" | "MutexGuard" | "Ref" | "RefMut")
}

/// `&candle_core::Tensor` is `Tensor`, `Result<Batch, Error>` is `Result` of `Batch` and `Error`.
fn head_and_arguments(ty: &str) -> Option<(String, Vec<String>)> {
    let mut ty: Type = syn::parse_str(ty).ok()?;
    loop {
        ty = match ty {
            Type::Reference(reference) => *reference.elem,
            Type::Paren(paren) => *paren.elem,
            other => break ty_head(&other),
        };
    }
}

fn ty_head(ty: &Type) -> Option<(String, Vec<String>)> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let arguments = match &last.arguments {
        syn::PathArguments::AngleBracketed(arguments) => arguments
            .args
            .iter()
            .filter_map(|argument| match argument {
                syn::GenericArgument::Type(ty) => Some(text_of(ty)),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    };
    Some((last.ident.to_string(), arguments))
}

fn tuple_part(ty: &str, place: usize) -> Option<String> {
    match syn::parse_str(ty).ok()? {
        Type::Tuple(tuple) => tuple.elems.iter().nth(place).map(text_of),
        _ => None,
    }
}

fn text_of(tokens: impl quote::ToTokens) -> String {
    let text = tokens.to_token_stream().to_string();
    ["< ", " <", " >", " ,", ":: ", " ::", "& "]
        .iter()
        .fold(text, |text, spaced| text.replace(spaced, spaced.trim()))
}

/// Adds what an item of the notebook defines.
fn read_item(
    text: &str,
    types: &mut BTreeMap<String, TypeEntry>,
    functions: &mut BTreeMap<String, Member>,
) {
    let Ok(item) = syn::parse_str::<Item>(text) else { return };
    match item {
        Item::Fn(function) => {
            let member = own_function(&function.sig, &function.attrs);
            functions.insert(member.name.clone(), member);
        }
        Item::Struct(data) => {
            let name = data.ident.to_string();
            let entry = types.entry(name.clone()).or_default();
            entry.signature = format!("struct {name}");
            entry.docs = docs(&data.attrs);
            for field in &data.fields {
                let Some(name) = &field.ident else { continue };
                let ty = text_of(&field.ty);
                entry.members.push(Member {
                    name: name.to_string(),
                    kind: MemberKind::Field,
                    signature: format!("{name}: {ty}"),
                    docs: docs(&field.attrs),
                    parameters: Vec::new(),
                    returns: Some(ty),
                });
            }
        }
        Item::Enum(data) => {
            let name = data.ident.to_string();
            let entry = types.entry(name.clone()).or_default();
            entry.signature = format!("enum {name}");
            entry.docs = docs(&data.attrs);
            for variant in &data.variants {
                entry.members.push(Member {
                    name: variant.ident.to_string(),
                    kind: MemberKind::Variant,
                    signature: format!("{name}::{}", variant.ident),
                    docs: docs(&variant.attrs),
                    parameters: Vec::new(),
                    returns: Some(name.clone()),
                });
            }
        }
        Item::Impl(block) => {
            let Some((name, _)) = ty_head(&block.self_ty) else { return };
            let entry = types.entry(name).or_default();
            for item in &block.items {
                if let syn::ImplItem::Fn(function) = item {
                    entry.members.push(own_function(&function.sig, &function.attrs));
                }
            }
        }
        _ => {}
    }
}

fn own_function(signature: &syn::Signature, attributes: &[syn::Attribute]) -> Member {
    let parameters = signature.inputs.iter().filter_map(|input| match input {
        syn::FnArg::Typed(typed) => Some(text_of(&typed.ty)),
        syn::FnArg::Receiver(_) => None,
    });
    let is_method = signature.receiver().is_some();
    Member {
        name: signature.ident.to_string(),
        kind: if is_method { MemberKind::Method } else { MemberKind::Function },
        signature: text_of(signature),
        docs: docs(attributes),
        parameters: parameters.collect(),
        returns: match &signature.output {
            syn::ReturnType::Type(_, ty) => Some(text_of(ty)),
            syn::ReturnType::Default => None,
        },
    }
}

fn docs(attributes: &[syn::Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => {
                Some(text.value().trim().to_owned())
            }
            _ => None,
        },
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn member(name: &str, kind: MemberKind, parameters: &[&str], returns: &str) -> Member {
        Member {
            name: name.into(),
            kind,
            signature: format!("fn {name}"),
            docs: format!("Docs of {name}."),
            parameters: parameters.iter().map(|p| (*p).to_owned()).collect(),
            returns: Some(returns.into()),
        }
    }

    fn assistant() -> Assistant {
        use MemberKind::{Function, Method};
        let mut index = Index::default();
        let mut entry = |name: &str, members: Vec<Member>, item: Option<&str>| {
            let item = item.map(str::to_owned);
            index.types.insert(name.into(), TypeEntry { members, item, ..TypeEntry::default() });
        };
        entry(
            "Accelerator",
            vec![
                member("new", Function, &[], "Result<Self>"),
                member("prepare", Method, &["P"], "Result<P>"),
            ],
            None,
        );
        entry("Loader", vec![member("len", Method, &[], "usize")], Some("Batch"));
        entry("Batch", vec![member("get", Method, &["&str"], "Result<&Tensor>")], None);
        entry("Tensor", vec![member("sum_all", Method, &[], "Result<Self>")], None);
        index.modules.insert("candle_accelerate".into(), vec!["data".into(), "Batch".into()]);
        let scope = Scope::default();
        scope.set(Definitions {
            variables: [("loader".to_owned(), "candle_accelerate::data::Loader".to_owned())].into(),
            items: vec![
                "/// A net.\nstruct Net { weight: Tensor }".into(),
                "impl Net { fn forward(&self) -> Tensor { todo!() } }".into(),
            ],
        });
        Assistant::new(index, scope)
    }

    fn complete(code: &str) -> Vec<String> {
        assistant().complete(code, code.len()).matches
    }

    #[test]
    fn methods_are_found_through_variables_calls_and_loops() {
        assert_eq!(complete("loader.l"), ["len"]);
        assert_eq!(complete("let a = Accelerator::new()?;\na.pre"), ["prepare"]);
        assert_eq!(complete("for batch in &loader {\n  batch.g"), ["get"]);
        assert_eq!(complete("for b in &loader {\n b.get(\"x\")?.su"), ["sum_all"]);
        assert_eq!(
            complete("let a = Accelerator::new()?;\nlet (l, t) = a.prepare((loader, 1))?;\nl."),
            Vec::<String>::new(),
        );
        assert_eq!(complete("let l = Accelerator::new()?.prepare(loader)?;\nl.l"), ["len"]);
    }

    #[test]
    fn own_types_paths_names_and_commands_are_completed() {
        assert_eq!(complete("let n = Net { weight: t };\nn."), ["weight", "forward"]);
        assert_eq!(complete("Accelerator::n"), ["new"]);
        assert_eq!(complete("use candle_accelerate::da"), ["data"]);
        assert_eq!(complete("load"), ["loader"]);
        assert_eq!(complete(":ti"), ["timing"]);
        assert_eq!(complete("println"), ["println!"]);
    }

    #[test]
    fn hidden_lines_of_examples_stay_hidden() {
        let docs = "# Errors\nNone.\n```\n# use a::b;\nb();\n```".to_owned();
        let documentation = Documentation { signature: String::new(), docs };
        assert_eq!(documentation.visible_docs(), "# Errors\nNone.\n```\nb();\n```");
    }

    #[test]
    fn inspection_shows_type_and_docs() {
        let inspect = |code: &str| assistant().inspect(code, code.len()).unwrap();
        assert_eq!(inspect("loader").signature, "loader: candle_accelerate::data::Loader");
        assert_eq!(inspect("loader.len").docs, "Docs of len.");
        assert_eq!(inspect("loader.len(").docs, "Docs of len.");
        assert_eq!(inspect("Net").docs, "A net.");
        assert_eq!(assistant().inspect("nothing_known", 3), None);
    }
}
