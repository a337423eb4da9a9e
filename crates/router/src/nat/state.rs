//! The rules that there are, and what they come to with the interfaces of now.

use std::sync::Arc;

use tables::mem::Cells;
use tables::translated::{Range, Translated};

use super::Rules;
use super::compiled::{Compiled, Hits, Inputs};
use crate::state::Links;

/// The translation as workers see it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Published {
    /// Grows with each change of what the rules say.
    pub generation: u64,
    /// `None`: nothing is translated.
    pub rules: Option<Arc<Compiled>>,
}

/// The translation.
#[derive(Debug)]
pub(crate) struct Nat {
    workers: usize,
    pub(super) rules: Rules,
    pub(super) hits: Arc<Hits>,
    published: Published,
    /// What is translated though it is for an own address, for XDP programs.
    table: Translated,
    /// What the table holds.
    own: Vec<Range>,
    is_stale: bool,
}

impl Nat {
    /// None, for so many workers, with a table in zeroed memory.
    pub(crate) fn new(workers: usize, cells: Cells) -> Self {
        let rules = Rules::default();
        Nat {
            workers,
            hits: Arc::new(Hits::new(&rules, workers)),
            rules,
            published: Published::default(),
            table: Translated::new(cells),
            own: Vec::new(),
            is_stale: false,
        }
    }

    /// True if something is translated.
    pub(crate) fn is_on(&self) -> bool {
        !self.rules.is_empty()
    }

    /// These rules hold from now on, and count from 0, unless they are the same.
    pub(crate) fn set(&mut self, rules: &Rules) {
        if self.rules != *rules {
            self.hits = Arc::new(Hits::new(rules, self.workers));
            self.rules = rules.clone();
            self.published.rules = None;
            self.is_stale = true;
        }
    }

    /// Interfaces or their addresses have changed.
    pub(crate) fn links_changed(&mut self) {
        self.is_stale |= self.is_on();
    }

    /// True if workers may be to know something else: [`follow`](Self::follow) finds out what.
    pub(crate) const fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// Takes in what has become of rules, interfaces and their addresses.
    pub(crate) fn follow(&mut self, links: &Links) {
        if !std::mem::take(&mut self.is_stale) {
            return;
        }
        let inputs = Inputs::new(&self.rules, links);
        let own = inputs.to_own_addresses(links);
        if self.own != own {
            self.table.set(&own);
            self.own = own;
        }
        if !self.is_on() {
            self.published.generation += 1;
            return;
        }
        let is_same = self
            .published
            .rules
            .as_ref()
            .is_some_and(|old| old.is_of(&inputs));
        if !is_same {
            self.published.generation += 1;
            let compiled = Compiled::new(inputs, Arc::clone(&self.hits));
            self.published.rules = Some(Arc::new(compiled));
        }
    }

    /// What workers are to know.
    pub(crate) fn published(&self) -> Published {
        self.published.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tables::acl::Rule as Match;
    use tables::mem::LINE;
    use tables::prefix::Prefix;
    use wire::ip::{ICMP, TCP, UDP};

    use super::super::{DestinationRule, SourceRule, Static, To};
    use super::*;
    use crate::change::{Address, Interface, Kind, Mac};

    const GRE: u8 = 47;
    const OWN: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    const INSIDE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

    /// Interface 1, which has [`OWN`].
    fn links() -> Links {
        let mut links = Links::default();
        let interface = Interface {
            id: 1,
            name: "wan".into(),
            kind: Kind::Routed { host: None },
            mac: Mac([2, 0, 0, 0, 0, 1]),
            mtu: 1500,
            up: true,
            serving: true,
            l2: None,
        };
        links.interfaces.insert(1, interface);
        let address = Address::new(OWN, 24);
        links.sources.addresses.insert(1, vec![address]);
        links
    }

    fn packets(protocol: Option<u8>, ports: std::ops::RangeInclusive<u16>) -> Vec<Match<u32>> {
        vec![Match {
            source: Prefix::cut(0, 0),
            destination: Prefix::cut(0, 0),
            protocol,
            source_ports: 0..=u16::MAX,
            destination_ports: ports,
        }]
    }

    fn source(protocol: Option<u8>, to: To) -> Rules {
        let rule = SourceRule {
            interface: Some("wan".into()),
            packets: packets(protocol, 0..=u16::MAX),
            to,
        };
        Rules {
            source: vec![rule],
            ..Rules::default()
        }
    }

    fn masquerade(protocol: Option<u8>) -> Rules {
        let ports = 10_000..=32_767;
        source(protocol, To::Interface { ports })
    }

    fn pool(address: Ipv4Addr) -> Rules {
        let to = To::Pool {
            addresses: address..=address,
            ports: 20_000..=20_000,
            blocks: None,
        };
        source(None, to)
    }

    fn forward(protocol: u8) -> Rules {
        let rule = DestinationRule {
            interface: Some("wan".into()),
            packets: packets(Some(protocol), 80..=81),
            own: true,
            to: INSIDE,
            port: None,
        };
        Rules {
            destination: vec![rule],
            ..Rules::default()
        }
    }

    fn fixed(outside: Ipv4Addr) -> Rules {
        let rule = Static {
            interface: None,
            outside,
            inside: INSIDE,
            length: 32,
        };
        Rules {
            fixed: vec![rule],
            ..Rules::default()
        }
    }

    #[test]
    fn the_table_has_what_rules_about_own_addresses_may_translate() {
        let cells = Cells::boxed(512 * LINE);
        let (table, mut links) = (Translated::new(cells.clone()), links());
        let mut nat = Nat::new(1, cells);
        let mut has = |rules: Rules, links: &Links| {
            nat.set(&rules);
            nat.links_changed();
            nat.follow(links);
            let ports = [80, 9_999, 20_000, 40_000];
            [TCP, UDP, ICMP, GRE].map(|protocol| ports.map(|port| table.has(protocol, port)))
        };
        const NONE: [bool; 4] = [false; 4];
        const ALL: [bool; 4] = [true; 4];
        const SOME: [bool; 4] = [false, false, true, false];
        assert_eq!(has(masquerade(None), &links), [SOME, SOME, SOME, ALL]);
        assert_eq!(has(masquerade(Some(UDP)), &links), [NONE, SOME, NONE, NONE]);
        assert_eq!(has(pool(OWN), &links), [SOME, SOME, SOME, ALL]);
        assert_eq!(has(pool(INSIDE), &links), [NONE; 4]);
        let first = [true, false, false, false];
        assert_eq!(has(forward(TCP), &links), [first, NONE, NONE, NONE]);
        assert_eq!(has(forward(ICMP), &links), [NONE, NONE, ALL, NONE]);
        assert_eq!(has(fixed(OWN), &links), [ALL; 4]);
        assert_eq!(has(fixed(INSIDE), &links), [NONE; 4]);
        assert_eq!(has(source(None, To::Same), &links), [NONE; 4]);
        // As addresses come and go; and without rules.
        links.sources.addresses.clear();
        assert_eq!(has(forward(TCP), &links), [NONE; 4]);
        links.sources.ip4 = Some(INSIDE);
        assert_eq!(has(fixed(INSIDE), &links), [ALL; 4]);
        assert_eq!(has(Rules::default(), &links), [NONE; 4]);
    }
}
