//! The state: routes, host routes of neighbors, next hops that are shared, tables that are full.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use router::ip::show::{Adjacency, Query, Route as Shown, fib};
use router::show::memory;
use router::state::Rejected;
use router::{Change, Interface, Route};

use crate::harness::*;

fn exact(lab: &Lab, text: &str) -> Option<Shown> {
    fib(&lab.router, Query::<u32>::Exact(text.parse().unwrap())).route
}

fn longest(lab: &Lab, destination: u32) -> Option<Shown> {
    fib(&lab.router, Query::Longest(destination)).route
}

/// The one adjacency that packets to this address take.
fn adjacency(lab: &Lab, destination: u32) -> Adjacency {
    longest(lab, destination).unwrap().buckets[0]
        .adjacency
        .clone()
}

#[test]
fn a_neighbor_on_a_connected_network_has_a_host_route() {
    let mut lab = Lab::new();
    assert_eq!(adjacency(&lab, addr(2, 9)).kind, "glean");
    lab.apply(vec![neighbor(2, 9)]);
    assert_eq!(exact(&lab, "10.0.2.9/32").unwrap().source, "neighbor");
    assert_eq!(adjacency(&lab, addr(2, 9)).kind, "rewrite");
    let gone = Change::NeighborDelete {
        interface: 2,
        address: ip(2, 9),
    };
    lab.apply(vec![gone]);
    assert_eq!(exact(&lab, "10.0.2.9/32"), None);
    assert_eq!(adjacency(&lab, addr(2, 9)).kind, "glean");
}

#[test]
fn a_more_specific_route_goes_before_a_neighbor() {
    let mut lab = Lab::new();
    lab.apply(vec![neighbor(2, 9)]);
    let specific = route("10.0.2.8/29", Route::Forward(vec![via(3, 2)]));
    lab.apply(vec![specific.clone()]);
    assert_eq!(adjacency(&lab, addr(2, 9)).interface.unwrap(), "eth3");
    lab.apply(vec![Change::RouteDelete {
        prefix: prefix("10.0.2.8/29"),
    }]);
    assert_eq!(adjacency(&lab, addr(2, 9)).interface.unwrap(), "eth2");
    // The other order.
    lab.apply(vec![specific, neighbor(2, 10)]);
    assert_eq!(adjacency(&lab, addr(2, 10)).interface.unwrap(), "eth3");
}

#[test]
fn a_neighbor_beside_a_route_of_its_own_length() {
    let mut lab = Lab::new();
    let host = |r: Route| route("10.0.2.9/32", r);
    let delete = Change::RouteDelete {
        prefix: prefix("10.0.2.9/32"),
    };
    // A device route to one host is resolved as the network is.
    lab.apply(vec![neighbor(2, 9), host(Route::Forward(vec![on_link(2)]))]);
    assert_eq!(adjacency(&lab, addr(2, 9)).kind, "rewrite");
    lab.apply(vec![Change::NeighborDelete {
        interface: 2,
        address: ip(2, 9),
    }]);
    assert_eq!(adjacency(&lab, addr(2, 9)).kind, "glean");
    assert_eq!(exact(&lab, "10.0.2.9/32").unwrap().source, "route");
    lab.apply(vec![neighbor(2, 9)]);
    assert_eq!(adjacency(&lab, addr(2, 9)).kind, "rewrite");
    // Replaced by the same, by others, and removed.
    lab.apply(vec![host(Route::Forward(vec![on_link(2)]))]);
    assert_eq!(adjacency(&lab, addr(2, 9)).kind, "rewrite");
    lab.apply(vec![host(Route::Forward(vec![via(3, 2)]))]);
    assert_eq!(adjacency(&lab, addr(2, 9)).interface.unwrap(), "eth3");
    lab.apply(vec![host(Route::Blackhole)]);
    assert_eq!(adjacency(&lab, addr(2, 9)).kind, "blackhole");
    lab.apply(vec![delete]);
    assert_eq!(exact(&lab, "10.0.2.9/32").unwrap().source, "neighbor");
    assert_eq!(adjacency(&lab, addr(2, 9)).kind, "rewrite");
}

