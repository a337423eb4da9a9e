//! `check`, `plan` and `schema`: what they print, and their exit codes.

use std::process::Output;
use std::time::Duration;

use crate::harness::{PARSHALL, Spawn};

fn run(arguments: &[&str]) -> Output {
    let spawn = Spawn::new(PARSHALL).args(arguments);
    spawn.output(Duration::from_secs(20)).expect("it ends")
}

/// Exit code, standard output and standard error.
fn told(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = run(arguments);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

struct File(tempfile::NamedTempFile);

impl File {
    fn new(yaml: &str) -> Self {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), yaml).expect("a temporary file");
        File(file)
    }

    fn path(&self) -> &str {
        self.0.path().to_str().expect("a path")
    }
}

#[test]
fn a_file_is_checked() {
    let file = File::new("interfaces: { e0: { mpls: yes } }\n");
    let (code, out, err) = told(&["check", "-c", file.path()]);
    assert_eq!(
        (code, out),
        (Some(0), format!("{} is valid\n", file.path()))
    );
    assert!(err.starts_with("warning: interface e0 has mpls"), "{err}");

    let file = File::new("interfaces:\n  e0: { mtu: 1, lcp: X }\n  e1: { l2xc: e9 }\n");
    let (code, out, err) = told(&["check", "-c", file.path()]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    let errors = err.lines().filter(|line| line.starts_with("error: "));
    assert_eq!(errors.count(), 3, "{err}");
    assert!(
        err.contains(&format!("   --> {}:3:15", file.path())),
        "{err}"
    );

    let (code, _, err) = told(&["check", "-c", "/nonexistent/router.yaml"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("/nonexistent/router.yaml"), "{err}");
    assert_eq!(told(&["check"]).0, Some(2));
}

#[test]
fn files_are_compared() {
    let old = File::new("interfaces: { e0: { addresses: [ 192.0.2.1/24 ] } }\n");
    let new = File::new("interfaces: { e0: { mtu: 9000 } }\n");
    let plan = |more: &[&str]| {
        let mut arguments = vec!["plan", "-c", new.path(), "--offline", old.path()];
        arguments.extend(more);
        told(&arguments)
    };
    let (code, out, _) = plan(&[]);
    assert_eq!(code, Some(0));
    assert!(
        out.starts_with("~ interface e0\n    - address 192.0.2.1/24"),
        "{out}"
    );
    let (_, out, _) = plan(&["--steps"]);
    assert!(
        out.contains("\nprune\n   1 remove interface e0 address"),
        "{out}"
    );
    assert!(out.contains("(interrupts e0)"), "{out}");
    let (_, out, _) = plan(&["--json"]);
    let json: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(json["steps"][0]["phase"], "prune");

    let same = ["plan", "-c", new.path(), "--offline", new.path()];
    assert_eq!(told(&same), (Some(0), "no change\n".into(), String::new()));
    let wrong = File::new("interfaces: []\n");
    let (code, out, err) = told(&["plan", "-c", new.path(), "--offline", wrong.path()]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains(wrong.path()), "{err}");
}

#[test]
fn editors_get_a_schema() {
    let (code, out, _) = told(&["schema"]);
    let schema: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(code, Some(0));
    assert!(schema["properties"]["interfaces"].is_object());
}

#[test]
fn a_second_router_leaves_the_directory_to_the_first() {
    let file = File::new("netns: parshall-no-such\n");
    let state = tempfile::tempdir().expect("a directory");
    let held = control::history::hold(state.path(), |_| ()).expect("nobody has it");
    let directory = state.path().display().to_string();
    let arguments = ["run", "-c", file.path(), "--state", &directory];
    let (code, _, error) = told(&arguments);
    let number = std::process::id();
    let why = format!("run: directory {directory} is in use by another router (pid {number}): ");
    assert!(code == Some(1) && error.contains(&why), "{code:?} {error}");
    drop(held);
    let (_, _, error) = told(&arguments);
    assert!(!error.contains("is in use"), "{error}");
}
