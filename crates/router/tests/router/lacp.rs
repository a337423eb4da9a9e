//! LACP: what members of a bond say and hear on the wire, and what they carry meanwhile.

use std::time::Duration;

use router::bond::{self, Headers, Spread};
use wire::eth::{self, Mac};
use wire::lacp::{self, Header, Info, Pdu, state};

use crate::bond::{
    BOND, MEMBERS, bond as bond_of, bond_that_is, counts, flows, lab, member, to_us,
};
use crate::harness::*;

const LACP: Spread = Spread::Lacp(Headers::L34);

/// The other end of a member.
fn peer(of: u16) -> Info {
    let mut peer = Info::new((0x8000, Mac([2, 0, 0, 0, 9, 9])), 77, (0x8000, of));
    peer.state = state::ACTIVITY | state::TIMEOUT | state::AGGREGATION;
    peer
}

/// It is so many milliseconds after the start: what has come is taken in, and what is due is sent.
fn negotiate(lab: &mut Lab, now: u64) {
    assert!(lab.router.unresolved().is_empty());
    lab.router.negotiate(Duration::from_millis(now));
    lab.run();
}

/// The LACPDUs that a member has sent since the last call.
fn lacpdus(lab: &Lab, member: u16) -> Vec<Header> {
    let read = |frame: Vec<u8>| {
        assert_eq!(frame.len(), eth::LEN + lacp::LEN);
        let (header, pdu) = eth::Header::parse(&frame).expect("a header");
        assert_eq!((header.dst, header.src), (lacp::GROUP, own_mac(member)));
        match lacp::parse(pdu) {
            Ok(Pdu::Lacp(pdu)) => pdu,
            other => panic!("{other:?}"),
        }
    };
    lab.sent(member).into_iter().map(read).collect()
}

/// The other ends of these members answer, in sync or not, from one time to another.
fn agree(lab: &mut Lab, members: &[u16], sync: bool, times: std::ops::Range<u64>) {
    for now in times.step_by(100) {
        lab.advance(Duration::from_millis(100));
        negotiate(lab, now);
        for &id in members {
            for said in lacpdus(lab, id) {
                let mut them = peer(id);
                them.set(state::SYNCHRONIZATION, sync);
                let answer = Header::new(them, said.actor());
                lab.receive(id, [answer.frame(host_mac(id, 9)).to_vec()]);
            }
        }
    }
}

#[test]
fn members_carry_once_the_other_end_has_agreed() {
    for workers in [1, 2] {
        let mut lab = lab(workers, LACP);
        lab.receive(1, flows(50, 10));
        assert_eq!(lab.edge("bond-output", "NoMember"), 10);
        lab.receive(31, [to_us(None)]);
        assert_eq!(lab.edge("bond-input", "NotCollecting"), 1);

        negotiate(&mut lab, 0);
        for id in MEMBERS {
            let first = lacpdus(&lab, id);
            assert_eq!(first.len(), 1, "{id}");
            let actor = first[0].actor();
            assert_eq!((actor.system, actor.port()), (own_mac(BOND), id));
            assert_eq!((actor.key(), actor.state), (BOND, 0b1100_0111));
        }
        negotiate(&mut lab, 500);
        assert!(MEMBERS.iter().all(|id| lacpdus(&lab, *id).is_empty()));
        agree(&mut lab, &[31, 33], false, 1000..4000);
        assert!(!lab.router.has_partner(BOND));
        agree(&mut lab, &[31, 33], true, 4000..7000);
        assert!(lab.router.has_partner(BOND));

        lab.sent(32);
        lab.receive(1, flows(50, 200));
        let [first, second, third] = counts(&lab);
        assert!(first > 50 && third > 50 && first + third == 200, "{first}");
        assert_eq!(second, 0);
        lab.receive(33, [to_us(None)]);
        assert_eq!(lab.sent(2).len(), 1);
        lab.receive(32, [to_us(None)]);
        assert_eq!(lab.edge("bond-input", "NotCollecting"), 2);

        // A member is down, and the other end of the other one is heard no more.
        lab.apply(vec![member(31, false)]);
        lab.receive(1, flows(50, 10));
        assert_eq!(counts(&lab)[2], 10);
        for now in (7000..10_100).step_by(100) {
            negotiate(&mut lab, now);
        }
        assert!(!lab.router.has_partner(BOND));
        lab.sent(33);
        lab.receive(1, flows(50, 10));
        assert_eq!(counts(&lab), [0; 3]);
        lab.check_buffers(0);
    }
}

