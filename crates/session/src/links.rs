//! Watch over the network devices of a session: packets that one of them misses because it went down
//! are not lost by the device under test.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use kernel::netlink::layout::{LinkHeader, read};
use kernel::netlink::{Message, Messages, Socket};

use crate::interface::Interface;
use crate::{Error, Spec};

/// RTNLGRP_LINK: links that come, change and go.
const LINKS: u32 = 1;

/// What a device is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkState {
    /// It is up.
    Up,
    /// `ip link set` has it down.
    Down,
    /// There is no such device any more.
    Gone,
}

/// A device of the session, and what it is like now.
#[derive(Debug, Clone)]
pub struct Link {
    name: String,
    index: u32,
    /// Relaxed: it hands over no other data.
    state: Arc<AtomicU8>,
}

impl Link {
    /// A device that is up, of the kernel's number `index`.
    pub fn new(name: &str, index: u32) -> Self {
        Self {
            name: name.to_owned(),
            index,
            state: Arc::default(),
        }
    }

    /// What it is like.
    pub fn state(&self) -> LinkState {
        match self.state.load(Ordering::Relaxed) {
            0 => LinkState::Up,
            1 => LinkState::Down,
            _ => LinkState::Gone,
        }
    }

    /// Lets all who look know.
    pub fn set(&self, state: LinkState) {
        self.state.store(state as u8, Ordering::Relaxed);
    }

    /// What became of it; None while it is up.
    pub fn fault(&self) -> Option<String> {
        match self.state() {
            LinkState::Up => None,
            LinkState::Down => Some(format!("{} went down", self.name)),
            LinkState::Gone => Some(format!("{} is gone", self.name)),
        }
    }
}

/// The watch, which goes on as long as the process.
#[derive(Debug, Clone, Default)]
pub struct Links {
    links: Vec<Link>,
    fault: Arc<OnceLock<String>>,
}

impl Links {
    /// Watches the devices of `ports` from now on. When one of them goes down or away, `ended` is
    /// set.
    ///
    /// # Errors
    /// One of them is down or gone already; the kernel does not report links.
    pub fn watch<'a>(
        ports: impl IntoIterator<Item = &'a Spec>,
        ended: Arc<AtomicBool>,
    ) -> Result<Self, Error> {
        let mut socket = Socket::route(None).map_err(Error::Links)?;
        socket.subscribe(LINKS).map_err(Error::Links)?;
        let names = ports.into_iter().filter_map(Spec::interface);
        let links = names.map(|name| {
            let Interface { index, .. } = Interface::open(name)?;
            Ok(Link::new(name, index))
        });
        let links = links.collect::<Result<Vec<_>, Error>>()?;
        let watch = Self {
            links,
            fault: Arc::default(),
        };
        let Self { links, fault } = watch.clone();
        std::thread::Builder::new()
            .name("links".into())
            .spawn(move || {
                loop {
                    look(&mut socket, &links);
                    if let Some(found) = links.iter().find_map(Link::fault) {
                        // The first one stays.
                        let _ = fault.set(found);
                        // Relaxed: the cell orders what it holds.
                        ended.store(true, Ordering::Relaxed);
                    }
                }
            })
            .map_err(Error::Links)?;
        Ok(watch)
    }

    /// What became of the first device that was lost; None while all have been up.
    pub fn fault(&self) -> Option<&str> {
        self.fault.get().map(String::as_str)
    }

    /// The device of a port, if it has one that is watched.
    pub fn of(&self, port: &Spec) -> Option<Link> {
        let name = port.interface()?;
        self.links.iter().find(|link| link.name == name).cloned()
    }
}

/// Waits for news of links, and takes them.
fn look(socket: &mut Socket, links: &[Link]) {
    match socket.receive(true) {
        Ok(Some(datagram)) => Messages(datagram).for_each(|message| take(&message, links)),
        Ok(None) => {}
        // Messages were lost.
        Err(_) => links.iter().for_each(ask),
    }
}

/// Takes what a message says of one of `links`.
fn take(message: &Message<'_>, links: &[Link]) {
    let Some((header, _)) = read::<LinkHeader>(message.payload) else {
        return;
    };
    let state = match message.kind {
        // One of another family says that it has left a bridge.
        libc::RTM_DELLINK if i32::from(header.family) == libc::AF_UNSPEC => LinkState::Gone,
        libc::RTM_NEWLINK if header.flags & libc::IFF_UP as u32 == 0 => LinkState::Down,
        libc::RTM_NEWLINK => LinkState::Up,
        _ => return,
    };
    // The kernel may give the number of one that is gone to another one.
    let ours = |link: &&Link| link.index == header.index && link.state() != LinkState::Gone;
    if let Some(link) = links.iter().find(ours) {
        link.set(state);
    }
}

/// Asks the kernel for a link that is there yet.
fn ask(link: &Link) {
    if link.state() == LinkState::Gone {
        return;
    }
    match Interface::open(&link.name) {
        Ok(now) if now.index == link.index => link.set(LinkState::Up),
        Err(Error::Down(_)) => link.set(LinkState::Down),
        // It cannot be asked now.
        Err(Error::Interface { .. }) => {}
        _ => link.set(LinkState::Gone),
    }
}

#[cfg(test)]
mod tests {
    use kernel::netlink::Builder;

    use super::*;

    #[test]
    fn only_our_links_that_are_down_or_gone_matter() {
        let up = libc::IFF_UP as u32;
        let (new, gone) = (libc::RTM_NEWLINK, libc::RTM_DELLINK);
        for (kind, index, family, flags, said) in [
            (new, 7, libc::AF_UNSPEC, up, None),
            (new, 7, libc::AF_UNSPEC, 0, Some("eth2 went down")),
            (new, 8, libc::AF_UNSPEC, 0, None),
            (gone, 7, libc::AF_UNSPEC, up, Some("eth2 is gone")),
            (gone, 7, libc::AF_BRIDGE, up, None),
            (gone, 8, libc::AF_UNSPEC, up, None),
        ] {
            let mut bytes = vec![family as u8, 0, 0, 0];
            bytes.extend(u32::to_ne_bytes(index));
            bytes.extend(flags.to_ne_bytes());
            bytes.extend(0u32.to_ne_bytes());
            let datagram = Builder::new(kind, &bytes).finish(1);
            let message = Messages(&datagram).next().expect("a message");
            let links = [Link::new("eth2", 7)];
            take(&message, &links);
            let found = links[0].fault();
            assert_eq!(found.as_deref(), said, "{kind} {index} {family} {flags}");
        }
    }

    /// The machine's loopback device is up as long as the machine is.
    #[test]
    fn a_device_that_is_not_there_is_refused() {
        let ended = Arc::new(AtomicBool::default());
        let nowhere = [Spec::Sink("nowhere".into())];
        assert!(matches!(
            Links::watch(&nowhere, ended.clone()),
            Err(Error::NoInterface(_))
        ));
        let watch = Links::watch(&[Spec::Pcap("x".into())], ended).expect("nothing to watch");
        assert_eq!(watch.fault(), None);
    }
}
