//! Plans are taken step by step by a machine in memory, which refuses what no router could do.

use std::time::Duration;

use super::rules::rule;
use super::*;
use crate::config::State;

/// Configurations as unlike each other as they get.
const CONFIGS: &[&str] = &[
    "{}",
    "interfaces: { e0: {}, e1: {} }",
    "interfaces: { e0: { mtu: 9000, lcp: a, addresses: [ 10.0.0.1/24 ] }, e1: { lcp: b } }",
    // Names swapped; an address with another length.
    "interfaces: { e0: { mtu: 1400, lcp: b, addresses: [ 10.0.0.1/25 ] }, e1: { lcp: a } }",
    "interfaces: { e0: { addresses: [ 10.0.0.1/26, 2001:db8::1/48, 2001:db8:1::1/48 ] } }",
    "interfaces: { e0: { addresses: [ 2001:db8::1/64, 2001:db8:1::1/64 ], vrf: red } }\nvrfs: { red: { table: 10 } }",
    // Names in a chain; an address on another interface.
    "interfaces: { e0: { lcp: c }, e1: { lcp: b, addresses: [ 10.0.0.1/24 ] }, e2: { lcp: a } }",
    "interfaces: { e0: { mtu: 9000, sub-interfaces: { 5: { mtu: 9000 }, 6: { mtu: 3000, encapsulation: { dot1q: 5, inner-dot1q: 6 } } } } }",
    "interfaces: { e0: { mtu: 1500, sub-interfaces: { 5: { mtu: 1500 }, 6: { mtu: 1400, encapsulation: { dot1q: 5, inner-dot1q: 6 } } } } }",
    // Tags swapped.
    "interfaces: { e0: { sub-interfaces: { 5: { state: down, encapsulation: { dot1q: 6 } }, 6: { mtu: 1500, encapsulation: { dot1q: 5 } } } } }",
    "interfaces: { e0: { state: down, sub-interfaces: { 5: { state: down, encapsulation: { dot1q: 5 } }, 6: { state: down, encapsulation: { dot1q: 6 } } } } }",
    "interfaces: { e0: {}, e1: {} }\nbridgedomains: { bd1: { bvi: loop0, interfaces: [ e0, e1 ] } }\nloopbacks: { loop0: { lcp: bvi, addresses: [ 10.0.0.1/24 ] } }",
    "interfaces: { e0: {}, e1: { addresses: [ 10.0.1.1/24 ] }, e2: {} }\nbridgedomains: { bd1: { interfaces: [ e2 ] }, bd2: { bvi: loop1, settings: { learn: no } } }\nloopbacks: { loop0: { mac: 02:00:00:00:00:01 }, loop1: {} }",
    "interfaces: { e0: { l2xc: e1 }, e1: { l2xc: e0 } }",
    "interfaces: { e0: { l2xc: e1.5 }, e1: { sub-interfaces: { 5: { l2xc: e0 } } } }",
    "interfaces: { e0: { unnumbered: loop0 }, e1: { unnumbered: loop0 } }\nloopbacks: { loop0: { addresses: [ 10.0.0.1/32 ] } }",
    "interfaces: { e0: { unnumbered: e1 }, e1: { addresses: [ 10.0.0.1/32 ] } }",
    "interfaces: { e0: {}, e1: {}, BondEthernet0: { lcp: a, addresses: [ 10.0.0.2/24 ], sub-interfaces: { 5: { lcp: b } } } }\nbondethernets: { BondEthernet0: { interfaces: [ e0, e1 ], mac: 02:00:00:00:00:02 } }",
    "interfaces: { e0: {}, e1: { lcp: b }, BondEthernet0: {}, BondEthernet1: {} }\nbondethernets: { BondEthernet0: { mode: xor }, BondEthernet1: { interfaces: [ e0 ], mode: broadcast } }",
    "vxlan_tunnels: { vxlan_tunnel1: { local: 10.0.0.1, remote: 10.0.0.2, vni: 7 }, vxlan_tunnel2: { local: 10.0.0.1, remote: 10.0.0.3, vni: 8 } }\ntaps: { tap1: { host: { name: t1, namespace: ns } }, tap2: { host: { name: t2 } } }\ninterfaces: { vxlan_tunnel1: { mtu: 2000 }, tap1: {} }",
    // VNIs and host names swapped.
    "vxlan_tunnels: { vxlan_tunnel1: { local: 10.0.0.1, remote: 10.0.0.2, vni: 8 }, vxlan_tunnel2: { local: 10.0.0.1, remote: 10.0.0.3, vni: 7 } }\ntaps: { tap1: { host: { name: t2 }, rx-ring-size: 512 }, tap2: { host: { name: t1 } } }\nbridgedomains: { bd1: { interfaces: [ vxlan_tunnel1 ] } }\ninterfaces: { vxlan_tunnel1: {} }",
    "interfaces: { e0: { addresses: [ 10.0.0.1/24, 2001:db8::1/64 ], vrf: red }, e1: { addresses: [ 10.0.0.1/24 ] } }\nvrfs: { red: { table: 10 }, blue: { table: 20 } }\nroutes: [ { prefix: 0.0.0.0/0, via: 10.0.0.2, vrf: red }, { prefix: 0.0.0.0/0, via: 10.0.0.3 }, { prefix: 10.9.0.0/16, blackhole: yes } ]",
    "interfaces: { e0: { addresses: [ 10.0.0.1/24 ] }, e1: { addresses: [ 10.0.0.1/24, 2001:db8::1/64 ], vrf: blue } }\nvrfs: { red: { table: 20 }, blue: { table: 10 } }\nroutes: [ { prefix: 0.0.0.0/0, via: [ 10.0.0.2, 10.0.0.4 ], vrf: blue }, { prefix: 0.0.0.0/0, via: 10.0.0.3 } ]",
    "prefixlists: { ab: { members: [ 10.0.0.0/8 ] } }\nacls: { one: { terms: [ { action: permit, source: ab } ] }, two: { terms: [ { action: deny } ] } }\ninterfaces: { e0: { acls: { input: one, output: [ one, two ] } } }\nsflow: {}",
    "prefixlists: { cd: { members: [ 10.0.0.0/8 ] } }\nacls: { one: { terms: [ { action: permit, destination: cd } ] }, six: { terms: [ { action: deny } ] } }\ninterfaces: { e0: { sflow: yes, mac: 02:00:00:00:00:03, description: x, acls: { input: six } } }\nsflow: { sampling-rate: 500 }",
    "interfaces: { e0: { mpls: yes, mtu: 2000 } }\nports: { e0: { netdev: eth0 }, m: { memif: { socket: /s } } }\nworkers: { count: 2 }\ntables: { ip4-routes: 2000000 }\nnetns: dataplane\ncontrol: { show-group: users }",
    include_str!("../config/tests/operator.yaml"),
];

