//! One scenario: routes, flows and packets, and its rounds.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use graph::pool::{Pages, STRIDE};
use graph::worker::Worker;
use graph::{Buffers, Command, Desc, Handle, Pkt, Pool, WorkerPort};
use io::recirculation::{Collected, Recirculation};
use router::{Address, Change, Cx, Family, Mac, Path, Prefix, Route, Router, Setup, Tags};
use tables::acl;
use tables::random::Random;
use tables::synthetic;
use wire::craft::Packet;
use wire::vlan::{self, Tag};
use wire::{eth, ip, ip4, ip6};

use super::oracle::Oracle;
use super::talk::{Said, Talk};
use super::way::{INTERFACE, OTHERS, OWN, Way};
use super::{NodeRow, Row, Speeds, Spread};

/// The definition of a scenario.
pub struct What {
    /// Name of its row.
    pub name: &'static str,
    /// In words.
    pub what: &'static str,
    /// Of the packets.
    family: Family,
    /// Packets in the ring.
    packets: usize,
    /// Times that each packet is forwarded in a round.
    passes: usize,
    /// Source and destination addresses from 16.0.0.4 and 48.0.0.4 on, or from 2001:db8:16::4 and
    /// 2001:db8:48::4 on; 0: random destinations within random routes.
    flows: u32,
    /// Routes beside the connected one.
    routes: usize,
    /// What the interfaces do with the packets.
    way: Way,
}

impl What {
    /// There is memory for its flows, and as much again for all else.
    pub fn fits(&self) -> bool {
        let flows = self.way.talk().map_or(0, |talk| talk.sizes().bytes());
        let available = kernel::memory::available();
        flows == 0 || available.is_ok_and(|memory| memory.ordinary / 2 >= flows)
    }
}

