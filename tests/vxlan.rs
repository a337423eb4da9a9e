//! VXLAN tunnels: two routers with a bridge each and a tunnel between these.

use crate::harness::topology::{HOST, HOST6, ROUTER, ROUTER6};
use crate::harness::{Directory, Hosts, Netns, Router, patience, skipped, until};
use crate::tcp::exchange;

/// The addresses of the underlay's ends.
const ENDS4: [&str; 2] = ["10.1.0.1", "10.1.0.2"];
const ENDS6: [&str; 2] = ["2001:db8:1::1", "2001:db8:1::2"];

/// The tap port of each router, whose other end is the station's device.
const STATION: &str = "s0";

/// A router with a memif to the other one, and a bridge of the tunnel and a station's port.
fn configuration(directory: &Directory, at: usize, ends: [&str; 2], vni: u32) -> String {
    let socket = directory.path().join("m.sock").display().to_string();
    let (role, own) = (["server", "client"][at], at + 1);
    let (local, remote) = (ends[at], ends[1 - at]);
    format!(
        "interfaces:
  m: {{ mac: 02:00:00:00:01:0{own}, mtu: 1600, addresses: [ 10.1.0.{own}/24, '2001:db8:1::{own}/64' ] }}
  s: {{ mtu: 1500 }}
  vxlan_tunnel1: {{ mtu: 1500 }}
vxlan_tunnels:
  vxlan_tunnel1: {{ local: '{local}', remote: '{remote}', vni: {vni} }}
bridgedomains:
  bd1: {{ mtu: 1500, interfaces: [ s, vxlan_tunnel1 ] }}
ports:
  m: {{ memif: {{ socket: {socket}, role: {role} }} }}
  s: {{ tap: {{ name: {STATION} }} }}
"
    )
}

struct Lab {
    routers: [Router; 2],
    hosts: [Netns; 2],
    directory: Directory,
}

impl Lab {
    fn start(ends: [&str; 2]) -> Self {
        let directory = Directory::new();
        let hosts = ["left", "right"].map(|name| Netns::with_ipv6(name).expect("root may"));
        let start = |at: usize| Router::start(&hosts[at], &configuration(&directory, at, ends, 7));
        let routers = [start(0), start(1)];
        for (at, host) in hosts.iter().enumerate() {
            for to in [
                format!("address add 10.9.0.{}/24 dev {STATION}", at + 1),
                format!("link set {STATION} up"),
            ] {
                host.ip(&to).expect("the station's device is there");
            }
        }
        Lab {
            routers,
            hosts,
            directory,
        }
    }

    fn said(&self) -> String {
        let shown = [&["errors"][..], &["vxlan", "tunnel"], &["interface"]];
        self.routers
            .each_ref()
            .map(|router| router.said(&shown))
            .join("\n")
    }

    /// Whether the right station answers to the left one, in the end.
    fn answers(&self, bytes: u16) -> bool {
        let ping = format!("ping -n -c 1 -W 1 -s {bytes} -M do 10.9.0.2");
        until(patience(), || self.hosts[0].sh(&ping).is_ok())
    }

    fn apply(&self, at: usize, ends: [&str; 2], vni: u32) {
        let file = self.directory.path().join("next.yaml");
        let yaml = configuration(&self.directory, at, ends, vni);
        std::fs::write(&file, yaml).expect("written");
        let said = self.routers[at].ask(&["apply", "-c", &file.display().to_string()]);
        said.unwrap_or_else(|error| panic!("{error}\n{}", self.said()));
    }
}

