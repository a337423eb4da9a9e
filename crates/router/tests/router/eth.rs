//! ethernet-input and punt.

use router::{Change, Interface};
use wire::eth::{self, Mac};

use crate::harness::*;

#[test]
fn frames_for_us_are_routed_and_others_dropped() {
    let mut lab = Lab::new();
    lab.takes(udp(FAR).frame(), "ethernet-input", "Ip4");
    assert_eq!(lab.sent(2).len(), 1);
    let stranger = udp(FAR).macs(host_mac(1, 2), Mac([2, 9, 9, 9, 9, 9]));
    lab.takes(stranger.frame(), "ethernet-input", "NotOurs");
    for length in 0..14 {
        lab.takes(
            udp(FAR).frame()[..length].to_vec(),
            "ethernet-input",
            "Runt",
        );
    }
    let down = Interface {
        up: false,
        ..interface(1)
    };
    lab.apply(vec![Change::InterfaceSet(down)]);
    lab.takes(udp(FAR).frame(), "ethernet-input", "Down");
    assert!(lab.sent(2).is_empty());
}

#[test]
fn what_is_for_the_host_goes_to_its_interface_as_it_came() {
    let mut lab = Lab::with_host();
    let to = |mac: Mac, ethertype: u16| {
        let mut frame = udp(FAR).frame();
        frame[..6].copy_from_slice(&mac.0);
        frame[12..14].copy_from_slice(&ethertype.to_be_bytes());
        frame
    };
    let frames = [
        to(Mac::BROADCAST, eth::ARP),
        to(own_mac(1), eth::ARP),
        to(Mac([0x33, 0x33, 0, 0, 0, 1]), eth::IP6),
        to(Mac([0x01, 0x80, 0xc2, 0, 0, 0x0e]), eth::LLDP),
        to(Mac::BROADCAST, eth::IP4),
        to(Mac([1, 0, 0x5e, 0, 0, 5]), eth::IP4),
    ];
    for frame in &frames {
        lab.takes(frame.clone(), "ethernet-input", "Punt");
    }
    assert_eq!(lab.edge("punt", "Host"), frames.len() as u64);
    assert_eq!(lab.sent(4), frames);
    // An own address too, with the frame untouched (its TTL as well).
    let own = udp(addr(1, 1)).ttl(1).frame();
    lab.takes(own.clone(), "ip4-lookup", "Punt");
    assert_eq!(lab.sent(4), [own]);
}

/// A DHCP server's answer on interface 1 to the client with Ethernet address `client`.
fn dhcp_reply(client: Mac) -> Vec<u8> {
    let mut message = vec![2, 1, 6, 0];
    message.resize(28, 0);
    message.extend(client.0);
    message.resize(240, 0);
    wire::craft::Packet::udp((addr(1, 2), 67), (FAR, 68))
        .macs(host_mac(1, 2), own_mac(1))
        .payload(&message)
        .frame()
}

#[test]
fn host_without_an_address_gets_what_a_dhcp_server_answers() {
    let mut lab = Lab::with_host();
    let (ours, other) = (dhcp_reply(own_mac(1)), dhcp_reply(host_mac(1, 9)));
    lab.apply(vec![unaddressed(1)]);
    lab.takes(ours.clone(), "ethernet-input", "Punt");
    assert_eq!(lab.sent(4), std::slice::from_ref(&ours));
    // All else is forwarded as on any other interface.
    for frame in [other, udp(FAR).frame()] {
        lab.takes(frame, "ethernet-input", "Ip4");
        assert_eq!(lab.sent(2).len(), 1);
    }
    lab.takes(ours[..75].to_vec(), "ethernet-input", "Ip4");
    lab.apply(vec![addressed(1)]);
    lab.takes(ours, "ethernet-input", "Ip4");
    assert_eq!(lab.sent(2).len(), 1);
    assert!(lab.sent(4).is_empty());
}

#[test]
fn host_gets_no_more_than_there_is_time_for_and_control_traffic_first() {
    let mut lab = Lab::with_host();
    let rest = udp(addr(1, 1)).frame();
    let bgp = wire::craft::Packet::tcp((addr(1, 2), 1025), (addr(1, 1), 179), 2, 0, 0)
        .macs(host_mac(1, 2), own_mac(1))
        .frame();
    let mut arp = rest.clone();
    arp[12..14].copy_from_slice(&eth::ARP.to_be_bytes());
    const FLOOD: usize = 20_000;
    for i in 0..FLOOD / 100 {
        lab.receive(1, vec![rest.clone(); 100]);
        if i % 10 == 0 {
            lab.receive(1, [bgp.clone(), arp.clone()]);
        }
    }
    let sent = lab.sent(4);
    let count = |frame: &Vec<u8>| sent.iter().filter(|f| *f == frame).count();
    assert_eq!((count(&bgp), count(&arp)), (FLOOD / 1000, FLOOD / 1000));
    assert_eq!(count(&rest), 1000, "what may come at once");
    let dropped = lab.edge("punt", "RestLimited") as usize;
    assert_eq!(dropped + count(&rest), FLOOD);
    // 50,000 a second.
    lab.advance(std::time::Duration::from_millis(10));
    lab.receive(1, vec![rest; 1000]);
    assert!((499..=501).contains(&lab.sent(4).len()));
    // Each has its own limit, and another interface its own.
    for (frame, edge) in [(bgp, "ControlLimited"), (arp, "NeighborsLimited")] {
        lab.receive(1, vec![frame; 2500]);
        assert!(lab.edge("punt", edge) > 0, "{edge}");
    }
    lab.check_buffers(0);
}

#[test]
fn what_the_host_sends_leaves_untouched() {
    let mut lab = Lab::with_host();
    let frame = udp(addr(1, 77)).frame();
    lab.receive(4, [frame.clone(), vec![0; 60]]);
    assert_eq!(lab.sent(1), [frame, vec![0; 60]]);
    assert_eq!(lab.edge("ethernet-input", "Host"), 2);
    lab.check_buffers(0);
}

#[test]
fn without_its_interface_the_host_gets_nothing() {
    let mut lab = Lab::new();
    lab.takes(udp(addr(1, 1)).frame(), "punt", "NoHost");
}

#[test]
fn own_errors_do_not_go_to_the_host() {
    // The sender's address is one of ours: the error comes back to us.
    let mut lab = Lab::with_host();
    let spoofed = wire::craft::Packet::udp((addr(2, 1), 1), (FAR, 2))
        .macs(host_mac(1, 2), own_mac(1))
        .ttl(1);
    lab.takes(spoofed.frame(), "punt", "Own");
    assert!(lab.sent(4).is_empty());
}
