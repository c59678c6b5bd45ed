//! What completion and inspection know of the library: names, signatures and documentation, taken
//! from rustdoc when the library is built.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use rustdoc_types::{
    Crate, Function, GenericArg, GenericArgs, GenericBound, Id, Impl, Item, ItemEnum, StructKind,
    Type, VariantKind, Visibility,
};
use serde::{Deserialize, Serialize};

/// Names that cells can use, with their documentation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Index {
    /// Types and traits by name.
    pub types: BTreeMap<String, TypeEntry>,
    /// Free functions by name.
    pub functions: BTreeMap<String, Member>,
    /// What each module holds, by path: `candle_accelerate::data`.
    pub modules: BTreeMap<String, Vec<String>>,
}

/// A type or trait.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TypeEntry {
    /// Its declaration in a line.
    pub signature: String,
    /// Its documentation, Markdown.
    pub docs: String,
    /// Methods, associated functions, fields and variants.
    pub members: Vec<Member>,
    /// What a loop over it yields.
    pub item: Option<String>,
}

/// A function, method, field or variant.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: MemberKind,
    /// Its declaration in a line.
    pub signature: String,
    /// Its documentation, Markdown.
    pub docs: String,
    /// Parameter types, without `self`.
    pub parameters: Vec<String>,
    /// The type that it returns or has.
    pub returns: Option<String>,
}

/// What a [`Member`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemberKind {
    /// Called with a dot.
    Method,
    /// Called with the type's name.
    Function,
    /// Read with a dot.
    Field,
    /// Named with the type's name.
    Variant,
}

impl Index {
    /// Reads an index from `path`.
    pub fn load(path: &Path) -> Result<Self> {
        Ok(serde_json::from_slice(&fs::read(path)?)?)
    }

    /// Adds what rustdoc wrote about a crate.
    pub fn add(&mut self, rustdoc_json: &Path) -> Result<()> {
        let text = fs::read(rustdoc_json)?;
        let documented: Crate = serde_json::from_slice(&text)
            .with_context(|| format!("{} is in another format", rustdoc_json.display()))?;
        let Some(root) = documented.index.get(&documented.root) else { return Ok(()) };
        let path = root.name.clone().unwrap_or_default();
        Reader { documented: &documented, index: self }.module(root, &path, 0);
        Ok(())
    }
}

/// Modules are followed this deep, so that a cycle of re-exports ends.
const DEPTH: usize = 8;

struct Reader<'a> {
    documented: &'a Crate,
    index: &'a mut Index,
}