#[test]
fn two_bridges_are_one_over_ip4() {
    const NAME: &str = "two_bridges_are_one_over_ip4";
    if skipped(NAME, &["ip", "ping"]) {
        return;
    }
    let lab = Lab::start(ENDS4);
    // Full frames go through: the underlay takes 1600 bytes.
    assert!(lab.answers(1472), "{}", lab.said());
    exchange(&lab.hosts[1], [10, 9, 0, 2], &lab.hosts[0], |_| {});
    let shown = lab.routers[0].show(&["vxlan", "tunnel"]);
    let wanted = [ENDS4[0], ENDS4[1]].map(serde_json::Value::from);
    let tunnel = &shown["tunnels"][0];
    assert_eq!([&tunnel["local"], &tunnel["remote"]], wanted.each_ref());
    assert_eq!(tunnel["vni"], 7);
    let shown = lab.routers[0].show(&["interface", "vxlan_tunnel1"]);
    let counts = &shown["interfaces"][0];
    for name in ["rx_packets", "rx_bytes", "tx_packets", "tx_bytes"] {
        assert!(counts[name].as_u64() > Some(0), "{name}: {counts}");
    }

    // Other networks at the ends: nothing comes through, until both have the same.
    lab.apply(0, ENDS4, 9);
    let ping = lab.hosts[0].sh("ping -n -c 2 -W 1 10.9.0.2");
    assert!(ping.is_err(), "{ping:?}\n{}", lab.said());
    lab.apply(1, ENDS4, 9);
    assert!(lab.answers(1472), "{}", lab.said());
}

#[test]
fn two_bridges_are_one_over_ip6() {
    if skipped("two_bridges_are_one_over_ip6", &["ip", "ping"]) {
        return;
    }
    let lab = Lab::start(ENDS4);
    assert!(lab.answers(1472), "{}", lab.said());
    // The stations stay what they are.
    for at in [0, 1] {
        lab.apply(at, ENDS6, 9);
    }
    assert!(lab.answers(1472), "{}", lab.said());
    exchange(&lab.hosts[0], [10, 9, 0, 1], &lab.hosts[1], |_| {});
    let shown = lab.routers[0].show(&["vxlan", "tunnel"]);
    assert_eq!(shown["tunnels"][0]["remote"], ENDS6[1]);
}

/// The kernel's VXLAN device in a namespace of guests, behind a TAP: the underlay is a bridge with
/// the router in it.
fn beside_the_kernel(ends: [&str; 2]) {
    let netns = Netns::with_ipv6("router").expect("root may");
    let guests = Netns::with_ipv6("guests").expect("root may");
    let (local, remote, name) = (ends[0], ends[1], guests.name());
    let router = Router::start(
        &netns,
        &format!(
            "interfaces:
  tap0: {{ mtu: 1500 }}
  vxlan_tunnel1: {{ mac: 02:00:00:00:02:01, mtu: 1400, addresses: [ 10.9.0.1/24 ] }}
taps:
  tap0: {{ host: {{ name: u0, mtu: 1500, namespace: {name} }} }}
vxlan_tunnels:
  vxlan_tunnel1: {{ local: '{local}', remote: '{remote}', vni: 7 }}
bridgedomains:
  bd1: {{ mtu: 1500, bvi: loop0, interfaces: [ tap0 ] }}
loopbacks:
  loop0: {{ mtu: 1500, addresses: [ 10.1.0.1/24, '2001:db8:1::1/64' ] }}
"
        ),
    );
    for to in [
        "address add 10.1.0.2/24 dev u0".to_owned(),
        "address add 2001:db8:1::2/64 dev u0 nodad".to_owned(),
        format!("link add vx0 type vxlan id 7 local {remote} remote {local} dstport 4789"),
        "link set vx0 mtu 1400 up".to_owned(),
        "address add 10.9.0.2/24 dev vx0".to_owned(),
    ] {
        guests.ip(&to).expect("the kernel takes it");
    }
    let pings = |netns: &Netns, to: &str| {
        let ping = format!("ping -n -c 1 -W 1 -s 1372 -M do {to}");
        let so = until(patience(), || netns.sh(&ping).is_ok());
        let said = [&["errors"][..], &["runtime"]].map(|words| router.show_text(words));
        assert!(so, "{to}: {}\n{}", said.concat(), router.process.log());
    };
    pings(&netns, "10.9.0.2");
    pings(&guests, "10.9.0.1");
    exchange(&guests, [10, 9, 0, 2], &netns, |_| {});
}

#[test]
fn the_kernel_is_at_the_other_end_over_ip4() {
    const NAME: &str = "the_kernel_is_at_the_other_end_over_ip4";
    if !skipped(NAME, &["ip", "ping"]) && has_vxlan(NAME) {
        beside_the_kernel(ENDS4);
    }
}

#[test]
fn the_kernel_is_at_the_other_end_over_ip6() {
    const NAME: &str = "the_kernel_is_at_the_other_end_over_ip6";
    if !skipped(NAME, &["ip", "ping"]) && has_vxlan(NAME) {
        beside_the_kernel(ENDS6);
    }
}

