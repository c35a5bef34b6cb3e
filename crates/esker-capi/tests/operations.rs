//! All that the engine and its transactions offer is there from C, or `operations.txt` says why not.
//!
//! The sources of both crates are parsed: what `lib.rs` exports, with the public functions, fields and variants of it. Each has to
//! stand in the list, with names that stand in `esker.h`, or with a reason; and the list has nothing else.

// All of it is tests.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::{Attribute, Fields, ImplItem, Item, TraitItem, Type, UseTree, Visibility};

/// Names of types, or of functions without one, and what belongs to them.
type Offered = BTreeMap<String, BTreeSet<String>>;

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn is_public(visibility: &Visibility, attributes: &[Attribute]) -> bool {
    matches!(visibility, Visibility::Public(_)) && !is_marked(attributes, "doc", "hidden")
}

/// Whether an attribute `name` has the word in it.
fn is_marked(attributes: &[Attribute], name: &str, word: &str) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident(name)
            && attribute
                .parse_args::<syn::Ident>()
                .is_ok_and(|ident| ident == word)
    })
}

/// The names that a `use` brings, and what they are called where they come from.
fn brought(tree: &UseTree, names: &mut Vec<(String, String)>) {
    match tree {
        UseTree::Path(path) => brought(&path.tree, names),
        UseTree::Group(group) => group.items.iter().for_each(|tree| brought(tree, names)),
        UseTree::Name(name) => names.push((name.ident.to_string(), name.ident.to_string())),
        UseTree::Rename(rename) => names.push((rename.rename.to_string(), rename.ident.to_string())),
        UseTree::Glob(_) => {}
    }
}

/// The files of Rust below a folder, without those of tests.
fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        if path.is_dir() {
            if stem != "tests" {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") && stem != "tests" {
            found.push(path);
        }
    }
}

fn parsed(path: &Path) -> Vec<Item> {
    syn::parse_file(&std::fs::read_to_string(path).unwrap())
        .unwrap()
        .items
}

/// What a module exports by name: re-exports, its own items, and what its public modules export.
fn exported(items: &[Item], dir: &Path, names: &mut BTreeSet<String>) {
    for item in items {
        match item {
            Item::Use(item) if is_public(&item.vis, &item.attrs) => {
                let mut all = Vec::new();
                brought(&item.tree, &mut all);
                names.extend(all.into_iter().map(|(name, _)| name));
            }
            Item::Mod(item) if is_public(&item.vis, &item.attrs) => {
                let name = item.ident.to_string();
                let (file, folder) = (dir.join(format!("{name}.rs")), dir.join(&name));
                let file = if file.exists() {
                    file
                } else {
                    folder.join("mod.rs")
                };
                exported(&parsed(&file), &folder, names);
            }
            Item::Struct(item) if is_public(&item.vis, &item.attrs) => {
                names.insert(item.ident.to_string());
            }
            Item::Enum(item) if is_public(&item.vis, &item.attrs) => {
                names.insert(item.ident.to_string());
            }
            Item::Fn(item) if is_public(&item.vis, &item.attrs) => {
                names.insert(item.sig.ident.to_string());
            }
            _ => {}
        }
    }
}

/// Adds what the items of a module offer, of the names that are exported.
fn look(items: &[Item], names: &BTreeSet<String>, offered: &mut Offered) {
    let add = |offered: &mut Offered, of: String, what: Vec<String>| {
        if names.contains(&of) {
            offered.entry(of).or_default().extend(what);
        }
    };
    for item in items {
        match item {
            Item::Struct(item) if is_public(&item.vis, &item.attrs) => {
                let fields = match &item.fields {
                    Fields::Named(fields) => fields.named.iter().collect(),
                    _ => Vec::new(),
                };
                let fields = fields
                    .into_iter()
                    .filter(|field| is_public(&field.vis, &field.attrs))
                    .map(|field| field.ident.as_ref().unwrap().to_string());
                add(offered, item.ident.to_string(), fields.collect());
            }
            Item::Enum(item) if is_public(&item.vis, &item.attrs) => {
                let variants = item.variants.iter().map(|variant| variant.ident.to_string());
                add(offered, item.ident.to_string(), variants.collect());
            }
            Item::Trait(item) if is_public(&item.vis, &item.attrs) => {
                let functions = item.items.iter().filter_map(|item| match item {
                    TraitItem::Fn(function) => Some(function.sig.ident.to_string()),
                    _ => None,
                });
                add(offered, item.ident.to_string(), functions.collect());
            }
            Item::Impl(item) if item.trait_.is_none() => {
                let Type::Path(path) = &*item.self_ty else {
                    continue;
                };
                let functions = item.items.iter().filter_map(|item| match item {
                    ImplItem::Fn(function) if is_public(&function.vis, &function.attrs) => {
                        Some(function.sig.ident.to_string())
                    }
                    _ => None,
                });
                add(
                    offered,
                    path.path.segments.last().unwrap().ident.to_string(),
                    functions.collect(),
                );
            }
            Item::Fn(item) if is_public(&item.vis, &item.attrs) => {
                add(offered, item.sig.ident.to_string(), vec![String::new()]);
            }
            Item::Macro(item) => {
                // What it makes is public if it says so, whatever it makes it for.
                let text = item.mac.tokens.to_string();
                let functions: BTreeSet<String> = text
                    .split("pub fn ")
                    .skip(1)
                    .map(|rest| rest.split([' ', '(', '<']).next().unwrap().to_owned())
                    .collect();
                let last = item.mac.path.segments.last().map(|segment| &segment.ident);
                let name = item.ident.as_ref().or(last).unwrap();
                if !functions.is_empty() {
                    offered.entry(format!("{name}!")).or_default().extend(functions);
                }
                continue;
            }
            Item::Mod(item) if !is_marked(&item.attrs, "cfg", "test") => {
                if let Some((_, items)) = &item.content {
                    look(items, names, offered);
                }
                continue;
            }
            _ => {}
        }
    }
}