impl<'a> Reader<'a> {
    fn get(&self, id: &Id) -> Option<&'a Item> {
        self.documented.index.get(id)
    }

    fn module(&mut self, module: &'a Item, path: &str, depth: usize) {
        let ItemEnum::Module(contents) = &module.inner else { return };
        for id in &contents.items {
            self.member_of_module(id, path, None, depth);
        }
    }

    fn member_of_module(&mut self, id: &Id, path: &str, renamed: Option<&str>, depth: usize) {
        let Some(item) = self.get(id) else { return };
        if let ItemEnum::Use(import) = &item.inner {
            match import.id.as_ref().and_then(|id| self.get(id)) {
                Some(module) if import.is_glob && depth < DEPTH => {
                    self.module(module, path, depth + 1);
                }
                Some(_) if !import.is_glob => {
                    if let Some(id) = &import.id {
                        self.member_of_module(id, path, Some(&import.name), depth + 1);
                    }
                }
                // From another crate: its name at least.
                None if !import.is_glob => self.name(path, &import.name),
                _ => {}
            }
            return;
        }
        let Some(name) = renamed.or(item.name.as_deref()) else { return };
        let docs = item.docs.clone().unwrap_or_default();
        match &item.inner {
            ItemEnum::Module(_) => {
                self.name(path, name);
                if depth < DEPTH {
                    self.module(item, &format!("{path}::{name}"), depth + 1);
                }
            }
            ItemEnum::Function(function) => {
                self.name(path, name);
                let member = function_member(name, function, docs);
                self.index.functions.insert(name.to_owned(), member);
            }
            ItemEnum::Struct(data) => {
                self.name(path, name);
                let mut entry = self.entry(format!("struct {name}"), docs, &data.impls);
                if let StructKind::Plain { fields, .. } = &data.kind {
                    entry.members.extend(fields.iter().filter_map(|id| self.field(id)));
                }
                self.index.types.insert(name.to_owned(), entry);
            }
            ItemEnum::Enum(data) => {
                self.name(path, name);
                let mut entry = self.entry(format!("enum {name}"), docs, &data.impls);
                entry.members.extend(data.variants.iter().filter_map(|id| self.variant(id, name)));
                self.index.types.insert(name.to_owned(), entry);
            }
            ItemEnum::Trait(data) => {
                self.name(path, name);
                let mut entry =
                    TypeEntry { signature: format!("trait {name}"), docs, ..TypeEntry::default() };
                entry.members.extend(data.items.iter().filter_map(|id| self.function(id)));
                self.index.types.insert(name.to_owned(), entry);
            }
            ItemEnum::TypeAlias(alias) => {
                self.name(path, name);
                let signature = format!("type {name} = {}", show(&alias.type_));
                self.index
                    .types
                    .insert(name.to_owned(), TypeEntry { signature, docs, ..TypeEntry::default() });
            }
            ItemEnum::Constant { .. } | ItemEnum::Static(_) | ItemEnum::Macro(_) => {
                self.name(path, name);
            }
            _ => {}
        }
    }

    fn name(&mut self, module: &str, name: &str) {
        let names = self.index.modules.entry(module.to_owned()).or_default();
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }

    fn entry(&self, signature: String, docs: String, impls: &[Id]) -> TypeEntry {
        let mut entry = TypeEntry { signature, docs, ..TypeEntry::default() };
        for id in impls {
            let Some(ItemEnum::Impl(block)) = self.get(id).map(|item| &item.inner) else {
                continue;
            };
            self.add_impl(&mut entry, block);
        }
        entry
    }

    fn add_impl(&self, entry: &mut TypeEntry, block: &'a Impl) {
        if block.is_synthetic || block.blanket_impl.is_some() {
            return;
        }
        let Some(of) = &block.trait_ else {
            entry.members.extend(block.items.iter().filter_map(|id| self.function(id)));
            return;
        };
        let trait_name = of.path.rsplit("::").next().unwrap_or_default();
        if matches!(trait_name, "IntoIterator" | "Iterator") {
            let items = block.items.iter().filter_map(|id| self.get(id));
            let item = items.filter(|item| item.name.as_deref() == Some("Item")).find_map(|item| {
                match &item.inner {
                    ItemEnum::AssocType { type_: Some(ty), .. } => Some(show(ty)),
                    _ => None,
                }
            });
            entry.item = item.or(entry.item.take());
        }
        // Only this crate's own traits: everybody knows clone() and fmt().
        let Some(ItemEnum::Trait(definition)) = self.get(&of.id).map(|item| &item.inner) else {
            return;
        };
        for id in &definition.items {
            if let Some(member) = self.function(id)
                && !entry.members.iter().any(|known| known.name == member.name)
            {
                entry.members.push(member);
            }
        }
    }

    fn function(&self, id: &Id) -> Option<Member> {
        let item = self.get(id)?;
        let ItemEnum::Function(function) = &item.inner else { return None };
        // What stands in a trait has the trait's visibility.
        matches!(item.visibility, Visibility::Public | Visibility::Default).then(|| {
            let docs = item.docs.clone().unwrap_or_default();
            function_member(item.name.as_deref().unwrap_or_default(), function, docs)
        })
    }

    fn field(&self, id: &Id) -> Option<Member> {
        let item = self.get(id)?;
        let ItemEnum::StructField(ty) = &item.inner else { return None };
        let name = item.name.clone()?;
        (item.visibility == Visibility::Public).then(|| Member {
            signature: format!("{name}: {}", show(ty)),
            kind: MemberKind::Field,
            docs: item.docs.clone().unwrap_or_default(),
            parameters: Vec::new(),
            returns: Some(show(ty)),
            name,
        })
    }

    fn variant(&self, id: &Id, of: &str) -> Option<Member> {
        let item = self.get(id)?;
        let ItemEnum::Variant(variant) = &item.inner else { return None };
        let name = item.name.clone()?;
        let fields = match &variant.kind {
            VariantKind::Plain => String::new(),
            VariantKind::Tuple(_) => "(…)".to_owned(),
            VariantKind::Struct { .. } => " { … }".to_owned(),
        };
        Some(Member {
            signature: format!("{of}::{name}{fields}"),
            kind: MemberKind::Variant,
            docs: item.docs.clone().unwrap_or_default(),
            parameters: Vec::new(),
            returns: Some(of.to_owned()),
            name,
        })
    }
}

