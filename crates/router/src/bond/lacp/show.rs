//! `show lacp`.

use std::fmt;

use serde::Serialize;
use wire::lacp::{Info, state};

use super::port::{Mux, Periodic, Rx};
use crate::bond::groups::members;
use crate::show::text::row;
use crate::{InterfaceId, Router};

/// `show lacp`.
#[derive(Debug, Clone, Serialize)]
pub struct Members {
    /// By bond, and by name.
    pub members: Vec<Member>,
}

/// A member of a bond with LACP.
#[derive(Debug, Clone, Serialize)]
pub struct Member {
    /// Name of the interface.
    pub interface: String,
    /// Its number.
    pub index: InterfaceId,
    /// Name of the bond.
    pub bond: String,
    /// What the port says of itself.
    pub actor: End,
    /// What it knows of its partner.
    pub partner: End,
    /// State of the receive machine.
    pub rx_state: &'static str,
    /// State of the mux machine.
    pub mux_state: &'static str,
    /// State of the periodic transmission machine.
    pub ptx_state: &'static str,
    /// It is in the aggregate that the bond uses.
    pub selected: bool,
}

/// One end of a link.
#[derive(Debug, Clone, Serialize)]
pub struct End {
    /// Priority of the system; the lowest is the best.
    pub system_priority: u16,
    /// Ethernet address of the system.
    pub system: String,
    /// Key.
    pub key: u16,
    /// Priority of the port; the lowest is the best.
    pub port_priority: u16,
    /// Number of the port.
    pub port: u16,
    /// Its state (IEEE 802.1AX-2014 clause 6.4.2.3, Actor_State).
    pub state: Flags,
}

/// State of an end.
#[derive(Debug, Clone, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "the bits of one byte")]
pub struct Flags {
    /// Has not heard from the other end for too long.
    pub expired: bool,
    /// Has not heard from the other end at all.
    pub defaulted: bool,
    /// Sends.
    pub distributing: bool,
    /// Takes in what comes.
    pub collecting: bool,
    /// Is in the right aggregate.
    pub synchronization: bool,
    /// May be one of several links.
    pub aggregation: bool,
    /// Wants to hear each second, not every 30 s.
    pub timeout: bool,
    /// Speaks first.
    pub activity: bool,
}

/// No member of a bond with LACP has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no member {0} of a bond with LACP; `show lacp` lists those that there are")]
pub struct NoMember(pub String);

/// All members of bonds with LACP, or one.
///
/// # Errors
/// [`NoMember`].
pub fn members_of_all(router: &Router, which: Option<&str>) -> Result<Members, NoMember> {
    let links = &router.state.links;
    let mut bonds: Vec<_> = links.interfaces.values().collect();
    bonds.sort_by(|a, b| a.name.cmp(&b.name));
    let mut shown = Vec::new();
    for bond in bonds {
        let Some(aggregator) = router.state.bonds.aggregator(bond.id) else {
            continue;
        };
        for id in members(links, bond.id) {
            let name = &links.interfaces[&id].name;
            let Some(port) = aggregator.port(id) else {
                continue;
            };
            if which.is_none_or(|which| which == name) {
                shown.push(Member {
                    interface: name.clone(),
                    index: id,
                    bond: bond.name.clone(),
                    actor: end(&port.actor),
                    partner: end(&port.partner),
                    rx_state: rx(port.rx),
                    mux_state: mux(port.mux),
                    ptx_state: periodic(port.periodic),
                    selected: port.selected,
                });
            }
        }
    }
    match which {
        Some(which) if shown.is_empty() => Err(NoMember(which.to_owned())),
        _ => Ok(Members { members: shown }),
    }
}

fn end(info: &Info) -> End {
    End {
        system_priority: info.system_priority(),
        system: info.system.to_string(),
        key: info.key(),
        port_priority: info.port_priority(),
        port: info.port(),
        state: Flags {
            expired: info.is(state::EXPIRED),
            defaulted: info.is(state::DEFAULTED),
            distributing: info.is(state::DISTRIBUTING),
            collecting: info.is(state::COLLECTING),
            synchronization: info.is(state::SYNCHRONIZATION),
            aggregation: info.is(state::AGGREGATION),
            timeout: info.is(state::TIMEOUT),
            activity: info.is(state::ACTIVITY),
        },
    }
}

const fn rx(state: Rx) -> &'static str {
    match state {
        Rx::PortDisabled => "PORT_DISABLED",
        Rx::Expired => "EXPIRED",
        Rx::Defaulted => "DEFAULTED",
        Rx::Current => "CURRENT",
    }
}

const fn mux(state: Mux) -> &'static str {
    match state {
        Mux::Detached => "DETACHED",
        Mux::Waiting => "WAITING",
        Mux::Attached => "ATTACHED",
        Mux::CollectingDistributing => "COLLECTING_DISTRIBUTING",
    }
}

const fn periodic(state: Periodic) -> &'static str {
    match state {
        Periodic::None => "NO_PERIODIC",
        Periodic::Fast => "FAST_PERIODIC",
        Periodic::Slow => "SLOW_PERIODIC",
    }
}

impl fmt::Display for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.members.is_empty() {
            return writeln!(f, "no members of bonds with LACP");
        }
        const WIDTHS: [usize; 5] = [25, 13, 17, 33, 0];
        const BITS: &str = "exp/def/dis/col/syn/agg/tim/act";
        let above = ["", "", "", "actor state", "partner state"];
        writeln!(f, "{}", row(above, WIDTHS))?;
        let headings = [
            "interface name",
            "sw_if_index",
            "bond interface",
            BITS,
            BITS,
        ];
        writeln!(f, "{}", row(headings, WIDTHS))?;
        for member in &self.members {
            let cells = [
                &member.interface,
                &member.index.to_string(),
                &member.bond,
                &member.actor.state.to_string(),
                &member.partner.state.to_string(),
            ];
            writeln!(f, "{}", row(cells.map(String::as_str), WIDTHS))?;
            writeln!(f, "  LAG ID: [{}, {}]", member.actor, member.partner)?;
            writeln!(
                f,
                "  RX-state: {}, MUX-state: {}, PTX-state: {}",
                member.rx_state, member.mux_state, member.ptx_state
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            self.expired,
            self.defaulted,
            self.distributing,
            self.collecting,
            self.synchronization,
            self.aggregation,
            self.timeout,
            self.activity,
        ];
        let bits: Vec<_> = all.map(|bit| format!("{:>3}", u8::from(bit))).into();
        f.write_str(&bits.join(" "))
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "({:04x},{},{:04x},{:04x},{:04x})",
            self.system_priority,
            self.system.replace(':', "-"),
            self.key,
            self.port_priority,
            self.port
        )
    }
}
