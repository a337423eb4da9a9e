//! Bonds: what comes in at a member is the bond's; what leaves by the bond leaves by members.

use std::collections::BTreeSet;

use graph::Command;
use router::bond::{self, Headers, Spread};
use router::{Address, Change, Interface, Kind, L2, Route, Tags};
use wire::craft::Packet;

use crate::harness::*;

/// The bond, a sub-interface of it, its host interface, and its members.
pub const BOND: u16 = 20;
const SUB: u16 = 21;
const HOST: u16 = 22;
pub const MEMBERS: [u16; 3] = [31, 32, 33];

const XOR: Spread = Spread::Xor(Headers::L34);

pub fn bond(spread: Spread) -> Change {
    bond_that_is(true, spread)
}

/// The bond, administratively up or down.
pub fn bond_that_is(enabled: bool, spread: Spread) -> Change {
    Change::InterfaceSet(Interface {
        kind: Kind::Bond {
            spread,
            enabled,
            host: Some(HOST),
        },
        ..interface(BOND)
    })
}

pub fn member(id: u16, up: bool) -> Change {
    Change::InterfaceSet(Interface {
        l2: Some(L2::Bond(BOND)),
        up,
        ..interface(id)
    })
}

/// A host `.2` behind an interface, and a network behind that.
fn reaches(id: u16, far: &str) -> Vec<Change> {
    let own = format!("10.0.{id}.0/24");
    vec![
        Change::AddressesSet {
            interface: id,
            addresses: vec![Address::new(ip(id as u8, 1), 24)],
        },
        route(&own, Route::Forward(vec![on_link(id)])),
        neighbor(id, 2),
        route(far, Route::Forward(vec![via(id, 2)])),
    ]
}

/// Interfaces 1 to 3, a bond of three members, and VLAN 100 on it. 50.0.0.0/8 is behind the bond,
/// 51.0.0.0/8 behind the VLAN.
pub fn lab(workers: usize, spread: Spread) -> Lab {
    let mut lab = Lab::sized(workers, 64).wired();
    for (at, id) in MEMBERS.into_iter().chain([HOST]).enumerate() {
        lab.plug(id, at % workers);
    }
    for worker in &mut lab.router.workers {
        assert!(worker.command(Command::Egress(SUB, BOND)).is_ok());
    }
    lab.apply(vec![bond(spread)]);
    let tags = Tags::one(100);
    let sub = Kind::Sub {
        parent: BOND,
        tags,
        host: None,
    };
    let host = Kind::Host { of: BOND };
    let of_kind = |id, kind| {
        Change::InterfaceSet(Interface {
            kind,
            mac: own_mac(BOND),
            ..interface(id)
        })
    };
    lab.apply(vec![of_kind(SUB, sub), of_kind(HOST, host)]);
    lab.apply(MEMBERS.map(|id| member(id, true)).into());
    lab.apply(reaches(BOND, "50.0.0.0/8"));
    lab.apply(reaches(SUB, "51.0.0.0/8"));
    lab
}

/// Packets of so many flows to a network.
pub fn flows(network: u8, count: u16) -> Vec<Vec<u8>> {
    let to = u32::from_be_bytes([network, 0, 0, 1]);
    let packet = |port| Packet::udp((addr(1, 2), port), (to, 12));
    let packets = (0..count).map(packet);
    packets
        .map(|p| p.macs(host_mac(1, 2), own_mac(1)).frame())
        .collect()
}

/// What each member has sent.
fn sent(lab: &Lab) -> [Vec<Vec<u8>>; 3] {
    MEMBERS.map(|id| lab.sent(id))
}

pub fn counts(lab: &Lab) -> [usize; 3] {
    sent(lab).map(|frames| frames.len())
}

