//! The house's walls: who may use whom, what the engine may depend on, the sizes of files and
//! functions, and what the tests ask of a machine.

mod circles;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use testbed::Spawn;

/// Who may use whom of our own crates; nothing else. `app` is where everything comes together.
const MAY_USE: &[(&str, &[&str])] = &[
    (
        "app",
        &[
            "control", "daemon", "kernel", "lab", "loadgen", "report", "sandbox", "session",
            "terminal", "trex", "web", "ports", "router", "io", "xdp", "graph", "tables", "wire",
        ],
    ),
    (
        "daemon",
        &[
            "control", "router", "ports", "io", "xdp", "graph", "kernel", "tables",
        ],
    ),
    // `tables` for its map of routes by prefix: the kernel's routes are kept as the FIB's are.
    ("control", &["router", "kernel", "tables"]),
    ("router", &["graph", "tables", "wire"]),
    ("lab", &["sandbox", "loadgen", "report", "kernel"]),
    ("sandbox", &["kernel"]),
    // For tests only.
    ("testbed", &["sandbox"]),
    ("report", &["loadgen"]),
    (
        "session",
        &["loadgen", "ports", "io", "xdp", "graph", "kernel", "wire"],
    ),
    ("trex", &["session", "loadgen", "kernel", "wire"]),
    // `report` for the looks of its pages and the graph library.
    ("web", &["control", "kernel", "report", "watch"]),
    ("watch", &["control"]),
    ("terminal", &["watch", "trex", "loadgen", "kernel"]),
    ("loadgen", &["graph", "wire"]),
    // `wire` for capture files, and for checksums that nobody has finished.
    ("ports", &["io", "xdp", "graph", "kernel", "wire"]),
    ("io", &["graph", "kernel"]),
    ("xdp", &["tables", "kernel"]),
    ("graph", &[]),
    ("kernel", &[]),
    ("tables", &[]),
    ("wire", &[]),
];

/// Crates that run on workers, and all that they may use beside the standard library; loom only in
/// tests.
const ENGINE: &[&str] = &["graph", "tables", "wire"];
const ENGINE_MAY_USE: &[&str] = &["libc", "zerocopy", "loom"];

/// Where memory is touched by hand.
const UNSAFE: &[&str] = &["graph", "io", "kernel", "xdp", "tables"];

/// Longest file before its tests, and longest function, in lines.
const FILE: usize = 800;
const FUNCTION: usize = 100;

/// Words that say nothing about what is in a file or type.
const EMPTY_WORDS: &[&str] = &[
    "util", "utils", "helper", "helpers", "manager", "common", "misc",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Crates of the workspace and what each depends on outside of its tests.
fn dependencies() -> Vec<(String, Vec<String>)> {
    let metadata = ["metadata", "--format-version=1", "--no-deps", "--offline"];
    let manifest = root().join("Cargo.toml").display().to_string();
    let output = Spawn::new(env!("CARGO"))
        .args(metadata)
        .args(["--manifest-path", &manifest])
        .output(Duration::from_secs(60))
        .expect("cargo runs");
    assert!(output.status.success(), "{output:?}");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let name = |value: &Value| value["name"].as_str().expect("a name").to_owned();
    let packages = metadata["packages"].as_array().expect("packages").iter();
    packages
        .map(|package| {
            let all = package["dependencies"].as_array().expect("a list").iter();
            let used = all.filter(|dependency| dependency["kind"].is_null());
            (name(package), used.map(name).collect())
        })
        .collect()
}

#[test]
fn crates_use_whom_they_may() {
    let crates = dependencies();
    for (name, used) in &crates {
        let (_, may) = MAY_USE
            .iter()
            .find(|(row, _)| row == name)
            .unwrap_or_else(|| panic!("crate {name} has no row: whom may it use?"));
        for other in used {
            let ours = crates.iter().any(|(ours, _)| ours == other);
            assert!(
                !ours || may.contains(&other.as_str()),
                "{name} uses {other}, but may only use {may:?}"
            );
        }
    }
    assert_eq!(crates.len(), MAY_USE.len(), "a row without its crate");
}

#[test]
fn the_engine_stands_on_little() {
    let crates = dependencies();
    for (name, used) in crates.iter().filter(|(n, _)| ENGINE.contains(&n.as_str())) {
        let strangers: Vec<_> = used
            .iter()
            .filter(|other| !ENGINE_MAY_USE.contains(&other.as_str()))
            .collect();
        assert!(strangers.is_empty(), "{name} uses {strangers:?}");
    }
}

/// Every source file of the crates, with its text.
fn sources() -> Vec<(PathBuf, String)> {
    let found = sources_in(&["crates"]);
    assert!(found.len() > 100, "{} files only", found.len());
    found
}

fn sources_in(directories: &[&str]) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut directories: Vec<_> = directories.iter().map(|d| root().join(d)).collect();
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("text");
                found.push((path, text));
            }
        }
    }
    found
}