/// Valid configurations of all kinds.
pub(crate) fn configs() -> Vec<Config> {
    let parsed = CONFIGS.iter().map(|text| Config::parse("test.yaml", text));
    parsed
        .map(|config| config.unwrap_or_else(|problems| panic!("{problems}")))
        .collect()
}

/// A router in memory.
pub(crate) struct Machine(pub Items);

impl Machine {
    fn create(&mut self, item: &Item) {
        let key = item.key();
        assert!(!self.0.contains_key(&key), "{key:?} is there already");
        self.put(item);
    }

    fn put(&mut self, item: &Item) {
        let (key, rule) = (item.key(), rule(item));
        for need in rule.needs {
            assert!(self.0.contains_key(&need), "{key:?} needs {need:?}");
        }
        for claim in rule.claims {
            for other in claimants(&self.0, &claim) {
                assert!(*other == key, "{key:?} takes {claim} from {other:?}");
            }
        }
        self.0.insert(key, item.clone());
    }

    fn remove(&mut self, item: &Item, attributes: &[Item]) {
        for item in [item].into_iter().chain(attributes) {
            let found = self.0.remove(&item.key());
            assert_eq!(found.as_ref(), Some(item));
        }
        let key = item.key();
        for (other, item) in &self.0 {
            assert!(!rule(item).needs.contains(&key), "{other:?} needs {key:?}");
        }
    }

