//! Generator, device, and the links between them.
//!
//! ```text
//! generator namespace                 device namespace
//!   gen0 198.18.0.2 ------------------ dut0 198.18.0.1    16.0.0.0/8 is behind gen0
//!        2001:2::2                          2001:2::1     2001:2:0:10::/64
//!   gen1 198.18.1.2 ------------------ dut1 198.18.1.1    48.0.0.0/8 is behind gen1
//!        2001:2:0:1::2                      2001:2:0:1::1 2001:2:0:30::/64
//!   cal0 ---- cal1 (the generator alone)
//! ```
//! Addresses of IPv6 are those for benchmarks (RFC 5180).
//!
//! Packets of the first direction enter by `dut0` and have destinations in 48.0.0.0/8; the second
//! direction is the reverse. With memif there are sockets instead of links, and `dut0` and `dut1`
//! are the names of the router's interfaces.

use report::setup::Io;

use crate::invocation::Pair;
use sandbox::cleanup::directory;
use sandbox::veth::{self, End};
use sandbox::{Error, Netns};

/// Largest IP packet on the links, in bytes.
const MTU: u16 = 1500;

/// One side: names and addresses of both ends of the link, and the network behind it.
struct Side {
    generator: &'static str,
    generator_mac: &'static str,
    generator_ips: [&'static str; 2],
    device: &'static str,
    device_mac: &'static str,
    /// With their prefix lengths.
    device_ips: [&'static str; 2],
    behind: [&'static str; 2],
}

const SIDES: [Side; 2] = [
    Side {
        generator: "gen0",
        generator_mac: "02:70:73:00:00:02",
        generator_ips: ["198.18.0.2", "2001:2::2"],
        device: "dut0",
        device_mac: "02:70:73:00:00:01",
        device_ips: ["198.18.0.1/24", "2001:2::1/64"],
        behind: ["16.0.0.0/8", "2001:2:0:10::/64"],
    },
    Side {
        generator: "gen1",
        generator_mac: "02:70:73:00:01:02",
        generator_ips: ["198.18.1.2", "2001:2:0:1::2"],
        device: "dut1",
        device_mac: "02:70:73:00:01:01",
        device_ips: ["198.18.1.1/24", "2001:2:0:1::1/64"],
        behind: ["48.0.0.0/8", "2001:2:0:30::/64"],
    },
];

/// The two namespaces with their links.
#[derive(Debug)]
pub struct Topology {
    io: Io,
    /// Namespace of the generator.
    pub generator: Netns,
    /// Namespace of the device.
    pub device: Netns,
}

impl Topology {
    /// Creates the namespaces and the links. With veth, the device's ends have addresses, neighbors
    /// and routes.
    ///
    /// # Errors
    /// Without root, `ip` or `ethtool`.
    pub fn new(io: Io) -> Result<Self, Error> {
        let topology = Self {
            io,
            generator: Netns::create("gen")?,
            device: Netns::with_ipv6("dut")?,
        };
        let (generator, device) = (&topology.generator, &topology.device);
        if io == Io::Veth {
            for side in &SIDES {
                let theirs = End {
                    netns: generator,
                    name: side.generator,
                    mac: side.generator_mac,
                    address: None,
                };
                let ours = End {
                    netns: device,
                    name: side.device,
                    mac: side.device_mac,
                    address: None,
                };
                veth::pair(theirs, ours, MTU)?;
                for address in side.device_ips {
                    // Nobody else has it, and it can be used at once.
                    let nodad = if address.contains(':') { "nodad" } else { "" };
                    device.ip(&format!("addr add {address} dev {} {nodad}", side.device))?;
                }
                veth::host_end(generator, side.generator)?;
                veth::device_end(device, side.device)?;
            }
            topology.add_routes()?;
        }
        topology.add_calibration()?;
        Ok(topology)
    }

    /// Adds neighbors and routes of the device; with memif, after the router has created the taps
    /// of its interfaces.
    ///
    /// # Errors
    /// If there are no such interfaces.
    pub fn add_routes(&self) -> Result<(), Error> {
        let mut lines = String::new();
        for side in &SIDES {
            let Side {
                generator_mac: mac,
                device,
                ..
            } = side;
            for (ip, behind) in side.generator_ips.iter().zip(side.behind) {
                lines += &format!(
                    "neigh replace {ip} lladdr {mac} dev {device} nud permanent\nroute replace {behind} via {ip} dev {device}\n"
                );
            }
        }
        self.device.ip_batch(&lines)
    }

    /// Adds routes of IPv6 to what is behind `gen1`.
    ///
    /// # Errors
    /// If the kernel refuses one.
    pub fn add_routes_of(&self, prefixes: &[String]) -> Result<(), Error> {
        let [
            _,
            Side {
                generator_ips: [_, ip],
                device,
                ..
            },
        ] = &SIDES;
        let line = |prefix| format!("route replace {prefix} via {ip} dev {device}\n");
        self.device
            .ip_batch(&prefixes.iter().map(line).collect::<String>())
    }

    /// Networks behind the sides.
    pub fn networks() -> impl Iterator<Item = &'static str> {
        SIDES.iter().flat_map(|side| side.behind)
    }

    /// Creates a link that leads from the generator to itself.
    fn add_calibration(&self) -> Result<(), Error> {
        let end = |name, mac| End {
            netns: &self.generator,
            name,
            mac,
            address: None,
        };
        veth::pair(
            end("cal0", "02:70:73:00:02:02"),
            end("cal1", "02:70:73:00:02:01"),
            MTU,
        )?;
        veth::device_end(&self.generator, "cal1")
    }

    /// Ports and addresses of a load through the device, for the first direction or both.
    pub fn pairs(&self, both: bool) -> Vec<Pair> {
        let port = |side: usize, receive: bool| match (self.io, receive) {
            (Io::Veth, false) => format!("live:{}", SIDES[side].generator),
            (Io::Veth, true) => format!("sink:{}", SIDES[side].generator),
            (Io::Memif, _) => format!("memif:{},id=0,role=client", socket(side)),
        };
        let pair = |from: usize, to: usize| Pair {
            tx: port(from, false),
            rx: port(to, true),
            src_mac: SIDES[from].generator_mac.into(),
            dst_mac: SIDES[from].device_mac.into(),
        };
        if both {
            vec![pair(0, 1), pair(1, 0)]
        } else {
            vec![pair(0, 1)]
        }
    }

    /// The same for the generator alone, which counts its own packets.
    pub fn calibration(&self) -> Vec<Pair> {
        let socket = directory().join("calibration.sock").display().to_string();
        let (tx, rx) = match self.io {
            Io::Veth => ("live:cal0".into(), "sink:cal1".into()),
            Io::Memif => (
                format!("memif:{socket},id=0,role=server"),
                format!("memif:{socket},id=0,role=client"),
            ),
        };
        vec![Pair {
            tx,
            rx,
            src_mac: "02:70:73:00:02:02".into(),
            dst_mac: "02:70:73:00:02:01".into(),
        }]
    }

    /// Configuration of the router for this topology, with its worker on processor `cpu`.
    pub fn router_configuration(&self, cpu: usize) -> String {
        let mut text = format!("workers: {{ cpus: [{cpu}] }}\ninterfaces:\n");
        for side in &SIDES {
            // On a veth the kernel already has the addresses.
            let host = match self.io {
                Io::Veth => String::new(),
                Io::Memif => format!(
                    ", lcp: {}, mac: \"{}\", addresses: [ {} ]",
                    side.device,
                    side.device_mac,
                    side.device_ips.map(|ip| format!("\"{ip}\"")).join(", ")
                ),
            };
            text += &format!("  {}: {{ mtu: {MTU}{host} }}\n", side.device);
        }
        if self.io == Io::Memif {
            text += "ports:\n";
            for (number, side) in SIDES.iter().enumerate() {
                let socket = socket(number);
                text += &format!(
                    "  {}: {{ memif: {{ socket: {socket}, id: 0, role: server }} }}\n",
                    side.device
                );
            }
        }
        text
    }
}

/// Path of the memif socket of a side.
fn socket(side: usize) -> String {
    directory()
        .join(format!("side{side}.sock"))
        .display()
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandbox::cleanup::is_root;

    #[test]
    fn kernel_forwards_between_the_sides() {
        if !is_root() {
            println!("SKIP kernel_forwards_between_the_sides: needs root");
            return;
        }
        let topology = Topology::new(Io::Veth).unwrap();
        topology.device.set_forwarding(true).unwrap();
        let route = topology
            .device
            .ip("route get 48.0.0.4 from 16.0.0.4 iif dut0")
            .unwrap();
        assert!(route.contains("via 198.18.1.2 dev dut1"), "{route}");
        let route = topology
            .device
            .ip("route get 2001:2:0:30::4 from 2001:2:0:10::4 iif dut0");
        let route = route.unwrap();
        assert!(route.contains("via 2001:2:0:1::2 dev dut1"), "{route}");
        assert_eq!(topology.pairs(true)[1].tx, "live:gen1");
        assert_eq!(topology.pairs(true)[1].dst_mac, "02:70:73:00:01:01");
    }
}
