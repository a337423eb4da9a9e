//! The plan of a comparison: loads, devices, rounds, and their duration.

use std::fmt;
use std::time::Duration;

use report::setup::{Direction, Dut, Family, Flows, Forwarding, Io, Load, Size, Spread};

use sandbox::Error;

/// The smallest frame of UDP over IPv6, with frame check sequence.
pub const IP6_SIZE: u32 = 66;
/// Routes that destinations are spread over: somewhat more than the Internet has.
const IP6_ROUTES: u32 = 250_000;

/// Depth of the comparison.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Depth {
    /// Under 40 s: 64 B many flows, one way.
    Quick,
    /// About five minutes: 64 B many flows, of IPv6 too, and imix, one way.
    #[default]
    Default,
    /// All loads, one way and both ways, five rounds, both placements on processors.
    Full,
}

impl Depth {
    /// The rows of the table, in the order of the published ones.
    pub fn loads(self) -> Vec<Load> {
        let load = |direction| {
            move |(size, flows)| Load {
                size,
                flows,
                direction,
                ..Load::default()
            }
        };
        let ip6 = |routes| Load {
            size: Size::Bytes(IP6_SIZE),
            family: Family::Ip6,
            routes,
            ..Load::default()
        };
        let layer2 = [Forwarding::Vlan, Forwarding::Bridged].map(|forwarding| Load {
            size: Size::Bytes(64),
            forwarding,
            ..Load::default()
        });
        let all = [
            (Size::Bytes(1514), Flows::Many),
            (Size::Imix, Flows::Many),
            (Size::Bytes(64), Flows::Many),
            (Size::Bytes(64), Flows::One),
        ];
        let one_way =
            |loads: &[(Size, Flows)]| loads.iter().copied().map(load(Direction::OneWay)).collect();
        match self {
            Self::Quick => one_way(&all[2..3]),
            Self::Default => [one_way(&all[1..3]), vec![ip6(0)]].concat(),
            Self::Full => {
                let both = all.into_iter().map(load(Direction::BothWays));
                let ip6 = [ip6(0), ip6(IP6_ROUTES)];
                let loads = one_way(&all).into_iter().chain(both);
                loads.chain(layer2).chain(ip6).collect()
            }
        }
    }

    /// Number of rounds in which everything is repeated.
    pub fn rounds(self) -> u32 {
        if self == Self::Full { 5 } else { 1 }
    }

    /// Time for one search, warm-up and ramp included.
    pub fn budget(self) -> Duration {
        Duration::from_secs(match self {
            Self::Quick => 8,
            Self::Default | Self::Full => 26,
        })
    }

    /// Placements to try: the one at which the device does better, or both.
    pub fn spreads(self, dut: Dut, processors: usize) -> Vec<Spread> {
        match (self, dut) {
            _ if processors < 2 => vec![Spread::Shared],
            (Self::Full, _) => vec![Spread::Shared, Spread::Apart],
            // The kernel loses more by passing packets to another processor than it gains from a
            // second one. A router that polls needs one of its own.
            (_, Dut::Kernel) => vec![Spread::Shared],
            (_, Dut::Parshall) => vec![Spread::Apart],
        }
    }
}

/// Reads a list such as `kernel,parshall`.
///
/// # Errors
/// [`Error::Asked`] with the unknown word.
pub fn duts(list: &str) -> Result<Vec<Dut>, Error> {
    choose(list, "device", &[Dut::Kernel, Dut::Parshall])
}

/// Reads a list such as `veth,memif`.
///
/// # Errors
/// [`Error::Asked`] with the unknown word.
pub fn ios(list: &str) -> Result<Vec<Io>, Error> {
    choose(list, "I/O", &[Io::Veth, Io::Memif])
}

fn choose<T: Copy + PartialEq + fmt::Display>(
    list: &str,
    what: &str,
    known: &[T],
) -> Result<Vec<T>, Error> {
    let mut chosen = Vec::new();
    for word in list
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
    {
        let Some(value) = known.iter().find(|value| value.to_string() == word) else {
            let names: Vec<String> = known.iter().map(T::to_string).collect();
            return Err(Error::Asked(format!(
                "no {what} `{word}`; choose {}",
                names.join(" or ")
            )));
        };
        if !chosen.contains(value) {
            chosen.push(*value);
        }
    }
    if chosen.is_empty() {
        Err(Error::Asked(format!("no {what} given")))
    } else {
        Ok(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        assert_eq!(
            duts("parshall, kernel,parshall").unwrap(),
            [Dut::Parshall, Dut::Kernel]
        );
        assert_eq!(ios("memif").unwrap(), [Io::Memif]);
        assert_eq!(
            ios("dpdk").unwrap_err().to_string(),
            "no I/O `dpdk`; choose veth or memif"
        );
        assert!(duts(",").is_err());
    }

    #[test]
    fn rows() {
        let names = |depth: Depth| {
            depth
                .loads()
                .iter()
                .map(Load::to_string)
                .collect::<Vec<_>>()
        };
        assert_eq!(names(Depth::Quick), ["one way, 64 B many flows"]);
        assert_eq!(
            names(Depth::Default),
            [
                "one way, imix",
                "one way, 64 B many flows",
                "one way, IPv6 66 B many flows"
            ]
        );
        assert_eq!(names(Depth::Full).len(), 12);
        assert_eq!(names(Depth::Full)[7], "both ways, 64 B one flow");
        // Routes are added for the last row and stay.
        assert_eq!(names(Depth::Full)[8], "one way, 64 B many flows, VLAN");
        assert_eq!(names(Depth::Full)[9], "one way, 64 B many flows, bridged");
        assert_eq!(names(Depth::Full)[11], "one way, IPv6 66 B, 250 k routes");
    }
}
