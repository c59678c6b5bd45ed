//! The items of all cells: functions, types, imports, macros, which every later cell sees.

use std::collections::BTreeSet;

use crate::cell::{ItemKey, words};

/// One item, or one leaf of a `use`.
#[derive(Clone)]
pub struct StoredItem {
    /// What a later item must share to replace it.
    pub keys: Vec<ItemKey>,
    /// Whether it defines a type or trait.
    pub defines_type: bool,
    /// Whether it is a leaf of a `use`.
    pub is_use: bool,
    /// Its source.
    pub text: String,
    /// The cell that it stands in.
    pub cell: usize,
    /// Where in the cell it starts.
    pub start: usize,
}

impl StoredItem {
    fn is_impl(&self) -> bool {
        matches!(&self.keys[..], [ItemKey::Unnamed(head)] if head.starts_with("impl"))
    }

    /// The types that it defines.
    fn types(&self) -> impl Iterator<Item = String> {
        self.keys.iter().filter(|_| self.defines_type).filter_map(|key| match key {
            ItemKey::Type(name) => Some(name.clone()),
            _ => None,
        })
    }
}

/// All items, in the order in which they were defined.
#[derive(Clone, Default)]
pub struct Items(Vec<StoredItem>);

impl Items {
    /// The items in order.
    pub fn iter(&self) -> std::slice::Iter<'_, StoredItem> {
        self.0.iter()
    }

    /// Forgets all but the first `count` items.
    pub fn truncate(&mut self, count: usize) {
        self.0.truncate(count);
    }

    /// Adds an item in place of those that it replaces. Returns the types that it defines anew.
    pub fn add(&mut self, item: StoredItem) -> BTreeSet<String> {
        let clashes = |old: &StoredItem| {
            old.keys.iter().any(|old| item.keys.iter().any(|new| new.clashes(old)))
        };
        let old = self.0.iter().find(|old| clashes(old)).cloned();
        self.0.retain(|old| !clashes(old));
        let redefined: BTreeSet<String> = match &old {
            Some(old) if old.text != item.text => item.types().collect(),
            _ => BTreeSet::new(),
        };
        if let Some(old) = old.filter(|_| !redefined.is_empty()) {
            // What stood in one cell with the old definition belongs to it.
            self.0.retain(|item| {
                item.cell != old.cell || !item.is_impl() || !mentions(&item.text, &redefined)
            });
        }
        self.0.push(item);
        redefined
    }

    /// These types and all that are made of them.
    pub fn with_dependents(&self, mut types: BTreeSet<String>) -> BTreeSet<String> {
        loop {
            let dependents: Vec<String> = self
                .0
                .iter()
                .filter(|item| mentions(&item.text, &types))
                .flat_map(StoredItem::types)
                .filter(|name| !types.contains(name))
                .collect();
            if dependents.is_empty() {
                return types;
            }
            types.extend(dependents);
        }
    }
}

/// Whether a text names one of these.
pub fn mentions(text: &str, names: &BTreeSet<String>) -> bool {
    words(text).iter().any(|word| names.contains(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(items: &mut Items, cell: usize, key: ItemKey, text: &str) -> Vec<String> {
        let defines_type = matches!(key, ItemKey::Type(_));
        let text = text.to_owned();
        let item =
            StoredItem { keys: vec![key], defines_type, is_use: false, text, cell, start: 0 };
        items.add(item).into_iter().collect()
    }

    fn texts(items: &Items) -> Vec<&str> {
        items.iter().map(|item| item.text.as_str()).collect()
    }

    #[test]
    fn a_type_that_is_defined_anew_takes_its_old_impls_along() {
        let mut items = Items::default();
        let net = || ItemKey::Type("Net".into());
        let head = |text: &str| ItemKey::Unnamed(text.into());
        assert!(add(&mut items, 1, net(), "struct Net;").is_empty());
        add(&mut items, 1, head("impl Net"), "impl Net { fn f() {} }");
        add(&mut items, 2, head("impl Show for Net"), "impl Show for Net {}");
        add(&mut items, 3, ItemKey::Type("Pair".into()), "struct Pair(Net, Net);");
        assert!(add(&mut items, 4, net(), "struct Net;").is_empty(), "the same text again");
        let redefined = add(&mut items, 5, net(), "struct Net { w: f32 }");
        assert_eq!(redefined, ["Net"]);
        assert!(texts(&items).contains(&"impl Show for Net {}"));
        let all = items.with_dependents(redefined.into_iter().collect());
        assert!(all.contains("Pair"));
    }

    #[test]
    fn an_import_and_a_definition_of_one_name_replace_each_other() {
        let mut items = Items::default();
        add(&mut items, 1, ItemKey::Imported("Net".into()), "use a::Net;");
        add(&mut items, 2, ItemKey::Type("Net".into()), "struct Net;");
        assert_eq!(texts(&items), ["struct Net;"]);
        add(&mut items, 3, ItemKey::Imported("Net".into()), "use b::Net;");
        assert_eq!(texts(&items), ["use b::Net;"]);
    }
}
