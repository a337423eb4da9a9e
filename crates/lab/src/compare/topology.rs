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
//!
//! With VLANs the addresses are those of `dut0.10` and `dut1.10`. A bridge has neither addresses nor
//! routes.

use report::setup::{Forwarding, Io};

use crate::invocation::Pair;
use sandbox::cleanup::directory;
use sandbox::veth::{self, End};
use sandbox::{Error, Netns};

/// Largest IP packet on the links, in bytes.
const MTU: u16 = 1500;
/// VLAN of tagged packets, on both sides.
pub const VLAN: u16 = 10;

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

impl Side {
    /// Name of the interface that has the addresses.
    fn routes(&self, forwarding: Forwarding) -> String {
        match forwarding {
            Forwarding::Vlan => format!("{}.{VLAN}", self.device),
            Forwarding::Routed | Forwarding::Bridged => self.device.to_owned(),
        }
    }

    /// Gives the device's end its addresses.
    fn add_addresses(&self, device: &Netns, forwarding: Forwarding) -> Result<(), Error> {
        let name = self.routes(forwarding);
        self.device_ips.iter().try_for_each(|address| {
            // Nobody else has it, and it can be used at once.
            let nodad = if address.contains(':') { "nodad" } else { "" };
            device
                .ip(&format!("addr add {address} dev {name} {nodad}"))
                .map(drop)
        })
    }
}

/// The two namespaces with their links.
#[derive(Debug)]
pub struct Topology {
    io: Io,
    forwarding: Forwarding,
    /// Namespace of the generator.
    pub generator: Netns,
    /// Namespace of the device.
    pub device: Netns,
}

impl Topology {
    /// Creates the namespaces and the links. With veth, the device's ends have addresses, neighbors
    /// and routes, if it is them that route.
    ///
    /// # Errors
    /// Without root, `ip` or `ethtool`.
    pub fn new(io: Io, forwarding: Forwarding) -> Result<Self, Error> {
        let topology = Self {
            io,
            forwarding,
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
                if forwarding == Forwarding::Routed {
                    side.add_addresses(device, forwarding)?;
                }
                veth::host_end(generator, side.generator)?;
                veth::device_end(device, side.device)?;
            }
            if forwarding == Forwarding::Routed {
                topology.add_routes()?;
            }
        }
        topology.add_calibration()?;
        Ok(topology)
    }

    /// Makes the kernel forward: what it needs beyond the links and their addresses.
    ///
    /// # Errors
    /// If the kernel has no VLAN devices, or no bridges.
    pub fn kernel_forwards(&self) -> Result<(), Error> {
        match self.forwarding {
            Forwarding::Routed => Ok(()),
            Forwarding::Vlan => {
                for side in &SIDES {
                    let (device, name) = (side.device, side.routes(self.forwarding));
                    self.device.ip(&format!(
                        "link add link {device} name {name} up type vlan id {VLAN}"
                    ))?;
                    side.add_addresses(&self.device, self.forwarding)?;
                }
                self.add_routes()
            }
            Forwarding::Bridged => {
                self.device.ip("link add bridge up type bridge")?;
                let join = |side: &Side| format!("link set {} master bridge\n", side.device);
                self.device
                    .ip_batch(&SIDES.iter().map(join).collect::<String>())
            }
        }
    }

    /// Adds neighbors and routes of the device, unless it is a bridge; where the interfaces are the
    /// router's, after it has created their taps.
    ///
    /// # Errors
    /// If there are no such interfaces.
    pub fn add_routes(&self) -> Result<(), Error> {
        if self.forwarding == Forwarding::Bridged {
            return Ok(());
        }
        let mut lines = String::new();
        for side in &SIDES {
            let (mac, device) = (side.generator_mac, side.routes(self.forwarding));
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
        let [_, side] = &SIDES;
        let ([_, ip], device) = (side.generator_ips, side.routes(self.forwarding));
        let line = |prefix| format!("route replace {prefix} via {ip} dev {device}\n");
        self.device
            .ip_batch(&prefixes.iter().map(line).collect::<String>())
    }

    /// Networks behind the sides that a device has routes to.
    pub fn networks(&self) -> impl Iterator<Item = &'static str> {
        let routes = self.forwarding != Forwarding::Bridged;
        let sides = SIDES.iter().filter(move |_| routes);
        sides.flat_map(|side| side.behind)
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
            dst_mac: match self.forwarding {
                Forwarding::Bridged => SIDES[to].generator_mac.into(),
                Forwarding::Routed | Forwarding::Vlan => SIDES[from].device_mac.into(),
            },
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
        router_configuration(self.io, self.forwarding, cpu)
    }
}

/// Path of the memif socket of a side.
fn socket(side: usize) -> String {
    directory()
        .join(format!("side{side}.sock"))
        .display()
        .to_string()
}

/// Makes one configuration of that of the router's ports and of what a matrix has beyond it. The
/// laboratory does not link what reads them.
pub type Merge = fn(ports: &str, beyond: &str) -> Result<String, Error>;

/// Configuration of the router between ports of this kind, with its worker on processor `cpu`.
pub fn router_configuration(io: Io, forwarding: Forwarding, cpu: usize) -> String {
    let mut text = format!("workers: {{ cpus: [{cpu}] }}\ninterfaces:\n");
    for side in &SIDES {
        let device = side.device;
        let ips = side.device_ips.map(|ip| format!("\"{ip}\"")).join(", ");
        let own = match io {
            Io::Veth => format!(", lcp: {device}"),
            Io::Memif => format!(", lcp: {device}, mac: \"{}\"", side.device_mac),
        };
        let more = match (forwarding, io) {
            // On a veth the kernel already has the addresses.
            (Forwarding::Routed, Io::Veth) => String::new(),
            (Forwarding::Routed, Io::Memif) => format!("{own}, addresses: [ {ips} ]"),
            (Forwarding::Vlan, _) => {
                let name = side.routes(forwarding);
                format!(
                    "{own}, sub-interfaces: {{ {VLAN}: {{ lcp: {name}, addresses: [ {ips} ] }} }}"
                )
            }
            (Forwarding::Bridged, _) => String::new(),
        };
        text += &format!("  {device}: {{ mtu: {MTU}{more} }}\n");
    }
    if forwarding == Forwarding::Bridged {
        let members = SIDES.each_ref().map(|side| side.device).join(", ");
        text += &format!("bridgedomains: {{ bd1: {{ mtu: {MTU}, interfaces: [ {members} ] }} }}\n");
    }
    if io == Io::Memif {
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
        let topology = Topology::new(Io::Veth, Forwarding::Routed).unwrap();
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
