//! LACP (IEEE 802.1AX-2014 clause 6.4): members of a bond carry only while the other end has agreed.
//!
//! The machines run on the control thread. Workers hand LACPDUs over as events, and find those to be
//! sent in the snapshot ([`Exchange`]).

mod exchange;
mod outgoing;
mod port;
pub mod show;

use std::collections::BTreeMap;

use wire::eth::Mac;
use wire::lacp::Header;

pub use exchange::Exchange;
pub(crate) use exchange::allowance;
pub(crate) use outgoing::{Outbox, Outgoing};
pub(crate) use port::Millis;
use port::{Lag, Port};

use crate::change::InterfaceId;

/// The ports of a bond, of which one aggregate is used at a time.
#[derive(Debug, Default)]
pub(crate) struct Aggregator {
    ports: BTreeMap<InterfaceId, Port>,
    /// The aggregate that is used.
    lag: Option<Lag>,
}

impl Aggregator {
    /// The bond has these members now, of which some are up. Its number is their key, its address
    /// their system.
    pub fn has(&mut self, bond: InterfaceId, system: Mac, members: &[(InterfaceId, bool)]) {
        self.ports
            .retain(|id, _| members.iter().any(|(member, _)| member == id));
        for &(id, up) in members {
            let port = self.ports.entry(id);
            let port = port.or_insert_with(|| Port::new(system, bond, id));
            port.become_of(system, up);
        }
    }

    /// It has this port.
    pub fn has_port(&self, member: InterfaceId) -> bool {
        self.ports.contains_key(&member)
    }

    /// A member carries.
    pub fn carries(&self, member: InterfaceId) -> bool {
        self.ports.get(&member).is_some_and(Port::carries)
    }

    /// A member's port.
    fn port(&self, member: InterfaceId) -> Option<&Port> {
        self.ports.get(&member)
    }

    /// Any member carries.
    pub fn is_up(&self) -> bool {
        self.ports.values().any(Port::carries)
    }

    /// A member has heard this.
    pub fn hear(&mut self, member: InterfaceId, pdu: &Header, now: Millis) {
        if let Some(port) = self.ports.get_mut(&member) {
            port.hear(pdu, now);
        }
    }

    /// It is this time. Returns what members are to send.
    pub fn step(&mut self, now: Millis) -> Vec<(InterfaceId, Header)> {
        for port in self.ports.values_mut() {
            port.receive(now);
            // One that has left its aggregate is out of it before it joins another.
            port.mux(false, now);
        }
        self.select();
        for port in self.ports.values_mut() {
            port.mux(false, now);
        }
        let ready = !self.ports.values().any(|port| port.waits(now));
        let ports = self.ports.iter_mut();
        ports
            .filter_map(|(id, port)| {
                port.mux(ready, now);
                Some((*id, port.transmit(now)?))
            })
            .collect()
    }

    /// The selection logic (clause 6.4.14): the aggregate in use stays while it has a link; then it is
    /// the one with the most links, among these the one of the lowest port.
    fn select(&mut self) {
        let lags = || self.ports.values().filter_map(Port::lag);
        if !lags().any(|lag| Some(lag) == self.lag) {
            let links = |of: Lag| lags().filter(|lag| *lag == of).count();
            // The last of equal ones is the best to `max_by_key`.
            let all: Vec<_> = lags().collect();
            self.lag = all.into_iter().rev().max_by_key(|lag| links(*lag));
        }
        for port in self.ports.values_mut() {
            port.selected = self.lag.is_some() && port.lag() == self.lag;
        }
    }
}

#[cfg(test)]
mod tests;
