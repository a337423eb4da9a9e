//! Watch over the network devices of a session: packets that one of them misses because it went down
//! are not lost by the device under test.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use kernel::netlink::layout::{LinkHeader, read};
use kernel::netlink::{Attributes, Message, Messages, Socket};

use crate::interface::Interface;
use crate::{Error, Spec};

/// RTNLGRP_LINK: links that come, change and go.
const LINKS: u32 = 1;

/// A device of the session.
#[derive(Debug)]
struct Link {
    name: String,
    index: u32,
}

/// The watch, which goes on as long as the process.
#[derive(Debug, Clone, Default)]
pub struct Links(Arc<OnceLock<String>>);

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
            let name = name.to_owned();
            Ok(Link { name, index })
        });
        let links = links.collect::<Result<Vec<_>, Error>>()?;
        let watch = Self::default();
        let fault = watch.0.clone();
        std::thread::Builder::new()
            .name("links".into())
            .spawn(move || {
                let found = wait(&mut socket, &links);
                // It is empty until now.
                let _ = fault.set(found);
                // Relaxed: the cell orders what it holds.
                ended.store(true, Ordering::Relaxed);
            })
            .map_err(Error::Links)?;
        Ok(watch)
    }

    /// What became of a device; None while all are up.
    pub fn fault(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}

/// Waits until one of `links` is down or gone, and says so.
fn wait(socket: &mut Socket, links: &[Link]) -> String {
    loop {
        let found = match socket.receive(true) {
            Ok(Some(datagram)) => Messages(datagram).find_map(|message| reported(&message, links)),
            Ok(None) => None,
            // Messages were lost.
            Err(_) => links.iter().find_map(asked),
        };
        if let Some(found) = found {
            return found;
        }
    }
}

/// What a message says of one of `links`, if that is down or gone.
fn reported(message: &Message<'_>, links: &[Link]) -> Option<String> {
    let (header, _): (LinkHeader, Attributes<'_>) = read(message.payload)?;
    let ours = |link: &&Link| link.index == header.index;
    let Link { name, .. } = links.iter().find(ours)?;
    match message.kind {
        // One of another family says that it has left a bridge.
        libc::RTM_DELLINK if i32::from(header.family) == libc::AF_UNSPEC => {
            Some(format!("{name} is gone"))
        }
        libc::RTM_NEWLINK if header.flags & libc::IFF_UP as u32 == 0 => {
            Some(format!("{name} went down"))
        }
        _ => None,
    }
}

/// What the kernel says of a link when asked, if that is down or gone.
fn asked(link: &Link) -> Option<String> {
    match Interface::open(&link.name) {
        Ok(now) if now.index == link.index => None,
        Err(Error::Down(name)) => Some(format!("{name} went down")),
        // It cannot be asked now.
        Err(Error::Interface { .. }) => None,
        _ => Some(format!("{} is gone", link.name)),
    }
}

#[cfg(test)]
mod tests {
    use kernel::netlink::Builder;

    use super::*;

    #[test]
    fn only_our_links_that_are_down_or_gone_matter() {
        let links = [Link {
            name: "eth2".into(),
            index: 7,
        }];
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
            let found = reported(&message, &links);
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
