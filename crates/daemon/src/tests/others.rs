//! What somebody else does to a device.

use ::io::af_xdp;
use control::netlink::Kernel;
use serde_json::Value;

use super::*;
use crate::facts;

impl Lab {
    /// `show warnings`, once the kernel's news is here.
    fn warnings(&mut self) -> Value {
        self.look();
        self.daemon.look_at_settings_now(None);
        let shown = self.daemon.warnings.and(self.daemon.waiting());
        serde_json::to_value(shown).expect("JSON")["warnings"].take()
    }

    /// The device of an interface in `show hardware`.
    fn device(&self, interface: &str) -> Value {
        let rows = facts::hardware(&self.daemon, Some(interface)).expect("it is there");
        serde_json::to_value(rows).expect("JSON")["interfaces"][0]["device"].take()
    }
}

#[test]
fn a_device_that_is_renamed_is_followed_and_said() {
    let config = Config::parse("test.yaml", "interfaces: { e0: {} }").expect("valid");
    let mut lab = Lab::start(&["e0"], config);
    assert_eq!(lab.warnings(), Value::Array(Vec::new()));
    let link = lab.machine.link_named("e0").expect("it is there").index;
    lab.machine.rename(link, "other").expect("it is renamed");
    assert_eq!(
        lab.warnings(),
        Value::from(vec![
            "interface e0: its device e0 was renamed to other, and is used on; the next start looks for e0: \
             `ip link set other name e0`"
        ])
    );
    assert_eq!(lab.device("e0"), "other");
    lab.machine.rename(link, "e0").expect("it is renamed");
    assert_eq!(lab.warnings(), Value::Array(Vec::new()));
}

/// Fewer than it may have by the configuration.
#[test]
fn a_device_holds_buffers_for_the_queues_that_it_has() {
    let names = ["e0", "e1", "e2", "e3"];
    let config = |count| {
        let interface = |name: &&str| format!("{name}: {{}}");
        let interfaces: Vec<_> = names[..count].iter().map(interface).collect();
        let interfaces = interfaces.join(", ");
        let ports = "ports: { e0: { netdev: e0, queues: 3 } }";
        let text = format!("interfaces: {{ {interfaces} }}\n{ports}");
        Config::parse("test.yaml", &text).expect("valid")
    };
    let mut lab = Lab::with_buffers(3 * af_xdp::Queue::HOLDS, &names, config(1));
    lab.become_this(&config(3)).expect("there is room for two");
    let plan = Plan::new(&lab.running, &config(4));
    let refused = "interface e3: there are packet buffers for 0 more queues, and it has 1: give it \
                   fewer (`ports:`), or restart the router";
    let found = lab.daemon.accepts(&config(4), &plan);
    assert_eq!(found, Err(vec![refused.to_owned()]));
}

#[test]
fn a_device_that_is_set_down_stays_so_and_is_said() {
    let text = "interfaces: { e0: {}, e1: { state: down } }\nloopbacks: { loop0: {} }";
    let config = Config::parse("test.yaml", text).expect("valid");
    let mut lab = Lab::start(&["e0", "e1"], config);
    assert_eq!(lab.warnings(), Value::Array(Vec::new()));
    for name in ["e0", "loop0"] {
        let link = lab.machine.link_named(name).expect("it is there").index;
        lab.machine.set_up(link, false).expect("it goes down");
        lab.settle();
        let warning = format!(
            "interface {name}: {name} is down in the kernel, and the configuration has up: \
             `ip link set {name} up`, or write `state: down`"
        );
        assert_eq!(lab.warnings(), Value::from(vec![warning]));
        let now = lab.machine.link_named(name).expect("it is there");
        assert!(!now.admin_up, "the host is in charge");
        lab.machine.set_up(link, true).expect("it comes up");
        assert_eq!(lab.warnings(), Value::Array(Vec::new()));
    }
}

#[test]
fn settings_that_somebody_changes_are_said() {
    let text = "interfaces: { e0: { mtu: 1400, mac: 02:00:00:00:00:01 }, e1: { state: down } }";
    let config = Config::parse("test.yaml", text).expect("valid");
    let mut lab = Lab::start(&["e0", "e1"], config);
    assert_eq!(lab.warnings(), Value::Array(Vec::new()));
    let link = |lab: &mut Lab, name| lab.machine.link_named(name).expect("it is there").index;
    let (e0, e1) = (link(&mut lab, "e0"), link(&mut lab, "e1"));
    lab.machine.set_mtu(e0, 1300).expect("it is set");
    lab.machine
        .set_mac(e0, router::Mac([2, 0, 0, 0, 0, 9]))
        .expect("it is set");
    lab.machine.set_up(e1, true).expect("it comes up");
    assert_eq!(
        lab.warnings(),
        Value::from(vec![
            "interface e0: e0's MTU is 1300 in the kernel, and the configuration has 1400: \
             `ip link set e0 mtu 1400`, or write `mtu: 1300`",
            "interface e0: e0's address is 02:00:00:00:00:09 in the kernel, and the configuration \
             has 02:00:00:00:00:01: `ip link set e0 address 02:00:00:00:00:01`, or write \
             `mac: 02:00:00:00:00:09`",
            "interface e1: e1 is up in the kernel, and the configuration has down: `ip link set e1 \
             down`, or write `state: up`"
        ])
    );
}

