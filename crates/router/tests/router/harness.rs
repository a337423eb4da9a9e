//! A router in memory: interfaces are cables, workers are driven by hand, every buffer is accounted
//! for.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use graph::memory_port::MemoryPort;
use graph::worker::Worker;
use graph::{Command, Pool, TxPlacement, WorkerPort, cycles};
use router::nodes::{self, Table};
use router::{
    Address, Change, Cx, Grace, Interface, Kind, L2, Mac, Path, Prefix, Route, Router, Setup, Tags,
};
use tables::{Memory, Sizes};
use wire::craft::Packet;

pub struct Lab {
    pub router: Router,
    pub workers: Vec<Worker<Cx>>,
    pub cables: BTreeMap<u16, MemoryPort>,
    /// TSC of its rounds: it stands still until [`Lab::advance`].
    pub now: u64,
    buffers: u32,
}

/// `10.0.interface.host` as a number.
pub fn addr(interface: u8, host: u8) -> u32 {
    u32::from_be_bytes([10, 0, interface, host])
}

/// The same as an address.
pub fn ip(interface: u8, host: u8) -> IpAddr {
    Ipv4Addr::from(addr(interface, host)).into()
}

/// An IPv6 address.
pub fn ip6(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Our Ethernet address on an interface.
pub fn own_mac(interface: u16) -> Mac {
    Mac([2, 0xfe, 0, 0, 0, interface as u8])
}

/// The Ethernet address of host `10.0.interface.host`.
pub fn host_mac(interface: u16, host: u8) -> Mac {
    Mac([2, 0, 0, 0, interface as u8, host])
}

pub fn prefix(text: &str) -> Prefix {
    text.parse().unwrap()
}

pub fn interface(id: u16) -> Interface {
    Interface {
        id,
        name: format!("eth{id}"),
        kind: Kind::Routed { host: None },
        mac: own_mac(id),
        mtu: 1500,
        up: true,
        l2: None,
        serving: true,
    }
}

pub fn via(interface: u16, host: u8) -> Path {
    Path {
        interface,
        gateway: Some(ip(interface as u8, host)),
        weight: 1,
        mtu: None,
        source: None,
    }
}

pub fn via6(interface: u16, gateway: &str) -> Path {
    Path {
        gateway: Some(ip6(gateway)),
        ..on_link(interface)
    }
}

pub fn on_link(interface: u16) -> Path {
    Path {
        interface,
        gateway: None,
        weight: 1,
        mtu: None,
        source: None,
    }
}

pub fn route(text: &str, route: Route) -> Change {
    Change::RouteSet {
        prefix: prefix(text),
        route,
    }
}

pub fn neighbor(interface: u16, host: u8) -> Change {
    Change::NeighborSet {
        interface,
        address: ip(interface as u8, host),
        mac: host_mac(interface, host),
    }
}

/// An IPv6 neighbor at the Ethernet address of host 66.
pub fn neighbor6(interface: u16, address: &str) -> Change {
    Change::NeighborSet {
        interface,
        address: ip6(address),
        mac: host_mac(interface, 66),
    }
}

/// Adds what the kernel has when `2001:db8:ID::1/64` is configured on interfaces 1 to 3.
pub fn wired6(mut lab: Lab) -> Lab {
    for id in 1..=3 {
        let own: Ipv6Addr = format!("2001:db8:{id}::1").parse().unwrap();
        let local = Address {
            scope: 253,
            ..Address::new(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1), 64)
        };
        let ip4 = Address::new(ip(id as u8, 1), 24);
        lab.apply(vec![
            Change::AddressesSet {
                interface: id,
                addresses: vec![Address::new(own, 64), local, ip4],
            },
            route(
                &format!("2001:db8:{id}::/64"),
                Route::Forward(vec![on_link(id)]),
            ),
            route(&format!("{own}/128"), Route::Local),
        ]);
    }
    lab
}

/// The address `10.0.id.1/24` on an interface.
pub fn addressed(id: u16) -> Change {
    Change::AddressesSet {
        interface: id,
        addresses: vec![Address::new(ip(id as u8, 1), 24)],
    }
}

/// The source where an interface has none.
pub fn host_source(ip4: Option<Ipv4Addr>) -> Change {
    Change::SourceSet { ip4, ip6: None }
}

/// No address on an interface.
pub fn unaddressed(id: u16) -> Change {
    Change::AddressesSet {
        interface: id,
        addresses: vec![],
    }
}

/// Changes from the kernel when `10.0.id.1/24` is configured on an interface.
pub fn connected(id: u16) -> Vec<Change> {
    let net = |host: u8| Prefix::host(ip(id as u8, host));
    vec![
        Change::InterfaceSet(interface(id)),
        addressed(id),
        route(
            &format!("10.0.{id}.0/24"),
            Route::Forward(vec![on_link(id)]),
        ),
        Change::RouteSet {
            prefix: net(1),
            route: Route::Local,
        },
        Change::RouteSet {
            prefix: net(255),
            route: Route::Broadcast,
        },
    ]
}

