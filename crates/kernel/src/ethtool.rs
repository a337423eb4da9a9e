//! A device's settings and features, by ethtool netlink (linux/ethtool_netlink.h).
//!
//! Devices are named by their index. Every request fails with ENODEV if the device is gone, and
//! with EOPNOTSUPP if its driver does not know the command.

use std::io;
use std::path::Path;

use crate::netlink::{Attributes, Builder, Family, text, u32_at};

// Numbers of linux/ethtool_netlink.h: commands (`_GET`, `_SET`) and, behind each, its attributes.
const HEADER: u16 = 1;
const HEADER_DEV_INDEX: u16 = 1;

const LINKMODES_GET: u8 = 4;
const LINKMODES_SPEED: u16 = 5;
const LINKMODES_DUPLEX: u16 = 6;

const RINGS_GET: u8 = 15;
const RINGS_RX_MAX: u16 = 2;
const RINGS_TX_MAX: u16 = 5;
const RINGS_RX: u16 = 6;
const RINGS_TX: u16 = 9;

const CHANNELS_GET: u8 = 17;
const CHANNELS_RX_MAX: u16 = 2;
const CHANNELS_TX_MAX: u16 = 3;
const CHANNELS_COMBINED_MAX: u16 = 5;
const CHANNELS_RX_COUNT: u16 = 6;
const CHANNELS_TX_COUNT: u16 = 7;
const CHANNELS_COMBINED_COUNT: u16 = 9;

const FEATURES_GET: u8 = 11;
const FEATURES_SET: u8 = 12;
const FEATURES_HW: u16 = 2;
const FEATURES_WANTED: u16 = 3;
const FEATURES_ACTIVE: u16 = 4;
const FEATURES_NOCHANGE: u16 = 5;

const BITSET_NOMASK: u16 = 1;
const BITSET_BITS: u16 = 3;
const BIT: u16 = 1;
const BIT_NAME: u16 = 2;
const BIT_VALUE: u16 = 3;

/// Number that a device has now, and the most that it can have.
pub type Count = (u32, u32);

/// The state of a link that is up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkMode {
    /// Mbit/s, if the driver says.
    pub speed: Option<u32>,
    /// Full duplex, if the driver says.
    pub full_duplex: Option<bool>,
}

/// Descriptors of a ring, or numbers of queues, in the two directions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// To receive.
    pub rx: Option<Count>,
    /// To transmit.
    pub tx: Option<Count>,
}

/// A feature that is active.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feature {
    /// The kernel's name.
    pub name: String,
    /// True if it can be switched off.
    pub changeable: bool,
}

/// Asks about the devices of one network namespace.
#[derive(Debug)]
pub struct Ethtool(Family);

impl Ethtool {
    /// Opens a socket in a namespace (`None`: our own).
    ///
    /// # Errors
    /// The namespace cannot be entered; Unsupported: the kernel has no ethtool netlink (before
    /// 5.6).
    pub fn open(netns: Option<&Path>) -> io::Result<Self> {
        let family = Family::open(netns, "ethtool").map_err(|error| match error.kind() {
            io::ErrorKind::Unsupported => {
                let what = "the kernel has no ethtool netlink (CONFIG_ETHTOOL_NETLINK)";
                io::Error::new(io::ErrorKind::Unsupported, what)
            }
            _ => error,
        });
        Ok(Self(family?))
    }

