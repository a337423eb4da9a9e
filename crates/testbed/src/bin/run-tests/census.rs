//! The things on the machine that tests could leave behind, counted before and after.
//!
//! Things that a living process holds belong to somebody else: all processes of the tests are ended
//! when it is counted. So does what carries the number of a living process in its name, as all that
//! is made by tests does.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use testbed::bpf;

use crate::{memory, seconds};

/// Memory that may be missing afterwards, in KiB: the kernel loads modules, and keeps pages for the
/// next process. The smallest set of a router's tables is more.
const TOLERANCE: u64 = 8 << 10;
/// Between two counts while the kernel still frees things.
const EVERY: Duration = Duration::from_millis(500);

/// Things that are there, each with whether a process held it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Census {
    things: BTreeMap<String, bool>,
    /// `VmallocUsed` in KiB.
    memory: u64,
}

impl Census {
    /// Counts what is there, once the kernel has freed what was released before.
    ///
    /// # Errors
    /// bpftool is missing; only root asks it.
    pub fn settled(root: bool) -> Result<Self, String> {
        let end = Instant::now() + seconds("PARSHALL_TEST_SETTLE", 10);
        let mut last = Self::take(root)?;
        loop {
            sleep(EVERY);
            let now = Self::take(root)?;
            if now.things == last.things || Instant::now() >= end {
                return Ok(now);
            }
            last = now;
        }
    }

    fn take(root: bool) -> Result<Self, String> {
        let mut things = BTreeMap::new();
        if root {
            let objects = bpf::objects()?.into_iter();
            things.extend(objects.map(|object| (object.text, object.held)));
        }
        let plain = namespaces()
            .into_iter()
            .chain(pins())
            .chain(devices())
            .chain(huge_pages());
        things.extend(plain.map(|thing| (thing, false)));
        Ok(Self {
            things,
            memory: memory::row("VmallocUsed"),
        })
    }

    /// Lists what is more than before and what is gone, once the kernel has had time to free what
    /// was used. Memory is compared only if the machine was ours `alone`.
    ///
    /// # Errors
    /// As [`settled`](Self::settled).
    pub fn compare(&self, root: bool, alone: bool) -> Result<Vec<String>, String> {
        let end = Instant::now() + seconds("PARSHALL_TEST_SETTLE", 10);
        loop {
            let differences = self.differences(&Self::take(root)?, alone);
            if differences.is_empty() || Instant::now() >= end {
                return Ok(differences);
            }
            sleep(EVERY);
        }
    }

    fn differences(&self, now: &Self, alone: bool) -> Vec<String> {
        let only = |these: &Self, those: &Self, word: &str| -> Vec<String> {
            let only = these.things.iter().filter(|(thing, held)| {
                !**held && !those.things.contains_key(*thing) && !of_the_living(thing)
            });
            only.map(|(thing, _)| format!("{word}: {thing}")).collect()
        };
        let mut differences = only(now, self, "more");
        let mut gone = only(self, now, "gone");
        // The kernel frees a BPF object some time after the last process that held it, whoever
        // that was: nobody can take one away.
        gone.retain(|line| stays(line.trim_start_matches("gone: ")));
        differences.extend(gone);
        if alone && now.memory > self.memory + TOLERANCE {
            let (before, now) = (self.memory >> 10, now.memory >> 10);
            differences.push(format!(
                "more: VmallocUsed, {before} MiB before, {now} MiB now"
            ));
        }
        differences
    }
}

/// True for what is there until somebody removes it.
fn stays(thing: &str) -> bool {
    ["network ", "pin ", "hugepages"]
        .iter()
        .any(|start| thing.starts_with(start))
}

/// True if the first number in the name of something that has one is that of a living process.
fn of_the_living(thing: &str) -> bool {
    if !thing.starts_with("network ") && !thing.starts_with("pin ") {
        return false;
    }
    let name = thing.rsplit(['/', ' ']).next().unwrap_or_default();
    let number = name
        .split(['-', '.'])
        .find_map(|part| part.parse::<u32>().ok());
    number.is_some_and(|pid| Path::new(&format!("/proc/{pid}")).exists())
}

fn names(directory: &str) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

fn namespaces() -> Vec<String> {
    let names = names("/run/netns").into_iter();
    names
        .map(|name| format!("network namespace {name}"))
        .collect()
}

/// Devices of the namespace that we are in.
fn devices() -> Vec<String> {
    let names = names("/sys/class/net").into_iter();
    names.map(|name| format!("network device {name}")).collect()
}

/// All files of all BPF file systems but `maps.debug` and `progs.debug`, which the kernel makes in
/// each.
fn pins() -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut directories: Vec<_> = mounts
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            let (path, kind) = (words.next()?, words.next()?);
            (kind == "bpf").then(|| path.into())
        })
        .collect();
    let mut pins = Vec::new();
    while let Some(directory) = directories.pop() {
        let directory: std::path::PathBuf = directory;
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            // Directories hold nothing in the kernel, and ip(8) makes some.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => directories.push(entry.path()),
                Ok(kind)
                    if kind.is_file() && entry.path().extension() != Some("debug".as_ref()) =>
                {
                    pins.push(format!("pin {}", entry.path().display()));
                }
                _ => {}
            }
        }
    }
    pins
}

/// Pages of each size, all and those in use.
fn huge_pages() -> Vec<String> {
    let directory = "/sys/kernel/mm/hugepages";
    let pages = names(directory).into_iter().map(|size| {
        let number = |file: &str| -> u64 {
            let text = fs::read_to_string(format!("{directory}/{size}/{file}"));
            text.ok()
                .and_then(|text| text.trim().parse().ok())
                .unwrap_or(0)
        };
        let all = number("nr_hugepages");
        let used = all.saturating_sub(number("free_hugepages"));
        format!("{size}: {used} used of {all}")
    });
    pages.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn census(things: &[(&str, bool)], memory: u64) -> Census {
        let things = things.iter().map(|&(thing, held)| (thing.to_owned(), held));
        Census {
            things: things.collect(),
            memory,
        }
    }

    #[test]
    fn what_is_more_and_what_is_gone_is_named() {
        let before = census(
            &[
                ("network device a", false),
                ("map 1", true),
                ("XDP program 1 router", false),
            ],
            1000,
        );
        let now = census(
            &[("network namespace n-4194304-1", false), ("map 2", true)],
            1000,
        );
        let differences = before.differences(&now, true);
        assert_eq!(
            differences,
            [
                "more: network namespace n-4194304-1",
                "gone: network device a"
            ]
        );
        assert_eq!(before.differences(&before, true), [""; 0]);
    }

    #[test]
    fn memory_counts_where_nobody_else_runs_tests() {
        let before = census(&[], 1000);
        let now = census(&[], 1001 + TOLERANCE);
        assert_eq!(before.differences(&now, true).len(), 1);
        assert!(before.differences(&now, false).is_empty());
        assert!(
            before
                .differences(&census(&[], 1000 + TOLERANCE), true)
                .is_empty()
        );
    }

    #[test]
    fn the_first_number_in_a_name_is_its_maker() {
        let living = std::process::id();
        assert!(of_the_living(&format!(
            "network namespace parshall-lab-{living}-0-x"
        )));
        assert!(!of_the_living("network namespace parshall-lab-4194304-1-x"));
        assert!(!of_the_living("XDP program 1 router"));
        assert!(!of_the_living("array map 1"));
    }
}
