//! A program between two interfaces, for the tests of either family.

use std::os::fd::{AsFd, OwnedFd};

use tables::Memory;
use tables::adjacency::{Adjacency, Slab};
use tables::entry::Entry;
use tables::interface::{self, Interface, Interfaces, Lane};
use tables::nexthop::{Groups, Member};
use testbed::Netns;
use xdp::{Device, RouterPort, Verdict};

use crate::net::{LEFT_MAC, RIGHT_MAC, index, root, xsk};
use crate::shared::Tables;

/// Interfaces: where packets come in, and where they go out.
pub const IN: u16 = 7;
pub const OUT: u16 = 9;
pub const MTU: u16 = 1400;

/// The program, and the tables that it reads, with the routes of one family.
pub struct Bench<Fib> {
    pub router: Tables,
    pub port: RouterPort,
    pub fib: Fib,
    pub groups: Groups,
    pub slab: Slab,
    #[allow(dead_code, reason = "one family's tests need it only to be there")]
    pub netns: Netns,
    _socket: OwnedFd,
}

impl<Fib> Bench<Fib> {
    /// Without a route; `None` if the test cannot run here.
    pub fn without_routes(test: &str, fib: fn(Memory) -> Fib) -> Option<Self> {
        if !root(test) {
            return None;
        }
        let router = Tables::take();
        let memory = router.memory().clone();
        let (port, socket) = (router.load(IN).expect("the program loads"), xsk());
        port.register(0, socket.as_fd()).expect("registers");
        let netns = Netns::create("forward").expect("root makes it");
        // Any device that takes redirected frames does, for these go nowhere.
        netns.ip("tuntap add out mode tap").expect("makes a tap");
        netns.inside(|| {
            let out = Device::here(index("out")).expect("is there");
            router.set_egress(OUT, &out).expect("sends by it");
        });
        let bench = Self {
            router,
            port,
            groups: Groups::new(memory.nexthop_groups.clone()),
            slab: Slab::new(memory.adjacencies.clone()),
            fib: fib(memory),
            netns,
            _socket: socket,
        };
        bench.lanes(true, true);
        Some(bench)
    }

    /// Whether the program forwards what comes in, and sends by the other interface.
    pub fn lanes(&self, forward: bool, send: bool) {
        let memory = self.router.memory().clone();
        let mut interfaces = Interfaces::new(memory.interfaces, memory.outer_tags);
        let lane = |forward, send| Lane {
            forward,
            send,
            send_long: false,
        };
        let up = |mac, lane| Interface {
            mac,
            lane,
            mode: interface::Mode::Routed,
            ..Interface::default()
        };
        interfaces.set(IN, &up(RIGHT_MAC, lane(forward, false)));
        interfaces.set(OUT, &up(LEFT_MAC, lane(false, send)));
    }

    /// An entry that leads to these neighbors.
    pub fn entry(&mut self, neighbors: &[Adjacency]) -> Entry {
        let member = |neighbor| Member {
            adjacency: self.slab.alloc(neighbor).expect("room"),
            weight: 1,
        };
        let members: Vec<_> = neighbors.iter().map(member).collect();
        let group = self.groups.alloc(&members).expect("room");
        Entry::new(group, members.len() > 1)
    }

    pub fn run(&self, packet: &[u8]) -> (Verdict, Vec<u8>) {
        self.port.run_once(packet).expect("the program runs")
    }
}
