//! From any configuration to any other, and back from wherever it fails.

use super::*;

/// The devices of the machine.
const DEVICES: [&str; 3] = ["e0", "e1", "e2"];

/// Configurations as unlike each other as they get, of those that the router can be.
const CONFIGS: [&str; 71] = [
    "{}",
    "interfaces: { e0: {}, e1: {} }",
    "interfaces: { e0: { mtu: 9000, lcp: a, addresses: [ 10.0.0.1/24 ] }, e1: { lcp: b } }",
    // Names swapped; an address with another length.
    "interfaces: { e0: { mtu: 1400, lcp: b, addresses: [ 10.0.0.1/25 ] }, e1: { lcp: a } }",
    "interfaces: { e0: { addresses: [ 10.0.0.1/26, 2001:db8::1/48, 2001:db8:1::1/48 ] } }",
    "interfaces: { e0: { addresses: [ 2001:db8::1/64, 2001:db8:1::1/64 ] } }",
    // Names in a chain; an address on another interface.
    "interfaces: { e0: { lcp: c }, e1: { lcp: b, addresses: [ 10.0.0.1/24 ] }, e2: { lcp: a } }",
    "interfaces: { e0: { mac: 02:00:00:00:00:03, description: x }, e1: { state: down } }",
    "interfaces: { e0: { mac: 02:00:00:00:00:04, mtu: 1300, state: down, addresses: [ 10.0.0.1/24 ] } }",
    "interfaces: { e0: { state: down, addresses: [ 10.0.0.1/24, 2001:db8::1/64 ] }, e1: { addresses: [ 10.0.1.1/24 ] } }",
    "interfaces: { e0: { addresses: [ 10.0.0.1/24, 2001:db8::1/64 ] }, e1: { addresses: [ 10.0.1.1/24 ] } }",
    // One is a loopback, or another's name.
    "loopbacks: { loop0: { addresses: [ 10.0.0.1/32 ] } }\ninterfaces: { e0: {} }",
    "loopbacks: { loop0: { lcp: lo0, addresses: [ 10.0.0.1/32, 2001:db8::1/128 ] }, loop1: { mtu: 1400 } }\ninterfaces: { e0: { lcp: a } }",
    "loopbacks: { loop1: { lcp: lo0, mac: 02:00:00:00:00:05 } }\ninterfaces: { e0: { lcp: loop0 } }",
    "loopbacks: { loop0: { lcp: a } }\ninterfaces: { e0: { lcp: lo0 }, e1: { lcp: loop1 } }",
    // Ports of other kinds.
    "ports: { m: { memif: { socket: /run/parshall/m } } }\ninterfaces: { e0: {}, m: { lcp: m0, addresses: [ 10.0.2.1/24 ] } }",
    "ports: { m: { memif: { socket: /run/parshall/m, id: 7 } } }\ninterfaces: { e0: {}, m: { mtu: 9000, addresses: [ 10.0.2.1/24 ] } }",
    "ports: { m: { tap: { name: t0 } } }\ninterfaces: { e0: { lcp: m0 }, m: { lcp: m1, addresses: [ 10.0.2.1/25 ] } }",
    "ports: { m: { tap: { name: t0 } } }\ninterfaces: { e1: {}, m: { lcp: m1, mtu: 1400, addresses: [ 10.0.2.2/24, 2001:db8:2::1/64 ] } }",
    "ports: { e0: { netdev: e2 } }\ninterfaces: { e0: { lcp: a }, e1: {} }",
    "ports: { e0: { netdev: e0, mode: copy, queues: 1 } }\ninterfaces: { e0: { lcp: a, addresses: [ 10.0.0.1/24 ] }, e1: {} }",
    // Routes: by one and by another, by several, without a way.
    "interfaces: { e0: { addresses: [ 10.0.0.1/24 ] }, e1: { addresses: [ 10.0.1.1/24 ] } }\nroutes: [ { prefix: 0.0.0.0/0, via: 10.0.0.2 }, { prefix: 10.9.0.0/16, blackhole: yes } ]",
    "interfaces: { e0: { addresses: [ 10.0.0.1/24 ] }, e1: { addresses: [ 10.0.1.1/24 ] } }\nroutes: [ { prefix: 0.0.0.0/0, via: [ 10.0.0.2, { address: 10.0.1.2, weight: 4 } ] }, { prefix: 10.8.0.0/16, via: 10.7.7.7 } ]",
    "interfaces: { e0: { addresses: [ 10.0.1.1/24 ] }, e1: { addresses: [ 10.0.0.1/24, 2001:db8::1/64 ] } }\nroutes: [ { prefix: 0.0.0.0/0, via: 10.0.0.2, metric: 20 }, { prefix: 2001:db8:9::/48, via: 2001:db8::2 } ]",
    "interfaces: { e0: { state: down, addresses: [ 10.0.0.1/24 ] }, e1: { mtu: 1400, addresses: [ 2001:db8::1/64 ] } }\nroutes: [ { prefix: 0.0.0.0/0, via: 10.0.0.2 }, { prefix: 2001:db8:9::/48, via: 2001:db8::2, table: 100 } ]",
    // Cross connects and bridge domains, of ports and of what has tags there.
    "ports: { m: { memif: { socket: /run/parshall/m } }, n: { tap: { name: t0 } } }\ninterfaces: { m: { l2xc: n }, n: { l2xc: m } }",
    "ports: { m: { memif: { socket: /run/parshall/m } }, n: { tap: { name: t0 } } }\ninterfaces: { m: { l2xc: n.5 }, n: { sub-interfaces: { 5: { l2xc: m } } } }",
    "ports: { m: { memif: { socket: /run/parshall/m } }, n: { tap: { name: t0 } } }\ninterfaces: { m: { mtu: 9000, sub-interfaces: { 6: { l2xc: n.5, encapsulation: { dot1ad: 6, inner-dot1q: 7, exact-match: true } } } }, n: { mtu: 9000, sub-interfaces: { 5: { l2xc: m.6 } } } }",
    "interfaces: { e0: { l2xc: e1 }, e1: { l2xc: e0 } }",
    "interfaces: { e0: { addresses: [ 10.0.0.1/24 ], sub-interfaces: { 5: { l2xc: e1.7 } } }, e1: { lcp: a, sub-interfaces: { 7: { l2xc: e0.5 } } } }",
    "interfaces: { e0: { sub-interfaces: { 5: { addresses: [ 10.0.3.1/24 ] } } }, e1: { mac: 02:00:00:00:00:08, sub-interfaces: { 5: { addresses: [ 10.0.4.1/24 ] } } } }",
    // Tags swapped.
    "ports: { m: { memif: { socket: /run/parshall/m, id: 7 } }, n: { tap: { name: t0 } } }\ninterfaces: { m: { sub-interfaces: { 5: { encapsulation: { dot1q: 6 } }, 6: { mtu: 1400, encapsulation: { dot1q: 5 } } } }, n: { sub-interfaces: { 5: { mtu: 1400 } } } }\nbridgedomains: { bd1: { interfaces: [ m.5, n ] }, bd2: { mtu: 1400, interfaces: [ m.6, n.5 ] } }",
    "ports: { m: { memif: { socket: /run/parshall/m, id: 7 } }, n: { tap: { name: t0 } } }\ninterfaces: { m: { state: down, sub-interfaces: { 5: { state: down, encapsulation: { dot1q: 5 } }, 6: { state: down, encapsulation: { dot1q: 6 } } } }, n: {} }\nbridgedomains: { bd2: { interfaces: [ m.5, n ], settings: { learn: no, mac-age-minutes: 3 } }, bd3: { interfaces: [ m.6 ] } }",
    "ports: { m: { memif: { socket: /run/parshall/m } }, n: { tap: { name: t0 } } }\ninterfaces: { m: {}, n: { mtu: 1400 } }\nbridgedomains: { bd2: { interfaces: [ m ] }, bd1: { mtu: 1400, interfaces: [ n ] } }",
    // Sub-interfaces that route: names and addresses swapped, at layer 2 and back, other tags, down.
    "ports: { m: { memif: { socket: /run/parshall/m } } }\ninterfaces: { m: { lcp: m0, sub-interfaces: { 5: { lcp: a, addresses: [ 10.0.3.1/24, 2001:db8:3::1/64 ] }, 6: { lcp: b }, 7: { lcp: c, addresses: [ 10.0.4.1/24 ], encapsulation: { dot1q: 6, inner-dot1q: 7, exact-match: true } } } } }\nroutes: [ { prefix: 0.0.0.0/0, via: 10.0.3.2 } ]",
    "ports: { m: { memif: { socket: /run/parshall/m } } }\ninterfaces: { m: { lcp: m0, mac: 02:00:00:00:00:06, mtu: 9000, sub-interfaces: { 5: { lcp: b, addresses: [ 10.0.4.1/24 ] }, 6: { mtu: 1400, lcp: a, addresses: [ 10.0.3.1/25, 2001:db8:3::1/64 ], encapsulation: { dot1ad: 6, exact-match: true } } } } }\nroutes: [ { prefix: 0.0.0.0/0, via: 10.0.3.2 } ]",
    "ports: { m: { tap: { name: t0 } } }\ninterfaces: { m: { mac: 02:00:00:00:00:07, sub-interfaces: { 5: { state: down, addresses: [ 10.0.3.1/24 ] }, 7: { addresses: [ 10.0.4.1/24 ], encapsulation: { dot1ad: 6, inner-dot1q: 7, exact-match: true } } } }, e0: { lcp: a } }",
    "ports: { m: { memif: { socket: /run/parshall/m } } }\ninterfaces: { m: { state: down, sub-interfaces: { 5: { state: down, addresses: [ 10.0.3.1/24 ] }, 7: { state: down } } } }",
    "ports: { m: { memif: { socket: /run/parshall/m } }, n: { null: {} } }\ninterfaces: { m: { sub-interfaces: { 5: { state: up }, 6: { addresses: [ 10.0.3.1/24 ] } } }, n: { addresses: [ 10.0.4.1/24 ] } }\nbridgedomains: { bd1: { interfaces: [ m.5 ] } }",
    // Loopbacks that route for them, or do so no longer.
    "ports: { m: { null: {} } }\ninterfaces: { m: {} }\nbridgedomains: { bd1: { bvi: loop0, interfaces: [ m ] } }\nloopbacks: { loop0: { addresses: [ 10.0.0.1/24, 2001:db8::1/64 ] } }",
    "ports: { m: { null: {} } }\ninterfaces: { m: {} }\nbridgedomains: { bd1: { bvi: loop1, settings: { learn: no } }, bd2: { interfaces: [ m ], bvi: loop0 } }\nloopbacks: { loop0: { lcp: b0, mac: 02:00:00:00:00:05, addresses: [ 10.0.0.1/24 ] }, loop1: {} }",
    "ports: { m: { null: {} } }\ninterfaces: { m: {} }\nbridgedomains: { bd1: { bvi: loop0, interfaces: [ m ] }, bd2: { bvi: loop1, mtu: 1400 } }\nloopbacks: { loop0: {}, loop1: { mtu: 1400 } }",
    // Bridges that answer ARP requests, or forward them to the owner.
    "ports: { m: { null: {} } }\ninterfaces: { m: {}, e0: {} }\nbridgedomains: { bd1: { interfaces: [ m ], settings: { arp-termination: true } }, bd2: { bvi: loop1, interfaces: [ e0 ], settings: { arp-unicast-forward: true } } }\nloopbacks: { loop1: { addresses: [ 10.0.0.1/24 ] } }",
    "ports: { m: { null: {} } }\ninterfaces: { m: {}, e0: {} }\nbridgedomains: { bd1: { interfaces: [ m, e0 ], settings: { arp-unicast-forward: true } }, bd2: { bvi: loop1, settings: { arp-termination: true, arp-unicast-forward: true } } }\nloopbacks: { loop1: {} }",
    "ports: { m: { null: {} } }\ninterfaces: { m: {} }\nbridgedomains: { bd1: { interfaces: [ m ] } }\nloopbacks: { loop0: { addresses: [ 10.0.0.1/24 ] } }",
    // Access lists: of prefix lists, of sub-interfaces, of a port that is down.
    "prefixlists: { pp: { members: [ 10.9.0.0/16, 2001:db8:9::/48 ] } }\nacls: { aa: { terms: [ { action: deny, source: pp }, { action: permit } ] }, bb: { terms: [ { action: deny, protocol: tcp, destination-port: 22 } ] } }\ninterfaces: { e0: { acls: { input: aa, output: [ bb, aa ] } }, e1: { acls: { output: bb } } }",
    "prefixlists: { pp: { members: [ 10.8.0.0/16 ] }, qq: { members: [ 192.0.2.1 ] } }\nacls: { aa: { terms: [ { action: deny, source: pp, destination: qq }, { action: permit } ] }, cc: { terms: [ { action: permit, protocol: icmp, icmp-type: 8 } ] } }\ninterfaces: { e0: { acls: { input: [ cc, aa ] } }, e1: { state: down, acls: { input: aa, output: cc } } }",
    "acls: { bb: { terms: [ { action: permit } ] } }\nports: { m: { null: {} } }\ninterfaces: { m: { sub-interfaces: { 5: { acls: { input: bb } } } }, e0: { acls: { output: bb } } }",
    // Policies: of prefix lists, of sub-interfaces and BVIs, of a port that is down.
    "prefixlists: { pp: { members: [ 10.9.0.0/16, 2001:db8:9::/48 ] } }\npolicies: { aa: { default: accept, rules: [ { action: drop, source: pp } ] }, bb: { rules: [ { action: accept, state: [ established, related ] }, { action: reject, limit: 10 } ] } }\ninterfaces: { e0: { firewall: { in: aa, out: bb } }, e1: { firewall: { out: bb } } }",
    "prefixlists: { pp: { members: [ 10.8.0.0/16 ] }, qq: { members: [ 192.0.2.1 ] } }\npolicies: { aa: { default: reject, rules: [ { action: drop, source: pp, destination: qq } ] }, cc: {} }\nacls: { aa: { terms: [ { action: deny, source: qq } ] } }\ninterfaces: { e0: { firewall: { out: aa }, acls: { input: aa } }, e1: { state: down, firewall: { in: aa, out: cc } } }",
    "policies: { bb: { default: accept } }\nports: { m: { null: {} } }\ninterfaces: { m: { sub-interfaces: { 5: { firewall: { in: bb } } } }, e0: { firewall: { in: bb } } }",
    "policies: { aa: {} }\nports: { m: { null: {} } }\ninterfaces: { m: {} }\nbridgedomains: { bd1: { bvi: loop0, interfaces: [ m ] } }\nloopbacks: { loop0: { addresses: [ 10.0.0.1/24 ], firewall: { in: aa, out: aa } } }",
    // Samples: of one interface and another, to other collectors, at other rates.
    "sflow: { collector: 127.0.0.1 }\ninterfaces: { e0: { sflow: true, addresses: [ 10.0.0.1/24 ] }, e1: {} }",
    "sflow: { collector: '[::1]:9000', agent: 192.0.2.1, sampling-rate: 100 }\nports: { m: { memif: { socket: /run/parshall/m } } }\ninterfaces: { e0: { sflow: true }, m: { sflow: true } }",
    // Bonds: members, modes and addresses that change; in a bridge domain, cross-connected, empty.
    "interfaces: { e0: {}, e1: {}, BondEthernet0: { addresses: [ 10.0.5.1/24, 2001:db8:5::1/64 ] } }\nbondethernets: { BondEthernet0: { mode: round-robin, interfaces: [ e0, e1 ] } }",
    "ports: { m: { memif: { socket: /run/parshall/m } }, n: { tap: { name: t0 } } }\ninterfaces: { e0: { mtu: 9000 }, m: { mtu: 9000 }, n: { mtu: 9000, state: down }, BondEthernet0: { mtu: 9000, lcp: be0, addresses: [ 10.0.5.1/25 ], sub-interfaces: { 100: { lcp: be0.100, addresses: [ 10.0.6.1/24 ] } } } }\nbondethernets: { BondEthernet0: { mode: xor, load-balance: l23, mac: 02:00:00:00:00:09, interfaces: [ n, m, e0 ] } }",
    "ports: { m: { memif: { socket: /run/parshall/m } }, n: { tap: { name: t0 } } }\ninterfaces: { m: {}, n: {}, BondEthernet0: { addresses: [ 10.0.6.1/24 ], sub-interfaces: { 100: { addresses: [ 10.0.5.1/24 ] } } }, BondEthernet1: { lcp: be0 } }\nbondethernets: { BondEthernet0: { mode: broadcast, interfaces: [ n ] }, BondEthernet1: { mode: active-backup, mac: 02:00:00:00:00:09, interfaces: [ m ] } }",
    "ports: { m: { memif: { socket: /run/parshall/m } } }\ninterfaces: { e0: {}, e1: {}, m: {}, BondEthernet0: {} }\nbondethernets: { BondEthernet0: { mode: active-backup, interfaces: [ e0, e1 ] } }\nbridgedomains: { bd1: { interfaces: [ BondEthernet0, m ] } }",
    "interfaces: { e0: {}, e1: { l2xc: BondEthernet1.5 }, BondEthernet1: { sub-interfaces: { 5: { l2xc: e1 } } } }\nbondethernets: { BondEthernet1: { mode: xor, interfaces: [ e0 ] } }",
    "interfaces: { e0: {}, e1: {}, BondEthernet0: { lcp: be0, addresses: [ 10.0.5.1/24, 2001:db8:5::1/64 ] } }\nbondethernets: { BondEthernet0: { mode: lacp, load-balance: l23, interfaces: [ e0, e1 ] } }",
    "ports: { m: { memif: { socket: /run/parshall/m } } }\ninterfaces: { e1: {}, m: {}, BondEthernet0: { sub-interfaces: { 100: { addresses: [ 10.0.5.1/24 ] } } }, BondEthernet1: { addresses: [ 10.0.6.1/24 ] } }\nbondethernets: { BondEthernet0: { interfaces: [ e1 ] }, BondEthernet1: { mac: 02:00:00:00:00:09, interfaces: [ m ] } }",
    "interfaces: { e1: {}, BondEthernet1: { state: down, addresses: [ 10.0.5.1/24 ] }, BondEthernet0: { mtu: 1400, sub-interfaces: { 100: { state: down } } } }\nbondethernets: { BondEthernet1: { mode: xor, load-balance: l2, description: x }, BondEthernet0: { mode: xor } }",
    // TAPs: with what is made for them, shared, moved, under other names.
    "ports: { m: { null: {} } }\ninterfaces: { tap0: { l2xc: m }, m: { l2xc: tap0 } }\ntaps: { tap0: { host: { name: tap0, bridge: br0, bridge-create: yes } } }",
    "taps: { tap0: { host: { name: t0, bridge: br1, bridge-create: yes, namespace: blue, namespace-create: yes } }, tap1: { description: x, host: { name: t1, bridge: br1, bridge-create: yes, namespace: blue, namespace-create: yes } } }",
    "interfaces: { tap1: { mtu: 9000, state: down } }\ntaps: { tap0: { description: y, host: { name: t1, mac: 02:00:00:00:00:09, bridge: br0, bridge-create: yes } }, tap1: { description: z, rx-ring-size: 512, host: { name: t0, mtu: 9000, namespace: blue, namespace-create: yes } } }\nbridgedomains: { bd1: { mtu: 9000, interfaces: [ tap1 ] } }",
    // VXLAN tunnels: other ends, other families, in a bridge domain, cross-connected, routed, with tags.
    "ports: { m: { memif: { socket: /run/parshall/m } } }\ninterfaces: { e0: { addresses: [ 10.0.5.1/24 ] }, m: { mtu: 9000 }, vxlan_tunnel1: { mtu: 9000 } }\nvxlan_tunnels: { vxlan_tunnel1: { local: 10.0.5.1, remote: 10.0.5.2, vni: 7 } }\nbridgedomains: { bd1: { mtu: 9000, interfaces: [ vxlan_tunnel1, m ] } }",
    "interfaces: { e0: { addresses: [ 10.0.5.1/24 ] }, e1: { mtu: 9000, l2xc: vxlan_tunnel1 }, vxlan_tunnel1: { mtu: 9000, l2xc: e1 }, vxlan_tunnel2: { mtu: 1400, lcp: vx2, addresses: [ 10.0.6.1/24 ], sub-interfaces: { 100: { lcp: vx2.100, addresses: [ 10.0.7.1/24 ] } } } }\nvxlan_tunnels: { vxlan_tunnel1: { local: 10.0.8.1, remote: 10.0.5.3, vni: 8 }, vxlan_tunnel2: { description: x, local: 2001:db8::1, remote: 2001:db8::2, vni: 7 }, vxlan_tunnel3: { local: 10.0.8.1, remote: 10.0.5.9, vni: 16777215 } }",
    "interfaces: { e0: { addresses: [ 10.0.5.1/24 ] }, vxlan_tunnel1: { mtu: 1400, state: down, addresses: [ 10.0.6.1/24 ] }, vxlan_tunnel2: { description: y } }\nvxlan_tunnels: { vxlan_tunnel1: { local: 2001:db8::1, remote: 2001:db8::2, vni: 8 }, vxlan_tunnel2: { local: 2001:db8::1, remote: 2001:db8::2, vni: 9 } }",
    // Borrowed addresses: of a loopback, of another link, lent to the lender.
    "loopbacks: { loop0: { addresses: [ 10.0.0.1/32, 2001:db8::1/128 ] } }\ninterfaces: { e0: { unnumbered: loop0, sub-interfaces: { 5: { unnumbered: loop0 } } }, e1: { unnumbered: loop0 } }",
    "loopbacks: { loop0: { unnumbered: e1 } }\ninterfaces: { e0: { unnumbered: e1, sub-interfaces: { 5: { unnumbered: e1 } } }, e1: { addresses: [ 10.0.0.1/24, 10.0.0.2/24, 2001:db8::1/64, fe80::1/64 ] } }",
    // On another port.
    "ports: { m: { null: {} } }\ninterfaces: { m: { lcp: n, sub-interfaces: { 5: { state: up } } } }",
];

