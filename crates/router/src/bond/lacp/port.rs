//! What a member of an aggregate says and hears: the receive, periodic transmission, mux and
//! transmit machines of IEEE 802.1AX-2014 clauses 6.4.12, 6.4.13, 6.4.15 and 6.4.16, for one port.
//!
//! The mux machine is the one of coupled control: a port collects and distributes, or neither. The
//! times are given; nothing here waits.

use wire::eth::Mac;
use wire::lacp::{Header, Info, state};

/// Milliseconds since any moment.
pub type Millis = u64;

/// Intervals of LACPDUs (fast_periodic_time and slow_periodic_time).
const FAST: Millis = 1000;
const SLOW: Millis = 30_000;
/// Time after which what was heard is too old, and again until defaults hold (short_timeout_time).
const SHORT_TIMEOUT: Millis = 3 * FAST;
/// The same if the port asks for few LACPDUs (long_timeout_time).
const LONG_TIMEOUT: Millis = 3 * SLOW;
/// Time that a port waits for others of its aggregate (aggregate_wait_time).
const WAIT: Millis = 2000;
/// Most LACPDUs of a port in [`FAST`].
const AT_ONCE: usize = 3;
/// Priority of systems and ports that nobody has chosen one for.
const SYSTEM_PRIORITY: u16 = 0xffff;
const PORT_PRIORITY: u16 = 0xff;

/// The receive machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rx {
    /// The port is down.
    PortDisabled,
    /// Nothing was heard for too long.
    Expired,
    /// Nothing was heard at all.
    Defaulted,
    /// The partner is heard.
    Current,
}

/// The mux machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mux {
    /// In no aggregate.
    Detached,
    /// Waits for others that join.
    Waiting,
    /// In its aggregate, and the partner may not be yet.
    Attached,
    /// It carries.
    CollectingDistributing,
}

/// The periodic transmission machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Periodic {
    /// The port is down, or both ends are passive.
    None,
    /// Each second.
    Fast,
    /// Each 30 s.
    Slow,
}

/// What links of an aggregate have in common: a partner, or else only the port itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lag {
    system: (u16, Mac),
    key: u16,
    /// The numbers of both ports, if the link is an individual one.
    alone: Option<(u16, u16)>,
}

/// A port.
#[derive(Debug)]
pub struct Port {
    /// What it says of itself.
    pub actor: Info,
    /// What it knows of its partner.
    pub partner: Info,
    /// State of the receive machine.
    pub rx: Rx,
    /// State of the mux machine.
    pub mux: Mux,
    /// State of the periodic transmission machine.
    pub periodic: Periodic,
    /// It is in the aggregate that is used.
    pub selected: bool,
    enabled: bool,
    /// When what was heard is too old.
    current_while: Millis,
    /// Until when it waits for others.
    wait_while: Millis,
    /// When it last sent because it was time to.
    sent_periodic: Millis,
    /// It needs to transmit.
    ntt: bool,
    /// When it sent its last LACPDUs.
    sent: [Option<Millis>; AT_ONCE],
}

/// A port's own values; the port is active, and asks for an LACPDU each second.
fn own(system: Mac, key: u16, number: u16) -> Info {
    let mut own = Info::new((SYSTEM_PRIORITY, system), key, (PORT_PRIORITY, number));
    own.state = state::ACTIVITY | state::TIMEOUT | state::AGGREGATION;
    own
}

impl Port {
    /// A port that is down.
    pub fn new(system: Mac, key: u16, number: u16) -> Self {
        let mut port = Port {
            actor: own(system, key, number),
            partner: Info::default(),
            rx: Rx::PortDisabled,
            mux: Mux::Detached,
            periodic: Periodic::None,
            selected: false,
            enabled: false,
            current_while: 0,
            wait_while: 0,
            sent_periodic: 0,
            ntt: false,
            sent: [None; AT_ONCE],
        };
        port.record_default();
        port
    }

    /// It is up or down, in this system. Whoever goes down, or has another system, knows nothing of
    /// a partner any more, and leaves its aggregate at once.
    pub fn become_of(&mut self, system: Mac, enabled: bool) {
        if self.actor.system == system && self.enabled == enabled {
            return;
        }
        let sent = self.sent;
        *self = Port::new(system, self.actor.key(), self.actor.port());
        (self.enabled, self.sent) = (enabled, sent);
    }

    /// It carries.
    pub fn carries(&self) -> bool {
        self.mux == Mux::CollectingDistributing
    }

    /// It waits for others of its aggregate at this time.
    pub fn waits(&self, now: Millis) -> bool {
        self.selected && self.mux == Mux::Waiting && now < self.wait_while
    }

    /// The aggregate that it may be in; `None`: none, as it does not hear from a partner, or hears
    /// its own system, which would be a loop.
    pub fn lag(&self) -> Option<Lag> {
        let (us, them) = (&self.actor, &self.partner);
        let heard = matches!(self.rx, Rx::Current | Rx::Expired) && !us.is(state::DEFAULTED);
        if !heard || us.system == them.system {
            return None;
        }
        let alone = !them.is(state::AGGREGATION);
        Some(Lag {
            system: (them.system_priority(), them.system),
            key: them.key(),
            alone: alone.then_some((us.port(), them.port())),
        })
    }