/// To the bond's address, from a host behind it.
pub fn to_us(tags: Option<u16>) -> Vec<u8> {
    let packet = Packet::udp((addr(BOND as u8, 2), 5), (FAR, 7));
    let packet = packet.macs(host_mac(BOND, 2), own_mac(BOND));
    let mut frame = packet.frame();
    if let Some(vlan) = tags {
        let tag = [0x8100u16.to_be_bytes(), vlan.to_be_bytes()].concat();
        frame.splice(12..12, tag);
    }
    frame
}

#[test]
fn frames_take_turns_round_robin() {
    for workers in [1, 2] {
        let mut lab = lab(workers, Spread::RoundRobin);
        lab.receive(1, flows(50, 300));
        assert_eq!(counts(&lab), [100; 3]);
        lab.receive(1, flows(51, 3));
        assert_eq!(counts(&lab), [1; 3]);
        lab.check_buffers(0);
    }
}

/// Each frame once, whichever members it came by or left by.
#[test]
fn a_bond_counts_its_frames() {
    for (spread, copies) in [(Spread::RoundRobin, 1), (Spread::Broadcast, 3)] {
        let mut lab = lab(1, spread);
        let bytes: usize = flows(50, 6).iter().map(Vec::len).sum();
        lab.receive(1, flows(50, 6));
        assert_eq!(counts(&lab).iter().sum::<usize>(), 6 * copies);
        assert_eq!(lab.counted(BOND), [0, 0, 6, bytes as u64, 0]);
        let frame = to_us(None);
        lab.receive(32, [frame.clone(), frame.clone()]);
        assert_eq!(lab.counted(BOND)[..2], [2, 2 * frame.len() as u64]);
        lab.apply(MEMBERS.map(|id| member(id, false)).into());
        lab.receive(1, flows(50, 1));
        assert_eq!(lab.counted(BOND)[2], 6, "there is no way out");
    }
}

#[test]
fn one_member_at_a_time_carries_all_and_the_next_takes_over() {
    let mut lab = lab(1, Spread::ActiveBackup);
    lab.receive(1, flows(50, 30));
    assert_eq!(counts(&lab), [30, 0, 0]);
    lab.apply(vec![member(31, false)]);
    lab.receive(1, flows(51, 30));
    assert_eq!(counts(&lab), [0, 30, 0]);
    lab.apply(vec![member(31, true)]);
    lab.receive(1, flows(50, 30));
    assert_eq!(counts(&lab), [30, 0, 0]);

    // What a switch floods comes in once.
    let mut arp = to_us(None);
    arp[..6].fill(0xff);
    arp[12..14].copy_from_slice(&[8, 6]);
    for id in MEMBERS {
        lab.receive(id, [arp.clone()]);
    }
    assert_eq!(lab.sent(HOST), [arp]);
    assert_eq!(lab.edge("bond-input", "Backup"), 2);
    lab.receive(32, [to_us(None)]);
    assert_eq!(lab.sent(2).len(), 1, "unicast comes in by any member");
    lab.check_buffers(0);
}

#[test]
fn each_member_gets_a_copy() {
    let mut lab = lab(1, Spread::Broadcast);
    lab.receive(1, flows(50, 40));
    let [first, second, third] = sent(&lab);
    assert_eq!(first.len(), 40);
    assert!(first == second && second == third);
    lab.apply(vec![member(31, false), member(32, false)]);
    lab.receive(1, flows(50, 40));
    assert_eq!(counts(&lab), [0, 0, 40]);
    assert_eq!(lab.edge("bond-broadcast", "Member"), 120);
    lab.check_buffers(0);
}

#[test]
fn a_flow_stays_on_a_member_and_flows_spread_over_all() {
    for (headers, least) in [(Headers::L34, 60), (Headers::L23, 0), (Headers::L2, 0)] {
        let mut lab = lab(1, Spread::Xor(headers));
        lab.receive(1, flows(50, 300));
        let first = sent(&lab);
        let all: usize = first.iter().map(Vec::len).sum();
        assert_eq!(all, 300);
        assert!(
            first.iter().all(|frames| frames.len() >= least),
            "{headers:?}"
        );
        if headers != Headers::L34 {
            let used = first.iter().filter(|frames| !frames.is_empty());
            assert_eq!(used.count(), 1, "they differ in their ports alone");
        }
        lab.receive(1, flows(50, 300));
        assert!(sent(&lab) == first, "{headers:?}");
    }
}

