//! Cross connects: every frame crosses as it is, with the tags of the other end in place of its own.

use graph::{Buffers, Pkt, Stage};
use router::{Change, Interface, Kind, L2, Tags, eth, vlan};
use tables::random::Random;
use wire::craft::Packet;

use crate::harness::*;

/// Sub-interfaces: number, parent, tags.
const SUBS: [(u16, u16, Tags); 8] = [
    (11, 1, Tags::one(100)),
    (12, 1, Tags::two(200, 300).with_service()),
    (13, 1, Tags::one(400).with_further()),
    (14, 1, Tags::two(400, 5).with_further()),
    (21, 2, Tags::one(101)),
    (22, 2, Tags::two(201, 301)),
    (23, 2, Tags::one(401).with_service().with_further()),
    (24, 2, Tags::two(402, 6).with_further()),
];

/// What a frame has, without addresses: its tags, each with its priority, and what follows.
type Tagged = (Vec<(u16, u16)>, Vec<u8>);

fn place(id: u16) -> Option<(u16, Tags)> {
    let sub = SUBS.iter().find(|sub| sub.0 == id);
    sub.map(|(_, parent, tags)| (*parent, *tags))
}

/// The interface whose cable an interface's frames come by.
fn parent(id: u16) -> u16 {
    place(id).map_or(id, |(parent, _)| parent)
}

fn tags(id: u16) -> Tags {
    place(id).map_or(Tags::NONE, |(_, tags)| tags)
}

fn plain(id: u16) -> Interface {
    match place(id) {
        None => interface(id),
        Some((parent, tags)) => Interface {
            kind: Kind::Sub {
                parent,
                tags,
                host: None,
            },
            ..interface(id)
        },
    }
}

fn crossed(id: u16, to: u16) -> Interface {
    Interface {
        l2: Some(L2::CrossConnect(to)),
        ..plain(id)
    }
}

fn connect(lab: &mut Lab, from: u16, to: u16) {
    lab.apply(vec![Change::InterfaceSet(crossed(from, to))]);
}

/// Interfaces 1 to 3, routed, and all sub-interfaces of 1 and 2, without addresses.
fn lab() -> Lab {
    with_subs(Lab::new())
}

fn with_subs(mut lab: Lab) -> Lab {
    for sub in SUBS {
        lab.sub(sub, None);
    }
    lab
}

/// Words of an interface's tags: types and VLAN identifiers.
fn words(tags: Tags) -> Vec<(u16, u16)> {
    let outer = if tags.service { 0x88a8 } else { 0x8100 };
    let both = [(outer, tags.outer), (0x8100, tags.inner)];
    both[..usize::from(tags.count)].to_vec()
}

fn bytes(addresses: &[u8], (tags, rest): &Tagged) -> Vec<u8> {
    let tags = tags
        .iter()
        .flat_map(|(a, b)| [a.to_be_bytes(), b.to_be_bytes()].concat());
    [addresses.to_vec(), tags.collect(), rest.clone()].concat()
}

/// Any frame: any addresses, any type that is no tag, up to 90 bytes behind it; with the tags of an
/// interface, any priority, and further tags where those may follow.
fn any_frame(random: &mut Random, from: Tags) -> ([u8; 12], Tagged) {
    let mut addresses: [u8; 12] = std::array::from_fn(|_| random.word() as u8);
    // Nobody sends from the address of a group.
    addresses[6] &= !1;
    let mut all = words(from);
    if from.further && random.below(2) > 0 {
        all.push((0x8100, 7));
    }
    for (_, tci) in &mut all {
        *tci |= (random.below(16) as u16) << 12;
    }
    let types = [
        0x0800u16, 0x86dd, 0x0806, 0x88cc, 0x8809, 0x8847, 60, 0x9100,
    ];
    let ethertype = types[random.below(8) as usize].to_be_bytes();
    let payload: Vec<u8> = (0..random.below(90)).map(|_| random.word() as u8).collect();
    (addresses, (all, [&ethertype[..], &payload].concat()))
}

/// The oracle: edits the list of tags.
fn retagged((mut all, rest): Tagged, from: Tags, to: Tags) -> Tagged {
    let popped: Vec<_> = all.drain(..usize::from(from.count)).collect();
    let mut pushed = words(to);
    if let (Some((_, new)), Some((_, old))) = (pushed.first_mut(), popped.first()) {
        *new |= old & 0xf000;
    }
    pushed.append(&mut all);
    (pushed, rest)
}

