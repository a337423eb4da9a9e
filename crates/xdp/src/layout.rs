//! Checks that structures which a program and we share are laid out alike: asked of the compiler
//! that makes the programs.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Expressions of C, and what they must be.
pub(crate) type Facts = Vec<(String, usize)>;

/// Offsets of all fields of a structure, and its size. Fields are named as in C; where ours has
/// another name, both.
macro_rules! facts {
    (@name $ours:ident) => { stringify!($ours) };
    (@name $ours:ident $theirs:ident) => { stringify!($theirs) };
    ($c:literal as $ours:ty: $($field:ident $(= $theirs:ident)?),+ $(,)?) => {{
        let mut facts: $crate::layout::Facts = vec![(format!("sizeof(struct {})", $c), size_of::<$ours>())];
        $({
            let name = $crate::layout::facts!(@name $field $($theirs)?).trim_start_matches('_');
            let offset = format!("__builtin_offsetof(struct {}, {name})", $c);
            facts.push((offset, std::mem::offset_of!($ours, $field)));
        })+
        facts
    }};
}
pub(crate) use facts;

/// Compiles `source` with these facts asserted.
pub(crate) fn agree(test: &str, source: &str, facts: &Facts) {
    if !Path::new("/usr/include/bpf/bpf_helpers.h").exists() {
        return println!("SKIP {test}: libbpf-dev is not installed");
    }
    let mut program = format!("#include \"{source}\"\n");
    for (expression, value) in facts {
        let text = format!("{expression} is {value}");
        program += &format!("_Static_assert({expression} == {value}, \"{text}\");\n");
    }
    let machine = format!("/usr/include/{}-linux-gnu", std::env::consts::ARCH);
    let clang = Command::new("clang")
        .args(["-target", "bpf", "-fsyntax-only", "-I", &machine])
        .args(["-I", concat!(env!("CARGO_MANIFEST_DIR"), "/bpf")])
        .args(["-x", "c", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut clang) = clang else {
        return println!("SKIP {test}: clang is not installed");
    };
    let mut stdin = clang.stdin.take().expect("is piped");
    stdin.write_all(program.as_bytes()).expect("clang reads");
    drop(stdin);
    let output = clang.wait_with_output().expect("clang ends");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}