/// A tunnel from the router's own address on a network device to the kernel's VXLAN device in the host
/// behind it; the router's kernel has one of its own, from this address to that one, with another
/// network.
fn from_an_address_of_a_device([local, remote]: [String; 2]) {
    let hosts = Hosts::new(1600, true);
    hosts.speak_ip6();
    for (netns, own, other, last) in [
        (&hosts.router, &local, &remote, 1),
        (&hosts.left, &remote, &local, 2),
    ] {
        let device = |name: &str, vni: u32, network: u8| {
            format!(
                "link add {name} type vxlan id {vni} local {own} remote {other} dstport 4789\n\
                 link set {name} mtu 1400 up\n\
                 address add 10.{network}.0.{last}/24 dev {name}\n"
            )
        };
        netns.ip_batch(&device("vx8", 8, 8)).expect("a device");
        if last == 2 {
            netns.ip_batch(&device("vx7", 7, 9)).expect("a device");
        }
    }
    let old = "interfaces:\n  r0: {}\n  r1: {}\n";
    let new = format!(
        "{old}  vxlan_tunnel1: {{ mtu: 1400, addresses: [ 10.9.0.1/24 ] }}\nvxlan_tunnels:\n  \
         vxlan_tunnel1: {{ local: '{local}', remote: '{remote}', vni: 7 }}\n"
    );
    let router = Router::start(&hosts.router, old);
    let ping = |netns: &Netns, to: &str| {
        let ping = format!("ping -n -c 1 -W 1 -s 1372 -M do {to}");
        netns.sh(&ping).is_ok()
    };
    let answers = |netns: &Netns, to: &str| {
        let shown = [&["errors"][..], &["vxlan", "tunnel"], &["interface"]];
        let so = until(patience(), || ping(netns, to));
        assert!(so, "{to}: {}", router.said(&shown));
    };
    let kernels = || {
        answers(&hosts.router, "10.8.0.2");
        answers(&hosts.left, "10.8.0.1");
    };
    let received = || {
        let shown = router.show(&["interface", "vxlan_tunnel1"]);
        shown["interfaces"][0]["rx_packets"].as_u64()
    };
    kernels();
    let directory = Directory::new();
    let file = directory.path().join("new.yaml").display().to_string();
    std::fs::write(&file, &new).expect("written");
    router.ask(&["apply", "-c", &file]).expect("it is applied");
    answers(&hosts.router, "10.9.0.2");
    answers(&hosts.left, "10.9.0.1");
    exchange(&hosts.left, [10, 9, 0, 2], &hosts.router, |_| {});
    let count = received();
    assert!(count > Some(0), "{count:?}");
    kernels();
    assert_eq!(
        received(),
        count,
        "the kernel's packets are not the tunnel's"
    );

    router.ask(&["rollback"]).expect("it goes back");
    let gone = until(patience(), || {
        hosts.router.ip("link show vxlan_tunnel1").is_err()
    });
    assert!(gone && !ping(&hosts.left, "10.9.0.1"));
    kernels();
}

#[test]
fn a_tunnel_is_from_an_ip4_address_of_a_device() {
    const NAME: &str = "a_tunnel_is_from_an_ip4_address_of_a_device";
    if !skipped(NAME, &["ip", "ping", "ethtool"]) && has_vxlan(NAME) {
        from_an_address_of_a_device([ROUTER[0].to_string(), HOST[0].to_string()]);
    }
}

#[test]
fn a_tunnel_is_from_an_ip6_address_of_a_device() {
    const NAME: &str = "a_tunnel_is_from_an_ip6_address_of_a_device";
    if !skipped(NAME, &["ip", "ping", "ethtool"]) && has_vxlan(NAME) {
        from_an_address_of_a_device([ROUTER6[0].to_string(), HOST6[0].to_string()]);
    }
}

/// Whether this kernel has VXLAN devices; says so if it has not.
fn has_vxlan(name: &str) -> bool {
    let netns = Netns::create("try").expect("root may");
    let made = netns.ip("link add vx0 type vxlan id 1 dstport 4789");
    if let Err(error) = &made {
        println!("SKIP {name}: {error}");
    }
    made.is_ok()
}