    /// Does what a step does.
    ///
    /// # Panics
    /// No router could.
    pub fn take(&mut self, action: &Action) {
        match action {
            Action::Remove { item, attributes } => self.remove(item, attributes),
            Action::Create { item, attributes } => {
                self.create(item);
                for attribute in attributes {
                    self.create(attribute);
                }
            }
            Action::Change { from, to } => {
                assert_eq!(self.0.get(&from.key()), Some(from));
                assert_eq!(from.key(), to.key());
                self.put(to);
            }
        }
        self.is_possible();
    }

    /// What must hold at any time.
    fn is_possible(&self) {
        for (key, item) in &self.0 {
            if let Key::Address(name, _) = key {
                let connected = self.0.contains_key(&Key::CrossConnect(name.clone()));
                let member = self.0.get(&Key::BridgeMember(name.clone()));
                let bridged = matches!(member, Some(Item::BridgeMember { bvi: false, .. }));
                assert!(!connected && !bridged, "{name} has an address in layer 2");
            }
            self.has_one_length(key);
            if let Item::Interface {
                name,
                kind: Kind::Sub { parent, .. },
            } = item
            {
                self.fits_into(name, parent);
            }
        }
    }

    /// What a sub-interface has is within what its parent has.
    fn fits_into(&self, name: &str, parent: &str) {
        let mtu = |of: &str| match self.0.get(&Key::Mtu(Object::interface(of))) {
            Some(Item::Mtu { mtu, .. }) => Some(*mtu),
            _ => None,
        };
        if let (Some(mtu), Some(most)) = (mtu(name), mtu(parent)) {
            assert!(mtu <= most, "{name} has a larger MTU than {parent}");
        }
        let state = |of: &str| match self.0.get(&Key::State(of.to_owned())) {
            Some(Item::State { state, .. }) => Some(*state),
            _ => None,
        };
        let is_above = state(name) == Some(State::Up) && state(parent) == Some(State::Down);
        assert!(!is_above, "{name} is up, {parent} not");
    }

    /// A device has an IPv6 address once, whatever its prefix length.
    fn has_one_length(&self, key: &Key) {
        let Key::Address(name, address) = key else {
            return;
        };
        let is_it = |other: &&Key| match other {
            Key::Address(of, other) => of == name && other.address == address.address,
            _ => false,
        };
        let lengths = self.0.keys().filter(is_it).count();
        assert!(
            lengths == 1 || address.address.is_ipv4(),
            "{name} has {address} with {lengths} lengths"
        );
    }
}

/// The items that claim something.
fn claimants<'i>(items: &'i Items, claim: &'i String) -> impl Iterator<Item = &'i Key> {
    let claiming = items
        .iter()
        .filter(|(_, item)| rule(item).claims.contains(claim));
    claiming.map(|(key, _)| key)
}

/// There, step by step, and back again.
fn walk(from: &Config, to: &Config) -> Plan {
    let plan = Plan::new(from, to);
    let mut machine = Machine(items(from));
    for step in &plan.steps {
        machine.take(&step.action);
    }
    assert_eq!(machine.0, items(to));
    for step in plan.steps.iter().rev() {
        machine.take(&step.action.clone().reverse());
    }
    assert_eq!(machine.0, items(from));
    plan
}

