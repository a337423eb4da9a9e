//! ip4-fragment.

use router::{Change, Interface};

use crate::harness::*;

/// The payload of fragments in the order in which they came, after checks of their headers.
fn reassembled(fragments: &[Vec<u8>], mtu: usize) -> (Vec<u8>, u16) {
    let (mut payload, mut last) = (Vec::new(), 0);
    for (i, frame) in fragments.iter().enumerate() {
        let ip = &frame[14..];
        let total = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
        let word = u16::from_be_bytes([ip[6], ip[7]]);
        assert!(total <= mtu && total > 20 && ip.len() >= total);
        assert_eq!(wire::checksum::of(&ip[..20]), 0);
        assert_eq!((ip[8], ip[9]), (63, 17));
        if i == 0 {
            last = word;
        }
        assert_eq!(
            usize::from(word & 0x1fff) * 8,
            payload.len() + usize::from(last & 0x1fff) * 8
        );
        if i + 1 < fragments.len() {
            assert!(word & 0x2000 != 0 && (total - 20).is_multiple_of(8));
        }
        payload.extend_from_slice(&ip[20..total]);
    }
    let end = fragments
        .last()
        .map_or(0, |f| u16::from_be_bytes([f[20], f[21]]));
    (payload, end & 0x2000)
}

fn lab(mtu: u16) -> Lab {
    with_mtu(Lab::new(), mtu)
}

fn with_mtu(mut lab: Lab, mtu: u16) -> Lab {
    let small = Interface {
        mtu,
        ..interface(2)
    };
    lab.apply(vec![Change::InterfaceSet(small)]);
    lab
}

#[test]
fn last_fragment_may_have_any_length_that_fits() {
    let mut lab = lab(1400);
    for (bytes, pieces) in [(20 + 1376 + 1380, 2), (20 + 1376 + 1381, 3)] {
        let frame = udp(FAR).payload(&vec![7; bytes - 28]).frame();
        lab.takes(frame, "ip4-rewrite", "Fragment");
        assert_eq!(lab.sent(2).len(), pieces, "{bytes}");
    }
}

#[test]
fn fragments_make_the_packet_again() {
    for mtu in [68, 69, 75, 76, 600, 1500, 9000] {
        let mut lab = lab(mtu);
        for bytes in [77, 601, 1501, 1800, 1857, 3000, 9001, 9216] {
            if bytes <= usize::from(mtu) {
                continue;
            }
            let payload: Vec<u8> = (0..bytes - 28).map(|i| (i % 253) as u8).collect();
            let frame = udp(FAR).payload(&payload).id(77).frame();
            lab.takes(frame.clone(), "ip4-rewrite", "Fragment");
            let (whole, more) = reassembled(&lab.sent(2), usize::from(mtu));
            assert!(
                whole == frame[34..] && more == 0,
                "{bytes} bytes over {mtu}"
            );
        }
        assert_eq!(lab.edge("ip4-fragment", "NoBuffer"), 0);
    }
}

#[test]
fn fragments_are_cut_further() {
    let mut lab = lab(576);
    let payload: Vec<u8> = (0..1400).map(|i| (i % 253) as u8).collect();
    for (word, more) in [(0x2000 | 185, 0x2000), (185, 0)] {
        let frame = wire::craft::Packet::raw(addr(1, 2), FAR, 17)
            .macs(host_mac(1, 2), own_mac(1))
            .payload(&payload)
            .fragment(word)
            .frame();
        lab.receive(1, [frame]);
        let sent = lab.sent(2);
        assert_eq!(sent[0][20..22], (0x2000u16 | 185).to_be_bytes());
        assert_eq!(reassembled(&sent, 576), (payload.clone(), more));
    }
}

#[test]
fn packets_stay_in_order_and_a_full_frame_of_them_is_cut() {
    let mut lab = lab(1000);
    let frames: Vec<_> = (0..256)
        .map(|n| udp(FAR).id(n).frame_len(1514).frame())
        .collect();
    lab.receive(1, frames);
    let ids: Vec<u16> = lab
        .sent(2)
        .iter()
        .map(|f| u16::from_be_bytes([f[18], f[19]]))
        .collect();
    let want: Vec<u16> = (0..256).flat_map(|n| [n, n]).collect();
    assert_eq!(ids, want);
    lab.check_buffers(0);
}

#[test]
fn more_fragments_than_queues_hold_are_lost_and_counted() {
    let mut lab = lab(68);
    lab.receive(1, vec![udp(FAR).frame_len(9230).frame(); 64]);
    let lost = lab.router.workers[0].counters.worker.queue_full.get();
    assert!(lost > 0);
    assert_eq!(lab.sent(2).len() as u64 + lost, 64 * 192);
    lab.check_buffers(0);
}

#[test]
fn without_buffers_a_packet_is_lost_whole() {
    let mut lab = with_mtu(Lab::with_buffers(1, 64, 1024).wired(), 68);
    // 64 packets of 192 fragments: more than the pool has.
    let frames = vec![udp(FAR).frame_len(9230).frame(); 64];
    lab.receive(1, frames);
    assert!(lab.edge("ip4-fragment", "NoBuffer") > 0);
    lab.sent(2);
    lab.check_buffers(0);
    lab.takes(udp(FAR).frame(), "ip4-rewrite", "Output");
}
