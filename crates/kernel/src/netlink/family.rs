//! Families of generic netlink (linux/genetlink.h): subsystems that are found by name.

use std::io;
use std::path::Path;

use super::{Attributes, Builder, Dump, Socket, u16_at};

/// Bytes of `struct genlmsghdr`: command, version, two reserved.
const GENL_HEADER: usize = 4;
const VERSION: u8 = 1;

/// A family, and the socket that asks it about one network namespace.
#[derive(Debug)]
pub struct Family {
    socket: Socket,
    id: u16,
}

impl Family {
    /// The family of that name, in a namespace (`None`: our own).
    ///
    /// # Errors
    /// Unsupported: this kernel has no such family; the namespace cannot be entered, or no socket
    /// can be opened.
    pub fn open(netns: Option<&Path>, name: &str) -> io::Result<Self> {
        let mut family = Self {
            socket: Socket::generic(netns)?,
            id: libc::GENL_ID_CTRL as u16,
        };
        let request = family
            .request(libc::CTRL_CMD_GETFAMILY as u8)
            .string(libc::CTRL_ATTR_FAMILY_NAME as u16, name);
        let mut id = None;
        let asked = family.ask(request, |attributes| {
            let found = attributes.find(libc::CTRL_ATTR_FAMILY_ID as u16);
            id = found.and_then(|id| u16_at(id, 0));
        });
        match (asked, id) {
            (Ok(()), Some(id)) => Ok(Self { id, ..family }),
            (Err(error), _) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => {
                let what = format!("the kernel has no netlink family {name}");
                Err(io::Error::new(io::ErrorKind::Unsupported, what))
            }
        }
    }

    /// A request for a command of this family.
    pub fn request(&self, command: u8) -> Builder {
        Builder::new(self.id, &[command, VERSION, 0, 0])
    }

    /// As [`Socket::ask`]; `each` sees the attributes of the answers.
    ///
    /// # Errors
    /// As there.
    pub fn ask(
        &mut self,
        request: Builder,
        mut each: impl FnMut(Attributes<'_>),
    ) -> io::Result<()> {
        self.socket.ask(request, |message| {
            each(Attributes::behind(message.payload, GENL_HEADER));
        })
    }

    /// As [`Socket::dump`]; `each` sees the attributes of the answers.
    ///
    /// # Errors
    /// As there.
    pub fn dump(
        &mut self,
        request: Builder,
        mut each: impl FnMut(Attributes<'_>),
    ) -> io::Result<Dump> {
        self.socket.dump(request, |message| {
            each(Attributes::behind(message.payload, GENL_HEADER));
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_found_by_name() {
        let controller = Family::open(None, "nlctrl").expect("every kernel has it");
        assert_eq!(i32::from(controller.id), libc::GENL_ID_CTRL);
        let missing = Family::open(None, "no-such-family").expect_err("there is none");
        assert_eq!(missing.kind(), io::ErrorKind::Unsupported);
        let expected = "the kernel has no netlink family no-such-family";
        assert_eq!(missing.to_string(), expected);
    }
}
