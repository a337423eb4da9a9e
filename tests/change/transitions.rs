//! From any configuration to any other.

use std::collections::BTreeMap;

use super::{
    BTreeSet, CONFIGURATION, Hosts, Netns, Router, assert_untouched, becomes, monitor, patience,
    skipped, spare_links, state, until, without_loss,
};
use crate::harness::alone;
use crate::harness::random::Random;

/// Configurations of each run.
const CONFIGURATIONS: usize = 20;
/// Pairs of them that are tried on real interfaces.
const PAIRS: usize = 20;
/// Transitions under traffic, and how many lead to one that is dumped.
const TRANSITIONS: usize = 100;
const DUMPED: usize = 20;

/// One of many valid configurations, beside what is in `fixed`.
pub(super) fn varied(random: &mut Random, fixed: &str) -> String {
    let mut interfaces = fixed.to_owned();
    for (name, lcp, net) in [("x0", "y0", 9), ("x1", "y1", 10)] {
        if random.below(4) == 0 {
            continue;
        }
        let mut fields = Vec::new();
        for (field, chance) in [
            (format!("mtu: {}", random.one_of(&[1300, 1400, 1500])), 2),
            (
                format!("mac: '02:00:00:00:0{net:x}:{:02x}'", random.below(4)),
                3,
            ),
            (format!("lcp: {lcp}"), 4),
            ("state: down".to_owned(), 5),
            ("description: words".to_owned(), 3),
        ] {
            if random.below(chance) == 0 {
                fields.push(field);
            }
        }
        let all = [
            format!("10.{net}.0.1/24"),
            format!("10.{net}.0.{}/24", random.one_of(&[2, 3])),
            format!("10.{net}.1.1/{}", random.one_of(&[24, 25])),
            format!("'2001:db8:{net}::1/{}'", random.one_of(&[48, 64])),
        ];
        let some: Vec<_> = all.into_iter().filter(|_| random.below(2) == 0).collect();
        if !some.is_empty() {
            fields.push(format!("addresses: [ {} ]", some.join(", ")));
        }
        interfaces += &format!("  {name}: {{ {} }}\n", fields.join(", "));
    }
    let mut yaml = String::new();
    // With taps alone a router takes no network devices later.
    if !interfaces.is_empty() && random.below(2) == 0 {
        let mtu = random.one_of(&["", ", mtu: 1400"]);
        interfaces += &format!("  t0: {{ lcp: t0, addresses: [ 10.11.0.1/24 ]{mtu} }}\n");
        yaml += "ports: { t0: { tap: {} } }\n";
    }
    if random.below(2) == 0 {
        let (lcp, host) = (random.one_of(&["", "lcp: lo0, "]), random.one_of(&[1, 2]));
        yaml += &format!("loopbacks: {{ loop0: {{ {lcp}addresses: [ 10.12.0.{host}/32 ] }} }}\n");
    }
    let routes = [
        "{ prefix: 16.1.0.0/16, via: 10.9.0.9 }",
        "{ prefix: 16.1.0.0/16, via: 10.10.0.9, metric: 20 }",
        "{ prefix: 16.2.0.0/16, via: [ 10.9.0.9, { address: 10.10.0.9, weight: 4 } ] }",
        "{ prefix: 16.3.0.0/16, blackhole: true }",
        "{ prefix: '3fff:1::/32', via: '2001:db8:9::9' }",
        "{ prefix: '3fff:2::/32', via: [ '2001:db8:9::9', '2001:db8:10::9' ] }",
        "{ prefix: 16.4.0.0/16, via: 10.9.0.9, table: 100 }",
    ];
    let routes = routes.into_iter().filter(|_| random.below(2) == 0);
    let routes: String = routes.map(|route| format!("  - {route}\n")).collect();
    for (section, lines) in [("interfaces", interfaces), ("routes", routes)] {
        if !lines.is_empty() {
            yaml += &format!("{section}:\n{lines}");
        }
    }
    yaml
}

/// What the kernel has after a fresh start with a configuration, in a namespace of its own.
fn fresh(yaml: &str) -> BTreeSet<String> {
    let netns = Netns::create("fresh").expect("root makes namespaces");
    spare_links(&netns);
    let mut router = Router::start(&netns, yaml);
    let state = state(&netns);
    assert!(router.process.stop().expect("it stops").success());
    state
}

#[test]
fn a_change_leads_where_a_fresh_start_does() {
    const NAME: &str = "a_change_leads_where_a_fresh_start_does";
    if skipped(NAME, &["ip"]) {
        return;
    }
    let _alone = alone();
    let mut random = Random::new(NAME);
    let all: Vec<String> = (0..CONFIGURATIONS)
        .map(|_| varied(&mut random, ""))
        .collect();
    let mut known = BTreeMap::new();
    for _ in 0..PAIRS {
        let (a, b) = (random.below(CONFIGURATIONS), random.below(CONFIGURATIONS));
        let expected = known.entry(b).or_insert_with(|| fresh(&all[b]));
        let netns = Netns::create("router").expect("root makes namespaces");
        spare_links(&netns);
        let mut router = Router::start(&netns, &all[a]);
        becomes(&router, &all[b]);
        let same = until(patience() / 4, || state(&netns) == *expected);
        let now = state(&netns);
        let more: Vec<_> = now.difference(expected).collect();
        let less: Vec<_> = expected.difference(&now).collect();
        assert!(
            same,
            "{}\nto\n{}\ntoo much: {more:#?}\ntoo little: {less:#?}\n{}",
            all[a],
            all[b],
            router.process.log()
        );
        assert!(router.process.stop().expect("it stops").success());
    }
}

#[test]
fn a_hundred_changes_lose_no_packet_of_what_stays() {
    const NAME: &str = "a_hundred_changes_lose_no_packet_of_what_stays";
    if skipped(NAME, &["ip"]) {
        return;
    }
    let hosts = Hosts::new(1500, false);
    spare_links(&hosts.router);
    let mut random = Random::new(NAME);
    let router = Router::start(&hosts.router, CONFIGURATION);
    let monitor = monitor(&hosts.router);
    without_loss(&hosts, || {
        for i in 0..TRANSITIONS {
            becomes(&router, &varied(&mut random, "  r0: {}\n  r1: {}\n"));
            if i % (TRANSITIONS / DUMPED) == 0 {
                assert_dump_changes_nothing(&router);
            }
        }
        becomes(&router, CONFIGURATION);
    });
    assert_untouched(&monitor);
}

/// What a router dumps is a file that it has already.
fn assert_dump_changes_nothing(router: &Router) {
    let dump = router.ask(&["dump"]).expect("it says what it is");
    let file = router.file().with_extension("dump.yaml");
    std::fs::write(&file, &dump).expect("root may write to /run");
    let words = ["plan", "-c", &file.display().to_string()];
    let plan = router.ask(&words).expect("a plan");
    assert!(plan.starts_with("no change"), "{dump}\n{plan}");
}