#[test]
fn every_plan_leads_where_it_should_and_back() {
    let configs = configs();
    assert!(configs.len() >= 20);
    for (i, from) in configs.iter().enumerate() {
        for (j, to) in configs.iter().enumerate() {
            println!("{i} -> {j}");
            let plan = walk(from, to);
            assert_eq!(plan.is_empty(), i == j);
            assert_eq!(plan.changes.is_empty(), i == j, "{}", plan.text(true));
        }
    }
}

/// Every kind of item is among the configurations, so that the tests here are about it, too.
#[test]
fn every_kind_of_item_is_planned() {
    let items: Vec<Item> = configs()
        .iter()
        .flat_map(|c| items(c).into_values())
        .collect();
    let debug: Vec<String> = items.iter().map(|item| format!("{item:?}")).collect();
    let (_, source) = include_str!("item.rs")
        .split_once("pub enum Item {\n")
        .expect("the enum");
    let (variants, _) = source.split_once("\n}\n").expect("its end");
    let lines = variants
        .lines()
        .filter_map(|line| line.strip_prefix("    "));
    let kinds = lines.filter(|line| line.starts_with(char::is_uppercase));
    let kinds: Vec<&str> = kinds
        .filter_map(|line| line.split([' ', '(']).next())
        .collect();
    assert!(kinds.len() >= 26, "{kinds:?}");
    for kind in kinds {
        let is_it = |text: &String| text.split([' ', '(']).next() == Some(kind);
        assert!(
            debug.iter().any(is_it),
            "no configuration of these tests has a {kind}"
        );
    }
}

/// Creation goes by rank, so what an item needs has a lower one.
#[test]
fn what_an_item_needs_is_of_a_lower_rank() {
    for items in configs().iter().map(items) {
        for (key, item) in &items {
            let rule = rule(item);
            for need in &rule.needs {
                let below = self::rule(&items[need]).rank;
                assert!(
                    below < rule.rank,
                    "{key:?} {} needs {need:?} {below}",
                    rule.rank
                );
            }
        }
    }
}

/// What the kernel cannot tell apart is one route, however the file has its metric.
#[test]
fn a_metric_that_the_kernel_chooses_is_none() {
    let of = |prefix: &str, metric: &str| {
        let text = format!("routes: [ {{ prefix: {prefix}, blackhole: yes{metric} }} ]");
        Config::parse("test.yaml", &text).unwrap_or_else(|problems| panic!("{problems}"))
    };
    for (prefix, same) in [("10.0.0.0/8", false), ("\"3fff::/20\"", true)] {
        let [none, usual, other] = ["", ", metric: 1024", ", metric: 7"].map(|m| of(prefix, m));
        for [from, to] in [[&none, &usual], [&usual, &none]] {
            assert_eq!(Plan::new(from, to).is_empty(), same, "{prefix}");
            assert!(!Plan::new(from, &other).is_empty(), "{prefix}");
        }
    }
}

/// A plan says what the file says: no value that nobody wrote, no field without its value.
#[test]
fn a_plan_reads_as_the_file_does() {
    let to = "routes:\n- { prefix: 10.0.0.0/8, blackhole: yes }\n\
              - { prefix: 10.1.0.0/16, via: [ { interface: e0 } ], metric: 5 }\n\
              - { prefix: 10.2.0.0/16, via: [ { interface: e0, weight: 3 }, { interface: e1 } ] }\n\
              bridgedomains: { bd1: { mtu: 1500, settings: { learn: no } } }\n\
              sflow: {}\ninterfaces: { e0: {}, e1: {} }";
    let plan = plan("interfaces: { e0: {}, e1: {} }", to);
    let wanted = "\
+ bridgedomain bd1
    + learn: false
    + mtu: 1500
+ route 10.0.0.0/8
    + blackhole: true
+ route 10.1.0.0/16 metric 5
    + via 1 interface: e0
+ route 10.2.0.0/16
    + via 1 interface: e0
    + via 1 weight: 3
    + via 2 interface: e1
+ sflow
";
    let text = plan.text(true);
    assert!(text.starts_with(wanted), "{text}");
    assert!(
        text.contains(" create route 10.0.0.0/8 blackhole: true\n"),
        "{text}"
    );
}

