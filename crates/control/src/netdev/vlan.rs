//! VLAN tags stay in the frames of a device while the router uses it.
//!
//! With receive offload a device takes the tag out of a frame and hands it over beside the packet.
//! Neither an XDP program nor an AF_XDP socket gets it from there: the packet looks as if it had
//! come untagged, and would be routed.

use std::io;
use std::path::Path;

use kernel::ethtool::Feature;

use super::{Devices, Record};
use crate::facts::Link;

/// The features by which a device takes VLAN tags (C-tags, S-tags) out of the frames that it
/// receives. Such a tag comes beside the packet.
pub const VLAN_PARSE: [&str; 2] = ["rx-vlan-hw-parse", "rx-vlan-stag-hw-parse"];

impl Devices {
    /// Makes a device that was [prepared](Self::prepare) leave VLAN tags in the frames that it
    /// receives. A device that does so already is left alone.
    ///
    /// # Errors
    /// NotFound: the device is gone by now; Unsupported: it cannot do without the offload;
    /// ResourceBusy: another router uses it; PermissionDenied.
    pub fn keep_vlan_tags(&mut self, link: &Link) -> io::Result<()> {
        let mut there = self.open(self.netns.as_deref())?;
        let features = there.features(link.index).map_err(gone(link))?;
        let features = changeable(link, features)?;
        if features.is_empty() {
            return Ok(());
        }
        self.note_vlan_parse(link, &features)?;
        let refused = there.set_features(link.index, &features, false);
        match refused.map_err(gone(link))?.first() {
            Some(feature) => Err(needed(link, feature)),
            None => Ok(()),
        }
    }

    /// Writes down what is about to be switched off.
    fn note_vlan_parse(&mut self, link: &Link, features: &[String]) -> io::Result<()> {
        let not_prepared = || io::Error::other(format!("{} was not prepared", link.name));
        let at = self.held_of(&link.name).ok_or_else(not_prepared)?;
        let note = &mut self.held[at];
        let mut record = note.record.clone();
        record.vlan_parse.extend_from_slice(features);
        record.vlan_parse.sort();
        record.vlan_parse.dedup();
        note.replace(record)
    }

    /// Switches on again what was switched off about a device, which is in the namespace `place`
    /// now. What somebody else has switched on since is on already.
    pub(super) fn parse_vlan_again(
        &self,
        record: &Record,
        place: Option<&Path>,
        link: &Link,
    ) -> io::Result<()> {
        if record.vlan_parse.is_empty() {
            return Ok(());
        }
        let set = self.open(place).and_then(|mut there| {
            let set = there.set_features(link.index, &record.vlan_parse, true);
            set.map_err(gone(link))
        });
        let refused = match set {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            set => set?,
        };
        let Some(feature) = refused.first() else {
            return Ok(());
        };
        let name = &link.name;
        let what = format!(
            "{name}: {feature} cannot be switched on again; try `ethtool -K {name} {feature} on`"
        );
        Err(io::Error::other(what))
    }
}

/// For `map_err`: says which device is gone.
fn gone(link: &Link) -> impl Fn(io::Error) -> io::Error {
    |error| match error.raw_os_error() {
        Some(libc::ENODEV) => {
            let what = format!("network device {} is gone", link.name);
            io::Error::new(io::ErrorKind::NotFound, what)
        }
        _ => error,
    }
}

/// The names of those of [`VLAN_PARSE`] that are active, if all of them can be switched off.
fn changeable(link: &Link, features: Vec<Feature>) -> io::Result<Vec<String>> {
    let parse = |feature: &Feature| VLAN_PARSE.contains(&feature.name.as_str());
    let names = features
        .into_iter()
        .filter(parse)
        .map(|feature| match feature {
            Feature { name, changeable } if changeable => Ok(name),
            Feature { name, .. } => Err(needed(link, &name)),
        });
    names.collect()
}

fn needed(link: &Link, feature: &str) -> io::Error {
    let name = &link.name;
    let what = format!(
        "{name}: {feature} cannot be switched off: the router would not see VLAN tags and would route tagged packets as \
         untagged; use a device whose driver can switch it off (`ethtool -k` does not say [fixed])"
    );
    io::Error::new(io::ErrorKind::Unsupported, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_always_takes_tags_out_is_refused() {
        let link = Link {
            name: "eth1".into(),
            ..Link::default()
        };
        let features = |changeable| {
            let names = [VLAN_PARSE[0], "rx-gro", VLAN_PARSE[1]];
            let feature = |(name, changeable): (&str, bool)| Feature {
                name: name.into(),
                changeable,
            };
            names.into_iter().zip(changeable).map(feature).collect()
        };
        let all = changeable(&link, features([true, false, true])).expect("changeable");
        assert_eq!(all, VLAN_PARSE);
        let error = changeable(&link, features([true, true, false])).expect_err("refused");
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
        let expected = "eth1: rx-vlan-stag-hw-parse cannot be switched off: ";
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}