#[test]
fn memory_is_touched_by_hand_in_few_places() {
    for (path, text) in sources() {
        let place = path
            .strip_prefix(root().join("crates"))
            .expect("found there");
        let first = place.components().next().expect("a crate").as_os_str();
        let may = UNSAFE.iter().any(|name| first == *name);
        assert!(
            may || !text.contains("allow(unsafe_code"),
            "{}",
            path.display()
        );
    }
}

/// Programs never unwrap; tests may. `make lint` holds every crate to it that says so.
#[test]
fn no_program_unwraps() {
    const RULE: &str = "\n#![cfg_attr(not(test), deny(clippy::unwrap_used))]\n";
    let is_root = |path: &Path| {
        let is_program = path.iter().any(|part| part == "src");
        is_program && (path.ends_with("lib.rs") || path.ends_with("main.rs"))
    };
    let sources = sources();
    let roots: Vec<_> = sources.iter().filter(|(path, _)| is_root(path)).collect();
    assert!(roots.len() > dependencies().len(), "{} roots", roots.len());
    for (path, text) in roots {
        assert!(text.contains(RULE), "{} lacks{RULE}", path.display());
    }
}

#[test]
fn files_and_functions_are_short() {
    for (path, text) in sources() {
        let lines: Vec<&str> = text.lines().collect();
        let tests = lines.iter().position(|line| *line == "mod tests {");
        let length = tests.unwrap_or(lines.len());
        assert!(length <= FILE, "{} has {length} lines", path.display());
        for (start, line) in lines.iter().enumerate() {
            let Some(length) = function(line, &lines[start..]) else {
                continue;
            };
            let (path, number) = (path.display(), start + 1);
            assert!(length <= FUNCTION, "{path}:{number} has {length} lines");
        }
    }
}

/// Lines of the function that begins with this line, if one does. Code is formatted, so that it
/// ends with a brace in the column of its first word.
fn function(first: &str, lines: &[&str]) -> Option<usize> {
    let code = first.trim_start();
    let words: Vec<&str> = code.split_whitespace().collect();
    let keyword = words.iter().position(|word| *word == "fn")?;
    let qualifiers = ["pub", "const", "unsafe", "extern", "\"C\""];
    let declares = words[..keyword]
        .iter()
        .all(|word| qualifiers.contains(word) || word.starts_with("pub("));
    if !declares || code.ends_with(';') || code.ends_with('}') {
        return None;
    }
    let end = format!("{}}}", &first[..first.len() - code.len()]);
    lines.iter().position(|line| *line == end).map(|n| n + 1)
}

#[test]
fn names_say_something() {
    for (path, text) in sources() {
        let place = path.strip_prefix(root()).expect("found there");
        for part in place.with_extension("").iter() {
            let part = part.to_string_lossy().to_lowercase();
            assert!(!EMPTY_WORDS.contains(&part.as_str()), "{}", place.display());
        }
        for line in text.lines() {
            let mut words = line.split(|c: char| !c.is_alphanumeric());
            let declared = words
                .find(|word| ["struct", "enum", "trait"].contains(word))
                .and_then(|_| words.next())
                .unwrap_or_default();
            let empty = ["Manager", "Helper", "Util", "Utils"]
                .iter()
                .any(|word| declared.ends_with(word));
            assert!(!empty, "{}: {declared}", place.display());
        }
    }
}

/// Programs that every Debian has.
const EVERYWHERE: &[&str] = &["sh", "cat", "chown", "sleep"];