/// An interface that follows from an address is shown only where it becomes another.
#[test]
fn an_interface_that_nobody_wrote_is_not_shown() {
    let at = |e0: &str, e1: &str, via: &str| {
        format!(
            "interfaces: {{ e0: {{ addresses: [ {e0} ] }}, e1: {{ addresses: [ {e1} ] }} }}\n\
             routes: [ {{ prefix: 10.0.0.0/8, via: [ {via} ] }} ]"
        )
    };
    let (here, there) = ("192.0.2.1/24", "198.51.100.1/24");
    let found = at(here, there, "192.0.2.2");
    let none = found.split("routes").next().unwrap_or_default();
    let text = plan(none, &found).text(true);
    assert!(
        text.starts_with("+ route 10.0.0.0/8\n    + via 1 address: 192.0.2.2\n\n"),
        "{text}"
    );
    assert!(!text.contains("interface: e0"), "{text}");
    let moved = plan(&found, &at(there, here, "192.0.2.2")).text(false);
    assert!(
        moved.contains("\n    ~ via 1 interface: e0 -> e1\n"),
        "{moved}"
    );
    let written = at(here, there, "{ address: 192.0.2.2, interface: e0 }");
    assert!(plan(&found, &written).is_empty());
    let text = plan(none, &written).text(false);
    assert!(text.contains("    + via 1 interface: e0\n"), "{text}");
}

/// What is the same in both is not in any step, unless something below it is made anew.
#[test]
fn what_is_equal_is_untouched() {
    let configs = configs();
    for from in &configs {
        for to in &configs {
            let (before, after) = (items(from), items(to));
            let plan = Plan::new(from, to);
            let removed = |key: &Key| {
                plan.steps
                    .iter()
                    .any(|s| matches!(&s.action, Action::Remove { item, .. } if item.key() == *key))
            };
            for step in &plan.steps {
                let key = step.action.item().key();
                if before.get(&key) != after.get(&key) {
                    continue;
                }
                let rule = rule(&before[&key]);
                let mut below = rule.needs.iter();
                let is_taken = |claim| claimants(&after, claim).any(|other| *other != key);
                assert!(
                    below.any(removed) || rule.claims.iter().any(is_taken),
                    "{step} in\n{}",
                    plan.text(true)
                );
            }
        }
    }
}

fn plan(from: &str, to: &str) -> Plan {
    let config = |text| Config::parse("x", text).unwrap_or_else(|problems| panic!("{problems}"));
    walk(&config(from), &config(to))
}

fn steps(from: &str, to: &str) -> Vec<String> {
    plan(from, to).steps.iter().map(Step::to_string).collect()
}

