//! Facts about a device's hardware, and its features switched on and off: by ethtool netlink (linux/ethtool_netlink.h) and
//! sysfs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::socket::Socket;
use super::wire::{Attributes, Builder, Message, text, u16_at, u32_at};
use crate::kernel::Link;

/// What `show hardware` says about a device beside what every device has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Hardware {
    /// Driver (`mlx5_core`, `veth` ...).
    pub driver: Option<String>,
    /// PCI address, as in `0000:03:00.0`.
    pub pci: Option<String>,
    /// Link speed in Mbit/s, if the link is up and the driver tells.
    pub speed: Option<u32>,
    /// Full duplex.
    pub full_duplex: Option<bool>,
    /// Receive ring: descriptors now and at most.
    pub rx_ring: Option<(u32, u32)>,
    /// Transmit ring: descriptors now and at most.
    pub tx_ring: Option<(u32, u32)>,
    /// Receive queues now and at most.
    pub rx_queues: Option<(u32, u32)>,
    /// Transmit queues now and at most.
    pub tx_queues: Option<(u32, u32)>,
    /// Offloads that are on, by the kernel's names.
    pub offloads: Vec<String>,
}

/// The features by which a device takes VLAN tags out of the frames that it receives: C-tags, S-tags. Such a tag comes
/// beside the packet.
pub const VLAN_PARSE: [&str; 2] = ["rx-vlan-hw-parse", "rx-vlan-stag-hw-parse"];

/// A feature that is active.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feature {
    /// The kernel's name.
    pub name: String,
    /// It can be switched off.
    pub changeable: bool,
}

const HEADER: u16 = 1;
const LINKMODES_GET: u8 = 4;
const FEATURES_GET: u8 = 11;
const FEATURES_SET: u8 = 12;
const RINGS_GET: u8 = 15;
const CHANNELS_GET: u8 = 17;

const FEATURES_HW: u16 = 2;
const FEATURES_WANTED: u16 = 3;
const FEATURES_ACTIVE: u16 = 4;
const FEATURES_NOCHANGE: u16 = 5;
const BITSET_NOMASK: u16 = 1;
const BITSET_BITS: u16 = 3;
const BIT: u16 = 1;
const BIT_NAME: u16 = 2;
const BIT_VALUE: u16 = 3;

/// Asks about the devices of one network namespace.
#[derive(Debug)]
pub struct Ethtool {
    socket: Socket,
    family: u16,
}

impl Ethtool {
    /// Opens a socket in a namespace (`None`: our own).
    ///
    /// # Errors
    /// The namespace cannot be entered; Unsupported: the kernel has no ethtool netlink (before 5.6).
    pub fn open(netns: Option<&Path>) -> io::Result<Self> {
        let mut socket = Socket::generic(netns)?;
        let mut family = None;
        // CTRL_CMD_GETFAMILY of nlctrl (16): CTRL_ATTR_FAMILY_NAME (2) asks, CTRL_ATTR_FAMILY_ID (1) answers.
        let request = Builder::new(16, libc::NLM_F_ACK as u16, &[3, 1, 0, 0]).string(2, "ethtool");
        let asked = socket.ask(request, |message| {
            family = Attributes::behind(message.payload, 4)
                .find(1)
                .and_then(|id| u16_at(id, 0));
        });
        let missing = || {
            let what = "the kernel has no ethtool netlink (CONFIG_ETHTOOL_NETLINK)";
            io::Error::new(io::ErrorKind::Unsupported, what)
        };
        match (asked, family) {
            (Ok(_), Some(family)) => Ok(Ethtool { socket, family }),
            (Err(error), _) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Err(missing()),
        }
    }

    /// All that can be found out about a device; what it does not support is left out.
    pub fn hardware(&mut self, link: &Link) -> Hardware {
        let mut facts = Hardware {
            driver: driver(link),
            pci: pci_address(link),
            ..Hardware::default()
        };
        self.get(link, LINKMODES_GET, |attributes| {
            let known = |&speed: &u32| speed != u32::MAX && speed != 0;
            facts.speed = number(&attributes, 5).filter(known);
            facts.full_duplex = attributes
                .clone()
                .find(6)
                .and_then(|d| d.first().copied())
                .filter(|&d| d < 2)
                .map(|d| d == 1);
        });
        self.get(link, RINGS_GET, |attributes| {
            facts.rx_ring = pair(&attributes, 6, 2);
            facts.tx_ring = pair(&attributes, 9, 5);
        });
        self.get(link, CHANNELS_GET, |attributes| {
            let combined = pair(&attributes, 9, 5).unwrap_or((0, 0));
            let with = |(now, most): (u32, u32)| (now + combined.0, most.max(combined.1));
            let count = |now, most| {
                Some(with(pair(&attributes, now, most).unwrap_or((0, 0)))).filter(|q| q.0 > 0)
            };
            facts.rx_queues = count(6, 2);
            facts.tx_queues = count(7, 3);
        });
        self.get(link, FEATURES_GET, |attributes| {
            facts.offloads = set_bits(&attributes, FEATURES_ACTIVE);
        });
        facts
    }