/// What a crate offers, by the names of the list: `crate::Type`.
fn offered_by(name: &str, source: &Path) -> Offered {
    let mut names = BTreeSet::new();
    exported(&parsed(&source.join("lib.rs")), source, &mut names);
    let mut paths = Vec::new();
    sources(source, &mut paths);
    let files: Vec<Vec<Item>> = paths.iter().map(|path| parsed(path)).collect();
    // What is exported under another name than its own.
    for item in files.iter().flatten() {
        if let Item::Use(item) = item {
            let mut all = Vec::new();
            brought(&item.tree, &mut all);
            for (to, from) in all {
                if to != from && names.contains(&to) {
                    names.insert(from);
                }
            }
        }
    }
    let mut offered = Offered::new();
    for items in &files {
        look(items, &names, &mut offered);
    }
    offered
        .into_iter()
        .map(|(of, what)| (format!("{name}::{of}"), what))
        .collect()
}

fn offered() -> Offered {
    let crates = folder().parent().unwrap();
    let mut all = offered_by("esker", &crates.join("esker/src"));
    all.extend(offered_by("esker_txn", &crates.join("esker-txn/src")));
    all
}

/// The list: for each name of a type what it says of it as a whole, or of what belongs to it.
#[derive(Default, Debug)]
struct Listed {
    reason: Option<String>,
    members: BTreeMap<String, Vec<String>>,
}

/// The name of a function or field, or of a variant in capitals.
fn as_in_c(member: &str) -> String {
    let is_variant = member.starts_with(|first: char| first.is_ascii_uppercase());
    let mut name = String::new();
    for (at, letter) in member.char_indices() {
        if is_variant && at > 0 && letter.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(if is_variant {
            letter.to_ascii_uppercase()
        } else {
            letter
        });
    }
    name
}

/// Reads the list, whose head says how it is written; and what is wrong with it.
fn listed(text: &str) -> (BTreeMap<String, Listed>, Vec<String>) {
    let mut all: BTreeMap<String, Listed> = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut current = String::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let is_member = line.starts_with(' ');
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let (what, said) = match (line.split_once(" = "), line.split_once(": ")) {
            (Some((what, names)), _) => (what, names.split_whitespace().map(str::to_owned).collect()),
            (None, Some((what, _))) => (what, Vec::new()),
            (None, None) if !is_member => (line, vec![String::new()]),
            (None, None) => {
                wrong.push(format!("'{line}' has neither a function nor a reason"));
                continue;
            }
        };
        if !is_member {
            what.clone_into(&mut current);
            let mut of = Listed::default();
            if said.is_empty() {
                of.reason = Some(line.to_owned());
            } else if said != [""] {
                // A function without a type.
                of.members.insert(String::new(), said);
            }
            if all.insert(current.clone(), of).is_some() {
                wrong.push(format!("{current} stands there twice"));
            }
            continue;
        }
        let of = all.entry(current.clone()).or_default();
        for member in what.split_whitespace() {
            let names = said.iter().map(|name| name.replace('*', &as_in_c(member)));
            if of.members.insert(member.to_owned(), names.collect()).is_some() {
                wrong.push(format!("{current}::{member} stands there twice"));
            }
        }
    }
    (all, wrong)
}