/// The moves that the original planner gets wrong.
#[test]
fn nothing_is_forgotten() {
    let bridge = |members: &str| {
        format!(
            "interfaces: {{ e0: {{}}, e1: {{}} }}\nbridgedomains: {{ bd1: {{ {members} }} }}\nloopbacks: {{ loop0: {{}} }}"
        )
    };
    assert_eq!(
        steps(
            &bridge("bvi: loop0, interfaces: [ e0, e1 ]"),
            &bridge("interfaces: [ e0 ]")
        ),
        [
            "remove bridgedomain bd1 interfaces e1: member  (interrupts e1)",
            "remove bridgedomain bd1 bvi loop0: member  (interrupts loop0)"
        ]
    );
    assert_eq!(
        steps(
            "interfaces: { e0: { lcp: a }, e1: {} }",
            "interfaces: { e0: {}, e1: { lcp: a } }"
        ),
        [
            "remove interface e0 lcp: a  (interrupts e0)",
            "create interface e1 lcp: a  (interrupts e1)"
        ]
    );
    assert_eq!(
        steps(
            "interfaces: { BondEthernet0: {} }\nbondethernets: { BondEthernet0: { mac: 02:00:00:00:00:01 } }",
            "interfaces: { BondEthernet0: {} }\nbondethernets: { BondEthernet0: { mac: 02:00:00:00:00:02 } }"
        ),
        [
            "change interface BondEthernet0 mac: 02:00:00:00:00:01 -> 02:00:00:00:00:02  (interrupts BondEthernet0)"
        ]
    );
    assert_eq!(
        steps(
            "taps: { tap1: { host: { name: t, namespace: ns } } }",
            "taps: { tap1: { host: { name: t }, rx-ring-size: 512 } }"
        ),
        [
            "change interface tap1 host namespace: ns -> none, rx-ring-size: 256 -> 512  (interrupts tap1)"
        ]
    );
    assert_eq!(
        steps(
            "interfaces: { e0: { mac: 02:00:00:00:00:01 } }\nsflow: {}",
            "interfaces: { e0: {} }"
        ),
        [
            "remove sflow",
            "remove interface e0 mac: 02:00:00:00:00:01  (interrupts e0)"
        ]
    );
    // Another spelling of an address is the same address.
    assert!(
        plan(
            "interfaces: { e0: { addresses: [ 2001:DB8::1/64 ] } }",
            "interfaces: { e0: { addresses: [ 2001:db8:0::1/64 ] } }"
        )
        .is_empty()
    );
    assert!(
        plan(
            "interfaces: { e0: {} }",
            "interfaces: { e0: { state: up, mpls: no } }"
        )
        .is_empty()
    );
    // So is another spelling of a port.
    assert!(
        plan(
            "interfaces: { e0: {} }",
            "interfaces: { e0: {} }\nports: { e0: { netdev: e0 } }"
        )
        .is_empty()
    );
    let acls = |network: &str| {
        format!("acls: {{ ab: {{ terms: [ {{ action: deny, source: {network} }} ] }} }}")
    };
    assert_eq!(
        steps(&acls("10.0.0.0/8"), &acls("10.1.0.0/16")),
        ["change acl ab 1 source: 10.0.0.0/8 -> 10.1.0.0/16"]
    );
}

/// Without `mtu` an interface has that of its device, which need not be 1500.
/// That a secret changes is no secret.
#[test]
fn a_secret_that_changes_is_named_and_not_shown() {
    let of = |secret: &str| format!("ports: {{ m: {{ memif: {{ socket: /s{secret} }} }} }}");
    let [none, one, other] = ["", ", secret: apple", ", secret: pear"].map(of);
    let cases = [
        (
            &one,
            &other,
            "    ~ port memif secret: (hidden) -> (hidden)\n",
        ),
        (&none, &one, "    + port memif secret: (hidden)\n"),
        (&one, &none, "    - port memif secret: (hidden)\n"),
    ];
    for (from, to, line) in cases {
        let plan = plan(from, to);
        let text = plan.text(true);
        assert!(
            text.starts_with(&format!("~ interface m\n{line}\n")),
            "{text}"
        );
        let all = text + &plan.json().to_string();
        assert!(!all.contains("apple") && !all.contains("pear"), "{all}");
    }
}

#[test]
fn what_the_kernel_drops_by_itself_is_said() {
    let [up, down] =
        ["up", "down"].map(|state| format!("interfaces: {{ e0: {{ state: {state} }} }}"));
    let note = "interface e0 goes down: the kernel then drops IPv6 addresses and routes by it";
    let cases = [
        (&*up, &*down, true),
        (&down, &up, false),
        ("{}", &down, true),
    ];
    for (from, to, said) in cases {
        let plan = plan(from, to);
        assert_eq!(plan.text(false).contains(note), said, "{from} {to}");
        assert_eq!(plan.json()["notes"].to_string().contains(note), said);
    }
}

