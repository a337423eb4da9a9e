//! Plans are taken step by step by a machine in memory, which refuses what no router could do.

use std::time::Duration;

mod machine;
mod order;
mod text;

use super::rules::rule;
use super::*;

pub(crate) use machine::Machine;
use machine::claimants;

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
    "prefixlists: { ab: { members: [ 10.0.0.0/8 ] } }\nnat: { source: [ { source: ab, interface: e0, to: interface } ], static: [ { outside: 192.0.2.1, inside: 10.0.0.1 } ] }\ninterfaces: { e0: {} }",
    "prefixlists: { ab: { members: [ 10.1.0.0/16 ] } }\nnat: { destination: [ { interface: e0, source: ab, protocol: tcp, destination-port: 80, to: 10.0.0.1 } ] }\ninterfaces: { e0: {} }",
    "prefixlists: { cd: { members: [ 10.0.0.0/8 ] } }\nacls: { one: { terms: [ { action: permit, destination: cd } ] }, six: { terms: [ { action: deny } ] } }\ninterfaces: { e0: { sflow: yes, mac: 02:00:00:00:00:03, description: x, acls: { input: six } } }\nsflow: { sampling-rate: 500 }",
    // Policies: of one prefix list and of another, of an interface and of its sub-interface.
    "prefixlists: { ab: { members: [ 10.0.0.0/8 ] } }\npolicies: { one: { rules: [ { action: accept, state: established, source: ab } ] }, two: { default: accept } }\ninterfaces: { e0: { firewall: { in: one, out: two } } }",
    "prefixlists: { cd: { members: [ 10.0.0.0/8 ] } }\npolicies: { one: { default: reject, description: x, rules: [ { action: accept, state: [ new, established ], source: cd, limit: 7 } ] }, six: {} }\nloopbacks: { loop0: { firewall: { out: one } } }\ninterfaces: { e0: { firewall: { in: six }, sub-interfaces: { 5: { firewall: { in: one } } } } }\ntables: { flows: 5000 }",
    "interfaces: { e0: { mpls: yes, mtu: 2000 } }\nports: { e0: { netdev: eth0 }, m: { memif: { socket: /s } } }\nworkers: { count: 2 }\ntables: { ip4-routes: 2000000 }\nnetns: dataplane\ncontrol: { show-group: users }",
    include_str!("../../config/tests/operator.yaml"),
];

/// Valid configurations of all kinds.
pub(crate) fn configs() -> Vec<Config> {
    let parsed = CONFIGS.iter().map(|text| Config::parse("test.yaml", text));
    parsed
        .map(|config| config.unwrap_or_else(|problems| panic!("{problems}")))
        .collect()
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
    let (_, source) = include_str!("../item.rs")
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

/// Routes that the kernel cannot tell apart are one, however the file has the metric.
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

/// An item that is the same in both is not in any step, unless something below it is made anew.
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