impl Lab {
    /// A router with `workers` workers and no interface; `second` groups in the second level of its
    /// FIB, 240 next hops.
    pub fn sized(workers: usize, second: usize) -> Self {
        Lab::with_buffers(workers, second, 8192)
    }

    /// The same with another number of buffers.
    pub fn with_buffers(workers: usize, second: usize, buffers: u32) -> Self {
        Lab::with(workers, second, buffers, None)
    }

    /// A router with one worker, beside which something else reads the tables: `grace` waits for
    /// that.
    pub fn with_grace(second: usize, grace: impl Fn() -> bool + Send + 'static) -> Self {
        Lab::with(1, second, 8192, Some(Box::new(grace)))
    }

    fn with(workers: usize, second: usize, buffers: u32, grace: Option<Grace>) -> Self {
        Lab::with_table(workers, second, buffers, grace, nodes::table)
    }

    /// A router with other nodes.
    pub fn with_table(
        workers: usize,
        second: usize,
        buffers: u32,
        grace: Option<Grace>,
        table: impl Fn() -> Table,
    ) -> Self {
        let flows = tables::flow::Sizes::of(1 << 16);
        Lab::with_flows(workers, second, buffers, grace, table, flows)
    }

    /// A router with room for other numbers of flows, too.
    pub fn with_flows(
        workers: usize,
        second: usize,
        buffers: u32,
        grace: Option<Grace>,
        table: impl Fn() -> Table,
        flows: tables::flow::Sizes,
    ) -> Self {
        let sizes = Sizes {
            ip4_groups: second as u32,
            ip6_pages: 64,
            ip6_leaves: 256,
            nexthop_groups: 256,
            adjacencies: 256,
            interfaces: 256,
        };
        let memory = Memory::mapped(sizes).unwrap();
        let pool = Pool::new(buffers, graph::pool::STRIDE).unwrap();
        let setup = Setup {
            pool,
            memory,
            workers,
            flows,
            grace,
        };
        let (mut router, idle) = Router::with_table(setup, table).unwrap();
        let (workers, handles) = idle.into_iter().unzip();
        router.attach(handles);
        Lab {
            router,
            workers,
            cables: BTreeMap::new(),
            now: cycles::now(),
            buffers,
        }
    }

    /// Interfaces 1 to 3 with their networks, host .2 resolved on each, 48.0.0.0/8 via 10.0.2.2.
    /// One worker.
    pub fn new() -> Self {
        Lab::sized(1, 64).wired()
    }

    /// Interfaces that [`Lab::new`] describes, and interface 4, the host interface of 1.
    pub fn with_host() -> Self {
        Lab::new().add_host()
    }

    /// Adds interface 4, the host interface of 1.
    pub fn add_host(self) -> Self {
        let mut lab = self;
        lab.plug(4, 0);
        let host = Interface {
            kind: Kind::Host { of: 1 },
            ..interface(4)
        };
        let routed = Interface {
            kind: Kind::Routed { host: Some(4) },
            ..interface(1)
        };
        lab.apply(vec![
            Change::InterfaceSet(host),
            Change::InterfaceSet(routed),
        ]);
        lab
    }

    /// Adds what [`Lab::new`] describes; interface 1 is the first worker's, 2 the second's if there
    /// is one, and so on.
    pub fn wired(self) -> Self {
        let mut lab = self;
        for id in 1..=3 {
            lab.plug(id, usize::from(id - 1) % lab.workers.len());
            lab.apply(connected(id));
            lab.apply(vec![neighbor(id, 2)]);
        }
        lab.apply(vec![
            route("48.0.0.0/8", Route::Forward(vec![via(2, 2)])),
            host_source(Some(Ipv4Addr::from(addr(1, 1)))),
        ]);
        lab
    }

    /// Gives worker `worker` a cable for interface `id`; the others hand its packets over.
    pub fn plug(&mut self, id: u16, worker: usize) {
        let cable = MemoryPort::new(&format!("cable{id}"));
        self.cables.insert(id, cable.clone());
        for (i, handle) in self.router.workers.iter_mut().enumerate() {
            let commands = if i == worker {
                let queue = WorkerPort::new(Box::new(cable.clone()), id, id, 0);
                vec![Command::AddPort(Box::new(queue))]
            } else {
                let placement = TxPlacement::Worker(worker);
                vec![Command::PlaceTx(id, placement), Command::Egress(id, id)]
            };
            for command in commands {
                assert!(handle.command(command).is_ok());
            }
        }
    }

    pub fn apply(&mut self, changes: Vec<Change>) {
        assert_eq!(self.router.apply(changes), Ok(0));
        self.run();
    }

    /// Rounds until nothing moves any more.
    pub fn run(&mut self) {
        let mut quiet = 0;
        while quiet < 3 {
            let moved: usize = self
                .workers
                .iter_mut()
                .filter_map(|worker| worker.round(self.now))
                .sum();
            quiet = if moved == 0 { quiet + 1 } else { 0 };
            self.router.tick();
        }
    }

