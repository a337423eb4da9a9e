//! The kinds of interfaces.

use control::config::desired::{Interface, Kind};

use super::bond::Bond;
use super::device::Device;
use super::loopback::Loopback;
use super::netdev::Netdev;
use super::software::Software;
use super::sub::Sub;
use super::tap::Tap;
use super::vxlan::Vxlan;

/// The kind of an interface.
pub fn of(config: &Interface) -> &'static dyn Device {
    match &config.kind {
        Kind::Port(port) if port.kind.is_device() => &Netdev,
        Kind::Port(_) => &Software,
        Kind::Loopback => &Loopback,
        Kind::Bond(_) => &Bond,
        Kind::Vxlan(_) => &Vxlan,
        Kind::Sub { .. } => &Sub,
        Kind::Tap { .. } => &Tap,
    }
}
