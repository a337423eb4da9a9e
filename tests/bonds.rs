//! Bonds: two routers with two links between them, which are one.

use std::time::{Duration, Instant};

use crate::harness::frr::Frr;
use crate::harness::{Directory, Netns, Router, patience, skipped, until};

/// A router's bond, for these addresses' last byte.
fn interfaces(mode: &str, own: u8) -> String {
    format!(
        "interfaces:
  m1: {{}}
  m2: {{}}
  BondEthernet0:
    lcp: be0
    addresses: [ 10.1.0.{own}/24, '2001:db8:1::{own}/64' ]
    sub-interfaces:
      100: {{ lcp: be0.100, addresses: [ 10.2.0.{own}/24 ] }}
bondethernets:
  BondEthernet0: {{ mode: {mode}, interfaces: [ m1, m2 ] }}
"
    )
}

struct Lab {
    routers: [Router; 2],
    hosts: [Netns; 2],
    directory: Directory,
}

impl Lab {
    fn start(mode: &str) -> Self {
        let directory = Directory::new();
        let hosts = ["left", "right"].map(|name| Netns::with_ipv6(name).expect("root may"));
        let start = |at: usize| {
            let yaml = interfaces(mode, at as u8 + 1) + &ports(&directory, at);
            Router::start(&hosts[at], &yaml)
        };
        let routers = [start(0), start(1)];
        Lab {
            routers,
            hosts,
            directory,
        }
    }

    fn said(&self) -> String {
        let shown = [
            &["errors"][..],
            &["bond", "detail"],
            &["lacp"],
            &["interface"],
        ];
        self.routers
            .each_ref()
            .map(|router| router.said(&shown))
            .join("\n")
    }

    /// The other end answers to the first router's host.
    fn answers(&self, to: &str) {
        let answer = || self.hosts[0].sh(&format!("ping -n -c 1 -W 1 -s 1400 {to}"));
        let so = until(patience(), || answer().is_ok());
        assert!(so, "{to}: {:?}\n{}", answer(), self.said());
    }

    /// Packets that the members of the first router have sent.
    fn sent(&self) -> [u64; 2] {
        let shown = self.routers[0].show(&["interface"]);
        let all = shown["interfaces"].as_array().expect("interfaces").clone();
        ["m1", "m2"].map(|name| {
            let of_name = all.iter().find(|interface| interface["name"] == name);
            of_name.expect("a member")["tx_packets"]
                .as_u64()
                .expect("a count")
        })
    }

    /// Until the first router's bond has so many members that carry packets, or would in place of
    /// the one that does.
    fn has_usable(&self, members: usize) {
        let are_usable = || {
            let bond = &self.routers[0].show(&["bond"])["bonds"][0];
            let word = match bond["mode"] == "active-backup" {
                true => "up",
                false => "active",
            };
            let all = bond["members"].as_array().expect("members");
            all.iter().filter(|member| member[word] == true).count() == members
        };
        assert!(until(patience(), are_usable), "{}", self.said());
    }

    /// What a router shows of a member of its bond.
    fn lacp(&self, at: usize, member: &str) -> serde_json::Value {
        self.routers[at].show(&["lacp", member])["members"][0].clone()
    }

    fn apply(&self, at: usize, interfaces: &str) {
        let file = self.directory.path().join("next.yaml");
        let yaml = interfaces.to_owned() + &ports(&self.directory, at);
        std::fs::write(&file, yaml).expect("written");
        let said = self.routers[at].ask(&["apply", "-c", &file.display().to_string()]);
        said.unwrap_or_else(|error| panic!("{error}\n{}", self.said()));
    }
}

/// Two memifs, of which the first router has the server's ends.
fn ports(directory: &Directory, at: usize) -> String {
    let role = ["server", "client"][at];
    let port = |name: &str| {
        let socket = directory.path().join(format!("{name}.sock"));
        let socket = socket.display();
        format!("  {name}: {{ memif: {{ socket: {socket}, role: {role} }} }}\n")
    };
    format!("ports:\n{}{}", port("m1"), port("m2"))
}

