//! What arrived at each receive queue of a device: from its driver.
//!
//! Drivers count by queue in two ways. The newer is netlink's (`NETDEV_CMD_QSTATS_GET` of
//! linux/netdev.h, since Linux 6.9). The older is a list of names and numbers that each driver
//! chooses (`ETHTOOL_GSTATS` of linux/ethtool.h); of those, the names of the usual cards are known
//! here.
#![allow(unsafe_code)]

use std::io;
use std::mem::size_of;
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketType, socket};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::netdev;
use crate::netlink::{Family, u32_at, u64_at};

// Numbers of linux/netdev.h.
const QSTATS_GET: u8 = 12;
const QSTATS_IFINDEX: u16 = 1;
const QSTATS_QUEUE_TYPE: u16 = 2;
const QSTATS_QUEUE_ID: u16 = 3;
const QSTATS_SCOPE: u16 = 4;
const QSTATS_RX_PACKETS: u16 = 8;
const QUEUE_TYPE_RX: u32 = 0;
const SCOPE_QUEUE: u64 = 1;

// Numbers of linux/ethtool.h and linux/sockios.h.
const SIOCETHTOOL: u32 = 0x8946;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSTATS: u32 = 0x1d;
const SET_STATS: u32 = 1;
/// Bytes of a name.
const NAME: usize = 32;

/// Most names of a driver; those of 1,024 queues are fewer.
const MOST: usize = 65_536;

/// What stands before and behind a queue's number in the name of the count of its packets, by
/// driver. The last is veth's, which counts only what passes an XDP program.
const NAMES: [(&str, &str); 7] = [
    ("rx_queue_", "_packets"),     // igb, igc, ixgbe, e1000e, tg3
    ("rx-", ".packets"),           // i40e, ice, iavf
    ("rx-", ".rx_packets"),        // i40e before 4.20
    ("rx", "_packets"),            // mlx5, mlx4, virtio_net before 6.11
    ("queue_", "_rx_cnt"),         // ena
    ("[", "]: rx_ucast_packets"),  // bnxt_en
    ("rx_queue_", "_xdp_packets"), // veth
];

/// Packets that arrived at each receive queue of the device of our namespace, by the queue's number.
/// They count from an arbitrary time on: differences tell. A queue that the driver does not count is
/// `None`.
///
/// # Errors
/// Unsupported: its driver counts no packets by queue, in no way that is known here; the device is
/// gone; no socket can be opened.
pub fn packets(name: &str, index: u32) -> io::Result<Vec<Option<u64>>> {
    let counts = match from_netlink(index) {
        Ok(counts) if !counts.is_empty() => counts,
        Ok(_) => from_driver(name)?,
        Err(error) if error.kind() == io::ErrorKind::Unsupported => from_driver(name)?,
        // Before 6.9 the family has no such command.
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => from_driver(name)?,
        Err(error) => return Err(error),
    };
    if counts.is_empty() {
        let what = format!("the driver of {name} does not count packets by receive queue");
        return Err(io::Error::new(io::ErrorKind::Unsupported, what));
    }
    Ok(counts)
}

fn from_netlink(index: u32) -> io::Result<Vec<Option<u64>>> {
    let mut family = Family::open(None, "netdev")?;
    let request = family
        .request(QSTATS_GET)
        .number(QSTATS_IFINDEX, index)
        .attribute(QSTATS_SCOPE, &SCOPE_QUEUE.to_ne_bytes());
    let mut counts = Vec::new();
    family.dump(request, |answer| {
        let number = |kind| answer.clone().find(kind).and_then(|value| u32_at(value, 0));
        if number(QSTATS_QUEUE_TYPE) != Some(QUEUE_TYPE_RX) {
            return;
        }
        // Written with 4 bytes where it fits.
        let packets = answer
            .clone()
            .find(QSTATS_RX_PACKETS)
            .and_then(|value| u64_at(value, 0).or_else(|| u32_at(value, 0).map(u64::from)));
        if let (Some(queue), Some(packets)) = (number(QSTATS_QUEUE_ID), packets) {
            put(&mut counts, queue as usize, packets);
        }
    })?;
    Ok(counts)
}

/// Notes the count of a queue; a number beyond all cards' is ignored.
fn put(counts: &mut Vec<Option<u64>>, queue: usize, packets: u64) {
    if queue >= MOST {
        return;
    }
    if counts.len() <= queue {
        counts.resize(queue + 1, None);
    }
    counts[queue] = Some(packets);
}