/// Tags change nothing, and fragments of a packet take one way.
#[test]
fn hashes_look_behind_tags_and_not_into_fragments() {
    let mut lab = lab(1, XOR);
    let port = |frame: &[u8], at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    lab.receive(1, flows(50, 50));
    let [plain, ..] = sent(&lab).map(|all| all.iter().map(|f| port(f, 34)).collect::<Vec<_>>());
    assert!(plain.len() > 5);
    // The same flows with a tag: only the destination differs from those to 50.0.0.1.
    let frames = flows(50, 50).into_iter().map(|mut frame| {
        frame[..6].copy_from_slice(&own_mac(1).0);
        frame
    });
    lab.apply(vec![route("50.0.0.0/8", Route::Forward(vec![via(SUB, 2)]))]);
    lab.receive(1, frames);
    let [tagged, ..] = sent(&lab).map(|all| all.iter().map(|f| port(f, 38)).collect::<Vec<_>>());
    assert_eq!(tagged, plain);

    let mut fragments = flows(50, 100);
    for frame in &mut fragments {
        frame[20] |= 0x20;
        seal(frame);
    }
    lab.receive(1, fragments);
    let used = counts(&lab).into_iter().filter(|count| *count > 0);
    assert_eq!(used.count(), 1);
}

#[test]
fn frames_spread_by_addresses_when_these_differ() {
    for headers in [Headers::L2, Headers::L23, Headers::L34] {
        let mut lab = lab(1, Spread::Xor(headers));
        // From the host: any frames.
        let frames = (0..240u8).map(|n| {
            let mut frame = to_us(None);
            let at = if headers == Headers::L2 { 11 } else { 33 };
            frame[at] = n;
            if headers == Headers::L34 {
                frame[12..14].copy_from_slice(&[0x08, 0x00]);
            }
            frame
        });
        lab.receive(HOST, frames);
        assert!(counts(&lab).into_iter().all(|n| n > 40), "{headers:?}");
        // Too short for what they say to be.
        let short = [14, 15, 33].map(|len| to_us(None)[..len].to_vec());
        lab.receive(HOST, short);
        assert_eq!(counts(&lab).into_iter().sum::<usize>(), 3);
        lab.check_buffers(0);
    }
}

#[test]
fn what_comes_in_at_any_member_is_the_bonds() {
    let mut lab = lab(1, XOR);
    for id in MEMBERS {
        lab.receive(id, [to_us(None), to_us(Some(100))]);
        let forwarded = lab.sent(2);
        assert_eq!(forwarded.len(), 2, "both come out");
        assert_eq!(forwarded[0], forwarded[1], "without a tag");
    }
    assert_eq!(lab.edge("bond-input", "Bond"), 6);
    // To somebody else, and to the host.
    let mut other = to_us(None);
    other[5] ^= 1;
    lab.receive(31, [other]);
    assert_eq!(lab.edge("ethernet-input", "NotOurs"), 1);
    let mut arp = to_us(None);
    arp[..6].fill(0xff);
    arp[12..14].copy_from_slice(&[8, 6]);
    lab.receive(32, [arp.clone()]);
    assert_eq!(lab.sent(HOST), [arp]);
    lab.check_buffers(0);
}

#[test]
fn without_members_that_are_up_packets_are_counted_drops() {
    let mut lab = lab(1, XOR);
    lab.apply(MEMBERS.map(|id| member(id, false)).into());
    lab.receive(1, flows(50, 5));
    lab.receive(1, flows(51, 5));
    assert_eq!(counts(&lab), [0; 3]);
    assert_eq!(lab.edge("bond-output", "NoMember"), 10);
    for id in MEMBERS {
        lab.receive(id, [to_us(None)]);
    }
    assert_eq!(lab.edge("ethernet-input", "Down"), 3);
    lab.apply(vec![member(33, true)]);
    lab.receive(1, flows(50, 5));
    assert_eq!(counts(&lab), [0, 0, 5]);
}