fn function_member(name: &str, function: &Function, docs: String) -> Member {
    let inputs = &function.sig.inputs;
    let is_method = inputs.first().is_some_and(|(name, _)| name == "self");
    let parameters: Vec<String> =
        inputs.iter().skip(usize::from(is_method)).map(|(_, ty)| show(ty)).collect();
    let shown: Vec<String> = inputs
        .iter()
        .map(|(name, ty)| match (name.as_str(), ty) {
            ("self", Type::BorrowedRef { is_mutable: true, .. }) => "&mut self".to_owned(),
            ("self", Type::BorrowedRef { .. }) => "&self".to_owned(),
            ("self", _) => "self".to_owned(),
            (name, ty) => format!("{name}: {}", show(ty)),
        })
        .collect();
    let returns = function.sig.output.as_ref().map(show);
    let arrow = returns.as_ref().map_or(String::new(), |ty| format!(" -> {ty}"));
    Member {
        name: name.to_owned(),
        kind: if is_method { MemberKind::Method } else { MemberKind::Function },
        signature: format!("fn {name}({}){arrow}", shown.join(", ")),
        docs,
        parameters,
        returns,
    }
}

/// A type as Rust source, with the last segment of each path.
fn show(ty: &Type) -> String {
    match ty {
        Type::ResolvedPath(path) => {
            let name = path.path.rsplit("::").next().unwrap_or_default();
            format!("{name}{}", path.args.as_deref().map_or(String::new(), show_args))
        }
        Type::Generic(name) | Type::Primitive(name) => name.clone(),
        Type::Tuple(types) => {
            format!("({})", types.iter().map(show).collect::<Vec<_>>().join(", "))
        }
        Type::Slice(ty) => format!("[{}]", show(ty)),
        Type::Array { type_, len } => format!("[{}; {len}]", show(type_)),
        Type::BorrowedRef { is_mutable, type_, .. } => {
            format!("&{}{}", if *is_mutable { "mut " } else { "" }, show(type_))
        }
        Type::RawPointer { is_mutable, type_ } => {
            format!("*{} {}", if *is_mutable { "mut" } else { "const" }, show(type_))
        }
        Type::ImplTrait(bounds) => format!("impl {}", show_bounds(bounds)),
        Type::DynTrait(dynamic) => {
            let traits: Vec<_> =
                dynamic.traits.iter().map(|bound| bound.trait_.path.clone()).collect();
            format!("dyn {}", traits.join(" + "))
        }
        Type::QualifiedPath { name, self_type, .. } => format!("{}::{name}", show(self_type)),
        Type::FunctionPointer(pointer) => {
            let inputs: Vec<_> = pointer.sig.inputs.iter().map(|(_, ty)| show(ty)).collect();
            let output = pointer.sig.output.as_ref().map(|ty| format!(" -> {}", show(ty)));
            format!("fn({}){}", inputs.join(", "), output.unwrap_or_default())
        }
        _ => "_".to_owned(),
    }
}

fn show_args(args: &GenericArgs) -> String {
    match args {
        GenericArgs::AngleBracketed { args, .. } => {
            let shown: Vec<_> = args
                .iter()
                .filter_map(|arg| match arg {
                    GenericArg::Type(ty) => Some(show(ty)),
                    GenericArg::Const(value) => Some(value.expr.clone()),
                    GenericArg::Lifetime(_) | GenericArg::Infer => None,
                })
                .collect();
            if shown.is_empty() { String::new() } else { format!("<{}>", shown.join(", ")) }
        }
        GenericArgs::Parenthesized { inputs, output } => {
            let inputs: Vec<_> = inputs.iter().map(show).collect();
            let output = output.as_ref().map(|ty| format!(" -> {}", show(ty)));
            format!("({}){}", inputs.join(", "), output.unwrap_or_default())
        }
        GenericArgs::ReturnTypeNotation => String::new(),
    }
}

fn show_bounds(bounds: &[GenericBound]) -> String {
    let traits: Vec<_> = bounds
        .iter()
        .filter_map(|bound| match bound {
            GenericBound::TraitBound { trait_, .. } => {
                let name = trait_.path.rsplit("::").next().unwrap_or_default();
                Some(format!("{name}{}", trait_.args.as_deref().map_or(String::new(), show_args)))
            }
            _ => None,
        })
        .collect();
    traits.join(" + ")
}
