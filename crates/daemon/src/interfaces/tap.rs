//! TAPs: what comes and goes by a tap whose other end is the host's, and lies in the namespace and
//! bridge that the configuration names.
//!
//! The router's end has its settings by a tap of its own, as an interface on any port has.

use std::io;

use ::io::tap::Config;
use control::config::MTU;
use control::config::desired::{Interface, Kind};
use ports::{Open, OpenError};

use super::device::Device;
use super::host_end::place;
use super::opener::Opener;

/// A tap with the host at its other end.
pub struct Tap;

impl Device for Tap {
    fn numbers(&self) -> usize {
        2
    }

    fn port(&self, opener: &mut Opener, config: &Interface) -> Result<Option<Open>, OpenError> {
        port(opener, config).map(Some)
    }

    fn close(&self, opener: &mut Opener, config: &Interface, _: &str) -> io::Result<()> {
        opener.places.leave(&config.name);
        Ok(())
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
    let seed = opener.seed;
    let mac = || seed.mac(&format!("{} host", config.name));
    let settings = Config {
        name: host.name.clone(),
        mac: Some(host.mac.unwrap_or_else(mac).0),
        mtu: Some(host.mtu.unwrap_or(MTU).into()),
        queue: Some((*queue).into()),
        up: false,
        deaf: false,
    };
    let port = opener.host.tap(netns, &settings)?;
    opener.places.put(&config.name, &host.name)?;
    Ok(port)
}
