//! Ways out: ports that are full or gone, other workers.

use graph::Command;
use router::Route;

use crate::harness::*;

#[test]
fn what_a_full_port_does_not_take_is_counted() {
    let mut lab = Lab::new();
    lab.cables[&2].set_room(10);
    lab.receive(1, vec![udp(FAR).frame(); 100]);
    let counters = &lab.router.workers[0].counters.interfaces[2];
    assert_eq!(
        (counters.tx_packets.get(), counters.tx_errors.get()),
        (10, 90)
    );
    assert_eq!(counters.tx_bytes.get(), 600);
    assert_eq!(lab.sent(2).len(), 10);
    lab.check_buffers(0);
}

#[test]
fn chains_are_freed_wherever_they_end() {
    let mut lab = Lab::new();
    let jumbo = router::Interface {
        mtu: 9216,
        ..interface(2)
    };
    lab.apply(vec![router::Change::InterfaceSet(jumbo)]);
    lab.cables[&2].set_room(1);
    lab.receive(1, vec![udp(FAR).frame_len(9000).frame(); 5]);
    assert_eq!(lab.sent(2).len(), 1);
    lab.check_buffers(0);
    lab.apply(vec![route("48.0.0.0/8", Route::Blackhole)]);
    lab.takes(udp(FAR).frame_len(9000).frame(), "ip4-lookup", "Blackhole");
    // Interface 9 has no port at all.
    lab.apply(connected(9));
    lab.apply(vec![
        neighbor(9, 2),
        route("48.0.0.0/8", Route::Forward(vec![via(9, 2)])),
    ]);
    lab.receive(1, [udp(FAR).frame(), udp(FAR).frame()]);
    assert_eq!(
        lab.router.workers[0].counters.interfaces[9].no_port.get(),
        2
    );
    lab.check_buffers(0);
}

#[test]
fn a_port_that_is_removed_comes_back_to_control() {
    let mut lab = Lab::new();
    let command = Command::RemovePort(2);
    assert!(lab.router.workers[0].command(command).is_ok());
    lab.run();
    let ports = lab.router.collect();
    assert_eq!(ports.len(), 1);
    assert_eq!((ports[0].interface, ports[0].port.name()), (2, "cable2"));
    lab.receive(1, [udp(FAR).frame(), udp(addr(3, 2)).frame()]);
    assert_eq!(
        lab.router.workers[0].counters.interfaces[2].no_port.get(),
        1
    );
    assert_eq!((lab.sent(2).len(), lab.sent(3).len()), (0, 1));
    lab.check_buffers(0);
    lab.plug(2, 0);
    lab.receive(1, [udp(FAR).frame()]);
    assert_eq!(lab.sent(2).len(), 1);
}

#[test]
fn a_packet_is_handed_to_the_worker_of_its_port() {
    let mut lab = Lab::sized(2, 64);
    for id in 1..=2 {
        lab.plug(id, usize::from(id) - 1);
        lab.apply(connected(id));
        lab.apply(vec![neighbor(id, 2)]);
    }
    let frames: Vec<_> = (0..1000).map(|n| udp(addr(2, 2)).id(n).frame()).collect();
    lab.receive(1, frames.clone());
    let want: Vec<_> = frames.iter().map(|f| forwarded(f, 2, 2)).collect();
    assert_eq!(lab.sent(2), want);
    assert_eq!(lab.router.workers[0].counters.worker.handoffs.get(), 1000);
    assert_eq!(
        lab.router.workers[1].counters.interfaces[2]
            .tx_packets
            .get(),
        1000
    );
    lab.check_buffers(0);
}

#[test]
fn a_ring_to_another_worker_that_is_full_loses_and_counts() {
    let mut lab = Lab::sized(2, 64);
    for id in 1..=2 {
        lab.plug(id, usize::from(id) - 1);
        lab.apply(connected(id));
        lab.apply(vec![neighbor(id, 2)]);
    }
    // The other worker does not run.
    for _ in 0..20 {
        (0..256).for_each(|_| lab.cables[&1].put(udp(addr(2, 2)).frame()));
        let idle = (0..100_000).any(|_| lab.workers[0].round(lab.now) == Some(0));
        assert!(idle, "its work has no end");
    }
    let (given, lost) = {
        let c = &lab.router.workers[0].counters.worker;
        (c.handoffs.get(), c.handoff_full.get())
    };
    assert!(lost > 0 && given + lost <= 20 * 256);
    lab.run();
    assert_eq!(lab.sent(2).len() as u64, given);
    lab.check_buffers(0);
}
