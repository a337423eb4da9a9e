//! What a bridge domain says of a packet that was seen.

use graph::trace::Record;
use tables::interface::L2;
use wire::eth;

use crate::Router;
use crate::change::Mac;
use crate::l2::bridges::key;
use crate::show::text::name;

/// The bridge domain of a packet that was seen at a node, and where its destination is now; `None`:
/// the node does not ask.
pub(crate) fn bridged(router: &Router, node: &str, record: &Record) -> Option<String> {
    if node != "l2-forward" {
        return None;
    }
    let bridges = &router.state.bridges;
    let interface = router.state.links.interfaces.get(&record.rx_if)?;
    let number = match interface.l2 {
        Some(L2::Bridge(number)) => number,
        _ => bridges.of_bvi(record.rx_if)?,
    };
    let domains = bridges.domains();
    let domain = domains.get(usize::from(number))?.as_ref()?;
    let settings = &domain.settings;
    let (header, _) = eth::Header::parse(record.packet_bytes())?;
    let to: Mac = header.dst;
    let station = bridges.stations.get(key(number, to));
    let what = match (station, to.is_group()) {
        (_, true) if settings.flood => format!("{to}: to all members"),
        (_, true) => format!("{to}: broadcast and multicast are not flooded"),
        (Some((station, _)), _) if settings.bvi == Some(station.interface) => {
            let bvi = name(router, station.interface);
            format!("station {to} is the domain's own interface {bvi}")
        }
        (Some((station, _)), _) => {
            format!("station {to} is behind {}", name(router, station.interface))
        }
        (None, _) if settings.unknown_flood => {
            format!("station {to} is not known: to all members")
        }
        (None, _) => format!("station {to} is not known, and unknown unicast is not flooded"),
    };
    Some(format!("bridge domain {}: {what}", settings.name))
}