    /// Speed and duplex.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn link_mode(&mut self, device: u32) -> io::Result<LinkMode> {
        self.get(device, LINKMODES_GET, |answer| {
            let known = |&speed: &u32| speed != u32::MAX && speed != 0;
            let duplex = answer
                .clone()
                .find(LINKMODES_DUPLEX)
                .and_then(|value| value.first().copied());
            LinkMode {
                speed: number(&answer, LINKMODES_SPEED).filter(known),
                // Beyond 1: not known.
                full_duplex: duplex.filter(|&d| d < 2).map(|d| d == 1),
            }
        })
    }

    /// The rings: their descriptors.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn rings(&mut self, device: u32) -> io::Result<Counts> {
        self.get(device, RINGS_GET, |answer| Counts {
            rx: count(&answer, RINGS_RX, RINGS_RX_MAX),
            tx: count(&answer, RINGS_TX, RINGS_TX_MAX),
        })
    }

    /// The queues. Those that do both count in either direction.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn queues(&mut self, device: u32) -> io::Result<Counts> {
        self.get(device, CHANNELS_GET, |answer| {
            let both =
                count(&answer, CHANNELS_COMBINED_COUNT, CHANNELS_COMBINED_MAX).unwrap_or((0, 0));
            let with_both = |now, most| {
                let (now, most) = count(&answer, now, most).unwrap_or((0, 0));
                Some((now + both.0, most.max(both.1))).filter(|&(now, _)| now > 0)
            };
            Counts {
                rx: with_both(CHANNELS_RX_COUNT, CHANNELS_RX_MAX),
                tx: with_both(CHANNELS_TX_COUNT, CHANNELS_TX_MAX),
            }
        })
    }

    /// The features that are active.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn features(&mut self, device: u32) -> io::Result<Vec<Feature>> {
        self.get(device, FEATURES_GET, |answer| active(&answer))
    }

    /// Switches features on or off, and returns those that stayed as they were.
    ///
    /// # Errors
    /// EINVAL: the kernel knows no such feature; the kernel's other errors.
    pub fn set_features(
        &mut self,
        device: u32,
        names: &[String],
        on: bool,
    ) -> io::Result<Vec<String>> {
        let request = self
            .request(device, FEATURES_SET)
            .nested(FEATURES_WANTED, |set| set_request(set, names, on));
        let mut refused = Vec::new();
        self.0.ask(request, |answer| {
            // The mask has the features that did not become as wanted.
            refused = bits(&answer, FEATURES_WANTED)
                .map(|(name, _)| name)
                .collect();
        })?;
        Ok(refused)
    }

    fn get<T: Default>(
        &mut self,
        device: u32,
        command: u8,
        read: impl Fn(Attributes<'_>) -> T,
    ) -> io::Result<T> {
        let mut found = T::default();
        self.0
            .ask(self.request(device, command), |answer| found = read(answer))?;
        Ok(found)
    }

    fn request(&self, device: u32, command: u8) -> Builder {
        let header = |header: Builder| header.number(HEADER_DEV_INDEX, device);
        self.0.request(command).nested(HEADER, header)
    }
}

/// The features that an answer says are active.
fn active(answer: &Attributes<'_>) -> Vec<Feature> {
    let [hw, active, never] =
        [FEATURES_HW, FEATURES_ACTIVE, FEATURES_NOCHANGE].map(|kind| set_bits(answer, kind));
    active
        .into_iter()
        .map(|name| Feature {
            changeable: hw.contains(&name) && !never.contains(&name),
            name,
        })
        .collect()
}

/// A verbose bit set whose mask is the named bits.
fn set_request(set: Builder, names: &[String], on: bool) -> Builder {
    set.nested(BITSET_BITS, |bits| {
        names.iter().fold(bits, |bits, name| {
            bits.nested(BIT, |bit| {
                let bit = bit.string(BIT_NAME, name);
                if on {
                    bit.attribute(BIT_VALUE, &[])
                } else {
                    bit
                }
            })
        })
    })
}

fn number(attributes: &Attributes<'_>, kind: u16) -> Option<u32> {
    attributes
        .clone()
        .find(kind)
        .and_then(|value| u32_at(value, 0))
}

fn count(attributes: &Attributes<'_>, now: u16, most: u16) -> Option<Count> {
    Some((
        number(attributes, now)?,
        number(attributes, most).unwrap_or(0),
    ))
}

