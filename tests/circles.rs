//! No circles between the files of a crate: what one file uses does not use that file in turn.
//!
//! A file uses another where it names something out of it, in a `use` or in the code. A name that a
//! `mod.rs` or `lib.rs` only passes on (`pub use`) counts as that of the file which it comes from.
//! The files of a folder may use what the folder's own file says to all of them: that is no arrow.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Where a file stands in its crate: the names of its modules, none for the crate's root.
type Module = Vec<String>;

#[test]
fn no_file_needs_one_that_needs_it() {
    let roots = roots();
    assert!(roots.len() >= 12, "{} crates only", roots.len());
    let circles: Vec<String> = roots.iter().flat_map(|root| circles(root)).collect();
    assert!(circles.is_empty(), "{circles:#?}");
}

/// Also one that goes by names that are passed on, or by paths within the code; not what a file
/// says to its folder.
#[test]
fn circles_are_found() {
    let directory = tempfile::tempdir().expect("a directory");
    for (file, code) in [
        (
            "lib.rs",
            "mod a;\nmod b;\nmod c;\npub use a::{Thing, other::X as Y};",
        ),
        ("a.rs", "pub struct Thing;\nfn f() { crate::b::g(); }"),
        (
            "b.rs",
            "use std::io;\nuse crate::{c::C, Thing};\npub fn g() {}",
        ),
        (
            "c.rs",
            "pub mod below;\npub struct C;\nuse below::D; // use crate::b::g;",
        ),
        (
            "c/below.rs",
            "use super::C;\npub struct D;\nmod tests {\nuse crate::a::Thing;",
        ),
    ] {
        let path = directory.path().join(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, code).expect("a file");
    }
    let circles = circles(&directory.path().join("lib.rs"));
    let arrows: Vec<_> = circles.iter().filter_map(|c| c.split_once(": ")).collect();
    let arrows: Vec<_> = arrows.into_iter().map(|(_, arrow)| arrow).collect();
    assert_eq!(arrows, ["a uses b", "b uses a"]);
}

/// The root files of all libraries and programs.
fn roots() -> Vec<PathBuf> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for source in entries(&crates).into_iter().map(|path| path.join("src")) {
        let programs = entries(&source.join("bin")).into_iter();
        found.extend(["lib.rs", "main.rs"].map(|name| source.join(name)));
        found.extend(programs.map(|program| program.join("main.rs")));
    }
    found.retain(|path| path.is_file());
    found
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    entries.flatten().map(|entry| entry.path()).collect()
}

/// The files of a crate.
#[derive(Default)]
struct Crate {
    /// Code by module, without tests.
    files: BTreeMap<Module, String>,
    /// Names that a module passes on: to what they stand for.
    passed_on: BTreeMap<(Module, String), Module>,
}

/// The arrows of the crate with this root that are part of a circle.
fn circles(root: &Path) -> Vec<String> {
    let directory = root.parent().expect("a directory");
    let mut code = Crate::default();
    code.read(directory, &Module::new());
    let (mut used, files) = (Vec::new(), code.files.clone());
    for (module, text) in &files {
        used.extend(code.names(module, text));
    }
    let mut arrows: BTreeMap<&Module, BTreeSet<Module>> = BTreeMap::new();
    for (module, name) in &used {
        let other = code.file_of(name, 0);
        if !module.starts_with(&other) {
            arrows.entry(module).or_default().insert(other);
        }
    }
    let mut found = Vec::new();
    for (from, to) in arrows
        .iter()
        .flat_map(|(from, to)| to.iter().map(move |to| (from, to)))
    {
        let mut reached = BTreeSet::from([to]);
        let mut open = vec![to];
        while let Some(module) = open.pop() {
            let next = arrows.get(module).into_iter().flatten();
            open.extend(next.filter(|module| reached.insert(module)));
        }
        if reached.contains(from) {
            let (from, to) = (from.join("::"), to.join("::"));
            found.push(format!("{}: {from} uses {to}", directory.display()));
        }
    }
    found
}