/// The scenarios, in the order of the table.
pub const SCENARIOS: [What; 21] = [
    What {
        name: "ip4-hot",
        what: "one flow, 256 packets, two routes: all in the first cache",
        family: Family::V4,
        packets: 256,
        passes: 200,
        flows: 1,
        routes: 2,
        way: Way::Routed,
    },
    What {
        name: "ip4-flows",
        what: "251 x 251 flows, 4,096 packets, two routes",
        family: Family::V4,
        packets: 4096,
        passes: 60,
        flows: 251,
        routes: 2,
        way: Way::Routed,
    },
    What {
        name: "acl-1",
        what: "the same as ip4-flows past an access list of one rule",
        family: Family::V4,
        packets: 4096,
        passes: 60,
        flows: 251,
        routes: 2,
        way: Way::Filtered(1),
    },
    What {
        name: "acl-100",
        what: "the same as ip4-flows past an access list of 100 random rules",
        family: Family::V4,
        packets: 4096,
        passes: 60,
        flows: 251,
        routes: 2,
        way: Way::Filtered(100),
    },
    What {
        name: "acl-1000",
        what: "the same as ip4-flows past an access list of 1,000 random rules",
        family: Family::V4,
        packets: 4096,
        passes: 60,
        flows: 251,
        routes: 2,
        way: Way::Filtered(1000),
    },
    What {
        name: "flow-2k",
        what: "4,096 packets of 2,000 flows, both directions, past the firewall",
        family: Family::V4,
        packets: 4096,
        passes: 60,
        flows: 1,
        routes: 2,
        way: Way::Firewalled(Talk(2000)),
    },
    What {
        name: "flow-1m",
        what: "262,144 packets of 1,000,000 flows past the firewall: memory",
        family: Family::V4,
        packets: 1 << 18,
        passes: 1,
        flows: 1,
        routes: 2,
        way: Way::Firewalled(Talk(1_000_000)),
    },
    What {
        name: "flow-10m",
        what: "the same of 10,000,000 flows",
        family: Family::V4,
        packets: 1 << 18,
        passes: 1,
        flows: 1,
        routes: 2,
        way: Way::Firewalled(Talk(10_000_000)),
    },
    What {
        name: "ip4-1m-cold",
        what: "1,000,000 routes, random destinations, 262,144 packets: memory",
        family: Family::V4,
        packets: 1 << 18,
        passes: 1,
        flows: 0,
        routes: 1_000_000,
        way: Way::Routed,
    },
    What {
        name: "ip6-hot",
        what: "the same as ip4-hot over IPv6",
        family: Family::V6,
        packets: 256,
        passes: 200,
        flows: 1,
        routes: 2,
        way: Way::Routed,
    },
    What {
        name: "ip6-flows",
        what: "the same as ip4-flows over IPv6",
        family: Family::V6,
        packets: 4096,
        passes: 60,
        flows: 251,
        routes: 2,
        way: Way::Routed,
    },
    What {
        name: "ip6-250k-cold",
        what: "250,000 routes, random destinations, 262,144 packets: memory",
        family: Family::V6,
        packets: 1 << 18,
        passes: 1,
        flows: 0,
        routes: 250_000,
        way: Way::Routed,
    },
    What {
        name: "vlan-ip4-hot",
        what: "the same as ip4-hot from and to a sub-interface",
        family: Family::V4,
        packets: 256,
        passes: 200,
        flows: 1,
        routes: 2,
        way: Way::RoutedTagged,
    },
    What {
        name: "bond-xor-ip4-hot",
        what: "the same as ip4-hot from and to a bond that hashes addresses and ports",
        family: Family::V4,
        packets: 256,
        passes: 200,
        flows: 1,
        routes: 2,
        way: Way::RoutedByBond,
    },
    What {
        name: "bvi-ip4-hot",
        what: "the same as ip4-hot from a bridge domain to another port",
        family: Family::V4,
        packets: 256,
        passes: 200,
        flows: 1,
        routes: 2,
        way: Way::RoutedByBvi,
    },
    What {
        name: "l2xc-hot",
        what: "cross connect of 256 frames: all in the first cache",
        family: Family::V4,
        packets: 256,
        passes: 200,
        flows: 1,
        routes: 2,
        way: Way::Crossed,
    },
    What {
        name: "l2xc-vlan-hot",
        what: "the same between sub-interfaces with other tags",
        family: Family::V4,
        packets: 256,
        passes: 200,
        flows: 1,
        routes: 2,
        way: Way::Retagged,
    },
    What {
        name: "bridge-hot",
        what: "bridge of 256 frames, one station a side: all in the first cache",
        family: Family::V4,
        packets: 256,
        passes: 200,
        flows: 1,
        routes: 2,
        way: Way::Bridged(1),
    },
    What {
        name: "bridge-20k",
        what: "bridge of 4,096 frames from and to random ones of 20,000 stations",
        family: Family::V4,
        packets: 4096,
        passes: 60,
        flows: 1,
        routes: 2,
        way: Way::Bridged(10_000),
    },
    What {
        name: "vxlan4-encap-hot",
        what: "256 frames cross-connected into a VXLAN tunnel over IPv4, which is routed",
        family: Family::V4,
        packets: 256,
        passes: 200,
        flows: 1,
        routes: 2,
        way: Way::IntoTunnel,
    },
    What {
        name: "vxlan4-decap-hot",
        what: "256 packets of the tunnel, cross-connected out of it",
        family: Family::V4,
        packets: 256,
        passes: 200,
        flows: 1,
        routes: 2,
        way: Way::OutOfTunnel,
    },
];

/// Next hops of random routes: several, as a router with peers has, and few enough that their
/// rewrites stay in the first cache, so that the look-up is what is measured.
const HOPS: u32 = 16;
/// The largest: a round forwards a packet up to 200 times.
const TTL: u8 = 255;

/// A scenario's router, packets and results so far.
pub struct Scenario {
    what: &'static What,
    worker: Worker<Cx>,
    handle: Handle,
    router: Router,
    pool: Arc<Pool>,
    bufs: Buffers,
    entry: u16,
    oracle: Oracle,
    destinations: Vec<IpAddr>,
    /// The rules of its access list; packets are spread over them.
    rules: Vec<acl::Rule<u32>>,
    rounds: Vec<Vec<(String, f64)>>,
}

