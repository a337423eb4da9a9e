//! ip4-firewall, ip6-firewall: let pass what the policies of both interfaces accept, by the flow
//! that it belongs to.
//!
//! A later fragment has no ports, so that nobody can tell its flow: it is asked about as a packet
//! that begins one, is of none, and matches no rule with ports. Reassembly is not done.

use std::marker::PhantomData;

use graph::{Edges, Flag, Packets, Pkt, Stage, edges};
use tables::acl::{Acl, IP4, IP6, Key as AclKey};
use tables::flow::{Candidate, Key};
use wire::{icmp4, icmp6};

use super::State;
use super::compiled::{Compiled, Rules, Verdict};
use super::tracker::{Follows, Seen, Tracker};
use crate::acl::{Direction, key as acl_key};
use crate::arc::{IP4_OUT_ARC, IP6_OUT_ARC};
use crate::context::Cx;
use crate::flow::key::{self, Kind, Malformed};
use crate::icmp::{Error, tell};

/// Packets that are looked up together.
const BATCH: usize = 64;

/// Way of a packet, whatever its family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// It may pass.
    Passed,
    /// Its flow is another worker's.
    Elsewhere,
    /// A policy drops it.
    Dropped,
    /// A policy rejects it, by an ICMP error.
    Prohibited,
    /// A policy rejects it, by a TCP reset.
    Reset,
    /// A policy rejects it, and nobody may be told.
    Rejected,
    /// It is over the limit of its rule.
    OverLimit,
    /// There is no room for its flow.
    Full,
}

/// What differs between the families.
#[expect(private_bounds, reason = "the families are those of this file")]
pub trait Family<const W: usize>: Edges + From<Way> + Rules<W> {
    /// Name of the stage.
    const NAME: &'static str;
    /// The edge of what may pass.
    const PASSED: Self;