#[test]
fn two_links_are_one_and_either_may_fail() {
    const NAME: &str = "two_links_are_one_and_either_may_fail";
    if skipped(NAME, &["ip", "ping"]) {
        return;
    }
    let lab = Lab::start("round-robin");
    lab.has_usable(2);
    for to in ["10.1.0.2", "2001:db8:1::2", "10.2.0.2"] {
        lab.answers(to);
    }
    let before = lab.sent();
    for _ in 0..4 {
        lab.answers("10.2.0.2");
    }
    let after = lab.sent();
    assert!(
        after[0] > before[0] && after[1] > before[1],
        "{}",
        lab.said()
    );

    // The other end takes a link down: what is left carries all.
    let yaml = interfaces("round-robin", 2);
    lab.apply(1, &yaml.replacen("m1: {}", "m1: { state: down }", 1));
    let yaml = interfaces("round-robin", 1);
    lab.apply(0, &yaml.replacen("m1: {}", "m1: { state: down }", 1));
    lab.has_usable(1);
    let before = lab.sent();
    lab.answers("10.1.0.2");
    lab.answers("10.2.0.2");
    let after = lab.sent();
    assert!(
        after[0] == before[0] && after[1] > before[1],
        "{}",
        lab.said()
    );

    // Another mode, and a member less, while they are in use; then all as before.
    for at in [0, 1] {
        let yaml = interfaces("xor", at as u8 + 1);
        lab.apply(at, &yaml.replacen("[ m1, m2 ]", "[ m2 ]", 1));
    }
    lab.answers("10.2.0.2");
    for at in [0, 1] {
        lab.apply(at, &interfaces("active-backup", at as u8 + 1));
    }
    lab.has_usable(2);
    lab.answers("10.1.0.2");
    lab.answers("2001:db8:1::2");
}

#[test]
fn a_link_whose_peer_is_gone_is_used_no_longer() {
    const NAME: &str = "a_link_whose_peer_is_gone_is_used_no_longer";
    if skipped(NAME, &["ip", "ping"]) {
        return;
    }
    let lab = Lab::start("active-backup");
    lab.has_usable(2);
    lab.answers("10.1.0.2");
    // The other end gives up its first memif: it is no interface there any more.
    let yaml = interfaces("active-backup", 2).replacen("  m1: {}\n", "", 1);
    let yaml = yaml.replacen("[ m1, m2 ]", "[ m2 ]", 1);
    let ports = ports(&lab.directory, 1);
    let second: Vec<_> = ports.lines().filter(|line| !line.contains("m1:")).collect();
    let file = lab.directory.path().join("less.yaml");
    std::fs::write(&file, yaml + &second.join("\n")).expect("written");
    let applied = lab.routers[1].ask(&["apply", "-c", &file.display().to_string()]);
    applied.unwrap_or_else(|error| panic!("{error}\n{}", lab.said()));
    lab.has_usable(1);
    lab.answers("10.1.0.2");
    lab.answers("10.2.0.2");
    assert!(lab.sent()[1] > 0, "{}", lab.said());
}