#[test]
fn routes_share_path_lists_and_give_them_back() {
    let mut lab = Lab::new();
    let used = |lab: &Lab| {
        let tables = memory(&lab.router).tables;
        (tables[5].used, tables[6].used)
    };
    let before = used(&lab);
    let paths = || Route::Forward(vec![via(2, 50), via(3, 50)]);
    let name = |n: u32| format!("20.{n}.0.0/16");
    lab.apply((0..100).map(|n| route(&name(n), paths())).collect());
    assert_eq!(used(&lab), (before.0 + 1, before.1 + 2));
    assert_eq!(exact(&lab, "20.7.0.0/16").unwrap().shared_by, 100);
    // Replaced one by one, and deleted.
    lab.apply((0..50).map(|n| route(&name(n), Route::Blackhole)).collect());
    assert_eq!(exact(&lab, "20.70.0.0/16").unwrap().shared_by, 50);
    let delete = |n| Change::RouteDelete {
        prefix: prefix(&name(n)),
    };
    lab.apply((0..100).map(delete).collect());
    assert_eq!(used(&lab), before);
}

#[test]
fn a_live_adjacency_is_replaced_and_never_edited() {
    let mut lab = Lab::new();
    let old = adjacency(&lab, FAR);
    let mut change = |change: Change, differs: bool| {
        let old = adjacency(&lab, FAR);
        lab.apply(vec![change]);
        let new = adjacency(&lab, FAR);
        assert_eq!(old.id != new.id, differs, "{old} {new}");
        new
    };
    change(neighbor(2, 2), false);
    let mtu = Interface {
        mtu: 9000,
        ..interface(2)
    };
    assert_eq!(change(Change::InterfaceSet(mtu.clone()), true).mtu, 9000);
    let mac = Interface {
        mac: [2, 7, 7, 7, 7, 7].into(),
        ..mtu
    };
    let new = change(Change::InterfaceSet(mac), true);
    assert_eq!(new.rewrite.as_deref(), Some("0200000002020207070707070800"));
    let moved = Change::NeighborSet {
        interface: 2,
        address: ip(2, 2),
        mac: [2, 8, 8, 8, 8, 8].into(),
    };
    assert_ne!(change(moved, true).rewrite, old.rewrite);
}

#[test]
fn a_full_table_keeps_what_was_there() {
    // Interfaces and neighbors use groups of the second level as well: 10.0.1.0/24 to 10.0.3.0/24.
    let mut lab = Lab::sized(1, 4).wired();
    lab.apply(vec![route("48.1.1.0/24", Route::Blackhole)]);
    lab.apply(vec![route("48.1.1.1/32", Route::Prohibit)]);
    let full = route("48.1.2.128/25", Route::Prohibit);
    assert_eq!(lab.router.apply(vec![full.clone()]), Ok(1));
    assert!(memory(&lab.router).fib_full > 0);
    assert_eq!(longest(&lab, 0x3001_0280).unwrap().prefix, "48.0.0.0/8");
    lab.apply(vec![route("48.1.1.1/32", Route::Unreachable)]);
    assert_eq!(longest(&lab, 0x3001_0101).unwrap().kind, "unreachable");
    // Room that is only waiting for its grace period is waited for, if workers run meanwhile.
    lab.apply(vec![Change::RouteDelete {
        prefix: prefix("48.1.1.1/32"),
    }]);
    lab.apply(vec![full]);
    assert_eq!(longest(&lab, 0x3001_0280).unwrap().kind, "prohibit");
}

#[test]
fn room_that_waits_for_its_grace_period_is_waited_for() {
    let mut lab = Lab::sized(1, 1);
    // Without workers the grace period is over at once.
    lab.workers.clear();
    let batch = (0..50).flat_map(come_and_go);
    assert_eq!(lab.router.apply(batch.collect()), Ok(0));
    assert_eq!(memory(&lab.router).fib_full, 0);
    let both = [
        route("48.1.1.128/25", Route::Punt),
        route("48.1.2.128/25", Route::Punt),
    ];
    assert_eq!(lab.router.apply(both.to_vec()), Ok(1));
    assert_eq!(memory(&lab.router).fib_full, 1);
}

/// A prefix that takes a group of the second level of its own.
fn deep(n: u32) -> String {
    format!("48.1.{n}.128/25")
}

/// A route to it, and its end.
fn come_and_go(n: u32) -> Vec<Change> {
    let delete = Change::RouteDelete {
        prefix: prefix(&deep(n)),
    };
    vec![route(&deep(n), Route::Blackhole), delete]
}

