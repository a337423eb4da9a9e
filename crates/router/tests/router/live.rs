//! Changes under traffic, with a worker thread: every packet leaves, whole, by a way that was right
//! at some time.

use std::time::{Duration, Instant};

use router::{Change, Route};
use tables::random::Random;

use crate::harness::*;

/// The next change: ways, prefixes and neighbors of what the packets are sent to.
fn change(random: &mut Random) -> Vec<Change> {
    let paths = [
        vec![via(2, 2)],
        vec![via(3, 2)],
        vec![via(2, 2), via(3, 2)],
        vec![via(3, 3), via(2, 3)],
    ];
    let forward = Route::Forward(paths[random.below(4) as usize].clone());
    let length = [8, 16, 24, 25, 30, 32][random.below(6) as usize];
    let prefix =
        router::Prefix::new(std::net::Ipv4Addr::from(FAR + random.below(16)), length).unwrap();
    match random.below(4) {
        0 if length > 8 => vec![Change::RouteDelete { prefix }],
        1 => {
            let (interface, host) = (2 + random.below(2) as u16, 2 + random.below(2) as u8);
            let mut mac = host_mac(interface, host);
            mac.0[1] = random.below(3) as u8;
            vec![Change::NeighborSet {
                interface,
                address: ip(interface as u8, host),
                mac,
            }]
        }
        _ => vec![Change::RouteSet {
            prefix,
            route: forward,
        }],
    }
}

/// Takes what has been sent; each frame must be one of ours, for a neighbor, with the right
/// headers.
fn collect(lab: &Lab, seen: &mut [bool]) -> usize {
    let mut count = 0;
    for id in 2..=3 {
        for frame in lab.sent(id) {
            let n = usize::from(u16::from_be_bytes([frame[18], frame[19]]));
            let sent = packet(n as u16);
            let host = frame[5];
            let mut want = forwarded(&sent, id, host);
            want[1] = frame[1];
            assert!(frame[1] < 3 && (2..4).contains(&host));
            assert!(frame == want && !seen[n], "packet {n}");
            seen[n] = true;
            count += 1;
        }
    }
    count
}

fn packet(n: u16) -> Vec<u8> {
    udp(FAR + u32::from(n % 16)).id(n).frame()
}

#[test]
fn nothing_is_lost_while_routes_and_neighbors_change() {
    let mut lab = Lab::new();
    lab.apply(vec![neighbor(2, 3), neighbor(3, 3)]);
    let worker = lab.workers.remove(0);
    let handle = lab.router.workers.remove(0);
    let handle = worker.start("worker".into(), || Ok(()), handle).unwrap();
    lab.router.workers.push(handle);
    let mut random = Random::new(11);
    let (mut seen, mut received) = (vec![false; 60_000], 0);
    for n in 0..60_000u16 {
        lab.cables[&1].put(packet(n));
        if n % 5 == 0 {
            assert_eq!(lab.router.apply(change(&mut random)), Ok(0));
        }
        // No more than the pool and the ways out take.
        let start = Instant::now();
        while lab.cables[&1].waiting() > 200 {
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "packet {n} waits"
            );
            received += collect(&lab, &mut seen);
            std::thread::yield_now();
        }
    }
    let start = Instant::now();
    while received < seen.len() && start.elapsed() < Duration::from_secs(60) {
        received += collect(&lab, &mut seen);
        lab.router.tick();
    }
    assert_eq!(received, seen.len());
    lab.router.workers[0].stop();
}