/// `struct ethtool_gstrings` with the names, or `struct ethtool_stats` with the numbers, for
/// [`MOST`].
struct Buffer(Vec<u64>);

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Strings {
    command: u32,
    set: u32,
    count: u32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Stats {
    command: u32,
    count: u32,
}

impl Buffer {
    /// Room for `bytes` behind the head.
    fn new(head: &[u8], bytes: usize) -> Self {
        let mut words = vec![0u64; (head.len() + bytes).div_ceil(size_of::<u64>())];
        words.as_mut_bytes()[..head.len()].copy_from_slice(head);
        Self(words)
    }

    /// Has the driver of `name` fill it.
    fn fill(&mut self, name: &str) -> io::Result<&[u8]> {
        let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
        let mut request = netdev::request(name)?;
        request.ifr_ifru.ifru_data = self.0.as_mut_ptr().cast();
        // SAFETY: the two commands that are asked here write a head and, behind it, an element for
        // each of the driver's statistics, of which no driver has MOST; there is room for as many.
        let done = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &mut request) };
        match done {
            0 => Ok(self.0.as_bytes()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn from_driver(name: &str) -> io::Result<Vec<Option<u64>>> {
    let head = Strings {
        command: ETHTOOL_GSTRINGS,
        set: SET_STATS,
        count: 0,
    };
    let mut names = Buffer::new(head.as_bytes(), MOST * NAME);
    let head = Stats {
        command: ETHTOOL_GSTATS,
        count: 0,
    };
    let mut numbers = Buffer::new(head.as_bytes(), MOST * size_of::<u64>());
    match (names.fill(name), numbers.fill(name)) {
        (Ok(names), Ok(numbers)) => Ok(by_queue(names, numbers)),
        // It has no statistics of its own.
        (Err(error), _) | (_, Err(error)) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
            Ok(Vec::new())
        }
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

/// The counts in a driver's answers, by queue: of the first way of naming them that fits any.
fn by_queue(names: &[u8], numbers: &[u8]) -> Vec<Option<u64>> {
    let (Ok((head, names)), Ok((stats, numbers))) = (
        Strings::read_from_prefix(names),
        Stats::read_from_prefix(numbers),
    ) else {
        return Vec::new();
    };
    let count = head.count.min(stats.count) as usize;
    let names = names.chunks_exact(NAME).map(crate::netlink::text);
    let numbers = numbers
        .chunks_exact(size_of::<u64>())
        .filter_map(|number| u64_at(number, 0));
    let all: Vec<(String, u64)> = names.zip(numbers).take(count).collect();
    let named = NAMES.iter().map(|(before, behind)| {
        let mut counts = Vec::new();
        for (name, packets) in &all {
            let number = name
                .strip_prefix(before)
                .and_then(|name| name.strip_suffix(behind));
            if let Some(queue) = number.and_then(|number| number.parse().ok()) {
                put(&mut counts, queue, *packets);
            }
        }
        counts
    });
    named
        .into_iter()
        .find(|counts| !counts.is_empty())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a driver answers.
    fn answer(stats: &[(&str, u64)]) -> (Vec<u8>, Vec<u8>) {
        let count = stats.len() as u32;
        let mut names = Strings {
            command: 0,
            set: 0,
            count,
        }
        .as_bytes()
        .to_vec();
        let mut numbers = Stats { command: 0, count }.as_bytes().to_vec();
        for (name, number) in stats {
            let mut bytes = [0; NAME];
            bytes[..name.len()].copy_from_slice(name.as_bytes());
            names.extend(bytes);
            numbers.extend(number.to_ne_bytes());
        }
        (names, numbers)
    }

    fn read(stats: &[(&str, u64)]) -> Vec<Option<u64>> {
        let (names, numbers) = answer(stats);
        by_queue(&names, &numbers)
    }

    #[test]
    fn each_driver_has_its_names() {
        for (zero, one) in [
            ("rx_queue_0_packets", "rx_queue_1_packets"),
            ("rx-0.packets", "rx-1.packets"),
            ("rx-0.rx_packets", "rx-1.rx_packets"),
            ("rx0_packets", "rx1_packets"),
            ("queue_0_rx_cnt", "queue_1_rx_cnt"),
            ("[0]: rx_ucast_packets", "[1]: rx_ucast_packets"),
            ("rx_queue_0_xdp_packets", "rx_queue_1_xdp_packets"),
        ] {
            let others = [
                ("rx_packets", 9),
                ("tx_queue_0_packets", 8),
                ("tx0_packets", 7),
            ];
            let stats = [&others[..], &[(one, 2), (zero, 1)]].concat();
            assert_eq!(read(&stats), [Some(1), Some(2)], "{zero}");
        }
    }

    #[test]
    fn a_queue_that_is_not_counted_is_not_zero() {
        assert_eq!(read(&[("rx2_packets", 5)]), [None, None, Some(5)]);
        assert!(read(&[("rx_packets", 5), ("rx_queue_x_packets", 1)]).is_empty());
        assert!(read(&[("rx_queue_99999999_packets", 1)]).is_empty());
        assert!(read(&[]).is_empty());
        assert!(by_queue(&[0; 3], &[]).is_empty());
    }

    /// The loopback device has no queues of a card.
    #[test]
    fn a_driver_that_does_not_count_is_named() {
        let index = netdev::index("lo").unwrap();
        let error = packets("lo", index).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
        assert!(error.to_string().contains("lo does not count"), "{error}");
    }
}
