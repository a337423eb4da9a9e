//! Errors between this crate and the kernel.

use std::io;

/// An operation on a program, a map or an interface failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The process may not use BPF.
    #[error(
        "no permission to load XDP programs; run as root or with CAP_NET_ADMIN, CAP_BPF and CAP_SYS_RESOURCE"
    )]
    Permission,
    /// A built-in object does not parse: the build is broken.
    #[error("the built-in object {program} is not usable: {why}")]
    Object {
        /// The program's name.
        program: &'static str,
        /// Fault found in it.
        why: String,
    },
    /// The kernel's verifier refused a program.
    #[error("the kernel refused the program {program}: {source}; {log}")]
    Verifier {
        /// The program's name.
        program: &'static str,
        /// Error of bpf(2).
        source: io::Error,
        /// The end of the verifier's log.
        log: String,
    },
    /// Another program holds the interface.
    #[error("{interface} already has an XDP program (id {id}, name {name}); {remedy}")]
    Conflict {
        /// The interface's name.
        interface: String,
        /// The other program's id, as in `bpftool prog`.
        id: u32,
        /// The other program's name.
        name: String,
        /// Way to get rid of it.
        remedy: String,
    },
    /// The interface's driver cannot run XDP programs, or not with its present settings.
    #[error("{interface} does not take an XDP program in {mode} mode: {source}")]
    Attach {
        /// The interface's name.
        interface: String,
        /// `native` or `generic`.
        mode: &'static str,
        /// Error of bpf(2).
        source: io::Error,
    },
    /// There is no interface with this index in the calling thread's namespace.
    #[error("there is no interface with index {0} in this network namespace")]
    NoInterface(u32),
    /// The index means another device than the one that was chosen.
    #[error("the device with index {ifindex} is not the one that was chosen: {why}")]
    AnotherDevice {
        /// The index.
        ifindex: u32,
        /// Difference between them.
        why: String,
    },
    /// The device takes no frames that a program redirects to it.
    #[error(
        "{interface} takes no redirected frames: its driver cannot, or not now \
         (a veth can while its other end has an XDP program or GRO)"
    )]
    NoTransmit {
        /// The interface's name.
        interface: String,
    },
    /// A parameter is out of its range.
    #[error("{0}")]
    Parameter(String),
    /// Any other system call.
    #[error("{what}: {source}")]
    System {
        /// Operation that failed.
        what: &'static str,
        /// Error of the kernel.
        source: io::Error,
    },
}

impl Error {
    /// For `map_err`: names what was being done; missing privilege becomes [`Error::Permission`].
    pub(crate) fn doing(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.raw_os_error() {
            Some(libc::EPERM) => Self::Permission,
            _ => Self::System { what, source },
        }
    }
}