    /// Lets time pass, and everything happen that follows.
    pub fn advance(&mut self, time: Duration) {
        self.now += cycles::of(time);
        self.run();
    }

    /// Lets an interface receive frames, and everything happen that follows.
    pub fn receive(&mut self, id: u16, frames: impl IntoIterator<Item = Vec<u8>>) {
        frames.into_iter().for_each(|f| self.cables[&id].put(f));
        self.run();
    }

    /// Packets that an interface has sent since the last call.
    pub fn sent(&self, id: u16) -> Vec<Vec<u8>> {
        self.cables[&id].take()
    }

    /// Packets that left stage `node` by the edge of that name, over all workers and nodes.
    pub fn edge(&self, node: &str, edge: &str) -> u64 {
        let all = self.edges();
        let mut of_name = all.iter().filter(|e| (e.0, e.1) == (node, edge)).peekable();
        assert!(of_name.peek().is_some(), "no edge {edge} at node {node}");
        of_name.map(|e| e.2).sum()
    }

    /// All edges of all stages as stage, edge, count. Inside of fused nodes the through edge counts
    /// what is left.
    pub fn edges(&self) -> Vec<(&'static str, &'static str, u64)> {
        let mut all = Vec::new();
        for (_, counters) in self.router.workers.iter().flat_map(|w| &w.counters.nodes) {
            let mut counts = counters.edges.iter().map(|e| e.get());
            let mut packets = counters.packets.get();
            for (i, part) in counters.stages.iter().enumerate() {
                let mut of_part: Vec<u64> = counts.by_ref().take(part.edges.len()).collect();
                if i + 1 < counters.stages.len() {
                    assert_eq!(of_part[part.thru], 0, "a through edge inside of a node");
                    packets -= of_part.iter().sum::<u64>();
                    of_part[part.thru] = packets;
                }
                let names = part.edges.iter().map(|e| (part.name, e.name));
                all.extend(names.zip(of_part).map(|((p, e), n)| (p, e, n)));
            }
        }
        all
    }

    /// A sub-interface, whose packets leave by its parent.
    pub fn sub(&mut self, (id, parent, tags): (u16, u16, Tags), l2: Option<L2>) {
        for worker in &mut self.router.workers {
            assert!(worker.command(Command::Egress(id, parent)).is_ok());
        }
        self.apply(vec![Change::InterfaceSet(Interface {
            kind: Kind::Sub {
                parent,
                tags,
                host: None,
            },
            l2,
            ..interface(id)
        })]);
    }

    /// What an interface says it has received, sent and dropped: packets and bytes, packets and
    /// bytes, packets.
    pub fn counted(&self, id: u16) -> [u64; 5] {
        let name = format!("eth{id}");
        let shown = router::show::interfaces(&self.router, Some(&name), &[]).unwrap();
        let json = serde_json::to_value(&shown).unwrap();
        ["rx_packets", "rx_bytes", "tx_packets", "tx_bytes", "drops"]
            .map(|key| json["interfaces"][0][key].as_u64().unwrap())
    }

    /// Every buffer is in the pool or in a worker's cache, except for `held`.
    pub fn check_buffers(&mut self, held: usize) {
        let workers = self.workers.iter();
        let cached: usize = workers.map(|w| w.graph().bufs().cached()).sum();
        let free = self.router.pool().available() as usize + cached;
        assert_eq!(
            free + held,
            self.buffers as usize,
            "buffers leaked or freed twice"
        );
    }

    /// Receives one frame on interface 1; it must take this edge. Nothing may leak.
    pub fn takes(&mut self, frame: Vec<u8>, node: &str, edge: &str) {
        let before = self.edge(node, edge);
        self.receive(1, [frame]);
        assert_eq!(self.edge(node, edge), before + 1, "{node} {edge}");
        self.check_buffers(0);
    }
}

/// A UDP packet from host 10.0.1.2 as interface 1 receives it.
pub fn udp(destination: u32) -> Packet {
    Packet::udp((addr(1, 2), 1025), (destination, 12)).macs(host_mac(1, 2), own_mac(1))
}

/// An address behind the route 48.0.0.0/8.
pub const FAR: u32 = 0x3000_0001;

/// The frame as the router is to send it: Ethernet header for host `.host` on `interface`, one hop
/// less.
pub fn forwarded(frame: &[u8], interface: u16, host: u8) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[..6].copy_from_slice(&host_mac(interface, host).0);
    frame[6..12].copy_from_slice(&own_mac(interface).0);
    frame[22] -= 1;
    frame[24..26].fill(0);
    let sum = wire::checksum::of(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame
}

/// Computes the header checksum of a frame anew (no options).
pub fn seal(frame: &mut [u8]) {
    frame[24..26].fill(0);
    let sum = wire::checksum::of(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
}
