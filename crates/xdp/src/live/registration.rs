//! Keeps the generator's program known to the kernel for as long as the generator lives.
//!
//! The kernel has a list of the XDP programs in use, compiled into a jump through which every
//! processor calls them (`kernel/bpf/dispatcher.c`). A program that comes or goes makes it rewrite
//! that jump, in its own text and while other processors run through it, and wait for an RCU grace
//! period, which takes long beside running traffic. A run of live frames adds its program to the
//! list and takes it out at its end. One that is in the list already is only counted up and down:
//! so it is attached to an idle device.
//!
//! The device is one end of a veth pair that stays down. In the driver's mode, because generic XDP
//! anywhere makes the kernel look for a program at every packet that it receives.

use std::fs::File;
use std::os::fd::AsFd;

use kernel::netns::{OWN, enter_new};

use crate::attach::Attachment;
use crate::error::Error;
use crate::link::make_veth;
use crate::mode::Mode;
use crate::object::Loaded;

/// The device's index: the kernel gives the two others of its namespace, a loopback interface and
/// its peer, numbers from 1 on.
const IDLE: u32 = 1000;

/// A program attached to an idle device, in a network namespace that has no name and goes with
/// this.
#[derive(Debug)]
pub(super) struct Registration {
    /// Before the namespace in drop order.
    _attachment: Attachment,
    _namespace: File,
}

impl Registration {
    /// Registers `program`. None where that is not possible (no CAP_SYS_ADMIN for a namespace, a
    /// kernel without veths): the program runs all the same, but each start and stop costs what
    /// this saves.
    pub fn new(program: &Loaded) -> Result<Option<Self>, Error> {
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| Self::in_new_namespace(program));
            inside
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Leaves the calling thread in the namespace.
    fn in_new_namespace(program: &Loaded) -> Result<Option<Self>, Error> {
        let made = enter_new().and_then(|()| make_veth(IDLE));
        match made {
            Err(e) if matches!(e.raw_os_error(), Some(libc::EPERM | libc::EOPNOTSUPP)) => {
                return Ok(None);
            }
            made => made.map_err(Error::doing("making an idle device"))?,
        }
        let namespace = File::open(OWN).map_err(Error::doing("opening a network namespace"))?;
        let attachment = Attachment::new(program.as_fd(), IDLE, &[Mode::Native])?;
        Ok(Some(Self {
            _attachment: attachment,
            _namespace: namespace,
        }))
    }
}
