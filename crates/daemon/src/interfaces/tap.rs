//! TAPs: what comes and goes by a tap whose other end is the host's, and lies in the namespace and
//! bridge that the configuration names.
//!
//! The router's end has its settings by a tap of its own, as an interface on any port has.

use std::io;
use std::sync::Arc;

use ::io::tap::Config;
use control::config::MTU;
use control::config::desired::{Interface, Kind};
use graph::Pool;
use ports::{Open, OpenError};

use super::device::{Carries, Device};
use super::host_end::place;
use super::open::{OpenInterface, Part};
use super::opener::{Opener, own_mac};

/// A tap with the host at its other end.
pub struct Tap;

impl Device for Tap {
    fn numbers(&self) -> usize {
        2
    }

    fn open(
        &self,
        opener: &mut Opener,
        config: &Interface,
        _: Carries,
        _: &Arc<Pool>,
    ) -> Result<OpenInterface, OpenError> {
        let opened = port(opener, config).and_then(|port| {
            let router = OpenInterface::tap(opener, config)?;
            Ok(OpenInterface {
                queues: port.queues.len(),
                port: Some(port),
                ..router
            })
        });
        opened.inspect_err(|_| {
            // The first error counts.
            let _ = opener.places.leave(&config.name);
        })
    }

    fn renew(
        &self,
        opener: &mut Opener,
        config: &Interface,
        open: &mut OpenInterface,
        part: Part,
    ) -> Result<(), OpenError> {
        match part {
            Part::Port => open.port = Some(port(opener, config)?),
            Part::Tap => open.renew_tap(opener, config)?,
        }
        Ok(())
    }

    fn close(&self, opener: &mut Opener, config: &Interface, _: &str) -> io::Result<()> {
        opener.places.leave(&config.name)
    }
}

/// Makes the host's end in its place, and the port behind it.
fn port(opener: &mut Opener, config: &Interface) -> Result<Open, OpenError> {
    let own = opener.netns.clone();
    let (Kind::Tap { host, queue }, Some(place)) = (&config.kind, place(own.as_deref(), config))
    else {
        return Ok(ports::null());
    };
    opener.places.take(&config.name, place.clone())?;
    let netns = place.namespace.as_deref();
    // Not the address of the router's end.
    let mac = || own_mac(&format!("{} host", config.name));
    let settings = Config {
        name: host.name.clone(),
        mac: Some(host.mac.unwrap_or_else(mac).0),
        mtu: Some(host.mtu.unwrap_or(MTU).into()),
        queue: Some((*queue).into()),
        up: false,
    };
    let port = opener.host.tap(netns, &settings)?;
    let mut kernel = (opener.host.namespaces())(netns)?;
    let link = kernel.link_named(&host.name)?.index;
    if let Some(bridge) = &place.bridge {
        let bridge = kernel.link_named(bridge)?.index;
        kernel.join(link, bridge)?;
    }
    kernel.set_up(link, true)?;
    Ok(port)
}