impl Scenario {
    /// Builds routes and packets' addresses.
    pub fn new(what: &'static What) -> Result<Self, Box<dyn Error>> {
        let pool = Pool::new(what.packets as u32 + 4096, STRIDE)?;
        let setup = Setup {
            pool: pool.clone(),
            memory: tables::Memory::mapped(tables::Sizes::default())?,
            workers: 1,
            flows: what.way.talk().map(Talk::sizes).unwrap_or_default(),
            grace: None,
        };
        let (mut router, mut idle) = Router::new(setup)?;
        let (worker, handle) = idle.pop().ok_or("bench: no worker")?;
        let (oracle, destinations) = routes(what, &mut router)?;
        let rules = what.way.rules();
        router.apply(what.way.filters(&rules))?;
        let entry = worker
            .graph()
            .index_of(router::nodes::ENTRY)
            .ok_or("bench: no entry node")?;
        let bufs = shuffled(&pool);
        let mut this = Scenario {
            what,
            worker,
            handle,
            router,
            pool,
            bufs,
            entry,
            oracle,
            destinations,
            rules,
            rounds: Vec::new(),
        };
        for (at, frame) in what.way.lessons() {
            this.learn(at, &frame)?;
        }
        for step in what.way.talk().into_iter().flat_map(Talk::opening) {
            this.open(&step)?;
        }
        for (other, _) in OTHERS {
            let _ = this.handle.command(Command::Egress(other, INTERFACE));
        }
        if let Some(featured) = what.way.featured() {
            // The router tells this to the workers whose handles it has.
            let node = this.worker.graph().index_of("interface-output");
            let _ = this.handle.command(Command::Output(featured, node));
        }
        Ok(this)
    }

    /// Lets a bridge learn a frame's source.
    fn learn(&mut self, at: u16, frame: &[u8]) -> Result<(), Box<dyn Error>> {
        let packet = self.bufs.copy_in(frame).ok_or("bench: no buffers")?;
        self.serve(Recirculation::new(vec![packet], None), at);
        self.worker.round(graph::cycles::now());
        self.withdraw(at);
        self.router.unresolved();
        Ok(())
    }

    /// Lets the firewall see packets of flows that begin.
    fn open(&mut self, said: &[Said]) -> Result<(), Box<dyn Error>> {
        let collected = Collected::default();
        let mut packets = Vec::with_capacity(said.len());
        for said in said {
            let frame = self.framed(said.packet(), OWN, OWN);
            packets.push(self.bufs.copy_in(&frame).ok_or("bench: no buffers")?);
        }
        let port = Recirculation::new(packets, Some(collected.clone()));
        self.serve(port, INTERFACE);
        let mut moved = 0;
        while moved < said.len() {
            let n = self.worker.round(graph::cycles::now()).unwrap_or(0);
            if n == 0 {
                return Err(format!("bench {}: a flow did not begin", self.what.name).into());
            }
            moved += n;
        }
        self.withdraw(INTERFACE);
        let packets = std::mem::take(&mut *collected.lock().map_err(|_| "bench: a port failed")?);
        packets.into_iter().for_each(|d| self.bufs.free(d));
        Ok(())
    }

    /// Lets the worker serve a port for an interface.
    fn serve(&mut self, port: Recirculation, interface: u16) {
        let port = WorkerPort::new(Box::new(port), interface, interface, self.entry);
        let _ = self.handle.command(Command::AddPort(Box::new(port)));
    }

    /// Takes it back.
    fn withdraw(&mut self, interface: u16) {
        let _ = self.handle.command(Command::RemovePort(interface));
        self.worker.round(graph::cycles::now());
        while self.handle.returned().is_some() {}
    }

    /// The pages that the packets lie in.
    pub fn pages(&self) -> Pages {
        self.pool.pages()
    }