/// Both ends speak LACP, as a bond does that names no mode.
#[test]
fn lacp_decides_which_links_carry() {
    const NAME: &str = "lacp_decides_which_links_carry";
    if skipped(NAME, &["ip", "ping"]) {
        return;
    }
    let lab = Lab::start("lacp");
    lab.has_usable(2);
    for to in ["10.1.0.2", "2001:db8:1::2", "10.2.0.2"] {
        lab.answers(to);
    }
    let member = lab.lacp(0, "m1");
    assert_eq!(member["mux_state"], "COLLECTING_DISTRIBUTING", "{member}");
    // The bonds have the same name; their addresses are of the routers.
    let other = lab.lacp(1, "m1");
    assert_ne!(member["actor"]["system"], other["actor"]["system"]);
    assert_eq!(member["partner"]["system"], other["actor"]["system"]);
    let said = lab.routers[0].ask(&["show", "lacp", "m9"]);
    let error = said.expect_err("no such member").to_string();
    assert!(
        error.contains("no member m9 of a bond with LACP"),
        "{error}"
    );

    // The other end takes a link out of its bond. The link stays up: only LACP tells.
    let yaml = interfaces("lacp", 2);
    lab.apply(1, &yaml.replacen("[ m1, m2 ]", "[ m2 ]", 1));
    let begin = Instant::now();
    lab.has_usable(1);
    // Three LACPDUs that are missed, and a second of a busy machine.
    let took = begin.elapsed();
    assert!(took < Duration::from_secs(4), "{took:?}\n{}", lab.said());
    lab.answers("10.1.0.2");
    lab.answers("10.2.0.2");
    lab.apply(1, &yaml);
    lab.has_usable(2);
    lab.answers("10.1.0.2");

    // The other end's bond is down, and its members are up. Then that is so no longer.
    let down = yaml.replacen("    lcp: be0", "    state: down\n    lcp: be0", 1);
    lab.apply(1, &down.replacen("{ lcp:", "{ state: down, lcp:", 1));
    lab.has_usable(0);
    lab.apply(1, &yaml);
    lab.has_usable(2);
    lab.answers("10.1.0.2");

    // The other end does not speak LACP any more: there is no bond, and the host knows.
    lab.apply(1, &interfaces("xor", 2));
    lab.has_usable(0);
    let carrier = || lab.routers[0].show(&["interface"])["interfaces"].clone();
    let down = || {
        let all = carrier();
        let all = all.as_array().expect("interfaces");
        all.iter()
            .any(|i| i["name"] == "BondEthernet0" && i["up"] == false)
    };
    assert!(until(patience(), down), "{}\n{}", carrier(), lab.said());
    // This end does without, too.
    lab.apply(0, &interfaces("xor", 1));
    lab.has_usable(2);
    lab.answers("10.1.0.2");
    lab.apply(1, &interfaces("lacp", 2));
    lab.apply(0, &interfaces("lacp", 1));
    lab.has_usable(2);
    lab.answers("10.1.0.2");
}

/// Both ends' FRR speaks OSPF over the bond, also when one of its links is gone.
#[test]
fn ospf_runs_over_a_bond() {
    const NAME: &str = "ospf_runs_over_a_bond";
    if skipped(NAME, &["ip", "ping", "zebra", "ospfd"]) {
        return;
    }
    let lab = Lab::start("lacp");
    lab.has_usable(2);
    let inside = ["10.255.0.1", "10.255.0.2"];
    let networks = ["10.1.0.0/24", "10.255.0.0/16"];
    let spawn = |at: usize| {
        let (host, own) = (&lab.hosts[at], inside[at]);
        host.ip(&format!("addr add {own}/32 dev lo")).expect("lo");
        Frr::spawn(host, &[("ospfd", &Frr::ospf("be0", own, &networks))])
    };
    let _daemons = [spawn(0), spawn(1)];
    let learned = |at: usize| {
        let (host, far) = (&lab.hosts[at], inside[1 - at]);
        let route = || host.ip(&format!("route show {far}"));
        let so = until(patience(), || {
            route().is_ok_and(|route| route.contains("dev be0"))
        });
        assert!(so, "{far}: {:?}\n{}", route(), lab.said());
    };
    learned(0);
    learned(1);
    lab.answers(inside[1]);
    // The other end takes a link out of its bond: hellos and packets go by what is left.
    let yaml = interfaces("lacp", 2);
    lab.apply(1, &yaml.replacen("[ m1, m2 ]", "[ m2 ]", 1));
    lab.has_usable(1);
    lab.answers(inside[1]);
    learned(0);
}