/// Members that come and go, other modes, and the end of a bond.
#[test]
fn changes_lose_no_frame() {
    let mut lab = lab(1, XOR);
    let spreads = [
        Spread::RoundRobin,
        Spread::ActiveBackup,
        Spread::Xor(Headers::L2),
        XOR,
    ];
    for (at, spread) in spreads.into_iter().enumerate() {
        let out = MEMBERS[at % 3];
        flows(50, 20)
            .into_iter()
            .for_each(|f| lab.cables[&1].put(f));
        lab.apply(vec![bond(spread)]);
        flows(50, 20)
            .into_iter()
            .for_each(|f| lab.cables[&1].put(f));
        lab.apply(vec![Change::InterfaceSet(interface(out))]);
        flows(51, 20)
            .into_iter()
            .for_each(|f| lab.cables[&1].put(f));
        lab.apply(vec![member(out, true)]);
        lab.run();
        assert_eq!(counts(&lab).into_iter().sum::<usize>(), 60);
    }
    // A member that leaves is an interface like any other.
    lab.apply(connected(31));
    lab.receive(31, [udp(FAR).macs(host_mac(31, 2), own_mac(31)).frame()]);
    assert_eq!(lab.sent(2).len(), 1);
    // The bond is gone, its members still there.
    lab.apply(vec![Change::InterfaceDelete(BOND)]);
    lab.receive(32, [to_us(None)]);
    assert_eq!(lab.edge("bond-input", "NoBond"), 1);
    lab.check_buffers(0);
}

/// It goes round once.
#[test]
fn a_bond_is_no_member_of_a_bond() {
    let mut lab = lab(1, XOR);
    let nested = |id: u16, of: u16| {
        Change::InterfaceSet(Interface {
            kind: Kind::Bond {
                spread: XOR,
                enabled: true,
                host: None,
            },
            l2: Some(L2::Bond(of)),
            ..interface(id)
        })
    };
    lab.apply(vec![nested(BOND, 40), nested(40, BOND)]);
    lab.receive(31, [to_us(None)]);
    assert_eq!(lab.edge("bond-input", "NoBond"), 1);
    lab.check_buffers(0);
}

#[test]
fn bonds_are_shown_in_the_words_of_vpp() {
    let mut lab = lab(1, XOR);
    lab.apply(vec![member(32, false)]);
    let shown = bond::show::bonds(&lab.router, false).to_string();
    let text = "\
interface name   sw_if_index  mode          load balance  active members members
eth20            20           xor           l34           2              3
";
    assert_eq!(shown, text);
    let shown = bond::show::bonds(&lab.router, true).to_string();
    let text = "\
eth20
  mode: xor
  load balance: l34
  number of active members: 2
    eth31
    eth33
  number of members: 3
    eth31
    eth32
    eth33
  sw_if_index: 20
";
    assert_eq!(shown, text);
    let modes = router::l2::show::modes(&lab.router).to_string();
    let lines: BTreeSet<&str> = modes.lines().collect();
    assert!(
        lines.contains("bond         eth31                    eth20"),
        "{modes}"
    );
}

/// The others have a carrier, too, and wait.
#[test]
fn one_member_of_an_active_backup_bond_is_active() {
    let mut lab = lab(1, Spread::ActiveBackup);
    let active = |lab: &Lab| {
        let shown = bond::show::bonds(&lab.router, true);
        let bond = &shown.bonds[0];
        let active = bond.members.iter().filter(|member| member.active);
        let names: Vec<_> = active.map(|member| member.index).collect();
        assert_eq!(bond.active_members, names.len());
        names
    };
    assert_eq!(active(&lab), [31]);
    lab.apply(vec![member(31, false)]);
    assert_eq!(active(&lab), [32]);
}
