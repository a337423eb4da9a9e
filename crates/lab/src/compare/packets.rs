//! The packets of a load.

use std::fs;
use std::path::Path;

use report::setup::{Family, Forwarding, Load};

use super::{ip6, topology};
use crate::invocation::Packets;
use sandbox::Error;

/// Packets that the load tester is to send; `file` is for a profile that is not built in.
///
/// # Errors
/// If the file cannot be written.
pub fn of<'a>(load: &Load, file: &'a Path) -> Result<Packets<'a>, Error> {
    match load.family {
        Family::Ip4 => Ok(Packets::Bench {
            size: load.size,
            flows: load.flows,
            vlan: (load.forwarding == Forwarding::Vlan).then_some(topology::VLAN),
        }),
        Family::Ip6 => {
            fs::write(file, ip6::profile(load.routes)).map_err(|e| Error::file(file, e))?;
            Ok(Packets::File(file))
        }
    }
}
