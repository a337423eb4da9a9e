//! Describes the machine, for readers to judge the measurements by.

use std::collections::BTreeMap;
use std::fs;
use std::time::SystemTime;

use kernel::clock;
use report::model::Machine;

use sandbox::command;

/// Describes this machine. Unknown facts are left empty.
pub fn describe() -> Machine {
    let cpuinfo = read("/proc/cpuinfo");
    let mut machine = Machine {
        kernel: read("/proc/sys/kernel/osrelease"),
        cpu: value(&cpuinfo, "model name", ':').unwrap_or_default(),
        cpus: std::thread::available_parallelism().map_or(0, |n| n.get() as u32),
        memory_bytes: memory(&read("/proc/meminfo")),
        product: read("/sys/class/dmi/id/product_name"),
        os: value(&read("/etc/os-release"), "PRETTY_NAME", '=').unwrap_or_default(),
        versions: versions(),
        command: std::env::args().collect::<Vec<_>>().join(" "),
        started: clock::rfc3339(SystemTime::now()),
        ..Machine::default()
    };
    if cpuinfo
        .lines()
        .any(|line| line.starts_with("flags") && line.split_whitespace().any(|f| f == "hypervisor"))
    {
        machine.notes.push(
            "A virtual machine: its neighbours move absolute figures; compare within one run."
                .into(),
        );
    }
    let pages = read("/sys/kernel/mm/transparent_hugepage/enabled");
    machine.notes.push(format!(
        "Transparent huge pages: {}.",
        if pages.is_empty() { "none" } else { &pages }
    ));
    machine.notes.push(format!(
        "Time stamp counter: {:.3} GHz.",
        crate::probe::tsc_ghz()
    ));
    machine
}

fn read(path: &str) -> String {
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// Value of the first line that starts with `key`, without quotes.
fn value(text: &str, key: &str, separator: char) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(
        line.split_once(separator)?
            .1
            .trim()
            .trim_matches('"')
            .to_owned(),
    )
}

/// Main memory in bytes, from `/proc/meminfo`.
fn memory(meminfo: &str) -> u64 {
    let kilobytes = value(meminfo, "MemTotal", ':')
        .and_then(|v| v.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.map_or(0, |kb| kb * 1024)
}

/// Versions of the programs used.
fn versions() -> BTreeMap<String, String> {
    let mut versions =
        BTreeMap::from([("parshall".to_owned(), env!("CARGO_PKG_VERSION").to_owned())]);
    for (name, argv) in [
        ("iproute2", ["ip", "-V"]),
        ("ethtool", ["ethtool", "--version"]),
    ] {
        if let Some(version) = command::run(&argv).ok().as_deref().and_then(version) {
            versions.insert(name.to_owned(), version.to_owned());
        }
    }
    versions
}

/// The first version in what a program says of itself: `ip utility, iproute2-6.1.0, libbpf 1.1.2`.
fn version(text: &str) -> Option<&str> {
    let words = text.split([' ', ',', '\n']);
    let mut versions = words.map(|word| word.trim_start_matches("iproute2-"));
    versions.find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_says_its_version_before_those_of_its_libraries() {
        for (text, wanted) in [
            ("ip utility, iproute2-6.1.0, libbpf 1.1.2\n", Some("6.1.0")),
            ("ip utility, iproute2-6.15.0\n", Some("6.15.0")),
            ("ethtool version 6.1\n", Some("6.1")),
            ("BusyBox\n", None),
        ] {
            assert_eq!(version(text), wanted, "{text}");
        }
    }

    #[test]
    fn this_machine_is_described() {
        let machine = describe();
        assert!(
            !machine.kernel.is_empty() && machine.cpus > 0 && machine.memory_bytes > 1 << 20,
            "{machine:?}"
        );
    }
}