#[test]
fn another_mode_needs_nobody_to_agree() {
    let mut lab = lab(1, LACP);
    agree(&mut lab, &MEMBERS, true, 0..3000);
    assert!(lab.router.has_partner(BOND));
    lab.apply(vec![bond_of(Spread::Xor(Headers::L34))]);
    assert!(!lab.router.has_partner(BOND));
    lab.receive(1, flows(50, 200));
    assert!(counts(&lab).iter().all(|count| *count > 30));
    negotiate(&mut lab, 9000);
    assert_eq!(counts(&lab), [0; 3], "no LACPDU");
    // And back: all begins anew.
    lab.apply(vec![bond_of(LACP)]);
    lab.receive(1, flows(50, 10));
    assert_eq!(lab.edge("bond-output", "NoMember"), 10);
    agree(&mut lab, &MEMBERS, true, 10_000..13_000);
    assert!(lab.router.has_partner(BOND));
    lab.check_buffers(0);
}

#[test]
fn a_bond_that_is_down_says_nothing() {
    let mut lab = lab(1, LACP);
    agree(&mut lab, &MEMBERS, true, 0..3000);
    assert!(lab.router.has_partner(BOND));
    lab.apply(vec![bond_that_is(false, LACP)]);
    negotiate(&mut lab, 3000);
    assert!(!lab.router.has_partner(BOND));
    counts(&lab);
    agree(&mut lab, &MEMBERS, true, 3100..8000);
    let answer = Header::new(peer(31), peer(31)).frame(host_mac(31, 9));
    lab.receive(31, [answer.to_vec()]);
    negotiate(&mut lab, 8100);
    assert_eq!(counts(&lab), [0; 3], "no LACPDU");
    assert!(!lab.router.has_partner(BOND));
    lab.apply(vec![bond_of(LACP)]);
    agree(&mut lab, &MEMBERS, true, 9000..12_000);
    assert!(lab.router.has_partner(BOND));
    lab.check_buffers(0);
}

#[test]
fn what_is_malformed_is_a_drop_with_its_reason() {
    let mut lab = lab(1, LACP);
    let frame = Header::new(peer(31), peer(1))
        .frame(host_mac(31, 9))
        .to_vec();
    let with = |at: usize, byte: u8| {
        let mut frame = frame.clone();
        frame[eth::LEN + at] = byte;
        frame
    };
    let cases = [
        (frame[..100].to_vec(), "Short"),
        (frame[..eth::LEN].to_vec(), "Short"),
        (with(0, 3), "Subtype"),
        (with(3, 19), "Length"),
        (with(23, 21), "Length"),
        (with(43, 0), "Length"),
        (with(59, 1), "Length"),
        (with(0, 2), "Length"),
        ([&with(0, 2)[..17], &[16], &frame[18..]].concat(), "Marker"),
    ];
    let mut of_group = frame.clone();
    of_group[6] |= 1;
    let cases = cases.into_iter().chain([(of_group, "BadSource")]);
    for (frame, edge) in cases {
        let before = |lab: &Lab, edge| lab.edge("lacp-exchange", edge);
        if edge == "Marker" {
            // A marker comes back as its answer.
            lab.receive(31, [frame.clone()]);
            let answer = lab.sent(31);
            assert_eq!(answer.len(), 1);
            assert_eq!(answer[0][6..12], own_mac(31).0);
            assert_eq!(answer[0][14..18], [2, 1, 2, 16]);
            assert_eq!(answer[0][18..], frame[18..]);
            lab.receive(31, answer);
            assert_eq!(before(&lab, "Unasked"), 1);
            let mut neither = frame.clone();
            neither[16] = 9;
            lab.receive(31, [neither]);
            assert_eq!(before(&lab, "MarkerType"), 1);
            continue;
        }
        let count = before(&lab, edge);
        lab.receive(31, [frame]);
        assert_eq!(before(&lab, edge), count + 1, "{edge}");
    }
    // Another version, types of TLVs, and more behind it are none of the receiver's business.
    let drops = |lab: &Lab| -> u64 {
        let edges = lab.edges().into_iter();
        edges
            .filter(|(node, ..)| *node == "lacp-exchange")
            .map(|(.., count)| count)
            .sum()
    };
    let before = drops(&lab);
    lab.receive(
        31,
        [
            with(1, 0),
            with(1, 2),
            with(2, 9),
            [&frame[..], &[9; 60]].concat(),
        ],
    );
    assert_eq!(drops(&lab), before);
    lab.check_buffers(0);
}