    /// An LACPDU has come.
    pub fn hear(&mut self, pdu: &Header, now: Millis) {
        if !self.enabled {
            return;
        }
        let (them, us) = (pdu.actor(), pdu.partner());
        // update_Selected
        self.selected &= same_port(&them, &self.partner);
        // update_NTT
        let told = state::ACTIVITY | state::TIMEOUT | state::SYNCHRONIZATION | state::AGGREGATION;
        self.ntt |= !same_port(&us, &self.actor) || (us.state ^ self.actor.state) & told != 0;
        // recordPDU
        self.actor.set(state::DEFAULTED | state::EXPIRED, false);
        self.partner = them;
        let knows_us = same_port(&us, &self.actor) || !them.is(state::AGGREGATION);
        let speaks =
            them.is(state::ACTIVITY) || (self.actor.is(state::ACTIVITY) && us.is(state::ACTIVITY));
        let in_sync = knows_us && speaks && them.is(state::SYNCHRONIZATION);
        self.partner.set(state::SYNCHRONIZATION, in_sync);
        let short = self.actor.is(state::TIMEOUT);
        self.current_while = now + if short { SHORT_TIMEOUT } else { LONG_TIMEOUT };
        self.rx = Rx::Current;
        // What it was in another aggregate is over before it is in a new one.
        self.mux(false, now);
    }

    /// The receive machine's part that goes by time.
    pub fn receive(&mut self, now: Millis) {
        match self.rx {
            Rx::PortDisabled if !self.enabled => {}
            Rx::Current | Rx::Expired if now < self.current_while => {}
            Rx::Defaulted => {}
            Rx::Expired => {
                self.selected = false;
                self.record_default();
                self.actor.set(state::EXPIRED, false);
                self.rx = Rx::Defaulted;
            }
            Rx::PortDisabled | Rx::Current => {
                self.partner.set(state::SYNCHRONIZATION, false);
                self.partner.set(state::TIMEOUT, true);
                self.actor.set(state::EXPIRED, true);
                self.current_while = now + SHORT_TIMEOUT;
                self.rx = Rx::Expired;
            }
        }
    }

    /// The mux machine. `ready`: no port of the aggregate waits any more.
    pub fn mux(&mut self, ready: bool, now: Millis) {
        loop {
            let in_sync = self.partner.is(state::SYNCHRONIZATION);
            let next = match self.mux {
                Mux::Detached if self.selected => Mux::Waiting,
                Mux::Waiting if !self.selected => Mux::Detached,
                Mux::Waiting if ready => Mux::Attached,
                Mux::Attached if !self.selected => Mux::Detached,
                Mux::Attached if in_sync => Mux::CollectingDistributing,
                Mux::CollectingDistributing if !(self.selected && in_sync) => Mux::Attached,
                Mux::Detached | Mux::Waiting | Mux::Attached | Mux::CollectingDistributing => {
                    return;
                }
            };
            if next == Mux::Waiting {
                self.wait_while = now + WAIT;
            }
            let attached = matches!(next, Mux::Attached | Mux::CollectingDistributing);
            let carries = next == Mux::CollectingDistributing;
            self.actor.set(state::SYNCHRONIZATION, attached);
            self.actor
                .set(state::COLLECTING | state::DISTRIBUTING, carries);
            self.ntt |= next != Mux::Waiting;
            self.mux = next;
        }
    }

    /// The periodic transmission and transmit machines: what it is to send now. It sends no more than
    /// three LACPDUs a second, and the last says how it is then.
    pub fn transmit(&mut self, now: Millis) -> Option<Header> {
        let active = self.actor.is(state::ACTIVITY) || self.partner.is(state::ACTIVITY);
        let before = self.periodic;
        self.periodic = match self.partner.is(state::TIMEOUT) {
            _ if !(self.enabled && active) => Periodic::None,
            true => Periodic::Fast,
            false => Periodic::Slow,
        };
        let due = match self.periodic {
            Periodic::None => false,
            // One that has just come up does not wait for its first interval.
            Periodic::Fast => before != Periodic::Fast || now >= self.sent_periodic + FAST,
            Periodic::Slow => now >= self.sent_periodic + SLOW,
        };
        if due || before != self.periodic {
            self.sent_periodic = now;
        }
        self.ntt |= due;
        let [oldest, second, last] = self.sent;
        let held = oldest.is_some_and(|at| now < at + FAST);
        if !self.ntt || !self.enabled || self.rx == Rx::PortDisabled || held {
            return None;
        }
        self.ntt = false;
        self.sent = [second, last, Some(now)];
        Some(Header::new(self.actor, self.partner))
    }

    /// It knows nothing of its partner: no default is in sync, so that no frame leaves by a link
    /// whose other end has not agreed.
    fn record_default(&mut self) {
        self.partner = Info::new((SYSTEM_PRIORITY, Mac::default()), 0, (PORT_PRIORITY, 0));
        self.actor.set(state::DEFAULTED, true);
    }
}

/// Two say the same of a port but for its state: that it may be aggregated counts.
fn same_port(a: &Info, b: &Info) -> bool {
    let but_state = |info: &Info| {
        let mut copy = *info;
        copy.set(!state::AGGREGATION, false);
        copy
    };
    but_state(a) == but_state(b)
}
