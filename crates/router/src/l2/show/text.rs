//! The same in text, in columns as VPP has them.

use std::fmt;

use super::{BridgeDomains, Counters, Does, Entry, L2Fib, Member, Mode, Modes, Owner, Row, number};
use crate::show::text::{heading, row};

fn on(is: bool) -> &'static str {
    if is { "on" } else { "off" }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, mac) = (self.address.to_string(), &self.mac);
        writeln!(
            f,
            "  {address:<15} is at {mac}, heard {} s ago",
            self.age_seconds
        )
    }
}

/// Headings of the domains, with the width of each column.
const DOMAIN: [(&str, usize); 10] = [
    ("BD-ID", 9),
    ("Index", 7),
    ("Age(min)", 10),
    ("Learning", 10),
    ("U-Forwrd", 10),
    ("UU-Flood", 10),
    ("Flooding", 10),
    ("Learn-co", 10),
    ("Learn-li", 10),
    ("BVI-Intf", 12),
];
/// Those of the members.
const MEMBER: [(&str, usize); 5] = [
    ("Interface", 30),
    ("If-idx", 8),
    ("BVI", 5),
    ("TxFlood", 9),
    ("VLAN-Tag-Rewrite", 20),
];

impl fmt::Display for BridgeDomains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.bridge_domains.is_empty() {
            return writeln!(f, "no bridge domains");
        }
        for (at, row) in self.bridge_domains.iter().enumerate() {
            if at == 0 || self.detail {
                writeln!(f, "{}", heading(&DOMAIN))?;
            }
            row.fmt(f)?;
            if self.detail {
                writeln!(f, "\n{}", heading(&MEMBER))?;
                row.members.iter().try_for_each(|member| member.fmt(f))?;
                row.owners.iter().try_for_each(|owner| owner.fmt(f))?;
                row.counters.fmt(f)?;
                writeln!(f)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let age = self.age_minutes.map_or("off".to_owned(), |n| n.to_string());
        let cells = [
            number(&self.name),
            &self.index.to_string(),
            &age,
            on(self.learn),
            on(self.forward),
            if self.unknown_flood { "flood" } else { "drop" },
            on(self.flood),
            &self.learned.to_string(),
            &self.limit.to_string(),
            self.bvi.as_deref().unwrap_or("N/A"),
        ];
        line(f, &cells, &DOMAIN)
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counters {
            flooded_broadcast,
            flooded_multicast,
            flooded_unknown,
            moves,
            not_learned,
            learns_lost,
        } = self;
        writeln!(
            f,
            "  flooded: {flooded_broadcast} broadcast, {flooded_multicast} multicast, \
             {flooded_unknown} to unknown stations"
        )?;
        writeln!(
            f,
            "  stations: {moves} moves, {not_learned} times not learned since a limit was reached, \
             {learns_lost} since too many came at once"
        )
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rewrite = match self.tags {
            0 => "none".to_owned(),
            tags => format!("pop-{tags}"),
        };
        let index = self.index.to_string();
        let bvi = if self.bvi { "*" } else { "-" };
        line(f, &[&self.interface, &index, bvi, "*", &rewrite], &MEMBER)
    }
}

impl fmt::Display for L2Fib {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.verbose && !self.entries.is_empty() {
            writeln!(f, "{}", heading(&STATION))?;
            self.entries.iter().try_for_each(|entry| entry.fmt(f))?;
        }
        let learned = self.entries.iter().filter(|entry| !entry.fixed).count();
        let (total, room) = (self.entries.len(), self.capacity);
        writeln!(
            f,
            "L2FIB total/learned entries: {total}/{learned}  Learn limit: {room}"
        )
    }
}

/// Headings of the stations.
const STATION: [(&str, usize); 7] = [
    ("Mac-Address", 20),
    ("BD-ID", 9),
    ("If-Idx", 8),
    ("Age(min)", 10),
    ("static", 8),
    ("bvi", 5),
    ("Interface-Name", 30),
];

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = |is: bool| if is { "*" } else { "-" };
        let age = self.age_seconds;
        let age = age.map_or("-".to_owned(), |seconds| (seconds / 60).to_string());
        let cells = [
            &self.mac,
            number(&self.bridge_domain),
            &self.index.to_string(),
            &age,
            mark(self.fixed),
            mark(self.bvi),
            &self.interface,
        ];
        line(f, &cells, &STATION)
    }
}

impl fmt::Display for Modes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Mode { interface, mode } in &self.interfaces {
            let (word, more) = match mode {
                Does::L3 => ("l3", String::new()),
                Does::CrossConnect(to) => ("l2 xconnect", to.clone()),
                Does::Bridge(domain) => ("l2 bridge", format!("bd_id {}", number(domain))),
                Does::Bvi(domain) => ("l2 bridge", format!("bd_id {} bvi", number(domain))),
                Does::Bond(bond) => ("bond", bond.clone()),
            };
            writeln!(f, "{}", row([word, interface, &more], [13, 25, 0]))?;
        }
        Ok(())
    }
}

/// A line of cells in the columns of these headings.
fn line<const N: usize>(
    f: &mut fmt::Formatter<'_>,
    cells: &[&str; N],
    columns: &[(&str, usize); N],
) -> fmt::Result {
    let cells: [_; N] = std::array::from_fn(|at| (cells[at], columns[at].1));
    writeln!(f, "{}", heading(&cells))
}