#[test]
fn an_mtu_that_is_named_and_none_are_two_things() {
    let of = |fields: &str| format!("interfaces: {{ e0: {{ {fields} }} }}");
    let set = "set interface e0 mtu: 1500  (interrupts e0)";
    assert_eq!(steps(&of(""), &of("mtu: 1500")), [set]);
    let remove = "remove interface e0 mtu: 1500  (interrupts e0)";
    assert_eq!(steps(&of("mtu: 1500"), &of("")), [remove]);
    let loopback = |fields: &str| format!("loopbacks: {{ loop0: {{ {fields} }} }}");
    let set = "set interface loop0 mtu: 1500";
    assert_eq!(steps(&loopback(""), &loopback("mtu: 1500")), [set]);
}

/// What an interface is given anew interrupts it if it is there already.
#[test]
fn what_closes_or_restarts_a_live_interface_interrupts_it() {
    let of = |fields: &str| format!("interfaces: {{ e0: {{ {fields} }} }}");
    let marked = |from: &str, to: &str| {
        let plan = plan(from, to);
        let interrupting = plan.steps.iter().filter(|step| step.interrupts.is_some());
        (interrupting.count(), plan.steps.len())
    };
    let named = "lcp: lan0, mac: '02:00:00:00:00:07'";
    assert_eq!(marked(&of(""), &of(named)), (2, 2));
    assert_eq!(marked(&of(named), &of("")), (2, 2));
    let quiet = "addresses: [ 10.0.0.1/24 ], description: words";
    assert_eq!(marked(&of(""), &of(quiet)), (0, 2));
    // One that comes has nothing to lose.
    let all = format!("{named}, {quiet}, mtu: 1400");
    let (interrupting, steps) = marked("{}", &of(&all));
    assert!(interrupting == 0 && steps > 5, "{interrupting} of {steps}");
}

/// A device has an IPv6 address with one length at a time.
#[test]
fn an_ipv6_address_that_changes_its_length_is_back_at_once() {
    let text = |length: u8| {
        format!(
            "interfaces: {{ e0: {{ addresses: [ 2001:db8::1/{length}, 2001:db8:1::1/{length}, 10.0.0.1/24 ] }} }}\n\
             routes: [ {{ prefix: '::/0', via: 2001:db8::2 }} ]"
        )
    };
    let steps = steps(&text(64), &text(48));
    assert_eq!(
        steps,
        [
            "remove interface e0 address 2001:db8::1/64  (interrupts e0)",
            "create interface e0 address 2001:db8::1/48",
            "remove interface e0 address 2001:db8:1::1/64  (interrupts e0)",
            "create interface e0 address 2001:db8:1::1/48"
        ]
    );
}

#[test]
fn an_address_that_changes_its_length_is_never_missing() {
    let e0 = |address: &str| format!("interfaces: {{ e0: {{ addresses: [ {address} ] }} }}");
    assert_eq!(
        steps(&e0("10.0.0.1/24"), &e0("10.0.0.1/25")),
        [
            "create interface e0 address 10.0.0.1/25",
            "remove interface e0 address 10.0.0.1/24"
        ]
    );
    assert_eq!(
        steps(&e0("10.0.0.1/24"), &e0("10.0.0.2/24")),
        [
            "remove interface e0 address 10.0.0.1/24  (interrupts e0)",
            "create interface e0 address 10.0.0.2/24"
        ]
    );
}

#[test]
fn an_interface_that_changes_its_acls_is_never_without() {
    let text = |acl: &str| {
        format!(
            "acls: {{ {acl}: {{ terms: [ {{ action: deny }} ] }} }}\ninterfaces: {{ e0: {{ acls: {{ input: {acl} }} }} }}"
        )
    };
    assert_eq!(
        steps(&text("one"), &text("two")),
        [
            "create acl two 1 action: deny",
            "change interface e0 acls input: one -> two",
            "remove acl one 1 action: deny"
        ]
    );
}

