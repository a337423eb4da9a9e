//! Waiting for programs that run.

use std::os::fd::{AsFd, AsRawFd};

use crate::error::Error;
use crate::map::{ARRAY, ARRAY_OF_MAPS, Map};
use crate::sys::MapSpec;

/// Waits until no XDP program runs any more that began before, on any processor.
///
/// The kernel does so when an element of a map of maps is set, so that afterwards no program uses
/// the old one (`maybe_wait_bpf_programs` in kernel/bpf/syscall.c: `synchronize_rcu`).
/// membarrier(2) would do as well, but not on a machine booted with `nohz_full`.
#[derive(Debug)]
pub struct Grace {
    of_maps: Map,
    element: Map,
}

impl Grace {
    /// Makes what is needed for it.
    ///
    /// # Errors
    /// [`Error::Permission`], or what the kernel says.
    pub fn new() -> Result<Self, Error> {
        let array = |kind| MapSpec {
            kind,
            key: 4,
            value: 4,
            entries: 1,
            flags: 0,
        };
        let element = Map::new(array(ARRAY), "grace_element")?;
        let of_maps = Map::of_maps(array(ARRAY_OF_MAPS), &element, "grace")?;
        Ok(Self { of_maps, element })
    }

    /// Waits: some milliseconds, beside busy programs a hundred and more. Nothing that was retired
    /// from the tables before is read afterwards.
    ///
    /// # Errors
    /// Error of the kernel: then nothing was waited for.
    pub fn wait(&self) -> Result<(), Error> {
        let element = self.element.as_fd().as_raw_fd() as u32;
        let set = self.of_maps.set(0, element);
        set.map_err(Error::doing("waiting for XDP programs"))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::thread;
    use std::time::Duration;

    use testbed::{Directory, command, patience, root_with, until};

    use super::*;
    use crate::map::Shared;
    use crate::object::Loaded;

    /// A program that takes its time, 0.3 s: it copies a megabyte again and again.
    const SLOW: &str = r#"
#include "common.bpf.h"
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(key_size, 4);
    __uint(value_size, 1 << 20);
    __uint(max_entries, 2);
} blocks SEC(".maps");
volatile __u64 began, ended;
SEC("xdp") int slow(struct xdp_md *ctx)
{
    __u32 from = 0, to = 1, i;
    void *block = bpf_map_lookup_elem(&blocks, &from);
    if (!block)
        return XDP_ABORTED;
    began = bpf_ktime_get_ns();
    for (i = 0; i < 8000 && bpf_ktime_get_ns() - began < 300000000; i++)
        bpf_map_update_elem(&blocks, &to, block, 0);
    ended = bpf_ktime_get_ns();
    return XDP_DROP;
}
char _license[] SEC("license") = "GPL";
"#;

    /// Its variables.
    #[repr(C)]
    struct Times {
        began: AtomicU64,
        ended: AtomicU64,
    }

    // SAFETY: repr(C), atomics.
    #[allow(unsafe_code)]
    unsafe impl Shared for Times {}

    fn compile() -> Vec<u8> {
        let machine = format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH);
        let bpf = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/bpf");
        let directory = Directory::new();
        let object = directory.path().join("slow.o").display().to_string();
        let clang = "clang -O2 -g -target bpf -mcpu=v3 -x c -c - -o";
        let mut clang: Vec<_> = clang.split(' ').collect();
        clang.extend([object.as_str(), &machine, bpf]);
        command::run_with(&clang, SLOW).expect("clang compiles it");
        std::fs::read(&object).expect("is there")
    }

    #[test]
    fn a_program_that_runs_is_waited_for() {
        if !root_with("a_program_that_runs_is_waited_for", &["clang"]) {
            return;
        }
        let _alone = testbed::alone();
        let program = Loaded::new(&compile(), "slow", &[]).expect("loads");
        let variables = program.map(".bss").mapping().expect("is mapped");
        let times = variables.view::<Times>();
        let grace = Grace::new().expect("makes maps");
        let limit = patience(Duration::from_secs(10));
        // On a busy machine it may be over before it is looked at.
        let caught = (0..50).any(|_| {
            times.began.store(0, Relaxed);
            times.ended.store(0, Relaxed);
            thread::scope(|scope| {
                scope.spawn(|| program.run_once(&[0; 64]).expect("runs"));
                assert!(until(limit, || times.began.load(Relaxed) != 0));
                let runs = times.ended.load(Relaxed) == 0;
                grace.wait().expect("waits");
                assert_ne!(times.ended.load(Relaxed), 0, "it still ran");
                runs
            })
        });
        assert!(caught, "it never ran when it was to be waited for");
    }
}