    /// The flow of a packet.
    ///
    /// # Errors
    /// It is cut off.
    fn packet(bytes: &[u8]) -> Result<key::Packet<'_>, Malformed>;
    /// The flow that an ICMP error in `packet` is about, if that was sent by who is to be told.
    ///
    /// # Errors
    /// There is none.
    fn quoted<'a>(packet: &[u8], content: &'a [u8]) -> Result<key::Packet<'a>, Malformed>;
    /// What rules are compared with.
    fn key(p: &Pkt<'_>) -> AclKey<W>;
    /// The packet goes to a group.
    fn is_to_group(p: &Pkt<'_>) -> bool;
}

/// What is kept of a packet from one pass over the batch to the next.
#[derive(Debug, Clone, Copy)]
struct About {
    /// Where its content begins, from its first byte on, and how long that is.
    content: u32,
    len: u32,
    swapped: bool,
    /// `None`: it is cut off, or an error about nothing.
    kind: Option<Kind>,
}

impl About {
    const NONE: Self = About {
        content: 0,
        len: 0,
        swapped: false,
        kind: None,
    };
}

/// The stage.
pub struct Firewall<N, const W: usize> {
    keys: [Key; BATCH],
    hashes: [u64; BATCH],
    candidates: [Candidate; BATCH],
    about: [About; BATCH],
    ways: [Way; BATCH],
    /// The next packet of the batch.
    at: usize,
    family: PhantomData<fn(N)>,
}

impl<N, const W: usize> Default for Firewall<N, W> {
    fn default() -> Self {
        Firewall {
            keys: [Key::default(); BATCH],
            hashes: [0; BATCH],
            candidates: [Candidate::NONE; BATCH],
            about: [About::NONE; BATCH],
            ways: [Way::Dropped; BATCH],
            at: 0,
            family: PhantomData,
        }
    }
}

impl<N: Family<W>, const W: usize> Stage<Cx> for Firewall<N, W> {
    const NAME: &'static str = N::NAME;
    type Next = N;
    const THRU: N = N::PASSED;
    const BATCH: usize = BATCH;

    /// Finds the way of each packet. It passes over the batch three times, so that all packets wait
    /// for memory together: for the bucket of the flow, for its entry.
    #[inline(always)]
    fn prepare(&mut self, cx: &Cx, packets: &mut Packets<'_>) {
        let mut count = 0;
        packets.for_each(|p| {
            self.read(p, count);
            count += 1;
        });
        let tracker = &mut *cx.tracker.borrow_mut();
        tracker.follow_generation(cx.snapshot().policies.generation);
        let flows = &tracker.flows;
        flows
            .hasher()
            .hash(&self.keys[..count], &mut self.hashes[..count]);
        flows.prefetch(&self.hashes[..count]);
        flows.candidates(&self.hashes[..count], &mut self.candidates[..count]);
        let mut at = 0;
        packets.for_each(|p| {
            self.ways[at] = self.way(cx, tracker, p, at);
            at += 1;
        });
        self.at = 0;
    }

    #[inline(always)]
    fn packet(&mut self, _: &Cx, _: &mut Pkt<'_>) -> N {
        let way = self.ways.get(self.at).copied();
        self.at += 1;
        way.unwrap_or(Way::Dropped).into()
    }
}

impl<N: Family<W>, const W: usize> Firewall<N, W> {
    /// Finds the key of a packet of the batch.
    #[inline(always)]
    fn read(&mut self, p: &Pkt<'_>, at: usize) {
        let bytes = p.bytes().get(usize::from(p.l3)..).unwrap_or_default();
        let Ok(packet) = N::packet(bytes) else {
            self.about[at] = About::NONE;
            return;
        };
        // What is empty may lie anywhere.
        let behind = packet
            .content
            .as_ptr()
            .addr()
            .wrapping_sub(bytes.as_ptr().addr());
        let behind = if packet.content.is_empty() {
            0
        } else {
            behind as u32
        };
        let content = u32::from(p.l3) + behind;
        self.keys[at] = packet.key;
        self.about[at] = About {
            content,
            len: packet.content.len() as u32,
            swapped: packet.swapped,
            kind: Some(packet.kind),
        };
        if packet.kind == Kind::Error {
            self.read_quoted(bytes, packet.content, at);
        }
    }

    /// The key of an ICMP error is that of the packet which it is about.
    #[cold]
    fn read_quoted(&mut self, packet: &[u8], content: &[u8], at: usize) {
        match N::quoted(packet, content) {
            Ok(quoted) => self.keys[at] = quoted.key,
            Err(_) => self.about[at].kind = None,
        }
    }

    /// The way of packet `at` of the batch.
    #[inline(always)]
    fn way(&self, cx: &Cx, tracker: &mut Tracker, p: &mut Pkt<'_>, at: usize) -> Way {
        let (about, hash, key) = (&self.about[at], self.hashes[at], &self.keys[at]);
        if p.has(Flag::OURS) {
            return Way::Passed;
        }
        let Some(kind) = about.kind else {
            return without_flow::<N, W>(cx, tracker, p, None, State::Invalid);
        };
        if kind == Kind::Fragment {
            return without_flow::<N, W>(cx, tracker, p, Some(kind), State::New);
        }
        if let Some(owner) = tracker.other_owner(hash) {
            p.set_argument((owner as u32) << 16 | u32::from(p.tx_if()));
            return Way::Elsewhere;
        }
        let found = tracker.flows.get(self.candidates[at], hash, key);
        if kind == Kind::Error {
            let known = found.is_some();
            let state = if known {
                State::Related
            } else {
                State::Invalid
            };
            return without_flow::<N, W>(cx, tracker, p, Some(kind), state);
        }
        let interfaces = [p.rx_if, p.tx_if()];
        let content = about.content as usize..(about.content + about.len) as usize;
        let further = if p.is_chained() {
            p.total() - p.len()
        } else {
            0
        } as u32;
        let seen = Seen {
            key,
            hash,
            swapped: about.swapped,
            kind,
            content: p.bytes().get(content).unwrap_or_default(),
            further,
            bytes: about.content + about.len - u32::from(p.l3) + further,
            interfaces,
        };
        let Some(found) = found else {
            let verdict = begin::<N, W>(cx, tracker, &seen, p);
            return verdict.map_or(Way::Full, |v| carry_out::<N, W>(p, Some(kind), v));
        };
        match tracker.follow(found.number, &seen) {
            Follows::Flow { approved: true, .. } => Way::Passed,
            Follows::Flow {
                direction, state, ..
            } => {
                let verdict = judge::<N, W>(cx, tracker, p, state);
                if verdict == (Verdict::Accept { always: true }) {
                    tracker.approve(found.number, direction, interfaces);
                }
                carry_out::<N, W>(p, Some(kind), verdict)
            }
            Follows::Another => {
                tracker.flows.remove(found.number);
                let verdict = begin::<N, W>(cx, tracker, &seen, p);
                verdict.map_or(Way::Full, |v| carry_out::<N, W>(p, Some(kind), v))
            }
            Follows::Not => without_flow::<N, W>(cx, tracker, p, Some(kind), State::Invalid),
        }
    }
}

/// The way of a packet that is of no flow, nor begins one.
#[cold]
fn without_flow<N: Family<W>, const W: usize>(
    cx: &Cx,
    tracker: &Tracker,
    p: &mut Pkt<'_>,
    kind: Option<Kind>,
    state: State,
) -> Way {
    let verdict = judge::<N, W>(cx, tracker, p, state);
    carry_out::<N, W>(p, kind, verdict)
}

/// What becomes of a packet that no flow is known of: if it may begin one, it does. `None`: there is
/// no room for that. Where policies do not ask for states, it passes even so.
#[inline(never)]
fn begin<N: Family<W>, const W: usize>(
    cx: &Cx,
    tracker: &mut Tracker,
    seen: &Seen<'_>,
    p: &Pkt<'_>,
) -> Option<Verdict> {
    let Some(first) = Tracker::first(seen) else {
        return Some(judge::<N, W>(cx, tracker, p, State::Invalid));
    };
    let verdict = judge::<N, W>(cx, tracker, p, State::New);
    if let Verdict::Accept { always } = verdict {
        let number = match tracker.insert(seen, &first) {
            Ok(number) => number,
            Err(_) if policies(cx, p).all(|policy| !policy.is_stateful) => return Some(verdict),
            Err(_) => return None,
        };
        if always {
            tracker.approve(number, crate::flow::Direction::Original, seen.interfaces);
        }
    }
    Some(verdict)
}

/// What policies say of a packet: that of the interface by which it has come in, then that of the
/// one by which it leaves.
#[inline(never)]
fn judge<N: Family<W>, const W: usize>(
    cx: &Cx,
    tracker: &Tracker,
    p: &Pkt<'_>,
    state: State,
) -> Verdict {
    let key = N::key(p);
    let mut all = true;
    for policy in policies(cx, p) {
        match policy.judge::<N, W>(cx.worker, state, &key, tracker.tsc) {
            Verdict::Accept { always } => all &= always,
            other => return other,
        }
    }
    Verdict::Accept { always: all }
}

/// The policies that a packet is to pass, in their order.
fn policies<'a>(cx: &'a Cx, p: &Pkt<'_>) -> impl Iterator<Item = &'a Compiled> {
    let policies = &cx.snapshot().policies;
    let input = policies.of(p.rx_if, Direction::Input);
    let output = policies.of(p.tx_if(), Direction::Output);
    [input, output].into_iter().flatten()
}

/// The way of a packet of which policies say this.
fn carry_out<N: Family<W>, const W: usize>(
    p: &mut Pkt<'_>,
    kind: Option<Kind>,
    verdict: Verdict,
) -> Way {
    match verdict {
        Verdict::Accept { .. } => Way::Passed,
        Verdict::Drop => Way::Dropped,
        Verdict::OverLimit => Way::OverLimit,
        Verdict::Reject if kind == Some(Kind::Fragment) || N::is_to_group(p) => Way::Rejected,
        Verdict::Reject if kind == Some(Kind::Tcp) => Way::Reset,
        Verdict::Reject => tell(p, Error::Prohibited, Way::Prohibited),
    }
}

/// The stage of a family.
macro_rules! family {
    ($(#[$meta:meta])* $Stage:ident, $module:ident, $name:literal, $arc:ident, $error:literal,
     $reset:literal, $words:ident, $quoted:ident, $header:ty, $icmp:ident, $ends:expr, $is_group:expr) => {
        mod $module {
            use super::*;

            edges! {
                /// Ways out of the stage.
                pub enum Next {
                    /// It may pass.
                    Passed => Arc($arc),
                    /// Its flow is another worker's.
                    Elsewhere => Node("firewall-handoff"),
                    /// A policy drops it.
                    Dropped => Drop("dropped by policy"),
                    /// A policy rejects it, by an ICMP error.
                    Prohibited => Node($error) as Answered,
                    /// A policy rejects it, by a TCP reset.
                    Reset => Node($reset) as Answered,
                    /// A policy rejects it, and nobody may be told.
                    Rejected => Drop("rejected by policy"),
                    /// It is over the limit of its rule.
                    OverLimit => Drop("over the limit of its rule"),
                    /// There is no room for its flow.
                    Full => Drop("table of flows is full"),
                }
            }

            impl From<Way> for Next {
                #[inline(always)]
                fn from(way: Way) -> Self {
                    match way {
                        Way::Passed => Next::Passed,
                        Way::Elsewhere => Next::Elsewhere,
                        Way::Dropped => Next::Dropped,
                        Way::Prohibited => Next::Prohibited,
                        Way::Reset => Next::Reset,
                        Way::Rejected => Next::Rejected,
                        Way::OverLimit => Next::OverLimit,
                        Way::Full => Next::Full,
                    }
                }
            }

            impl Rules<$words> for Next {
                #[inline(always)]
                fn of(policy: &Compiled, state: State) -> &Acl<$words> {
                    policy.$module(state)
                }
            }

            impl Family<$words> for Next {
                const NAME: &'static str = $name;
                const PASSED: Next = Next::Passed;

                #[inline(always)]
                fn packet(bytes: &[u8]) -> Result<key::Packet<'_>, Malformed> {
                    key::$module(bytes)
                }

                fn quoted<'a>(
                    packet: &[u8],
                    content: &'a [u8],
                ) -> Result<key::Packet<'a>, Malformed> {
                    let quote = content.get($icmp::LEN..).and_then(<$header>::parse);
                    let is_told = match (<$header>::parse(packet), quote) {
                        (Some((error, _)), Some((quoted, _))) => {
                            let ends = $ends;
                            ends(error).1 == ends(quoted).0
                        },
                        _ => false,
                    };
                    if !is_told {
                        return Err(Malformed::Truncated);
                    }
                    key::$quoted(content)
                }

                #[inline(always)]
                fn key(p: &Pkt<'_>) -> AclKey<$words> {
                    acl_key::$module(p)
                }

                fn is_to_group(p: &Pkt<'_>) -> bool {
                    let is_group = $is_group;
                    is_group(p.header::<$header>(p.l3))
                }
            }
        }

        $(#[$meta])*
        pub type $Stage = Firewall<$module::Next, $words>;
    };
}

family! {
    /// IPv4 packets.
    Ip4, ip4, "ip4-firewall", IP4_OUT_ARC, "icmp4-error", "ip4-tcp-reset", IP4, quoted4,
    wire::ip4::Header, icmp4, |header: &wire::ip4::Header| (header.src(), header.dst()),
    |header: &wire::ip4::Header| header.dst() >> 28 == 0xe
}
family! {
    /// IPv6 packets.
    Ip6, ip6, "ip6-firewall", IP6_OUT_ARC, "icmp6-error", "ip6-tcp-reset", IP6, quoted6,
    wire::ip6::Header, icmp6, |header: &wire::ip6::Header| (header.src, header.dst),
    |header: &wire::ip6::Header| header.dst[0] == 0xff
}
