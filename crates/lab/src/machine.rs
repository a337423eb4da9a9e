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
        if let Ok(text) = command::run(&argv) {
            versions.insert(
                name.to_owned(),
                text.split_whitespace()
                    .last()
                    .unwrap_or_default()
                    .to_owned(),
            );
        }
    }
    versions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_described() {
        let machine = describe();
        assert!(
            !machine.kernel.is_empty() && machine.cpus > 0 && machine.memory_bytes > 1 << 20,
            "{machine:?}"
        );
    }
}