#[test]
fn a_port_whose_tap_somebody_sets_down_is_said() {
    let text = "ports: { p: { tap: { name: vm } } }\ninterfaces: { p: {} }";
    let config = Config::parse("test.yaml", text).expect("valid");
    let mut lab = Lab::start(&[], config);
    let link = lab.machine.link_named("vm").expect("it is there").index;
    lab.machine.set_up(link, false).expect("it goes down");
    let down = "interface p: vm, the tap that is its port, is down in the kernel: nothing comes or \
                goes: `ip link set vm up`";
    assert_eq!(lab.warnings(), Value::from(vec![down]));
    lab.machine.set_up(link, true).expect("it comes up");
    assert_eq!(lab.warnings(), Value::Array(Vec::new()));
}

#[test]
fn the_device_that_is_gone_is_named() {
    let config = Config::parse("test.yaml", "interfaces: { e0: { lcp: lan } }").expect("valid");
    let mut lab = Lab::start(&["e0"], config);
    let link = lab.machine.link_named("lan").expect("it is there").index;
    lab.machine.remove(link);
    let gone = "interface e0: absent: its device lan is gone";
    assert_eq!(lab.warnings(), Value::from(vec![gone]));
}

#[test]
fn a_tap_that_leaves_its_bridge_is_said_and_put_back() {
    let text = "taps: { tap0: { host: { name: t0, bridge: br0, bridge-create: yes } } }";
    let config = Config::parse("test.yaml", text).expect("valid");
    let mut lab = Lab::start(&["e0"], config.clone());
    assert_eq!(lab.warnings(), Value::Array(Vec::new()));
    let link = |lab: &mut Lab, name: &str| lab.machine.link_named(name).map(|link| link.index);
    let state = lab.state();
    // Its bridge goes; or it is put into another one; or the bridge is somebody else's by now.
    for (astray, shown, said) in [
        (
            "gone",
            "    + host bridge: br0",
            "tap t0 is no longer in bridge br0",
        ),
        (
            "moved",
            "    ~ host bridge: br9 -> br0",
            "tap t0 is in bridge br9, and not in bridge br0",
        ),
        (
            "remade",
            "    + host bridge: br0",
            "tap t0 is no longer in bridge br0",
        ),
    ] {
        let br0 = link(&mut lab, "br0").expect("it is there");
        let t0 = link(&mut lab, "t0").expect("it is there");
        if astray == "moved" {
            lab.machine.add_bridge("br9").expect("it is new");
            let br9 = link(&mut lab, "br9").expect("it is there");
            lab.machine.join(t0, br9).expect("it can be");
        } else {
            lab.machine.remove(br0);
        }
        if astray == "remade" {
            lab.machine.add_bridge("br0").expect("it is new");
        }
        let warning =
            format!("interface tap0: {said}: `parshall apply` of its configuration puts it back");
        assert_eq!(lab.warnings(), Value::from(vec![warning]));
        let rows = facts::hardware(&lab.daemon, Some("tap0")).expect("it is there");
        let rows = serde_json::to_value(rows).expect("JSON");
        let port = rows["interfaces"][0]["port"].as_str().expect("text");
        assert!(port.starts_with(said), "{port}");
        let plan = Plan::new(&lab.daemon.found(&config), &config);
        assert!(plan.text(false).contains(shown), "{}", plan.text(false));
        lab.become_this(&config).expect("nothing fails");
        assert_eq!(link(&mut lab, "t0").expect("it is there"), t0, "it stays");
        assert_eq!(lab.warnings(), Value::Array(Vec::new()));
        if let Ok(br9) = link(&mut lab, "br9") {
            lab.machine.remove(br9);
        }
        assert_eq!(lab.state(), state);
    }
    // The last one is somebody else's.
    let none = Config::parse("test.yaml", "").expect("valid");
    lab.become_this(&none).expect("nothing fails");
    assert!(link(&mut lab, "t0").is_err() && link(&mut lab, "br0").is_ok());
}

/// A change that takes a TAP back to its place and fails may leave it there.
#[test]
fn a_change_that_fails_leaves_a_tap_in_its_place() {
    let text = |mtu| {
        format!(
            "taps: {{ tap0: {{ host: {{ name: t0, mtu: {mtu}, bridge: br0, bridge-create: yes }} }} }}\n\
                 interfaces: {{ tap0: {{ mtu: {mtu} }} }}"
        )
    };
    let [from, to] = [1400, 1300].map(|mtu| Config::parse("test.yaml", &text(mtu)).expect("valid"));
    let mut lab = Lab::start(&["e0"], from);
    let state = lab.state();
    let mut failures = 0;
    for request in 0.. {
        let br0 = lab.machine.link_named("br0").expect("it is there").index;
        lab.machine.remove(br0);
        lab.machine.fail(Some(request));
        let done = lab.become_this(&to);
        lab.machine.fail(None);
        if done.is_ok() {
            break;
        }
        failures += 1;
        let from = lab.running.clone();
        lab.become_this(&from).expect("nothing fails");
        assert_eq!(lab.state(), state, "request {request}");
    }
    assert!(failures > 3, "{failures}");
}