/// The bits that an attribute, a verbose bit set, lists: name and value. Without a mask it lists
/// those that are set.
fn bits<'a>(answer: &Attributes<'a>, kind: u16) -> impl Iterator<Item = (String, bool)> + use<'a> {
    let set = Attributes(answer.clone().find(kind).unwrap_or_default());
    let is_list = set.clone().find(BITSET_NOMASK).is_some();
    let bits = Attributes(set.find(BITSET_BITS).unwrap_or_default());
    bits.filter(|(kind, _)| *kind == BIT)
        .filter_map(move |(_, bit)| {
            let name = Attributes(bit).find(BIT_NAME).map(text)?;
            Some((name, is_list || Attributes(bit).find(BIT_VALUE).is_some()))
        })
}

/// The names of the bits that are set.
fn set_bits(answer: &Attributes<'_>, kind: u16) -> Vec<String> {
    bits(answer, kind)
        .filter_map(|(name, is_set)| is_set.then_some(name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = (value.len() as u16 + 4).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    /// A bit as the kernel writes it: index, name, and a flag if it has a value.
    fn bit(name: &str, value: bool) -> Vec<u8> {
        let mut bit = attribute(1, &9u32.to_ne_bytes());
        bit.extend(attribute(2, &[name.as_bytes(), &[0]].concat()));
        if value {
            bit.extend(attribute(3, &[]));
        }
        attribute(0x8000 | 1, &bit)
    }

    fn bit_set(kind: u16, is_list: bool, bits: &[Vec<u8>]) -> Vec<u8> {
        let mut set = if is_list {
            attribute(1, &[])
        } else {
            Vec::new()
        };
        set.extend(attribute(2, &64u32.to_ne_bytes()));
        set.extend(attribute(0x8000 | 3, &bits.concat()));
        attribute(0x8000 | kind, &set)
    }

    #[test]
    fn a_mask_lists_bits_that_are_not_set() {
        let listed = [bit("a", true), bit("b", false)];
        let bytes = [bit_set(2, false, &listed), bit_set(4, true, &listed)].concat();
        let answer = Attributes(&bytes);
        assert_eq!(set_bits(&answer, 2), ["a"]);
        assert_eq!(set_bits(&answer, 4), ["a", "b"]);
        let all: Vec<_> = bits(&answer, 2).collect();
        assert_eq!(all, [("a".to_owned(), true), ("b".to_owned(), false)]);
        assert!(set_bits(&answer, 5).is_empty());
    }

    #[test]
    fn a_feature_can_be_changed_if_the_driver_and_the_kernel_let_it() {
        let (ctag, stag) = ("rx-vlan-hw-parse", "rx-vlan-stag-hw-parse");
        let changeable = |hw: [bool; 2], never: &[Vec<u8>]| {
            let bytes = [
                bit_set(2, false, &[bit(ctag, hw[0]), bit(stag, hw[1])]),
                bit_set(3, true, &[bit(ctag, false), bit(stag, false)]),
                bit_set(4, true, &[bit(stag, false)]),
                bit_set(5, true, never),
            ]
            .concat();
            let found = active(&Attributes(&bytes));
            // The other one is wanted, and not active.
            assert_eq!((found.len(), found[0].name.as_str()), (1, stag));
            found[0].changeable
        };
        assert!(changeable([false, true], &[]));
        assert!(changeable([false, true], &[bit("loopback", false)]));
        assert!(!changeable([true, false], &[]));
        assert!(!changeable([false, true], &[bit(stag, false)]));
    }

    #[test]
    fn what_is_set_is_in_the_mask() {
        let names = ["a", "b"].map(str::to_owned);
        for on in [true, false] {
            let request = Builder::new(1, &[0; 4])
                .nested(FEATURES_WANTED, |set| set_request(set, &names, on));
            let bytes = request.finish(0);
            let answer = Attributes(&bytes[20..]);
            let expected = names.clone().map(|name| (name, on));
            assert_eq!(bits(&answer, 3).collect::<Vec<_>>(), expected);
        }
    }
}