    /// One round: builds the packets, forwards all of them `passes` times, checks them.
    pub fn round(&mut self, number: usize, check: bool) -> Result<(), Box<dyn Error>> {
        let collected = Collected::default();
        let mut packets = Vec::with_capacity(self.what.packets);
        for i in 0..self.what.packets {
            packets.push(
                self.bufs
                    .copy_in(&self.what.way.entering(self.frame(i)))
                    .ok_or("bench: no buffers")?,
            );
        }
        let port = Recirculation::new(packets, Some(collected.clone())).moved(self.what.way.lost());
        self.serve(port, INTERFACE);
        let before = self.clocks();
        let (mut total, mut moved) = (0, 0);
        while moved < self.what.packets * self.what.passes {
            let start = graph::cycles::now();
            let n = self.worker.round(graph::cycles::now()).unwrap_or(0);
            total += graph::cycles::now() - start;
            moved += n;
            if n == 0 {
                return Err(
                    format!("bench {}: packets were lost on the way", self.what.name).into(),
                );
            }
        }
        let mut shares: Vec<(String, f64)> = vec![("all".into(), total as f64 / moved as f64)];
        for ((name, before), (_, after)) in before.into_iter().zip(self.clocks()) {
            shares.push((name, (after - before) as f64 / moved as f64));
        }
        if number > 0 {
            self.rounds.truncate(number - 1);
            self.rounds.push(shares);
        }
        self.withdraw(INTERFACE);
        let mut packets =
            std::mem::take(&mut *collected.lock().map_err(|_| "bench: a port failed")?);
        let result = if check {
            self.check(&mut packets)
        } else {
            Ok(())
        };
        packets.into_iter().for_each(|d| self.bufs.free(d));
        result
    }

    /// Clocks so far of every node, and of the port's two ends.
    fn clocks(&self) -> Vec<(String, u64)> {
        let port = &self.handle.counters.interfaces[INTERFACE as usize];
        let mut clocks = vec![("rx".to_string(), port.rx_clocks.get())];
        clocks.extend(
            self.handle
                .counters
                .nodes
                .iter()
                .map(|(name, c)| (name.to_string(), c.clocks.get())),
        );
        clocks.push(("tx".into(), port.tx_clocks.get()));
        clocks
    }

    fn addresses(&self, i: usize) -> (IpAddr, IpAddr) {
        if let Some(ends) = within(&self.rules, i) {
            return ends;
        }
        if let Some(talk) = self.what.way.talk() {
            return talk.packet(i).addresses();
        }
        let flows = self.what.flows.max(1) as usize;
        let source = host(self.what.family, 16, i % flows);
        match self.destinations.get(i) {
            Some(destination) => (source, *destination),
            None => (source, host(self.what.family, 48, i / flows % flows)),
        }
    }