/// What is missing in the list, or too much.
fn compare(offered: &Offered, list: &str, header: &str) -> Vec<String> {
    let is_part = |next: char| next.is_ascii_alphanumeric() || next == '_';
    let known: BTreeSet<&str> = header.split(|next| !is_part(next)).collect();
    let (listed, mut wrong) = listed(list);
    for (of, members) in offered {
        let Some(list) = listed.get(of) else {
            wrong.push(format!("{of} is not in the list, with {members:?}"));
            continue;
        };
        if list.reason.is_some() {
            continue;
        }
        for member in members {
            if !list.members.contains_key(member) {
                wrong.push(format!("{of}::{member} is not in the list"));
            }
        }
    }
    for (of, list) in &listed {
        let members = offered.get(of);
        if members.is_none() {
            wrong.push(format!("{of} is in the list, and nowhere else"));
        }
        for (member, names) in &list.members {
            if members.is_some_and(|members| !members.contains(member)) {
                wrong.push(format!("{of}::{member} is in the list, and nowhere else"));
            }
            for name in names.iter().flat_map(|name| name.split('.')) {
                if !known.contains(name) {
                    wrong.push(format!("{name}, of {of}::{member}, is not in esker.h"));
                }
            }
        }
    }
    wrong
}

#[test]
fn all_that_is_offered_is_there_from_c() {
    let list = std::fs::read_to_string(folder().join("tests/operations.txt")).unwrap();
    let header = std::fs::read_to_string(folder().join("include/esker.h")).unwrap();
    let offered = offered();
    assert!(offered.contains_key("esker::Db") && offered["esker::Db"].len() > 60);
    assert!(offered["esker_txn::Transaction"].contains("commit") && offered.len() > 60);
    let wrong = compare(&offered, &list, &header);
    assert!(
        wrong.is_empty(),
        "a C function in crates/esker-capi/src and a line in tests/operations.txt, or a reason there:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn what_is_missing_or_too_much_is_found() {
    let offered = Offered::from([
        (
            "a::Db".to_owned(),
            BTreeSet::from(["get".to_owned(), "put".to_owned()]),
        ),
        ("a::repair".to_owned(), BTreeSet::from([String::new()])),
        ("a::Dump".to_owned(), BTreeSet::from(["rows".to_owned()])),
    ]);
    let list = "# A list.\na::Db\n  get = c_* c_options.how\n  put: never\na::repair = c_repair\na::Dump: for people\n";
    let header = "int c_get(c_options); how; c_repair;";
    assert_eq!(compare(&offered, list, header), [""; 0]);
    let wrong = |list: &str| compare(&offered, list, header).join("; ");
    assert_eq!(
        wrong(&list.replace("  put: never\n", "")),
        "a::Db::put is not in the list"
    );
    assert_eq!(
        wrong(&list.replace("put: never", "put")),
        "'put' has neither a function nor a reason; a::Db::put is not in the list"
    );
    assert_eq!(
        wrong(&list.replace("a::repair = c_repair\n", "")),
        "a::repair is not in the list, with {\"\"}"
    );
    assert_eq!(
        wrong(&list.replace("c_* ", "c_set ")),
        "c_set, of a::Db::get, is not in esker.h"
    );
    assert_eq!(
        wrong(&list.replace("put:", "put pot:")),
        "a::Db::pot is in the list, and nowhere else"
    );
    assert_eq!(
        wrong(&list.replace("put:", "put get:")),
        "a::Db::get stands there twice"
    );
}

#[test]
fn names_of_variants_are_in_capitals() {
    assert_eq!(as_in_c("HeldBack"), "HELD_BACK");
    assert_eq!(as_in_c("Level0Full"), "LEVEL0_FULL");
    assert_eq!(as_in_c("table_bytes"), "table_bytes");
}

#[test]
fn what_is_public_is_seen() {
    let code = "pub struct Db { pub field: u8, hidden: u8 } impl Db { pub fn put(&self) {} fn own(&self) {} \
                pub(crate) fn inner(&self) {} #[doc(hidden)] pub fn bare(&self) {} } impl Drop for Db { fn drop(&mut self) {} } \
                pub enum Kind { A, B(u8) } pub trait Hook { fn call(&self); } pub fn free() {} struct Other; \
                impl Other { pub fn no(&self) {} } #[cfg(test)] mod tests { impl Db { pub fn test(&self) {} } } \
                macro_rules! writes { () => { pub fn merge(&self) {} } }";
    let names = ["Db", "Kind", "Hook", "free"].map(str::to_owned).into();
    let mut offered = Offered::new();
    look(&syn::parse_file(code).unwrap().items, &names, &mut offered);
    let all: Vec<String> = offered
        .iter()
        .map(|(of, what)| format!("{of} {}", what.iter().cloned().collect::<Vec<_>>().join(" ")))
        .collect();
    assert_eq!(
        all,
        ["Db field put", "Hook call", "Kind A B", "free ", "writes! merge"]
    );
}