#[test]
fn every_frame_crosses_with_the_tags_of_its_way() {
    let mut random = Random::new(0x6c32);
    let ends = |port: u16| {
        [port]
            .into_iter()
            .chain(SUBS.iter().filter(move |s| s.1 == port).map(|s| s.0))
    };
    for workers in [1, 2] {
        for (from, to) in ends(1).flat_map(|from| ends(2).map(move |to| (from, to))) {
            let mut lab = with_subs(Lab::sized(workers, 64).wired());
            connect(&mut lab, from, to);
            connect(&mut lab, to, from);
            for (from, to) in [(from, to), (to, from)] {
                let frames: Vec<_> = (0..200)
                    .map(|_| any_frame(&mut random, tags(from)))
                    .collect();
                let received = frames.iter().map(|(macs, tagged)| bytes(macs, tagged));
                let received: Vec<_> = received.collect();
                let came: usize = received.iter().map(Vec::len).sum();
                let before = [lab.counted(from), lab.counted(to)];
                lab.receive(parent(from), received);
                let want = frames
                    .into_iter()
                    .map(|(macs, tagged)| bytes(&macs, &retagged(tagged, tags(from), tags(to))));
                let want: Vec<_> = want.collect();
                let left: usize = want.iter().map(Vec::len).sum();
                assert_eq!(lab.sent(parent(to)), want, "{from} to {to}");
                // Ports count for themselves.
                if from != parent(from) {
                    let counted = lab.counted(from);
                    assert_eq!(counted[0] - before[0][0], 200);
                    assert_eq!(counted[1] - before[0][1], came as u64);
                }
                if to != parent(to) {
                    let counted = lab.counted(to);
                    assert_eq!(counted[2] - before[1][2], 200);
                    assert_eq!(counted[3] - before[1][3], left as u64);
                }
            }
            lab.check_buffers(0);
        }
    }
}

/// A frame with these tags, from 02:..:09 to 02:..:08.
fn frame(tags: &[(u16, u16)], len: usize) -> Vec<u8> {
    let macs = [2, 0, 0, 0, 0, 8, 2, 0, 0, 0, 0, 9];
    bytes(
        &macs,
        &(tags.to_vec(), [&[0x88, 0xb5][..], &vec![7; len]].concat()),
    )
}

#[test]
fn the_tags_of_a_frame_say_whose_it_is() {
    let mut lab = lab();
    lab.apply(vec![
        Change::InterfaceSet(crossed(1, 2)),
        Change::InterfaceSet(crossed(11, 21)),
        Change::InterfaceSet(crossed(12, 22)),
        Change::InterfaceSet(crossed(13, 23)),
        Change::InterfaceSet(crossed(14, 24)),
    ]);
    for (tags, to) in [
        (&[][..], 2),
        (&[(0x8100, 100)], 21),
        // Sub-interface 11 lets no further tag follow.
        (&[(0x8100, 100), (0x8100, 1)], 2),
        (&[(0x8100, 100), (0x88a8, 1)], 2),
        (&[(0x88a8, 100)], 2),
        (&[(0x8100, 0)], 2),
        (&[(0x88a8, 200), (0x8100, 300)], 22),
        (&[(0x8100, 200), (0x8100, 300)], 2),
        (&[(0x88a8, 200)], 2),
        (&[(0x88a8, 200), (0x8100, 300), (0x8100, 1)], 2),
        (&[(0x8100, 400)], 23),
        (&[(0x8100, 400), (0x8100, 4)], 23),
        (&[(0x8100, 400), (0x88a8, 5)], 23),
        (&[(0x8100, 400), (0x8100, 4), (0x8100, 4)], 23),
        (&[(0x8100, 400), (0x8100, 5)], 24),
        (&[(0x8100, 400), (0x8100, 5), (0x8100, 4)], 24),
    ] {
        let from = SUBS
            .iter()
            .find(|sub| sub.0 + 10 == to)
            .map_or(Tags::NONE, |sub| sub.2);
        lab.receive(1, [frame(tags, 60)]);
        let (want, _) = retagged((tags.to_vec(), vec![]), from, self::tags(to));
        assert_eq!(lab.sent(2), [frame(&want, 60)], "{tags:x?}");
    }
}

