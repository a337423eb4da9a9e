//! Flows over several next hops.

use router::{Change, Interface, Path, Route};

use crate::harness::*;

fn flows() -> Vec<Vec<u8>> {
    let flow = |i: u16| {
        wire::craft::Packet::udp((addr(1, 2), 1024 + i), (FAR, 53))
            .macs(host_mac(1, 2), own_mac(1))
            .frame()
    };
    (0..1600).map(flow).collect()
}

fn spread(weights: [u16; 2]) -> Lab {
    let mut lab = Lab::new();
    let path = |interface, weight| Path {
        weight,
        ..via(interface, 2)
    };
    let paths = vec![path(2, weights[0]), path(3, weights[1])];
    lab.apply(vec![route("48.0.0.0/8", Route::Forward(paths))]);
    lab
}

#[test]
fn flows_spread_by_weight_and_stay_on_their_way() {
    for (weights, share) in [([1, 1], 0.5), ([1, 3], 0.25), ([3, 1], 0.75)] {
        let mut lab = spread(weights);
        lab.receive(1, flows());
        let (left, right) = (lab.sent(2), lab.sent(3));
        assert_eq!(left.len() + right.len(), 1600);
        let part = left.len() as f64 / 1600.0;
        assert!(
            (part - share).abs() < 0.06,
            "{part} of the flows, not {share}"
        );
        lab.receive(1, flows());
        assert_eq!((lab.sent(2), lab.sent(3)), (left, right));
        lab.check_buffers(0);
    }
}

#[test]
fn a_link_that_goes_down_gives_its_flows_to_the_other() {
    let mut lab = spread([1, 1]);
    lab.receive(1, flows());
    let (left, right) = (lab.sent(2), lab.sent(3));
    let down = Interface {
        up: false,
        ..interface(2)
    };
    lab.apply(vec![Change::InterfaceSet(down)]);
    lab.receive(1, flows());
    assert_eq!((lab.sent(2).len(), lab.sent(3).len()), (0, 1600));
    lab.apply(vec![Change::InterfaceSet(interface(2))]);
    lab.receive(1, flows());
    let mut shares = [lab.sent(2).len(), lab.sent(3).len()];
    let mut before = [left.len(), right.len()];
    shares.sort_unstable();
    before.sort_unstable();
    assert_eq!(shares, before);
}

#[test]
fn fragments_of_a_packet_take_one_way() {
    let mut lab = spread([1, 1]);
    for word in [0x2000, 0x2001, 0x0002] {
        let frames = flows().into_iter().map(|mut f| {
            f[20..22].copy_from_slice(&u16::to_be_bytes(word));
            seal(&mut f);
            f
        });
        lab.receive(1, frames);
        let sent = [lab.sent(2).len(), lab.sent(3).len()];
        assert!(
            sent.contains(&1600),
            "{sent:?}: ports of a fragment do not count"
        );
    }
}
