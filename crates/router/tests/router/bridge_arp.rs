//! ARP in a bridge domain: who has an address is learned from what stations say, and requests for it
//! need not go to all.

use std::time::Duration;

use router::l2::show;
use router::{ArpRequests, BridgeDomain, Change, Mac};
use wire::arp::{self, Header};
use wire::eth;

use crate::bridge;
use crate::harness::*;

fn domain(arp: ArpRequests) -> Change {
    Change::BridgeSet(BridgeDomain {
        arp,
        ..bridge::domain()
    })
}

/// Interfaces 1 to 3 in the domain.
fn lab(arp: ArpRequests) -> Lab {
    let mut lab = Lab::new();
    lab.apply(vec![domain(arp)]);
    lab.apply((1..=3).map(bridge::member).collect());
    lab
}

/// Station `n`, and its address.
fn station(n: u8) -> (Mac, u32) {
    (Mac([2, 0xaa, 0, 0, 0, n]), addr(9, n))
}

fn frame(to: Mac, header: Header) -> Vec<u8> {
    let mut frame = [
        &to.0[..],
        &header.sender_mac.0,
        &eth::ARP.to_be_bytes(),
        header.bytes(),
    ]
    .concat();
    frame.resize(60, 0);
    frame
}

fn request(from: (Mac, u32), target: u32) -> Vec<u8> {
    frame(Mac([0xff; 6]), Header::request(from, target))
}

/// Receives a frame, learns from it, and returns what each interface has sent.
fn pass(lab: &mut Lab, at: u16, frame: &[u8]) -> [Vec<Vec<u8>>; 3] {
    lab.receive(at, [frame.to_vec()]);
    assert!(lab.router.unresolved().is_empty());
    lab.run();
    [1, 2, 3].map(|id| lab.sent(id))
}

/// No frame.
const NONE: Vec<Vec<u8>> = Vec::new();

/// Makes stations 1, 2 and 3, behind interfaces of these numbers, known by what they announce.
fn announced(lab: &mut Lab) {
    for n in 1..=3 {
        let (mac, address) = station(n);
        let announcement = request((mac, address), address);
        let sent = pass(lab, n.into(), &announcement);
        assert_eq!(sent.concat().len(), 2, "an announcement goes to all");
    }
}

#[test]
fn a_request_for_who_is_known_is_answered_in_its_place() {
    let mut lab = lab(ArpRequests::Answer);
    let (a, b) = (station(1), station(2));
    let asked = request(a, b.1);
    assert_eq!(
        pass(&mut lab, 1, &asked),
        [NONE, vec![asked.clone()], vec![asked.clone()]]
    );
    announced(&mut lab);
    let reply = |to: (Mac, u32)| frame(to.0, Header::new(arp::REPLY, b, to));
    assert_eq!(pass(&mut lab, 1, &asked), [vec![reply(a)], NONE, NONE]);
    assert_eq!(lab.edge("l2-forward", "ArpReply"), 1);

    // A probe, too (RFC 5227): somebody has the address. Not if it is the prober itself.
    let probe = request((a.0, 0), b.1);
    assert_eq!(
        pass(&mut lab, 1, &probe),
        [vec![reply((a.0, 0))], NONE, NONE]
    );
    let own = request((b.0, 0), b.1);
    assert_eq!(
        pass(&mut lab, 2, &own),
        [vec![own.clone()], NONE, vec![own]]
    );

    // Unknown, and an answer of the owner: as any frame.
    let other = request(a, addr(9, 77));
    assert_eq!(pass(&mut lab, 1, &other).concat().len(), 2);
    let answer = reply(a);
    assert_eq!(pass(&mut lab, 2, &answer), [vec![answer], NONE, NONE]);

    // The address moves to another station: who has it last has it.
    let moved = (station(3).0, b.1);
    pass(&mut lab, 3, &request(moved, b.1));
    let now = frame(a.0, Header::new(arp::REPLY, moved, a));
    assert_eq!(pass(&mut lab, 1, &asked), [vec![now], NONE, NONE]);
    // Behind the same interface it hears the request itself.
    let neighbor = request((Mac([2, 0xaa, 0, 0, 0, 9]), addr(9, 9)), b.1);
    assert_eq!(pass(&mut lab, 3, &neighbor).concat().len(), 2);
    lab.check_buffers(0);
}

#[test]
fn a_request_for_who_is_known_goes_to_it_alone() {
    let mut lab = lab(ArpRequests::Forward);
    announced(&mut lab);
    let (a, b) = (station(1), station(2));
    let alone = frame(b.0, Header::request(a, b.1));
    assert_eq!(
        pass(&mut lab, 1, &request(a, b.1)),
        [NONE, vec![alone], NONE]
    );
    let unknown = request(a, addr(9, 77));
    assert_eq!(pass(&mut lab, 1, &unknown).concat().len(), 2);

    // In place: neither any more, and what was learned is forgotten.
    lab.apply(vec![domain(ArpRequests::Flood)]);
    assert_eq!(pass(&mut lab, 1, &request(a, b.1)).concat().len(), 2);
    lab.apply(vec![domain(ArpRequests::Answer)]);
    assert_eq!(pass(&mut lab, 1, &request(a, b.1)).concat().len(), 2);
    lab.check_buffers(0);
}

/// It is shown, and forgotten when it was not heard of for 20 minutes, or its station is not known.
#[test]
fn owners_are_shown_and_forgotten() {
    let mut lab = lab(ArpRequests::Answer);
    announced(&mut lab);
    let shown = |lab: &Lab| show::bridge_domains(&lab.router, None, true).expect("all");
    let owners = |lab: &Lab| shown(lab).bridge_domains[0].owners.len();
    assert_eq!(owners(&lab), 3);
    assert_eq!(shown(&lab).bridge_domains[0].arp, "answer");
    let text = shown(&lab).to_string();
    assert!(
        text.contains("10.0.9.2        is at 02:aa:00:00:00:02, heard 0 s ago"),
        "{text}"
    );
    let asked = request(station(1), station(2).1);
    lab.router.age(60 * 19);
    pass(&mut lab, 1, &asked);
    lab.router.age(60 * 20 + 1);
    lab.advance(Duration::from_millis(2));
    assert_eq!(owners(&lab), 1, "the one that has asked");
    assert_eq!(pass(&mut lab, 1, &asked).concat().len(), 2);
    announced(&mut lab);
    lab.apply(vec![Change::InterfaceDelete(2)]);
    let sent = pass(&mut lab, 1, &asked);
    assert_eq!(sent, [NONE, NONE, vec![asked]], "its station is gone");
    lab.check_buffers(0);
}

/// What is no ARP of IPv4 on Ethernet, too short, or of another sender than it says teaches nothing.
#[test]
fn what_is_malformed_is_flooded_and_teaches_nothing() {
    let mut lab = lab(ArpRequests::Answer);
    announced(&mut lab);
    let good = request(station(1), station(2).1);
    for (at, value) in [(14, 9), (16, 9), (18, 9), (19, 9), (22, 9), (27, 9)] {
        let mut bad = good.clone();
        bad[at] = value;
        assert_eq!(pass(&mut lab, 1, &bad).concat().len(), 2, "byte {at}");
    }
    for length in 14..42 {
        assert_eq!(
            pass(&mut lab, 1, &good[..length]).concat().len(),
            2,
            "{length}"
        );
    }
    let domains = show::bridge_domains(&lab.router, None, false).expect("all");
    assert_eq!(domains.bridge_domains[0].owners.len(), 3);
    lab.check_buffers(0);
}
