//! `show bond`.

use std::fmt;

use serde::Serialize;

use super::Spread;
use super::groups::members;
use crate::show::text::row;
use crate::{InterfaceId, Kind, Router};

/// `show bond`.
#[derive(Debug, Clone, Serialize)]
pub struct Bonds {
    /// By name.
    pub bonds: Vec<Bond>,
    /// The text has the members, too.
    #[serde(skip)]
    detail: bool,
}

/// A bond.
#[derive(Debug, Clone, Serialize)]
pub struct Bond {
    /// Name as configured.
    pub name: String,
    /// Its number.
    pub index: InterfaceId,
    /// How frames are spread over the members that are up.
    pub mode: &'static str,
    /// The headers that are hashed; null: none.
    pub load_balance: Option<&'static str>,
    /// Members that carry packets.
    pub active_members: usize,
    /// All members, in the order in which they are used.
    pub members: Vec<Member>,
}

/// A member of a bond.
#[derive(Debug, Clone, Serialize)]
pub struct Member {
    /// Name of the interface.
    pub interface: String,
    /// Its number.
    pub index: InterfaceId,
    /// It is up.
    pub up: bool,
    /// It carries packets: it is up and, with LACP, its other end has agreed. The others of an
    /// active-backup bond wait.
    pub active: bool,
}

/// All bonds. `detail`: the text lists their members, too.
pub fn bonds(router: &Router, detail: bool) -> Bonds {
    let links = &router.state.links;
    let bond = |i: &crate::Interface| {
        let Kind::Bond { spread, .. } = i.kind else {
            return None;
        };
        let lacp = router.state.bonds.aggregator(i.id);
        let member = |index: InterfaceId| Member {
            interface: links.interfaces[&index].name.clone(),
            index,
            up: links.interfaces[&index].up,
            active: links.interfaces[&index].up && lacp.is_none_or(|lacp| lacp.carries(index)),
        };
        let mut members: Vec<_> = members(links, i.id).map(member).collect();
        if spread == Spread::ActiveBackup {
            let up = members.iter_mut().filter(|member| member.active);
            up.skip(1).for_each(|backup| backup.active = false);
        }
        let (mode, load_balance) = words(spread);
        Some(Bond {
            name: i.name.clone(),
            index: i.id,
            mode,
            load_balance,
            active_members: members.iter().filter(|member| member.active).count(),
            members,
        })
    };
    let mut bonds: Vec<_> = links.interfaces.values().filter_map(bond).collect();
    bonds.sort_by(|a, b| a.name.cmp(&b.name));
    Bonds { bonds, detail }
}

fn words(spread: Spread) -> (&'static str, Option<&'static str>) {
    match spread {
        Spread::RoundRobin => ("round-robin", None),
        Spread::ActiveBackup => ("active-backup", None),
        Spread::Broadcast => ("broadcast", None),
        Spread::Xor(headers) => ("xor", Some(headers.name())),
        Spread::Lacp(headers) => ("lacp", Some(headers.name())),
    }
}

impl fmt::Display for Bonds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.bonds.is_empty() {
            return writeln!(f, "no bonds");
        }
        if self.detail {
            return self.bonds.iter().try_for_each(|bond| bond.detail(f));
        }
        const WIDTHS: [usize; 6] = [17, 13, 14, 14, 15, 0];
        let headings = [
            "interface name",
            "sw_if_index",
            "mode",
            "load balance",
            "active members",
            "members",
        ];
        writeln!(f, "{}", row(headings, WIDTHS))?;
        for bond in &self.bonds {
            let (active, all) = (bond.active_members, bond.members.len());
            let cells = [
                &bond.name,
                &bond.index.to_string(),
                bond.mode,
                bond.load_balance.unwrap_or(bond.mode),
                &active.to_string(),
                &all.to_string(),
            ];
            writeln!(f, "{}", row(cells, WIDTHS))?;
        }
        Ok(())
    }
}

impl Bond {
    fn detail(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = |f: &mut fmt::Formatter<'_>, what: &str, active: bool| {
            let those = self
                .members
                .iter()
                .filter(|member| member.active || !active);
            writeln!(f, "  number of {what}: {}", those.clone().count())?;
            those
                .clone()
                .try_for_each(|member| writeln!(f, "    {}", member.interface))
        };
        writeln!(f, "{}", self.name)?;
        writeln!(f, "  mode: {}", self.mode)?;
        let balance = self.load_balance.unwrap_or(self.mode);
        writeln!(f, "  load balance: {balance}")?;
        members(f, "active members", true)?;
        members(f, "members", false)?;
        writeln!(f, "  sw_if_index: {}", self.index)
    }
}
