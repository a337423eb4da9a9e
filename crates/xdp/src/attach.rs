//! Programs on interfaces, held by a BPF link: when its descriptor closes, the program is off.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};

use kernel::netdev;
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, getrlimit};

use crate::error::Error;
use crate::mode::Mode;
use crate::{inventory, sys};

/// A program on an interface; dropping it takes the program off.
#[derive(Debug)]
pub struct Attachment {
    link: OwnedFd,
    ifindex: u32,
    mode: Mode,
    lacks: Vec<String>,
}

impl Attachment {
    /// Attaches `program` in the first of `modes` that works.
    pub(crate) fn new(
        program: BorrowedFd<'_>,
        ifindex: u32,
        modes: &[Mode],
    ) -> Result<Self, Error> {
        let mut failed = Error::Parameter("no XDP mode was asked for".to_owned());
        let mut lacks = Vec::new();
        for &mode in modes {
            match sys::link_create(program, ifindex, mode.flags()) {
                Ok(link) => {
                    return Ok(Self {
                        link: first_to_close(link),
                        ifindex,
                        mode,
                        lacks,
                    });
                }
                Err(e) => {
                    lacks.push(format!("{mode} program: {e}"));
                    failed = explain(ifindex, mode, e);
                }
            }
            if !matches!(failed, Error::Attach { .. }) {
                break;
            }
        }
        Err(failed)
    }

    /// The interface's index.
    pub fn ifindex(&self) -> u32 {
        self.ifindex
    }

    /// The mode that worked.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The modes that were tried before and refused, each with what the kernel said.
    pub fn lacks(&self) -> &[String] {
        &self.lacks
    }
}

impl Drop for Attachment {
    /// Closing the descriptor would do, but child processes hold a copy until they exec.
    fn drop(&mut self) {
        // It fails if the interface is gone, and the program with it.
        drop(sys::link_detach(self.link.as_fd()));
    }
}

/// The descriptor under a high number, behind all others of the process: of a process that is
/// killed, Linux closes the highest first. Each tap behind it takes the kernel milliseconds, while
/// nobody serves what the program takes in.
///
/// Where there is no room for a high one it stays as it is.
fn first_to_close(fd: OwnedFd) -> OwnedFd {
    /// The kernel's table of descriptors reaches to the highest, with 8 bytes for each.
    const MOST: RawFd = 65_536;
    let limit = getrlimit(Resource::Nofile).current;
    let limit = limit.and_then(|limit| RawFd::try_from(limit).ok());
    let from = limit.unwrap_or(MOST).min(MOST) / 4 * 3;
    fcntl_dupfd_cloexec(&fd, from).unwrap_or(fd)
}

fn explain(ifindex: u32, mode: Mode, source: io::Error) -> Error {
    let Some(interface) = netdev::name(ifindex) else {
        return Error::NoInterface(ifindex);
    };
    match source.raw_os_error() {
        Some(libc::EPERM) => Error::Permission,
        Some(libc::EBUSY | libc::EEXIST) => conflict(ifindex, interface, mode, source),
        _ => Error::Attach {
            interface,
            mode: mode.name(),
            source,
        },
    }
}

fn conflict(ifindex: u32, interface: String, mode: Mode, source: io::Error) -> Error {
    let Ok(Some(other)) = inventory::attached(ifindex) else {
        return Error::Attach {
            interface,
            mode: mode.name(),
            source,
        };
    };
    let held = inventory::links()
        .unwrap_or_default()
        .into_iter()
        .find(|link| link.program == other.id);
    let remedy = match held {
        Some(link) => format!("stop the program that holds it (BPF link {})", link.id),
        None => format!("remove it with `ip link set dev {interface} xdp off`"),
    };
    Error::Conflict {
        interface,
        id: other.id,
        name: other.name,
        remedy,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn it_has_a_higher_number_than_descriptors_that_come_later() {
        let open = || OwnedFd::from(File::open("/dev/null").expect("it is there"));
        let low = open();
        let number = low.as_raw_fd();
        let (one, other) = (first_to_close(low), first_to_close(open()));
        let later: Vec<OwnedFd> = (0..500).map(|_| open()).collect();
        // The low number is free again.
        assert!(later.iter().any(|fd| fd.as_raw_fd() == number));
        let highest = later.iter().map(AsRawFd::as_raw_fd).max();
        assert!(highest < Some(one.as_raw_fd().min(other.as_raw_fd())));
        let flags = rustix::io::fcntl_getfd(&one).expect("it is open");
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }
}