/// Neither for a worker that does not come round nor for a program that goes on running: only who
/// needs the room.
#[test]
fn a_change_waits_for_nobody() {
    let control = thread::current().id();
    let (finish, finished) = channel();
    let mut lab = Lab::with_grace(2, move || {
        assert_ne!(
            thread::current().id(),
            control,
            "the caller is kept waiting"
        );
        finished.recv().is_ok()
    });
    assert_eq!(lab.router.apply(come_and_go(1)), Ok(0));
    lab.workers.clear();
    lab.router.tick();
    // The other group is free, the first one in use until the program has ended.
    assert_eq!(lab.router.apply(come_and_go(2)), Ok(0));
    for _ in 0..2 {
        finish.send(()).expect("the program runs");
    }
    let both = [3, 4].map(|n| route(&deep(n), Route::Blackhole));
    assert_eq!(lab.router.apply(both.to_vec()), Ok(0));
}

/// Shows that a batch of changes waits in vain once, not for each change.
#[test]
fn a_batch_waits_in_vain_once() {
    let tries = Arc::new(AtomicUsize::new(0));
    let counted = tries.clone();
    let mut lab = Lab::with_grace(1, move || {
        counted.fetch_add(1, Relaxed);
        false
    });
    lab.workers.clear();
    assert_eq!(lab.router.apply(come_and_go(1)), Ok(0));
    let batch = (2..100).map(|n| route(&deep(n), Route::Blackhole));
    assert_eq!(lab.router.apply(batch.collect()), Ok(98));
    let tries = tries.load(Relaxed);
    assert!(tries < 5, "{tries} times");
}

/// Beside a busy program in the kernel a grace period takes longer than workers are waited for.
#[test]
fn a_long_grace_period_is_no_full_table() {
    let mut lab = Lab::with_grace(2, || {
        thread::sleep(Duration::from_millis(150));
        true
    });
    lab.workers.clear();
    // The first group waits for its grace period already when the second one is retired.
    assert_eq!(lab.router.apply(come_and_go(1)), Ok(0));
    let mut batch = come_and_go(2);
    batch.extend([3, 4].map(|n| route(&deep(n), Route::Blackhole)));
    assert_eq!(lab.router.apply(batch), Ok(0));
    assert_eq!(memory(&lab.router).fib_full, 0);
}

/// Shows that what could not be waited for may still be read.
#[test]
fn without_a_grace_period_nothing_is_used_again() {
    let works = Arc::new(AtomicBool::new(false));
    let grace = works.clone();
    let mut lab = Lab::with_grace(1, move || grace.load(Relaxed));
    lab.workers.clear();
    assert_eq!(lab.router.apply(come_and_go(1)), Ok(0));
    let second = vec![route(&deep(2), Route::Blackhole)];
    assert_eq!(lab.router.apply(second), Ok(1));
    works.store(true, Relaxed);
    while lab.router.deferred() > 0 {
        thread::yield_now();
        lab.router.tick();
    }
    assert_eq!(longest(&lab, 0x3001_0280).unwrap().kind, "blackhole");
}

#[test]
fn an_interface_is_taken_over_even_if_its_adjacencies_find_no_room() {
    let mut lab = Lab::new();
    for n in 0..=255u8 {
        let one = route(
            &format!("30.{n}.0.0/16"),
            Route::Forward(vec![via(3, 2), via(2, n)]),
        );
        lab.router.apply(vec![one]).unwrap();
        lab.run();
    }
    let down = Change::InterfaceSet(Interface {
        up: false,
        ..interface(2)
    });
    assert_eq!(lab.router.apply(vec![down]), Ok(1));
    lab.run();
    lab.receive(2, [udp(FAR).frame()]);
    assert_eq!(lab.edge("ethernet-input", "Down"), 1);
}

#[test]
fn next_hops_that_are_used_up_leave_the_old_route() {
    let mut lab = Lab::new();
    let mut full = 0;
    for n in 0..=255u8 {
        let one = route(&format!("30.{n}.0.0/16"), Route::Forward(vec![via(3, n)]));
        full += lab.router.apply(vec![one]).unwrap();
        lab.run();
    }
    assert!(full > 0 && memory(&lab.router).next_hops_full > 0);
    let change = route("48.0.0.0/8", Route::Forward(vec![via(3, 100), via(2, 99)]));
    assert_eq!(lab.router.apply(vec![change]), Ok(1));
    lab.run();
    assert_eq!(adjacency(&lab, FAR).interface.unwrap(), "eth2");
    // Routes that go make room again.
    let delete = |n: u8| Change::RouteDelete {
        prefix: prefix(&format!("30.{n}.0.0/16")),
    };
    lab.apply((0..=255).map(delete).collect());
    lab.apply(vec![route("48.0.0.0/8", Route::Forward(vec![via(3, 100)]))]);
    assert_eq!(adjacency(&lab, FAR).interface.unwrap(), "eth3");
}