/// What is written where a program is called, up to its name.
const CALLS: &[&str] = &[
    "Command::new(\"",
    "Spawn::new(\"",
    "exec(&[\"",
    "run(&[\"",
    "exists(\"",
];

/// The programs that a source file names in such places, and in its calls of `skipped(NAME,
/// &[PROGRAMS])`.
fn programs(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for call in CALLS {
        let names = text.split(call).skip(1);
        found.extend(names.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
    }
    for rest in text.split("skipped(").skip(1) {
        let arguments = rest.split(')').next().unwrap_or_default();
        let names = arguments.split_once('[').map_or("", |(_, names)| names);
        let quoted = names.split('"').skip(1).step_by(2);
        found.extend(quoted.map(str::to_owned));
    }
    found
}

#[test]
fn programs_of_the_tests_are_installed_by_the_setup() {
    let setup = fs::read_to_string(root().join("scripts/setup.sh")).expect("the setup");
    let installed: Vec<&str> = setup
        .lines()
        .filter_map(|line| line.split(':').nth(1)?.rsplit('/').next())
        .collect();
    let mut called = 0;
    for (path, text) in sources_in(&["crates", "tests"]) {
        if path.ends_with("layering.rs") {
            continue;
        }
        for program in programs(&text) {
            called += 1;
            let there = EVERYWHERE.contains(&program.as_str())
                || installed.contains(&program.as_str())
                || program.starts_with("no-such-");
            assert!(there, "{}: {program}", path.display());
        }
    }
    assert!(called > 50, "{called} calls only");
}

/// Paths of ours that a text names between backquotes or as the target of a link.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| matches!(c, '`' | '(' | ')' | ':' | ',' | ' ' | '\n');
    text.split(ends).filter(|word| {
        let first = word.split('/').next().unwrap_or_default();
        word.contains('/') && ["crates", "docs", "scripts", "tests", "fuzz"].contains(&first)
    })
}

#[test]
fn the_docs_name_files_that_are_there() {
    let mut count = 0;
    for doc in [
        "README.md",
        "docs/architecture.md",
        "docs/add-a-node.md",
        "docs/add-a-plan-item.md",
        "docs/add-a-command.md",
        "docs/add-an-interface-kind.md",
        "docs/testing.md",
        "docs/lab.md",
        "docs/json.md",
    ] {
        let text = fs::read_to_string(root().join(doc)).expect("text");
        for path in named(&text) {
            count += 1;
            assert!(root().join(path).exists(), "{doc}: {path} is not there");
        }
    }
    assert!(count > 40, "{count} paths only");
}

/// Pages that follow something through the code, and the files that their pieces are from.
const PAGES: [(&str, usize, &[&str]); 3] = [
    (
        "docs/add-a-plan-item.md",
        5,
        &[
            "crates/control/src/plan/item.rs",
            "crates/control/src/plan/items.rs",
            "crates/control/src/plan/rules.rs",
            "crates/daemon/src/target.rs",
        ],
    ),
    (
        "docs/add-a-command.md",
        3,
        &[
            "crates/control/src/cli/commands.rs",
            "crates/daemon/src/answer.rs",
            "crates/daemon/src/warnings.rs",
        ],
    ),
    (
        "docs/add-an-interface-kind.md",
        4,
        &[
            "crates/control/src/config/desired.rs",
            "crates/daemon/src/interfaces/kind.rs",
            "crates/daemon/src/interfaces/loopback.rs",
            "crates/daemon/src/target.rs",
        ],
    ),
];

#[test]
fn pages_that_follow_the_code_show_it_as_it_is() {
    let read = |path: &str| fs::read_to_string(root().join(path)).expect(path);
    for (page, pieces, files) in PAGES {
        let text = read(page);
        let code: Vec<_> = files.iter().copied().map(read).collect();
        let blocks = text.split("```rust\n").skip(1);
        let blocks: Vec<&str> = blocks.filter_map(|rest| rest.split("```").next()).collect();
        assert!(
            blocks.len() >= pieces,
            "{page}: {} pieces of code only",
            blocks.len()
        );
        for block in blocks {
            let is_there = code.iter().any(|file| file.contains(block));
            assert!(is_there, "{page} is not the code:\n{block}");
        }
    }
}
