//! ip4-arp: packets wait for their neighbor.

use crate::harness::*;
use router::arp::Resolve;
use std::time::{Duration, Instant};

fn to(host: u8, n: u16) -> Vec<u8> {
    udp(addr(2, host)).id(n).frame()
}

#[test]
fn the_kernel_is_asked_once_and_packets_leave_in_order() {
    let mut lab = Lab::new();
    lab.receive(1, (0..5).map(|n| to(9, n)));
    lab.receive(1, (5..10).map(|n| to(9, n)));
    let asked = Resolve {
        interface: 2,
        address: addr(2, 9).into(),
    };
    assert_eq!(lab.router.requests(), [asked]);
    assert!(lab.sent(2).is_empty());
    lab.check_buffers(10);
    lab.apply(vec![neighbor(2, 9)]);
    let want: Vec<_> = (0..10).map(|n| forwarded(&to(9, n), 2, 9)).collect();
    assert_eq!(lab.sent(2), want);
    lab.check_buffers(0);
    lab.receive(1, [to(9, 11)]);
    assert_eq!(lab.sent(2), [forwarded(&to(9, 11), 2, 9)]);
}

#[test]
fn a_gateway_that_is_unresolved_is_waited_for() {
    let mut lab = Lab::new();
    let change = router::Route::Forward(vec![via(3, 7)]);
    lab.apply(vec![route("50.0.0.0/8", change)]);
    let frame = udp(0x3200_0001).frame();
    lab.receive(1, [frame.clone()]);
    assert_eq!(
        lab.router.requests()[0].address,
        std::net::Ipv4Addr::new(10, 0, 3, 7)
    );
    // Something else changes: it is tried again, and waits on.
    lab.apply(vec![neighbor(3, 8)]);
    assert!(lab.sent(3).is_empty());
    lab.check_buffers(1);
    lab.apply(vec![neighbor(3, 7)]);
    assert_eq!(lab.sent(3), [forwarded(&frame, 3, 7)]);
    lab.check_buffers(0);
}

#[test]
fn few_packets_are_held_for_one_and_few_neighbors_are_waited_for() {
    let mut lab = Lab::new();
    lab.receive(1, (0..20).map(|n| to(9, n)));
    assert_eq!(lab.edge("ip4-arp", "Full"), 4);
    lab.check_buffers(16);
    lab.apply(vec![route(
        "52.0.0.0/8",
        router::Route::Forward(vec![on_link(3)]),
    )]);
    lab.receive(1, (0..300).map(|n| udp(0x3400_0000 + n).frame()));
    assert_eq!(lab.edge("ip4-arp", "Full"), 4 + 300 - 255);
    assert_eq!(lab.router.requests().len(), 256);
    lab.check_buffers(16 + 255);
}

#[test]
fn a_neighbor_that_does_not_answer_is_given_up() {
    let mut lab = Lab::new();
    lab.receive(1, [to(9, 1), to(9, 2)]);
    let start = Instant::now();
    while lab.edge("ip4-arp", "Unresolved") < 2 && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
        lab.run();
    }
    let sent = lab.sent(1);
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0][34..36], [3, 1], "host unreachable");
    lab.check_buffers(0);
}