impl Crate {
    /// Reads the files below a directory, whose own module is given.
    fn read(&mut self, directory: &Path, module: &Module) {
        for path in entries(directory) {
            let name = path.file_stem().expect("a name").to_string_lossy();
            let below = [&module[..], &[name.to_string()]].concat();
            if path.is_dir() {
                // Programs have roots of their own.
                if !(module.is_empty() && name == "bin") {
                    self.read(&path, &below);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let own = ["mod", "lib", "main"].contains(&&*name);
                let text = fs::read_to_string(&path).expect("text");
                let code = text.split("\nmod tests {").next().unwrap_or_default();
                let lines = code
                    .lines()
                    .map(|line| line.split("//").next().unwrap_or_default());
                let code = lines.collect::<Vec<_>>().join("\n");
                self.files
                    .insert(if own { module.clone() } else { below }, code);
            }
        }
    }

    /// The names of this crate that a module uses; notes those that it passes on.
    fn names(&mut self, module: &Module, text: &str) -> Vec<(Module, Module)> {
        let (mut names, mut rest) = (Vec::new(), String::new());
        for statement in text.split_inclusive(';') {
            let Some((before, is_public, tree)) = use_statement(statement) else {
                rest.push_str(statement);
                continue;
            };
            rest.push_str(before);
            for leaf in leaves(tree) {
                let (path, name) = leaf.split_once(" as ").unwrap_or((&leaf, &leaf));
                let Some(path) = self.absolute(module, path) else {
                    continue;
                };
                if is_public {
                    let name = name.rsplit("::").next().unwrap_or_default().to_owned();
                    self.passed_on.insert((module.clone(), name), path);
                } else {
                    names.push((module.clone(), path));
                }
            }
        }
        let words = rest.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
        for word in words.filter(|word| word.contains("::")) {
            names.extend(
                self.absolute(module, word)
                    .map(|path| (module.clone(), path)),
            );
        }
        names
    }

    /// A path as it is written in a module, from the crate's root; `None`: it leads out of the
    /// crate.
    fn absolute(&self, module: &Module, path: &str) -> Option<Module> {
        let mut names: Vec<&str> = path.split("::").map(str::trim).collect();
        names.retain(|name| *name != "self");
        let mut base = module.clone();
        match *names.first()? {
            "crate" => base.clear(),
            "super" => {}
            first => {
                base.push(first.to_owned());
                return self.files.contains_key(&base).then(|| {
                    base.extend(names[1..].iter().map(|name| name.to_string()));
                    base
                });
            }
        }
        for name in names {
            match name {
                "crate" => {}
                "super" => drop(base.pop()),
                name => base.push(name.to_owned()),
            }
        }
        Some(base)
    }

    /// The file that something comes from, by its path.
    fn file_of(&self, path: &Module, depth: usize) -> Module {
        let known = |length: &usize| self.files.contains_key(&path[..*length]);
        let length = (0..=path.len()).rev().find(known).unwrap_or(0);
        let (module, rest) = path.split_at(length);
        let passed_on = rest.first().and_then(|name| {
            let name = (module.to_vec(), name.clone());
            self.passed_on.get(&name)
        });
        match passed_on {
            Some(path) if depth < 8 => self.file_of(&[&path[..], &rest[1..]].concat(), depth + 1),
            _ => module.to_vec(),
        }
    }
}

/// A `use` at the end of some code that ends with a semicolon: what stands before it, whether it is
/// public, its tree.
fn use_statement(code: &str) -> Option<(&str, bool, &str)> {
    let mut before = 0;
    for line in code.split_inclusive('\n') {
        let (visibility, _) = line.trim_start().split_once("use ").unwrap_or((".", ""));
        let is_public = visibility.starts_with("pub") && visibility.ends_with(' ');
        if is_public || visibility.is_empty() {
            let (_, tree) = code[before..].split_once("use ")?;
            return Some((&code[..before], is_public, tree.trim_end_matches(';')));
        }
        before += line.len();
    }
    None
}

/// All paths of a tree: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn leaves(tree: &str) -> Vec<String> {
    let Some((stem, rest)) = tree.split_once('{') else {
        return vec![tree.trim().to_owned()];
    };
    let (branches, _) = rest.rsplit_once('}').unwrap_or((rest, ""));
    let mut depth = 0;
    let between = |c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    };
    let branches = branches.split(between).map(str::trim);
    let below = branches
        .filter(|branch| !branch.is_empty())
        .flat_map(leaves);
    below.map(|leaf| format!("{}{leaf}", stem.trim())).collect()
}