    fn frame(&self, i: usize) -> Vec<u8> {
        let talk = self.what.way.talk();
        let said = talk.map(|talk| talk.packet(i).packet());
        let packet = said.unwrap_or_else(|| match self.addresses(i) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let ends = [source, destination].map(u32::from);
                Packet::udp((ends[0], 1025), (ends[1], 12)).without_udp_checksum()
            }
            (source, destination) => {
                // A frame of 64 bytes has no room for UDP over IPv6.
                let [source, destination] = [source, destination].map(|end| match end {
                    IpAddr::V6(end) => end,
                    IpAddr::V4(end) => end.to_ipv6_mapped(),
                });
                Packet::raw6(source, destination, ip::NO_NEXT_HEADER)
            }
        });
        let (source, destination) = self.what.way.macs(i);
        self.framed(packet, source, destination)
    }

    /// The frame of a packet.
    fn framed(&self, packet: Packet, source: Mac, destination: Mac) -> Vec<u8> {
        let packet = packet.ttl(TTL).macs(source, destination);
        let frame = packet.frame_len(60).frame();
        match self.what.way.tags() {
            Tags::NONE => frame,
            tags => {
                let tag = Tag::new(eth::VLAN, tags.outer).to_bytes();
                [&frame[..vlan::AT], &tag, &frame[vlan::AT..]].concat()
            }
        }
    }

    /// Every packet: where the oracle says, time to live and checksum right, nothing else changed,
    /// none lost or doubled.
    fn check(&self, packets: &mut [Desc]) -> Result<(), Box<dyn Error>> {
        let mut seen = vec![false; self.pool.count() as usize];
        if packets.len() != self.what.packets {
            return Err(format!(
                "bench {}: {} of {} packets came back",
                self.what.name,
                packets.len(),
                self.what.packets
            )
            .into());
        }
        // A ring whose length is a multiple of a frame keeps its order.
        for (i, d) in packets.iter_mut().enumerate() {
            // As it has left.
            Pkt::new(&self.pool, d).shift(-self.what.way.lost());
            let (_, destination) = self.addresses(i);
            let hop = self
                .oracle
                .lookup(destination)
                .ok_or("bench: the oracle has no route")?;
            let mut want = self.frame(i);
            if self.what.way.is_routed() {
                want[..6].copy_from_slice(&mac(hop, self.what.passes).0);
                let l3 = eth::LEN + self.what.way.tags().len();
                pass_hops(&mut want[l3..], self.what.passes as u8);
            }
            let (want, found) = self.what.way.leaving(want, self.pool.bytes_of(d));
            if std::mem::replace(&mut seen[self.pool.index(d) as usize], true) || found != want {
                return Err(format!(
                    "bench {}: packet {i} came out wrong: {found:02x?}, want {want:02x?}",
                    self.what.name,
                )
                .into());
            }
        }
        Ok(())
    }

    /// Its row.
    pub fn row(&self, ghz: f64, speeds: &Speeds) -> Row {
        let column = |i: usize| Spread::of(self.rounds.iter().map(|r| r[i].1));
        let all = column(0);
        let rounds: Vec<f64> = self.rounds.iter().map(|r| r[0].1).collect();
        let round_additions = speeds.divide(&rounds);
        let mpps = |cycles: f64| ghz * 1e3 / cycles;
        let nodes = (1..self.rounds[0].len())
            .map(|i| NodeRow {
                name: self.rounds[0][i].0.clone(),
                cycles_per_packet: column(i),
            })
            .filter(|n| n.cycles_per_packet.max > 0.0);
        Row {
            name: self.what.name,
            what: self.what.what,
            cycles_per_packet: all,
            additions_per_packet: Spread::of_some(&round_additions),
            round_additions,
            rounds,
            mpps: Spread {
                median: mpps(all.median),
                min: mpps(all.max),
                max: mpps(all.min),
            },
            nodes: nodes.collect(),
        }
    }
}

/// The addresses of packet `i`: of one that a random rule is made for. `None`: there are no rules.
fn within(rules: &[acl::Rule<u32>], i: usize) -> Option<(IpAddr, IpAddr)> {
    let mut random = Random::new(i as u64);
    let rule = rules.get(random.below(rules.len() as u32) as usize)?;
    let mut end = |prefix: tables::prefix::Prefix<u32>| {
        let within = random.word() & (prefix.last() ^ prefix.addr());
        Ipv4Addr::from(prefix.addr() | within).into()
    };
    Some((end(rule.source), end(rule.destination)))
}

/// Host `number` of the network whose packets come from or go to `net`.
fn host(family: Family, net: u8, number: usize) -> IpAddr {
    let number = number as u32 + 4;
    match family {
        Family::V4 => Ipv4Addr::from(u32::from(net) << 24 | number).into(),
        Family::V6 => {
            // Decimal, as it is read.
            let net = u128::from(net / 10 * 16 + net % 10);
            Ipv6Addr::from(0x2001_0db8 << 96 | net << 80 | u128::from(number)).into()
        }
    }
}

/// Changes a header as so many routers do: hop limit or TTL, and checksum.
fn pass_hops(packet: &mut [u8], hops: u8) {
    if packet[0] >> 4 == 6 {
        packet[ip6::at::HOP_LIMIT] -= hops;
    } else if let Some((header, _)) = ip4::Header::parse_mut(packet) {
        header.ttl -= hops;
        header.seal();
    }
}

