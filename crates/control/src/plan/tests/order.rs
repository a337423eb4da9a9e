//! The steps, their order, and the traffic that they interrupt.

use super::{plan, steps};

/// An interface gives its device name up before another one gets it.
#[test]
fn names_of_devices_are_free_when_they_are_given() {
    for (before, after) in [
        (
            "ports: { b: { tap: { name: y } } }",
            "ports: { b: { tap: { name: x } } }",
        ),
        ("", "ports: { x: { null: {} } }"),
        ("", "ports: { b: { null: {} }, c: { netdev: x } }"),
    ] {
        let before = format!("interfaces: {{ e0: {{ lcp: x }} }}\n{before}");
        let after = format!("interfaces: {{ e0: {{ lcp: z }} }}\n{after}");
        let steps = steps(&before, &after);
        let at = |step: &str| steps.iter().position(|s| s.starts_with(step));
        let freed = at("remove interface e0 lcp: x").expect("it is given up");
        let taken = steps
            .iter()
            .position(|s| s.starts_with("create interface") && !s.contains(" lcp"));
        assert!(taken > Some(freed), "{steps:#?}");
    }
    // What has its own name in two ways, or stays as it is, is not touched.
    for same in [
        "interfaces: { e0: { lcp: e0 }, b: { lcp: b } }\nports: { b: { tap: {} } }\nloopbacks: { loop0: { lcp: loop0 } }",
        "interfaces: { e0: { lcp: b }, b: { lcp: x } }\nports: { b: { null: {} } }",
    ] {
        assert_eq!(steps(same, same), [""; 0]);
        let more = format!("{same}\nroutes: [ {{ prefix: 10.0.0.0/8, via: 192.0.2.1 }} ]");
        assert_eq!(steps(same, &more).len(), 1);
    }
}

/// A new sub-interface comes behind its parent, whose address it has, also one that is down.
#[test]
fn a_new_sub_interface_comes_behind_its_parent() {
    let steps = steps(
        "",
        "interfaces: { e0: { sub-interfaces: { 100: { state: down } } } }",
    );
    let at = |step: &str| steps.iter().position(|s| s.starts_with(step));
    let parent = at("set interface e0 state").expect("the parent comes");
    let sub = at("set interface e0.100 state").expect("the sub-interface comes");
    assert!(parent < sub, "{steps:#?}");
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
    let policy = |rule: &str| format!("policies: {{ ab: {{ rules: [ {{ {rule} }} ] }} }}");
    assert_eq!(
        steps(
            &policy("action: drop, limit: 5"),
            &policy("action: drop, state: new, limit: 6")
        ),
        ["change policy ab rules 1 limit: 5 -> 6, rules 1 state: none -> new"]
    );
}

/// Without `mtu` an interface has that of its device, which need not be 1500.
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

/// A part that is made anew interrupts its interface if that is there already.
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
fn an_interface_that_changes_its_policy_is_never_without() {
    let text = |policy: &str| {
        format!(
            "policies: {{ {policy}: {{ default: reject }} }}\ninterfaces: {{ e0: {{ firewall: {{ in: {policy} }} }} }}"
        )
    };
    assert_eq!(
        steps(&text("one"), &text("two")),
        [
            "create policy two default: reject",
            "change interface e0 firewall in: one -> two",
            "remove policy one default: reject"
        ]
    );
    // A new one has its policy before it is up, and what the policy names is there by then.
    let all = "prefixlists: { pp: { members: [ 10.0.0.0/8 ] } }\n\
               policies: { one: { rules: [ { action: accept, source: pp } ] } }\n\
               interfaces: { e0: { firewall: { out: one } } }";
    let made = steps("{}", all);
    let at = |step: &str| made.iter().position(|s| s.starts_with(step));
    let order = [
        "create prefixlist pp",
        "create policy one",
        "create interface e0 firewall out: one",
        "set interface e0 state: up",
    ];
    let order = order.map(|step| at(step).unwrap_or_else(|| panic!("{step} in {made:#?}")));
    assert!(order.is_sorted(), "{made:#?}");
    let bridge = "bridgedomains: { bd1: { bvi: loop0 } }\n\
                  policies: { one: {} }\n\
                  loopbacks: { loop0: { firewall: { in: one } } }";
    let made = steps("{}", bridge);
    let [policy, bvi] = ["loop0 firewall in: one", "bd1 bvi loop0"]
        .map(|what| made.iter().position(|step| step.contains(what)));
    assert!(policy.is_some() && policy < bvi, "{made:#?}");
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