#[test]
fn mtus_shrink_from_inside_and_grow_from_outside() {
    let of = |outer: u16, inner: u16| {
        format!(
            "interfaces: {{ e0: {{ mtu: {outer}, sub-interfaces: {{ 5: {{ mtu: {inner} }} }} }} }}"
        )
    };
    assert_eq!(
        steps(&of(9000, 9000), &of(1500, 1400)),
        [
            "change interface e0.5 mtu: 9000 -> 1400",
            "change interface e0 mtu: 9000 -> 1500  (interrupts e0)"
        ]
    );
    assert_eq!(
        steps(&of(1500, 1400), &of(9000, 9000)),
        [
            "change interface e0 mtu: 1500 -> 9000  (interrupts e0)",
            "change interface e0.5 mtu: 1400 -> 9000"
        ]
    );
}

#[test]
fn the_text_shows_objects_fields_and_steps() {
    let plan = plan(
        "interfaces: { e0: { mtu: 1500, addresses: [ 10.0.0.1/24 ] }, e1: { lcp: a } }",
        "interfaces: { e0: { mtu: 9000, addresses: [ 10.0.0.1/24, 10.0.0.2/24 ] } }\nloopbacks: { loop0: {} }",
    );
    let wanted = "\
~ interface e0
    + address 10.0.0.2/24
    ~ mtu: 1500 -> 9000
- interface e1
    - lcp: a
    - state: up
+ interface loop0

1 to create, 1 to change, 1 to remove; 3 of 5 steps interrupt traffic

prune
   1 remove interface e1 lcp: a  (interrupts e1)
   2 remove interface e1  (interrupts e1)

create
   3 create interface loop0

sync
   4 change interface e0 mtu: 1500 -> 9000  (interrupts e0)
   5 create interface e0 address 10.0.0.2/24
";
    assert_eq!(plan.text(true), wanted);
    assert!(wanted.starts_with(&plan.text(false)));
    let json = plan.json();
    assert_eq!(json["changes"][0]["fields"][1]["after"], "9000");
    assert_eq!(json["changes"][1]["action"], "remove");
    assert_eq!(json["steps"][0]["action"], "remove");
    assert_eq!(json["steps"][0]["object"], "interface e1");
    assert_eq!(json["steps"][0]["fields"][0]["before"], "a");
    assert_eq!(json["steps"][0]["phase"], "prune");
    assert_eq!(json["steps"][0]["interrupts"], "e1");
    assert_eq!(
        Plan::new(&Config::default(), &Config::default()).text(true),
        "no change\n"
    );
}

#[test]
fn ten_times_as_many_objects_are_planned_in_little_more_than_ten_times_as_long() {
    let text = |count: u16, mtu: u16, host: u16| {
        let mut text = "interfaces:\n".to_owned();
        for index in 0..count {
            let (a, b) = (index / 250, index % 250);
            text += &format!(
                "  e{index}: {{ mtu: {mtu}, lcp: x{index}, addresses: [ 10.{a}.{b}.{host}/24 ] }}\n"
            );
        }
        text
    };
    let config = |text: String| Config::parse("x", &text).expect("valid");
    // The best of a few, in time of this thread: other tests run at the same time.
    let spent = || {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::try_from(now).expect("positive")
    };
    let best = |count: u16| {
        let (from, to) = (config(text(count, 1500, 1)), config(text(count, 9000, 2)));
        let round = |_| {
            let start = spent();
            let plan = Plan::new(&from, &to);
            assert_eq!(plan.changes.len(), usize::from(count));
            spent() - start
        };
        (0..10).map(round).min().expect("ten rounds")
    };
    let (few, many) = (best(100), best(1000));
    println!("100 objects {few:?}, 1000 {many:?}");
    assert!(many < 40 * few, "100 objects {few:?}, 1000 {many:?}");
}
