//! Another name for a device that is in use.

use std::io;

use super::{Devices, Record};
use crate::facts::Link;
use crate::netlink::Kernel;

impl Devices {
    /// Gives a device that was [prepared](Self::prepare) another name (`None`: its own) where it
    /// lives, and returns that. It stays up, with its addresses, routes and sockets, from Linux 6.2
    /// on; before, it is down for a moment.
    ///
    /// # Errors
    /// NotFound: we do not hold such a device; AlreadyExists: the name is taken; it cannot be
    /// written down. It has its old name then.
    pub fn rename(&mut self, device: &str, name: Option<&str>) -> io::Result<String> {
        let at = self.held_of(device).ok_or(io::ErrorKind::NotFound)?;
        let mut there = self.open(self.netns.as_deref())?;
        let link = there.link_named(device)?;
        let before = self.held[at].record.clone();
        let name = name.unwrap_or(&before.original).to_owned();
        let after = Record {
            name: name.clone(),
            ..before.clone()
        };
        // Whatever happens in between, what is written down is about the device.
        let is_own = name == before.original;
        if !is_own {
            self.held[at].follow(&self.notes, after.clone())?;
        }
        let done = self.give_name(&mut *there, &link, &after);
        match done {
            Ok(()) if is_own => self.held[at].follow(&self.notes, after)?,
            Ok(()) => {}
            Err(error) => {
                self.held[at].follow(&self.notes, before)?;
                return Err(error);
            }
        }
        Ok(name)
    }

    /// Renames a device. Its own name is an alternative one while it has another.
    fn give_name(&self, there: &mut dyn Kernel, link: &Link, record: &Record) -> io::Result<()> {
        let Record { original, name, .. } = record;
        let marked = link.altnames.contains(original);
        if name == original && marked {
            there.altname(link.index, original, false)?;
        }
        if let Err(error) = there.rename(link.index, name) {
            if name == original && marked {
                let _ = there.altname(link.index, original, true);
            }
            return Err(error);
        }
        if name == original || marked {
            return Ok(());
        }
        match there.altname(link.index, original, true) {
            // By now another device has its old name: it goes without.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                let _ = there.rename(link.index, &link.name);
                Err(error)
            }
            _ => Ok(()),
        }
    }
}
