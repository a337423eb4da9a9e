//! The committed objects are what their sources compile to, and what C knows of the tables is what
//! the tables say.
//!
//! `PARSHALL_GOLDEN=write cargo test -p xdp --test objects` writes `tables.h` anew; then run
//! `bpf/build.sh`.

use std::path::Path;
use std::process::Command;

#[test]
fn the_tables_are_told_to_c() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf/tables.h");
    let wanted = tables::layout::header();
    if std::env::var_os("PARSHALL_GOLDEN").is_some_and(|v| v == "write") {
        std::fs::write(&path, &wanted).expect("is writable");
    }
    let committed = std::fs::read_to_string(&path).expect("is committed");
    assert_eq!(committed, wanted);
}

#[test]
fn objects_are_those_of_the_sources() {
    let bpf = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf");
    let recorded = std::fs::read_to_string(bpf.join("CLANG_VERSION")).expect("is committed");
    if let Some(why) = missing(recorded.trim()) {
        println!("SKIP objects_are_those_of_the_sources: {why}");
        return;
    }
    let out = std::env::temp_dir().join(format!("parshall-xdp-objects-{}", std::process::id()));
    std::fs::create_dir_all(&out).expect("a temporary directory");
    let built = Command::new(bpf.join("build.sh"))
        .arg(&out)
        .output()
        .expect("the script runs");
    let same = ["live", "pass", "receiver", "router", "sink"].map(|name| {
        let object = format!("{name}.bpf.o");
        let fresh = std::fs::read(out.join(&object)).ok();
        (
            name,
            fresh.is_some() && fresh == std::fs::read(bpf.join(&object)).ok(),
        )
    });
    // Whatever came of it, it is not needed any more.
    drop(std::fs::remove_dir_all(&out));
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    for (name, same) in same {
        assert!(
            same,
            "{name}.bpf.o is not what its source compiles to; run crates/xdp/bpf/build.sh"
        );
    }
}

/// Newer loaders do not take definitions without types (section `maps`).
#[test]
fn maps_are_defined_by_their_types() {
    let bpf = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf");
    for (name, maps) in [
        ("live", 0),
        ("pass", 0),
        ("receiver", 1),
        ("router", 14),
        ("sink", 1),
    ] {
        let elf = std::fs::read(bpf.join(format!("{name}.bpf.o"))).expect("is committed");
        let object = aya_obj::Object::parse(&elf).expect("is an object");
        let (variables, defined): (Vec<_>, Vec<_>) = object
            .maps
            .values()
            .partition(|map| map.section_kind() == aya_obj::EbpfSectionKind::Bss);
        assert!(variables.len() <= 1, "{name}");
        assert_eq!(defined.len(), maps, "{name}");
        for map in defined {
            assert!(matches!(map, aya_obj::Map::Btf(_)), "{name}: {map:?}");
        }
    }
}

/// Reason why the objects cannot be built as they were.
fn missing(version: &str) -> Option<String> {
    let Ok(clang) = Command::new("clang").arg("--version").output() else {
        return Some("clang is not installed".to_owned());
    };
    let clang = String::from_utf8_lossy(&clang.stdout)
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned();
    if !clang.contains(&format!("version {version}.")) {
        return Some(format!(
            "the objects were made by clang {version}, here is {clang}"
        ));
    }
    if Command::new("llvm-strip")
        .arg("--version")
        .output()
        .is_err()
    {
        return Some("llvm-strip is not installed".to_owned());
    }
    let headers = Path::new("/usr/include/bpf/bpf_helpers.h").exists();
    (!headers).then(|| "libbpf-dev is not installed".to_owned())
}
