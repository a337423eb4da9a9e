//! What the scenarios stand on: two hosts with a router between them, raw packets, and the router's process.

pub mod craft;
pub mod packet;
pub mod random;
pub mod router;
pub mod topology;

use std::time::Duration;

pub use lab::{Netns, Process, Spawn, process::until};
pub use packet::Raw;
pub use router::Router;
pub use topology::Hosts;

/// The binary under test.
pub const PARSHALL: &str = env!("CARGO_BIN_EXE_parshall");

/// Nothing takes this long unless something is wrong. Not a claim about speed.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// True, after printing the line that the summary counts, if the scenario cannot run here.
pub fn skipped(name: &str, programs: &[&str]) -> bool {
    if !lab::cleanup::is_root() {
        println!("SKIP {name}: needs root for network namespaces");
        return true;
    }
    let missing: Vec<&str> = programs
        .iter()
        .copied()
        .filter(|program| !lab::command::exists(program))
        .collect();
    if !missing.is_empty() {
        println!("SKIP {name}: not installed: {}", missing.join(", "));
    }
    !missing.is_empty()
}

/// Runs a closure on a thread of its own inside a namespace and returns what it returns.
pub fn inside<T: Send>(netns: &Netns, work: impl FnOnce() -> T + Send) -> T {
    let path = format!("/run/netns/{}", netns.name());
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            let file = std::fs::File::open(&path).expect("the namespace exists");
            let kind = Some(rustix::thread::LinkNameSpaceType::Network);
            rustix::thread::move_into_link_name_space(std::os::fd::AsFd::as_fd(&file), kind)
                .expect("root may enter it");
            work()
        });
        match thread.join() {
            Ok(value) => value,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