    /// Which of [`VLAN_PARSE`] are active.
    ///
    /// # Errors
    /// NotFound: the device is gone; what else the kernel reports.
    pub fn vlan_parse(&mut self, link: &Link) -> io::Result<Vec<Feature>> {
        let mut active = Vec::new();
        self.ask(self.request(link, FEATURES_GET), link, |attributes| {
            active = vlan_parse(&attributes);
        })?;
        Ok(active)
    }

    /// Switches features on or off, and gives those that have stayed as they were.
    ///
    /// # Errors
    /// NotFound: the device is gone; EINVAL: the kernel knows no such feature; what else it reports.
    pub fn set_features(
        &mut self,
        link: &Link,
        names: &[String],
        on: bool,
    ) -> io::Result<Vec<String>> {
        let request = self
            .request(link, FEATURES_SET)
            .nested(FEATURES_WANTED, |set| set_request(set, names, on));
        let mut refused = Vec::new();
        self.ask(request, link, |attributes| {
            // The mask says what has not become as it was wanted.
            refused = bits(&attributes, FEATURES_WANTED)
                .map(|(name, _)| name)
                .collect();
        })?;
        Ok(refused)
    }

    fn get(&mut self, link: &Link, command: u8, each: impl FnMut(Attributes<'_>)) {
        // A device that does not support a command says so: the fact is then simply not known.
        let _ = self.ask(self.request(link, command), link, each);
    }

    fn request(&self, link: &Link, command: u8) -> Builder {
        Builder::new(self.family, libc::NLM_F_ACK as u16, &[command, 1, 0, 0])
            .nested(HEADER, |header| header.number(1, link.index))
    }

    fn ask(
        &mut self,
        request: Builder,
        link: &Link,
        mut each: impl FnMut(Attributes<'_>),
    ) -> io::Result<()> {
        let asked = self.socket.ask(request, |message: &Message<'_>| {
            each(Attributes::behind(message.payload, 4))
        });
        asked.map(drop).map_err(|error| match error.raw_os_error() {
            Some(libc::ENODEV) => {
                let what = format!("network device {} is gone", link.name);
                io::Error::new(io::ErrorKind::NotFound, what)
            }
            _ => error,
        })
    }
}

/// Those of [`VLAN_PARSE`] that are active, out of an answer of the kernel.
fn vlan_parse(answer: &Attributes<'_>) -> Vec<Feature> {
    let [hw, active, never] =
        [FEATURES_HW, FEATURES_ACTIVE, FEATURES_NOCHANGE].map(|kind| set_bits(answer, kind));
    let named = active
        .into_iter()
        .filter(|name| VLAN_PARSE.contains(&name.as_str()));
    named
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

fn pair(attributes: &Attributes<'_>, now: u16, most: u16) -> Option<(u32, u32)> {
    Some((
        number(attributes, now)?,
        number(attributes, most).unwrap_or(0),
    ))
}

/// The bits that an attribute, a verbose bit set, lists: name and value. Without a mask it lists those that are set.
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

fn bus_directory(link: &Link) -> Option<PathBuf> {
    let (bus, address) = (link.bus.as_deref()?, link.bus_address.as_deref()?);
    fs::canonicalize(
        Path::new("/sys/bus")
            .join(bus)
            .join("devices")
            .join(address),
    )
    .ok()
}

fn driver(link: &Link) -> Option<String> {
    let by_bus = bus_directory(link)
        .and_then(|directory| file_name(&fs::read_link(directory.join("driver")).ok()?));
    by_bus.or_else(|| link.kind.clone())
}

/// The PCI function that the device is on, itself or (virtio) by its parent.
pub(crate) fn pci_address(link: &Link) -> Option<String> {
    let directory = bus_directory(link)?;
    let is_pci = |path: &&Path| {
        fs::read_link(path.join("subsystem"))
            .is_ok_and(|bus| bus.file_name().is_some_and(|name| name == "pci"))
    };
    directory
        .ancestors()
        .take(3)
        .find(is_pci)
        .and_then(file_name)
}

fn file_name(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_string_lossy().into_owned())
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
        let mut set = match is_list {
            true => attribute(1, &[]),
            false => Vec::new(),
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
        let [ctag, stag] = VLAN_PARSE;
        let changeable = |hw: [bool; 2], never: &[Vec<u8>]| {
            let bytes = [
                bit_set(2, false, &[bit(ctag, hw[0]), bit(stag, hw[1])]),
                bit_set(3, true, &[bit(ctag, false), bit(stag, false)]),
                bit_set(4, true, &[bit("rx-gro", false), bit(stag, false)]),
                bit_set(5, true, never),
            ]
            .concat();
            let found = vlan_parse(&Attributes(&bytes));
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
        let names = VLAN_PARSE.map(str::to_owned);
        for on in [true, false] {
            let request = Builder::new(1, 0, &[0; 4]);
            let request = request.nested(FEATURES_WANTED, |set| set_request(set, &names, on));
            let bytes = request.finish(0);
            let answer = Attributes(&bytes[20..]);
            let expected = names.clone().map(|name| (name, on));
            assert_eq!(bits(&answer, 3).collect::<Vec<_>>(), expected);
        }
    }
}
