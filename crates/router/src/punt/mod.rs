//! punt: what is for the host goes to the interface's twin, as it came, and not more of it than the worker has time for.

mod class;

use crate::bucket::Allowance;
use crate::context::Cx;
pub(crate) use class::Class;
use graph::{Desc, Each, Emit, Flag, edges};

edges! {
    /// Ways out of punt.
    pub enum Next {
        /// To the host.
        Host => Interface,
        /// The kernel takes its packets of this port before we see them; this one it did not.
        NoTwin => Drop("interface has no host twin"),
        /// Made here: its Ethernet header is not one that the host would take.
        Own => Drop("own packet for the host"),
        /// More ARP and neighbor discovery than goes to the host.
        NeighborsLimited => Drop("too much neighbor discovery for the host"),
        /// More of routing and link protocols than goes to the host.
        ControlLimited => Drop("too many control packets for the host"),
        /// More of all else than goes to the host.
        RestLimited => Drop("too many packets for the host"),
    }
}

/// Packets that go to the host, by class of each interface: a second, and at once. All interfaces together may have twice as many,
/// so that a flood on one leaves something to the others.
///
/// A packet for the host is a system call that runs the kernel's receive path, 1 to 3 us where forwarding takes 40 ns: the rest takes
/// 5 to 15 % of a worker. A BGP peer that sends whole tables as fast as FRR takes them stays far below its class's.
const ALLOWANCES: [(u64, u64); Class::COUNT] = [(10_000, 1000), (20_000, 1000), (50_000, 1000)];

/// What the workers together may send to the host, by class.
pub(crate) fn allowances() -> [Allowance; Class::COUNT] {
    ALLOWANCES.map(|(rate, burst)| Allowance::new((rate, burst), (2 * rate, 2 * burst)))
}

/// The node.
pub struct Punt;

impl Each<Cx> for Punt {
    const NAME: &'static str = "punt";
    type Next = Next;

    fn packet(&mut self, cx: &Cx, out: &mut Emit<'_, Next>, mut d: Desc) {
        let next = self.punt(cx, out, &mut d);
        out.push(next, d);
    }
}

impl Punt {
    fn punt(&self, cx: &Cx, out: &Emit<'_, Next>, d: &mut Desc) -> Next {
        if d.has(Flag::OURS) {
            return Next::Own;
        }
        let twin = cx.interfaces.load(d.rx_if).twin();
        if twin == 0 {
            return Next::NoTwin;
        }
        let class = Class::of(out.pool().bytes_of(d));
        if !cx.limits.host[class as usize].take(d.rx_if, out.now()) {
            return match class {
                Class::Neighbors => Next::NeighborsLimited,
                Class::Control => Next::ControlLimited,
                Class::Rest => Next::RestLimited,
            };
        }
        d.set_tx_if(twin);
        Next::Host
    }
}