/// On a routed interface, only sub-interfaces are at layer 2: the rest is routed as ever.
#[test]
fn a_sub_interface_of_a_routed_interface_crosses() {
    let mut lab = lab();
    connect(&mut lab, 13, 3);
    lab.receive(
        1,
        [frame(&[(0x8100, 400), (0x8100, 9)], 60), udp(FAR).frame()],
    );
    assert_eq!(lab.sent(3), [frame(&[(0x8100, 9)], 60)]);
    assert_eq!(lab.sent(2), [forwarded(&udp(FAR).frame(), 2, 2)]);
    // Neither tags of nobody, nor one more than the sub-interface has, are its own; and the frame is
    // not for the host.
    lab.takes(frame(&[(0x8100, 401)], 60), "vlan-input", "NoSub");
}

#[test]
fn a_sub_interface_that_allows_further_tags_routes_nothing() {
    let mut lab = lab();
    let mut packet = udp(FAR).frame();
    packet.splice(12..12, [0x81, 0, 1, 144]);
    packet[..6].copy_from_slice(&own_mac(13).0);
    lab.apply(vec![addressed(13)]);
    lab.takes(packet, "vlan-input", "Down");
}

#[test]
fn a_ring_is_one_way_round() {
    let mut lab = lab();
    for (from, to) in [(1, 2), (2, 3), (3, 1)] {
        connect(&mut lab, from, to);
    }
    for (from, to) in [(1, 2), (2, 3), (3, 1)] {
        lab.receive(from, [frame(&[], 60)]);
        let sent: Vec<_> = (1..=3).map(|id| lab.sent(id).len()).collect();
        let want: Vec<_> = (1..=3).map(|id| usize::from(id == to)).collect();
        assert_eq!(sent, want, "{from}");
    }
}

#[test]
fn frames_that_cannot_cross_are_dropped_with_their_reason() {
    let mut lab = lab();
    connect(&mut lab, 1, 2);
    connect(&mut lab, 11, 21);
    // One way only: what comes in at the other end goes nowhere, and is not routed.
    let to_us = Packet::udp((addr(2, 2), 1), (FAR, 2)).macs(host_mac(2, 2), own_mac(2));
    lab.receive(2, [to_us.frame(), frame(&[(0x8100, 101)], 60)]);
    assert_eq!(lab.edge("ethernet-input", "Unconnected"), 1);
    assert_eq!(lab.edge("vlan-input", "Unconnected"), 1);

    lab.takes(frame(&[], 60)[..13].to_vec(), "ethernet-input", "Runt");
    for (tags, node) in [
        (&[][..], "ethernet-input"),
        (&[(0x8100, 100)], "vlan-input"),
    ] {
        let mut of_group = frame(tags, 60);
        of_group[6] |= 1;
        lab.takes(of_group, node, "BadSource");
    }
    lab.takes(
        frame(&[(0x8100, 100)], 60)[..17].to_vec(),
        "vlan-input",
        "Runt",
    );
    let mut crosses = |frame: Vec<u8>| {
        lab.receive(1, [frame]);
        lab.sent(2).len()
    };
    assert_eq!(crosses(frame(&[], 60)[..14].to_vec()), 1);
    assert_eq!(crosses(frame(&[(0x8100, 100)], 60)[..18].to_vec()), 1);
    // Tags do not count.
    for tags in [
        &[][..],
        &[(0x8100, 100)],
        &[(0x8100, 9)],
        &[(0x88a8, 9), (0x8100, 9)],
    ] {
        assert_eq!(crosses(frame(tags, 1500)), 1, "{tags:x?}");
        assert_eq!(crosses(frame(tags, 1501)), 0, "{tags:x?}");
    }
    assert_eq!(lab.edge("ethernet-input", "TooLong"), 1);
    assert_eq!(lab.edge("vlan-input", "TooLong"), 3);

    for down in [2, 21] {
        let down = Interface {
            up: false,
            ..plain(down)
        };
        lab.apply(vec![Change::InterfaceSet(down)]);
    }
    lab.takes(frame(&[], 60), "ethernet-input", "OtherDown");
    lab.takes(frame(&[(0x8100, 100)], 60), "vlan-input", "OtherDown");
    lab.apply(vec![Change::InterfaceDelete(2)]);
    lab.takes(frame(&[], 60), "ethernet-input", "OtherDown");
    // It is plugged in again.
    lab.apply(vec![Change::InterfaceSet(plain(2))]);
    lab.takes(frame(&[], 60), "ethernet-input", "CrossConnect");
    lab.takes(frame(&[(0x8100, 9)], 60), "vlan-input", "CrossConnect");
}

