//! The trait of all kinds of interfaces: they come, change and go.

use std::io;
use std::sync::Arc;

use control::config::MTU;
use control::config::desired::Interface;
use graph::Pool;
use ports::{Open, OpenError};
use router::InterfaceId;

use super::open::{OpenInterface, Part};
use super::opener::{Opener, tap_name};

/// What a port is to carry.
#[derive(Debug, Clone, Copy)]
pub struct Carries {
    /// The interface that packets come in by.
    pub interface: InterfaceId,
    /// Frames to every station: it is at layer 2, or has sub-interfaces, whose Ethernet addresses
    /// may be others.
    pub everything: bool,
}

/// A kind of interface.
pub trait Device {
    /// Numbers of the router's interfaces that it takes: one for a port, and one for a host
    /// interface that workers serve.
    fn numbers(&self) -> usize;

    /// Returns true if a network device of this name may be the one that the interface waits for.
    fn awaits(&self, _: &Interface, _name: &str) -> bool {
        false
    }

    /// Looks whether it can be opened, as far as that can be known before anything is changed. One
    /// whose device is not there yet may be.
    ///
    /// # Errors
    /// The obstacle.
    fn possible(&self, _: &Opener, _: &Interface) -> Result<(), OpenError> {
        Ok(())
    }

    /// The name, where it is to live, of the kernel's device that it will have, and its own MTU in
    /// bytes; `None`: that device is not there yet.
    ///
    /// # Errors
    /// The kernel's.
    fn to_be(&self, _: &Opener, config: &Interface) -> io::Result<Option<(String, u32)>> {
        Ok(Some((tap_name(config), MTU.into())))
    }

    /// Opens the port of one whose kernel's device is a tap; `None`: it has no port.
    ///
    /// # Errors
    /// Why it cannot be opened.
    fn port(&self, _: &mut Opener, _: &Interface) -> Result<Option<Open>, OpenError> {
        Ok(None)
    }

    /// Opens it: port and kernel's device, which gets its settings and addresses. What cannot be
    /// opened is left as it was. As it is here, an interface is a tap, with its [`port`](Self::port)
    /// if it has one.
    ///
    /// # Errors
    /// NotThere: its device is not there yet. Otherwise why it cannot be opened.
    fn open(
        &self,
        opener: &mut Opener,
        config: &Interface,
        _: Carries,
        _: &Arc<Pool>,
    ) -> Result<OpenInterface, OpenError> {
        let opened = self.port(opener, config);
        let opened = opened.and_then(|port| OpenInterface::tap(opener, config, port));
        opened.inspect_err(|_| {
            // The first error counts.
            let _ = self.close(opener, config, &tap_name(config));
        })
    }

    /// Opens it again on the kernel's device that is ours already, and stays so if this fails.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    fn reopen(
        &self,
        opener: &mut Opener,
        config: &Interface,
        carries: Carries,
        pool: &Arc<Pool>,
    ) -> Result<OpenInterface, OpenError> {
        self.open(opener, config, carries, pool)
    }

    /// Makes a part of it again that somebody has deleted.
    ///
    /// # Errors
    /// It cannot be made.
    fn renew(
        &self,
        opener: &mut Opener,
        config: &Interface,
        open: &mut OpenInterface,
        part: Part,
    ) -> Result<(), OpenError> {
        match part {
            Part::Port => open.port = self.port(opener, config)?,
            Part::Tap => open.renew_tap(opener, config)?,
        }
        Ok(())
    }

    /// Gives the kernel's device another name, in place; `None`: its own. Returns the name.
    ///
    /// # Errors
    /// The name is taken; it has its old one then.
    fn rename(
        &self,
        opener: &mut Opener,
        config: &Interface,
        open: &OpenInterface,
        name: Option<&str>,
    ) -> io::Result<String> {
        let name = name.map_or_else(|| config.own_device(), str::to_owned);
        opener.kernel()?.rename(open.ifindex, &name)?;
        Ok(name)
    }

    /// Gives up the kernel's device, by its name, as it was found: Ethernet address, MTU, up or
    /// down, name and place. One that is gone is no error.
    ///
    /// # Errors
    /// The kernel's.
    fn close(&self, _: &mut Opener, _: &Interface, _netdev: &str) -> io::Result<()> {
        Ok(())
    }
}
