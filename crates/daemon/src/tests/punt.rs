//! Taps that give the kernel of a network device what is not translated.

use ::io::tap;
use control::netlink::Kernel;
use router::Mac;

use super::*;
use crate::host::Host;

const NAT: &str = "nat: { source: [ { interface: e0, to: interface } ] }\n";

fn parsed(text: &str) -> Config {
    Config::parse("test.yaml", text).expect("valid")
}

impl Lab {
    /// Such taps that there are, with their addresses.
    fn punt_taps(&mut self) -> Vec<String> {
        self.look();
        let state = self.machine.state();
        let taps = state.iter().filter(|line| line.starts_with("punt"));
        taps.cloned().collect()
    }
}

#[test]
fn a_device_has_one_while_addresses_are_translated_and_it_routes() {
    let interfaces = "interfaces: { e0: { addresses: [ 10.0.0.1/24 ] }, e1: {} }\n";
    let on = parsed(&format!("{interfaces}{NAT}"));
    let mut lab = Lab::start(&["e0", "e1"], on.clone());
    assert_eq!(lab.punt_taps().len(), 2);
    lab.become_this(&parsed(interfaces)).expect("it can be");
    assert_eq!(lab.punt_taps(), [""; 0]);
    lab.become_this(&on).expect("it can be");
    assert_eq!(lab.punt_taps().len(), 2);
    // One is at layer 2, and comes back.
    let crossed = "ports: { m: { null: {} } }\n\
                   interfaces: { e0: {}, m: { l2xc: e1 }, e1: { l2xc: m } }\n";
    lab.become_this(&parsed(&format!("{crossed}{NAT}")))
        .expect("it can be");
    assert_eq!(lab.punt_taps().len(), 1);
    lab.become_this(&on).expect("it can be");
    assert_eq!(lab.punt_taps().len(), 2);
    // One interface is no more, and then its device.
    lab.become_this(&parsed(&format!("interfaces: {{ e0: {{}} }}\n{NAT}")))
        .expect("it can be");
    assert_eq!(lab.punt_taps().len(), 1);
    let link = lab.machine.link_named("e0").expect("it is there").index;
    lab.machine.remove(link);
    assert_eq!(lab.punt_taps(), [""; 0]);
}

/// The kernel takes frames to the tap's own address alone.
#[test]
fn it_has_the_address_that_its_device_has() {
    let mut lab = Lab::start(
        &["e0"],
        parsed(&format!("interfaces: {{ e0: {{}} }}\n{NAT}")),
    );
    let link = lab.machine.link_named("e0").expect("it is there").index;
    let mac = Mac([2, 0, 0, 7, 7, 7]);
    let has = |lab: &mut Lab| lab.punt_taps()[0].contains(&mac.to_string());
    assert!(!has(&mut lab));
    lab.machine.set_mac(link, mac).expect("a device");
    lab.settle();
    assert!(has(&mut lab));
}

#[test]
fn one_that_cannot_be_made_is_said_and_tried_again() {
    let mut lab = Lab::start(&["e0"], parsed("interfaces: { e0: {} }\n"));
    let link = lab.machine.link_named("e0").expect("it is there").index;
    let taken = format!("punt{link}");
    let other = tap::Config {
        name: taken,
        ..tap::Config::default()
    };
    let tap = lab.machine.tap(None, &other).expect("a tap");
    lab.become_this(&parsed(&format!("interfaces: {{ e0: {{}} }}\n{NAT}")))
        .expect("it can be");
    let said = lab.daemon.waiting();
    let begin = "interface e0: packets to own addresses are not translated: ";
    assert!(said.len() == 1 && said[0].starts_with(begin), "{said:?}");
    drop(tap);
    lab.settle();
    assert_eq!(lab.daemon.waiting(), [""; 0]);
    assert_eq!(lab.punt_taps().len(), 1);
}
