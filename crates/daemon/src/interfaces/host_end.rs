//! The host's end of a TAP: where it lies.

use std::path::Path;

use control::config::desired::{Interface, Kind};
use control::config::{TapHost, netns};
use control::netdev::Place;

/// The place of the host's end of a TAP, where `own` is the namespace that devices live in; `None`:
/// it is another kind of interface.
pub fn place(own: Option<&Path>, config: &Interface) -> Option<Place> {
    let Kind::Tap { host, .. } = &config.kind else {
        return None;
    };
    let namespace = host.namespace.as_deref().map(netns);
    Some(Place {
        namespace: namespace.or_else(|| own.map(Path::to_owned)),
        make_namespace: host.namespace_create,
        bridge: host.bridge.clone(),
        make_bridge: host.bridge_create,
    })
}

/// The host's end and its place, as in `tap h0 in namespace blue, in bridge br0`.
pub fn in_words(host: &TapHost) -> String {
    let in_this = |what: &str, name: &Option<String>| match name {
        Some(name) => format!(", in {what} {name}"),
        None => String::new(),
    };
    let namespace = in_this("namespace", &host.namespace);
    let bridge = in_this("bridge", &host.bridge);
    format!("tap {}{namespace}{bridge}", host.name)
}