#[test]
fn a_change_that_met_a_full_table_is_applied_when_there_is_room() {
    let mut lab = Lab::sized(1, 4).wired();
    let deep = |n: u32| format!("48.1.{n}.128/25");
    let delete = |n| Change::RouteDelete {
        prefix: prefix(&deep(n)),
    };
    lab.apply(vec![route(&deep(1), Route::Blackhole)]);
    let late = [
        route(&deep(2), Route::Punt),
        route(&deep(3), Route::Punt),
        route(&deep(3), Route::Prohibit),
        route(&deep(4), Route::Prohibit),
    ];
    assert_eq!(lab.router.apply(late.to_vec()), Ok(4));
    assert_eq!(memory(&lab.router).waiting, 3);
    // What was withdrawn meanwhile does not come back.
    lab.apply(vec![delete(2)]);
    lab.apply(vec![delete(1)]);
    lab.run();
    assert_eq!(memory(&lab.router).waiting, 1);
    assert_eq!(longest(&lab, 0x3001_0280).unwrap().prefix, "48.0.0.0/8");
    assert_eq!(longest(&lab, 0x3001_0380).unwrap().kind, "prohibit");
    assert_eq!(longest(&lab, 0x3001_0480).unwrap().prefix, "48.0.0.0/8");
    lab.apply(vec![delete(3)]);
    lab.run();
    assert_eq!(longest(&lab, 0x3001_0480).unwrap().kind, "prohibit");
    assert_eq!(memory(&lab.router).waiting, 0);
}

#[test]
fn a_neighbor_and_a_link_that_met_full_tables_are_right_when_there_is_room() {
    let mut lab = Lab::new();
    let name = |n: u8| format!("30.{n}.0.0/16");
    for n in 0..=255u8 {
        let one = route(&name(n), Route::Forward(vec![via(3, n)]));
        lab.router.apply(vec![one]).unwrap();
        lab.run();
    }
    let moved = Change::NeighborSet {
        interface: 2,
        address: ip(2, 2),
        mac: [2, 8, 8, 8, 8, 8].into(),
    };
    let mtu = Change::InterfaceSet(Interface {
        mtu: 1400,
        ..interface(1)
    });
    assert_eq!(lab.router.apply(vec![moved, mtu]), Ok(2));
    lab.run();
    assert_ne!(adjacency(&lab, FAR).rewrite.unwrap()[..12], *"020808080808");
    let delete = |n: u8| Change::RouteDelete {
        prefix: prefix(&name(n)),
    };
    lab.apply((0..=255).map(delete).collect());
    lab.run();
    assert_eq!(adjacency(&lab, FAR).rewrite.unwrap()[..12], *"020808080808");
    assert_eq!(adjacency(&lab, addr(1, 2)).mtu, 1400);
    assert_eq!(memory(&lab.router).waiting, 0);
}

#[test]
fn a_batch_with_a_wrong_change_is_refused_whole() {
    let mut lab = Lab::new();
    let good = route("70.0.0.0/8", Route::Blackhole);
    let bad = [
        Change::InterfaceSet(Interface {
            mtu: 67,
            ..interface(5)
        }),
        Change::InterfaceSet(Interface {
            mtu: 9217,
            ..interface(5)
        }),
        Change::InterfaceSet(interface(0)),
        Change::InterfaceDelete(256),
        neighbor(0, 1),
        route("71.0.0.0/8", Route::Forward(vec![])),
        route("71.0.0.0/8", Route::Forward(vec![via(1, 2), via(300, 2)])),
    ];
    for wrong in bad {
        let refused: Rejected = lab.router.apply(vec![good.clone(), wrong]).unwrap_err();
        assert!(refused.to_string().starts_with("change 1: "), "{refused}");
        assert_eq!(exact(&lab, "70.0.0.0/8"), None);
    }
}