/// Next hop `hop`'s address. Packets that go round more than once must come back to us.
fn mac(hop: u32, passes: usize) -> Mac {
    if passes > 1 {
        OWN
    } else {
        Mac([0x02, 0x50, 0x53, 1, 0, hop as u8])
    }
}

/// Buffers in random order, as a busy router's are.
fn shuffled(pool: &Arc<Pool>) -> Buffers {
    let mut bufs = Buffers::new(pool.clone());
    let mut all: Vec<Desc> = std::iter::from_fn(|| bufs.alloc()).collect();
    let mut random = Random::new(1);
    for i in (1..all.len()).rev() {
        all.swap(i, random.below(i as u32 + 1) as usize);
    }
    all.into_iter().for_each(|d| bufs.free(d));
    bufs
}

/// Gives the router its interface, neighbors and routes; returns the oracle that knows the same,
/// and the packets' destinations.
fn routes(what: &What, router: &mut Router) -> Result<(Oracle, Vec<IpAddr>), Box<dyn Error>> {
    let gateway = |hop: u32| match what.family {
        Family::V4 => IpAddr::from([10, 0, 0, hop as u8 + 2]),
        Family::V6 => Ipv6Addr::from(0xfd00 << 112 | u128::from(hop + 2)).into(),
    };
    let path = |gateway| {
        Route::Forward(vec![Path {
            interface: what.way.routed(),
            gateway,
            weight: 1,
            mtu: None,
            source: None,
        }])
    };
    let mut changes = what.way.interfaces();
    changes.push(Change::AddressesSet {
        interface: what.way.routed(),
        addresses: vec![Address::new(Ipv4Addr::new(10, 0, 0, 1), 24)],
    });
    for prefix in ["10.0.0.0/24", "fd00::/64"] {
        changes.push(Change::RouteSet {
            prefix: prefix.parse()?,
            route: path(None),
        });
    }
    for hop in 0..HOPS {
        changes.push(Change::NeighborSet {
            interface: what.way.routed(),
            address: gateway(hop),
            mac: mac(hop, what.passes),
        });
    }
    let mut oracle = Oracle::default();
    let mut add = |prefix: Prefix, hop: u32| {
        oracle.insert(prefix, hop);
        changes.push(Change::RouteSet {
            prefix,
            route: path(Some(gateway(hop))),
        });
    };
    let mut destinations = Vec::new();
    if what.flows > 0 {
        let two = match what.family {
            Family::V4 => ["48.0.0.0/8", "16.0.0.0/8"],
            Family::V6 => ["2001:db8:48::/48", "2001:db8:16::/48"],
        };
        add(two[0].parse()?, 0);
        add(two[1].parse()?, 1);
    } else {
        let mut random = Random::new(2);
        let prefixes: Vec<Prefix>;
        (prefixes, destinations) = synthetic(what);
        for prefix in prefixes {
            add(prefix, random.below(HOPS));
        }
    }
    router.apply(changes)?;
    Ok((oracle, destinations))
}

/// Routes such as the Internet has, and destinations within them.
fn synthetic(what: &What) -> (Vec<Prefix>, Vec<IpAddr>) {
    match what.family {
        Family::V4 => {
            let set = synthetic::ip4::routes(what.routes, 3);
            let to = synthetic::ip4::destinations(&set, what.packets, 4);
            let to = to.into_iter().map(|to| Ipv4Addr::from(to).into());
            (set.into_iter().map(Prefix::from).collect(), to.collect())
        }
        Family::V6 => {
            let set = synthetic::ip6::routes(what.routes, 3);
            let to = synthetic::ip6::destinations(&set, what.packets, 4);
            let to = to.into_iter().map(|to| Ipv6Addr::from(to).into());
            (set.into_iter().map(Prefix::from).collect(), to.collect())
        }
    }
}