#[test]
fn tags_need_room_in_front() {
    let mut lab = lab();
    connect(&mut lab, 1, 22);
    connect(&mut lab, 11, 21);
    connect(&mut lab, 13, 22);
    let pool = lab.router.pool().clone();
    let mut bufs = Buffers::new(pool.clone());
    let cx = lab.workers[0].context();
    let mut at_the_front = |tags| {
        let frame = frame(tags, 60);
        let mut d = bufs.copy_in(&frame).unwrap();
        d.rx_if = 1;
        let mut p = Pkt::new(&pool, &mut d);
        while p.shift(-1) {}
        p.truncate(frame.len());
        p.bytes_mut().copy_from_slice(&frame);
        let next = match tags {
            [] => format!("{:?}", eth::Input.packet(cx, &mut p)),
            _ => format!("{:?}", vlan::Input::default().packet(cx, &mut p)),
        };
        let left = p.bytes().to_vec();
        bufs.free(d);
        (next, left)
    };
    let as_it_came = |tags| ("NoRoom".to_owned(), frame(tags, 60));
    assert_eq!(at_the_front(&[]), as_it_came(&[]));
    let one = &[(0x8100, 400)];
    assert_eq!(at_the_front(one), as_it_came(one));
    // As many tags go where others were.
    let crossed = ("CrossConnect".to_owned(), frame(&[(0x8100, 101)], 60));
    assert_eq!(at_the_front(&[(0x8100, 100)]), crossed);
}

/// The interface's line as it was before anything was cross-connected, and packets are routed again.
#[test]
fn what_is_no_longer_connected_is_routed() {
    let mut lab = Lab::with_host();
    let lines = |lab: &mut Lab| {
        let reader = lab.workers[0].context().interfaces.clone();
        [1, 2, 3].map(|id| {
            let line = reader.load(id);
            (line.mode(), line.peer(), line.l2())
        })
    };
    let before = lines(&mut lab);
    let routed = Interface {
        kind: Kind::Routed { host: Some(4) },
        ..interface(1)
    };
    let crossed = |to| Interface {
        l2: Some(L2::CrossConnect(to)),
        ..routed.clone()
    };
    lab.apply(vec![
        Change::InterfaceSet(crossed(2)),
        Change::InterfaceSet(crossed(3)),
    ]);
    lab.receive(1, [udp(FAR).frame()]);
    assert_eq!(lab.sent(3), [udp(FAR).frame()]);
    // No longer the other end of one.
    assert_eq!(lines(&mut lab)[1], before[1]);
    lab.apply(vec![Change::InterfaceSet(routed.clone())]);
    assert_eq!(lines(&mut lab), before);
    lab.receive(1, [udp(FAR).frame()]);
    assert_eq!(lab.sent(2), [forwarded(&udp(FAR).frame(), 2, 2)]);

    lab.apply(vec![
        Change::InterfaceSet(crossed(2)),
        Change::InterfaceDelete(1),
    ]);
    assert_eq!(lines(&mut lab)[1..], before[1..]);
    lab.apply(vec![Change::InterfaceSet(routed)]);
    assert_eq!(lines(&mut lab)[0].2, None);
}

#[test]
fn another_end_out_of_range_is_refused() {
    let mut lab = lab();
    let refused = lab
        .router
        .apply(vec![Change::InterfaceSet(crossed(1, 999))]);
    assert!(refused.unwrap_err().to_string().contains("interface 999"));
}

/// Cross connects of interface 1, from tagged to plain and the other way round, with their golden
/// files.
pub fn golden() -> Lab {
    let mut lab = with_subs(Lab::with_host());
    lab.apply(vec![
        Change::InterfaceSet(crossed(1, 22)),
        Change::InterfaceSet(crossed(11, 2)),
        Change::InterfaceSet(crossed(12, 21)),
        Change::InterfaceSet(crossed(13, 3)),
        Change::InterfaceSet(crossed(14, 99)),
    ]);
    lab
}

/// The frames that interface 1 of [`golden`] receives.
pub fn frames() -> Vec<Vec<u8>> {
    let urgent = 0xf000;
    let tagged = [
        &[][..],
        &[(0x8100, urgent | 100)],
        &[(0x88a8, urgent | 200), (0x8100, 300)],
        &[(0x8100, 400), (0x8100, 9)],
        &[(0x8100, 400), (0x8100, 5)],
    ];
    let mut all: Vec<_> = tagged.map(|tags| frame(tags, 46)).into();
    all.push(udp(FAR).frame());
    all.push(frame(&[], 1501));
    all.push(frame(&[(0x8100, 100)], 60)[..17].to_vec());
    all
}
