//! What fuzzing has found out so far, without a fuzzer: every seed, and each damaged in some ways,
//! must pass its check.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

mod api;
mod captures;
mod devices;
mod lacp;
mod memif;
mod netlink;
mod packets;
mod profiles;
mod rings;
mod rpc;
mod text;
mod yaml;

/// A target's name and check.
type Target = (&'static str, fn(&[u8]));

const TARGETS: &[Target] = &[
    ("api", api::check),
    ("captures", captures::check),
    ("devices", devices::check),
    ("lacp", lacp::check),
    ("memif", memif::check),
    ("netlink", netlink::check),
    ("packets", packets::check),
    ("profiles", profiles::check),
    ("rings", rings::check),
    ("rpc", rpc::check),
    ("text", text::check),
    ("yaml", yaml::check),
];

/// How often each seed is damaged.
const DAMAGED: u32 = 100;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// Names what failed.
struct Running(PathBuf, u32);

impl Drop for Running {
    fn drop(&mut self) {
        if thread::panicking() {
            println!("{}, damaged for the {}th time", self.0.display(), self.1);
        }
    }
}

/// xorshift: the same numbers every time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }

    fn damage(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(3) {
            let at = self.below(bytes.len() + 1);
            match self.below(4) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, self.below(256) as u8),
                2 => {
                    let end = (at + self.below(8)).min(bytes.len());
                    bytes.drain(at..end);
                }
                _ => {
                    let bit = 1 << self.below(8);
                    bytes.get_mut(at).into_iter().for_each(|byte| *byte ^= bit);
                }
            }
        }
    }
}

fn replay((name, check): Target) {
    let directory = fuzz().join("seeds").join(name);
    let seeds = fs::read_dir(&directory).expect("a directory of seeds");
    let mut seeds: Vec<_> = seeds.map(|entry| entry.expect("an entry").path()).collect();
    seeds.sort();
    assert!(seeds.len() > 3, "{name} has {} seeds", seeds.len());
    let mut random = Random(1);
    for path in seeds {
        let seed = fs::read(&path).expect("a seed");
        for times in 0..=DAMAGED {
            let _running = Running(path.clone(), times);
            let mut bytes = seed.clone();
            if times > 0 {
                random.damage(&mut bytes);
            }
            check(&bytes);
        }
    }
}

#[test]
fn every_target_passes_its_seeds() {
    thread::scope(|scope| {
        for target in TARGETS {
            let thread = thread::Builder::new().name(target.0.into());
            let replayed = thread.spawn_scoped(scope, || replay(*target));
            replayed.expect("a thread");
        }
    });
}

#[test]
fn fuzzer_and_test_know_the_same_targets() {
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).expect("a manifest");
    let named = manifest.lines().filter_map(|line| {
        let path = line.strip_prefix("path = \"fuzz_targets/")?;
        path.strip_suffix(".rs\"")
    });
    let mut named: Vec<_> = named.collect();
    named.sort_unstable();
    let ours: Vec<_> = TARGETS.iter().map(|(name, _)| *name).collect();
    assert_eq!(named, ours);
}