/// A flood costs little, and others are heard all the same.
#[test]
fn a_member_gets_so_many_lacpdus_and_markers_a_second() {
    let mut lab = lab(1, LACP);
    let lacpdu = |of| Header::new(peer(of), peer(1)).frame(host_mac(of, 9));
    let mut marker = lacpdu(31).to_vec();
    marker[eth::LEN..][..4].copy_from_slice(&[2, 1, 1, 16]);
    let too_many = |lab: &Lab| lab.edge("lacp-exchange", "TooMany");
    lab.receive(31, vec![lacpdu(31).to_vec(); 1000]);
    assert_eq!(too_many(&lab), 1000 - 20);
    lab.receive(31, vec![marker.clone(); 10]);
    assert_eq!(too_many(&lab), 1000 - 20 + 10);
    lab.receive(32, [lacpdu(32).to_vec()]);
    assert_eq!(too_many(&lab), 1000 - 20 + 10);
    lab.advance(Duration::from_millis(100));
    lab.receive(31, vec![marker; 30]);
    assert_eq!(lab.sent(31).len(), 10);
    lab.check_buffers(0);

    // The control thread takes in none of them.
    for _ in 0..20 {
        lab.advance(Duration::from_millis(200));
        for id in MEMBERS {
            lab.receive(id, vec![lacpdu(id).to_vec(); 20]);
        }
    }
    assert_eq!(lab.edge("lacp-exchange", "Busy"), 1200 + 21 - 1024);
    negotiate(&mut lab, 0);
    MEMBERS.iter().for_each(|id| drop(lab.sent(*id)));
    lab.check_buffers(0);
}

#[test]
fn a_bond_without_lacp_leaves_lacpdus_to_the_host() {
    let mut lab = lab(1, Spread::RoundRobin);
    let frame = Header::new(peer(31), peer(1))
        .frame(host_mac(31, 9))
        .to_vec();
    lab.receive(31, [frame.clone()]);
    assert_eq!(lab.sent(22), [frame]);
}

#[test]
fn lacp_is_shown_in_the_words_of_vpp() {
    let mut lab = lab(1, LACP);
    negotiate(&mut lab, 0);
    agree(&mut lab, &[31], true, 0..3000);
    let shown = bond::lacp::show::members_of_all(&lab.router, Some("eth31")).expect("a member");
    let text = "
                                                       actor state                      partner state
interface name           sw_if_index  bond interface   exp/def/dis/col/syn/agg/tim/act  exp/def/dis/col/syn/agg/tim/act
eth31                    31           eth20              0   0   1   1   1   1   1   1    0   0   0   0   1   1   1   1
  LAG ID: [(ffff,02-fe-00-00-00-14,0014,00ff,001f), (8000,02-00-00-00-09-09,004d,8000,001f)]
  RX-state: CURRENT, MUX-state: COLLECTING_DISTRIBUTING, PTX-state: FAST_PERIODIC
";
    assert_eq!(format!("\n{shown}"), text);
    let none = bond::lacp::show::members_of_all(&lab.router, Some("eth1")).unwrap_err();
    assert_eq!(
        none.to_string(),
        "no member eth1 of a bond with LACP; `show lacp` lists those that there are"
    );
    let shown = bond::show::bonds(&lab.router, true).to_string();
    assert!(
        shown.contains("number of active members: 1\n    eth31\n"),
        "{shown}"
    );
}
