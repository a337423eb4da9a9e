//! The XDP programs on devices, and the features of a device.

use std::io;
use std::os::fd::AsFd;

use crate::error::Error;
use crate::link::{self, Link};
use crate::mode::Mode;
use crate::sys;

/// The XDP program on an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// The program's id, as in `bpftool prog`; 0 if the kernel names none because there are
    /// several.
    pub id: u32,
    /// The program's name, up to 15 bytes.
    pub name: String,
    /// Place where it runs.
    pub mode: Mode,
}

/// A BPF link that holds an XDP program on an interface (of any network namespace).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkInfo {
    /// The link's id, as in `bpftool link`.
    pub id: u32,
    /// The program's id.
    pub program: u32,
    /// The program's name.
    pub name: String,
    /// The interface's index in its own namespace; 0 if the link no longer holds it.
    pub ifindex: u32,
}

/// The XDP features of a device, as its driver states them now (`enum netdev_xdp_act`,
/// linux/netdev.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features(u64);

impl Features {
    /// Takes frames that are redirected to it. A veth does only while its peer has a program or
    /// GRO.
    pub fn transmit(self) -> bool {
        self.0 & 1 << 2 != 0
    }

    /// Takes frames of several buffers that are redirected to it.
    pub fn transmit_long(self) -> bool {
        self.0 & 1 << 6 != 0
    }
}

/// The XDP program on an interface, if any.
///
/// # Errors
/// [`Error::NoInterface`], or what the kernel says.
pub fn attached(ifindex: u32) -> Result<Option<Attached>, Error> {
    let Some((id, generic)) = Link::get(ifindex)
        .map_err(|e| of_interface(ifindex, e))?
        .program
    else {
        return Ok(None);
    };
    let mode = if generic { Mode::Generic } else { Mode::Native };
    Ok(Some(Attached {
        id,
        name: program_name(id),
        mode,
    }))
}

/// A device's XDP features; None where the kernel does not say (before Linux 6.3).
///
/// # Errors
/// [`Error::NoInterface`], or what the kernel says.
pub fn features(ifindex: u32) -> Result<Option<Features>, Error> {
    let bits = link::xdp_features(ifindex).map_err(|e| of_interface(ifindex, e))?;
    Ok(bits.map(Features))
}

pub(crate) fn of_interface(ifindex: u32, error: io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::ENODEV) => Error::NoInterface(ifindex),
        _ => Error::doing("asking the kernel about an interface")(error),
    }
}

/// Empty if the program is gone or may not be asked.
fn program_name(id: u32) -> String {
    let info = sys::prog_open(id).and_then(|program| sys::prog_info(program.as_fd()));
    info.map_or_else(|_| String::new(), |(_, name)| name)
}

/// All BPF links that hold XDP programs, in all network namespaces.
///
/// # Errors
/// [`Error::Permission`], or what the kernel says.
pub fn links() -> Result<Vec<LinkInfo>, Error> {
    let mut found = Vec::new();
    let mut id = 0;
    loop {
        id = match sys::link_after(id) {
            Ok(id) => id,
            Err(e) if e.raw_os_error() == Some(libc::ENOENT) => return Ok(found),
            Err(e) => return Err(Error::doing("listing BPF links")(e)),
        };
        // A link may go away between the two calls.
        let Ok(link) = sys::link_open(id) else {
            continue;
        };
        if let Ok(Some((program, ifindex))) = sys::link_info(link.as_fd()) {
            found.push(LinkInfo {
                id,
                program,
                name: program_name(program),
                ifindex,
            });
        }
    }
}
