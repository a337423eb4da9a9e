//! The load tester's knowledge of an interface: addresses, and the neighbor on the other side.

use std::error::Error;

use control::netlink::Requests;
use session::interface::Interface;
use wire::eth::Mac;

/// Its own Ethernet address.
///
/// # Errors
/// It has none.
pub fn mac(interface: &Interface) -> Result<Mac, Box<dyn Error>> {
    let name = &interface.name;
    let none = || format!("{name} has no Ethernet address; give --src-mac").into();
    interface.mac.ok_or_else(none)
}

/// The only neighbor that the kernel knows on this link: whoever routes what is sent here.
///
/// # Errors
/// It knows none, or several.
pub fn neighbor(interface: &Interface) -> Result<Mac, Box<dyn Error>> {
    let neighbors = Requests::open(None)?.neighbors(interface.index)?;
    let mut known: Vec<Mac> = Vec::new();
    for mac in neighbors.into_iter().filter_map(|neighbor| neighbor.mac) {
        if !known.contains(&mac) {
            known.push(mac);
        }
    }
    let name = &interface.name;
    match known[..] {
        [mac] => Ok(mac),
        [] => Err(format!("{name} has no known neighbor to send to; give --dst-mac").into()),
        _ => Err(format!(
            "{name} has {} neighbors; choose one with --dst-mac: {}",
            known.len(),
            known
                .iter()
                .map(Mac::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        )
        .into()),
    }
}