fn configs() -> Vec<Config> {
    CONFIGS.iter().copied().map(parsed).collect()
}

fn parsed(text: &str) -> Config {
    let config = Config::parse("test.yaml", text);
    config.unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn every_change_leads_where_a_start_does_and_every_failure_back() {
    let configs = configs();
    let fresh = configs.iter().map(|config| {
        let mut lab = Lab::start(&DEVICES, config.clone());
        lab.state()
    });
    let fresh: Vec<_> = fresh.collect();
    let all: Vec<_> = configs.iter().zip(&fresh).collect();
    let (some, others) = all.split_at(all.len() / 2);
    let failures = std::thread::scope(|threads| {
        let others = threads.spawn(|| changes(others, &all));
        changes(some, &all) + others.join().expect("they pass, too")
    });
    println!("{failures} failures");
    assert!(failures > 5000, "{failures}");
}

/// Changes from some configurations to all, with a failure at each request to the kernel. Each has
/// with it what a start with it leads to. Returns how many failures there were.
fn changes(some: &[(&Config, &State)], all: &[(&Config, &State)]) -> usize {
    let mut failures = 0;
    let mut lab = Lab::start(&DEVICES, some[0].0.clone());
    for (from, start) in some {
        for (to, end) in all {
            let change = || format!("{}\nto\n{}", from.dump(), to.dump());
            for request in 0.. {
                lab.machine.fail(None);
                lab.become_this(from).expect("nothing fails");
                same(&lab.state(), start, &change);
                lab.machine.fail(Some(request));
                let done = lab.become_this(to);
                let failed = lab.machine.has_failed();
                lab.machine.fail(None);
                let how = || format!("{}, request {request}: {done:?}", change());
                same(&lab.state(), if done.is_ok() { end } else { start }, &how);
                if !failed {
                    assert_eq!(done, Ok(()));
                    break;
                }
                failures += 1;
            }
        }
    }
    failures
}

fn same(is: &State, should: &State, what: &dyn Fn() -> String) {
    let more: Vec<_> = is.kernel.difference(&should.kernel).collect();
    let less: Vec<_> = should.kernel.difference(&is.kernel).collect();
    assert!(
        more.is_empty() && less.is_empty(),
        "{}\ntoo much: {more:#?}\ntoo little: {less:#?}",
        what()
    );
    assert_eq!(is, should, "{}", what());
}

/// The reason is said once, and without names that devices have only until they are put back.
#[test]
fn a_change_that_is_taken_back_says_once_what_failed_and_why() {
    let memory = "Cannot allocate memory (os error 12)";
    let swapped = [
        "create interface e0 lcp: b",
        "create interface e1 lcp: a",
        "remove interface e0 lcp: a",
        "remove interface e1 lcp: b",
    ];
    let expected = swapped.map(|step| format!("cannot {step}: {memory}"));
    let [from, to] = [
        "interfaces: { e0: { lcp: a }, e1: { lcp: b } }",
        "interfaces: { e0: { lcp: b }, e1: { lcp: a } }",
    ];
    assert_eq!(failures(from, to), BTreeSet::from(expected));

    let port = "ports: { m: { tap: { name: t0 } } }\n\
                interfaces: { m: { lcp: m1, addresses: [ 10.0.2.1/25 ] } }";
    let expected = [
        "",
        "cannot set address 10.0.2.1/25: ",
        "cannot set state up: ",
    ];
    let expected = expected.map(|what| format!("cannot open interface m: {what}{memory}"));
    assert_eq!(failures("{}", port), BTreeSet::from(expected));

    let mut lab = Lab::start(&DEVICES, parsed("interfaces: { e0: {} }"));
    let taken = lab.become_this(&parsed("interfaces: { e0: { lcp: e2 } }"));
    let why = taken.expect_err("there is an e2").to_string();
    let said = "cannot create interface e0 lcp: e2: another device has that name; choose another \
                name; the configuration is unchanged";
    assert_eq!(why, said);
}

/// One by one the kernel takes 20 ms for each.
#[test]
fn taps_are_removed_all_at_once() {
    let port = "ports: { m: { null: {} } }\n";
    let all = format!(
        "{port}interfaces: {{ m: {{ sub-interfaces: {{ 5: {{ addresses: [ 10.0.0.1/24 ] }}, \
         6: {{ mtu: 1400 }}, 7: {{ state: down }} }} }} }}\n\
         loopbacks: {{ loop0: {{ addresses: [ 10.0.1.1/32 ] }}, loop1: {{}} }}"
    );
    let mut lab = Lab::start(&DEVICES, parsed(&all));
    let few = format!("{port}interfaces: {{ m: {{ lcp: loop1 }}, e0: {{ lcp: loop0 }} }}");
    lab.become_this(&parsed(&few)).expect("the names are free");
    assert_eq!(lab.machine.removed(), [5]);
}

/// So are those that are ports, with the taps that have their settings: in each namespace at once.
#[test]
fn ports_that_are_taps_are_removed_all_at_once() {
    let all = "ports: { p: { tap: { name: vm } } }\ninterfaces: { p: {} }\n\
               taps: { tap0: { host: { name: t0 } }, tap1: { host: { name: t1 } }, \
               tap2: { host: { name: t2, namespace: blue, namespace-create: yes } }, \
               tap3: { host: { name: t3, namespace: blue, namespace-create: yes } } }";
    let mut lab = Lab::start(&DEVICES, parsed(all));
    lab.become_this(&parsed("")).expect("nothing fails");
    assert_eq!(lab.machine.removed(), [8, 2]);
}

/// What is said of a change if any one of its requests fails, without the end.
fn failures(from: &str, to: &str) -> BTreeSet<String> {
    let mut lab = Lab::start(&DEVICES, parsed(from));
    let failure = |request| {
        lab.machine.fail(Some(request));
        let failure = lab.become_this(&parsed(to)).err()?.to_string();
        let said = failure.strip_suffix("; the configuration is unchanged");
        Some(said.unwrap_or_else(|| panic!("{failure}")).to_owned())
    };
    (0..).map_while(failure).collect()
}
