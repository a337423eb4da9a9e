//! What a router that ended suddenly has left, and what the next one makes of it.

use super::{
    BTreeSet, PARSHALL, Router, Spawn, alone_with_spare_links, becomes, has, patience, skipped,
    start_again, state, until,
};

#[test]
fn what_a_router_that_died_has_left_goes_and_nothing_else() {
    const NAME: &str = "what_a_router_that_died_has_left_goes_and_nothing_else";
    if skipped(NAME, &["ip"]) || testbed::lacks(NAME, (5, 18), "does not say who made an address") {
        return;
    }
    let (alone, netns) = alone_with_spare_links();
    netns
        .ip_batch(
            "link set x0 up\naddress add 10.9.0.1/24 dev x0\nroute add 16.9.0.0/16 via 10.9.0.7\n",
        )
        .expect("what is another's");
    let yaml = "interfaces:\n  x0: { addresses: [ 10.9.0.1/24, 10.9.0.2/24 ] }\n  x1: { addresses: [ 10.10.0.1/24 ] }\n\
                loopbacks: { loop0: { addresses: [ 10.9.9.9/32 ] } }\n\
                routes: [ { prefix: 16.1.0.0/16, via: 10.9.0.9 }, { prefix: 16.2.0.0/16, via: 10.10.0.9 } ]\n";
    let mut router = Router::start(&netns, yaml);
    assert!(has(
        &netns,
        "route show",
        &["16.1.0.0/16", "16.2.0.0/16", "16.9.0.0/16"]
    ));
    router.process.kill();
    assert!(has(
        &netns,
        "route show",
        &["16.1.0.0/16", "16.2.0.0/16", "16.9.0.0/16"]
    ));
    let yaml = "interfaces:\n  x0: { addresses: [ 10.9.0.3/24 ] }\n";
    start_again(&mut router, &netns, yaml);
    let shown = netns.ip("-4 address show").expect("addresses");
    assert!(
        shown.contains("10.9.0.1/24") && shown.contains("10.9.0.3/24"),
        "{shown}"
    );
    for gone in ["10.9.0.2/", "10.10.0.1/", "10.9.9.9/"] {
        assert!(!shown.contains(gone), "{shown}");
    }
    let shown = netns.ip("route show").expect("routes");
    assert!(
        shown.contains("16.9.0.0/16") && !shown.contains("16.1.") && !shown.contains("16.2."),
        "{shown}"
    );
    router.process.kill();
    let done = netns.exec(&[PARSHALL, "cleanup"]).expect("it cleans up");
    assert!(done.contains("removed address 10.9.0.3/24"), "{done}");
    let shown = netns.ip("-4 address show").expect("addresses");
    assert!(
        shown.contains("10.9.0.1/24") && !shown.contains("10.9.0.3/"),
        "{shown}"
    );
    drop((router, netns, alone));
}

/// After a sudden end the service starts again, by another file: what is in it stays all the time,
/// and a device that is not in it any more is as it was.
#[test]
fn a_sudden_end_withdraws_nothing_that_the_next_start_wants() {
    const NAME: &str = "a_sudden_end_withdraws_nothing_that_the_next_start_wants";
    if skipped(NAME, &["ip"]) || testbed::lacks(NAME, (6, 2), "sets devices down to rename them") {
        return;
    }
    let (alone, netns) = alone_with_spare_links();
    let kept = "interfaces:\n  x0: { lcp: y0, mtu: 1400, addresses: [ 10.9.0.1/24, '2001:db8:9::1/64' ] }\n";
    let routes = "routes:\n  - { prefix: 16.1.0.0/16, via: 10.9.0.9 }\n\
                  \x20 - { prefix: '3fff::/20', via: '2001:db8:9::9' }\n\
                  \x20 - { prefix: 16.3.0.0/16, blackhole: true }\n";
    let yaml = format!("{kept}  x1: {{ lcp: y1 }}\n{routes}");
    let mut router = Router::start(&netns, &yaml);
    let others = ["x1", "y1", "198.51.100."];
    let wanted = || {
        let mut state = state(&netns);
        state.retain(|line| !others.iter().any(|other| line.contains(other)));
        state
    };
    let before = wanted();
    router.process.kill();
    let words = ["monitor", "address", "route"];
    let monitor = Spawn::new("ip").args(words).inside(&netns).start();
    let monitor = monitor.expect("it listens");
    let seen = |mark: &str| {
        // The kernel says nothing of a route that is as it was: made anew each time.
        let shown = || {
            let made = ["add", "del"].map(|verb| {
                let route = format!("route {verb} blackhole {mark} table 99");
                netns.ip(&route).is_ok()
            });
            made == [true; 2] && monitor.log().contains(mark)
        };
        assert!(until(patience(), shown), "{}", monitor.log());
    };
    seen("198.51.100.1");
    std::fs::write(router.file(), format!("{kept}{routes}")).expect("root may write to /run");
    for words in before_the_start() {
        let words: Vec<&str> = words.split_whitespace().collect();
        let done = netns.exec(&[&[PARSHALL], &words[..]].concat());
        done.expect("the service's preparation");
    }
    router.relaunch(&netns);
    router.wait();
    seen("198.51.100.2");
    let log = monitor.log();
    for part in ["10.9.0.", "2001:db8:9:", "16.", "3fff:", "y0"] {
        let gone = |line: &&str| line.starts_with("Deleted") && line.contains(part);
        let gone: Vec<_> = log.lines().filter(gone).collect();
        assert!(gone.is_empty(), "{gone:?}");
    }
    assert_eq!(wanted(), before);
    assert!(has(&netns, "link show", &["y0@", "x1@"]));
    assert!(!has(&netns, "link show", &["y1"]));
    drop((router, monitor, netns, alone));
}

/// What is taken out of the file after a stop in good order goes, as it would have before: the device
/// has its own MTU and Ethernet address again.
#[test]
fn settings_go_from_the_device_after_a_stop_in_good_order() {
    const NAME: &str = "settings_go_from_the_device_after_a_stop";
    if skipped(NAME, &["ip"]) {
        return;
    }
    let (alone, netns) = alone_with_spare_links();
    let with =
        |more: &str| format!("interfaces: {{ x0: {{ {more}addresses: [ 10.9.0.1/24 ] }} }}\n");
    let set = with("mtu: 1400, mac: 02:00:00:00:00:07, ");
    let mut router = Router::start(&netns, &with(""));
    let own = state(&netns);
    becomes(&router, &set);
    let given = state(&netns);
    assert_ne!(given, own);
    for _ in 0..2 {
        router.process.stop().expect("it stops");
        assert_eq!(state(&netns), given);
        start_again(&mut router, &netns, &set);
        assert_eq!(state(&netns), given);
    }
    becomes(&router, &with(""));
    assert_eq!(state(&netns), own);
    // And of one that starts without them.
    becomes(&router, &set);
    router.process.stop().expect("it stops");
    start_again(&mut router, &netns, &with(""));
    assert_eq!(state(&netns), own);
    drop((router, netns, alone));
}

/// A router that ends at any step of a change, or before anybody has confirmed it, leaves devices
/// that are partly as the old configuration says and partly as the new one does. The next start
/// brings up the old one, and other devices are as they were before any router came.
#[test]
fn a_sudden_end_at_any_step_is_put_back() {
    const NAME: &str = "a_sudden_end_at_any_step_is_put_back";
    if skipped(NAME, &["ip"]) || testbed::lacks(NAME, (6, 2), "sets devices down to rename them") {
        return;
    }
    let (alone, netns) = alone_with_spare_links();
    netns
        .ip_batch(
            "link add x2 address 02:00:00:00:01:02 mtu 2800 type veth peer name p2 address 02:00:00:00:02:02\n\
             address add 10.9.0.7/24 dev x0\n",
        )
        .expect("another link");
    let untouched = state(&netns);
    let old = "interfaces:\n  x0: { addresses: [ 10.9.0.1/24 ] }\n\
               \x20 x2: { mtu: 1700, mac: 02:00:00:00:03:02 }\n";
    let new = "interfaces:\n\
               \x20 x0: { lcp: y0, mtu: 1400, mac: 02:00:00:00:03:00, addresses: [ 10.9.0.2/24 ] }\n\
               \x20 x1: { mtu: 1300, mac: 02:00:00:00:03:01, addresses: [ 10.10.0.1/24 ] }\n\
               \x20 x2: { mtu: 1600, state: down }\n";
    let mut router = Router::start(&netns, old);
    let confirmed = state(&netns);
    let file = router.file().with_extension("new");
    std::fs::write(&file, new).expect("root may write to /run");
    let file = file.display().to_string();
    let mut left = Vec::new();
    loop {
        router.process.kill();
        let steps = (left.len() + 1).to_string();
        router.relaunch_with(&netns, &["--end-after-steps", &steps]);
        router.wait();
        assert_eq!(state(&netns), confirmed, "after {} steps", left.len());
        let applied = router.ask(&["apply", "-c", &file, "--confirm", "600s"]);
        if applied.is_ok() {
            break;
        }
        let ended = until(patience(), || router.process.ended().is_some());
        assert!(ended, "{applied:?}\n{}", router.process.log());
        left.push(state(&netns));
    }
    router.process.kill();
    let whole = state(&netns);
    let between = |left: &&BTreeSet<String>| **left != confirmed && **left != whole;
    let torn = left.iter().filter(between).count();
    assert!(torn >= 5, "{torn} of {} ends were inside", left.len());
    router.relaunch(&netns);
    router.wait();
    assert_eq!(state(&netns), confirmed);
    router.process.kill();
    let done = netns.exec(&[PARSHALL, "cleanup"]);
    let log = router.process.log();
    assert_eq!(state(&netns), untouched, "{done:?}\n{log}");
    drop((router, netns, alone));
}

/// A file that the machine refuses is not used, and leaves nothing behind.
#[test]
fn a_start_that_the_machine_refuses_is_one_with_the_last_good_configuration() {
    const NAME: &str = "a_start_that_the_machine_refuses";
    if skipped(NAME, &["ip"]) || testbed::lacks(NAME, (6, 2), "sets devices down to rename them") {
        return;
    }
    let (alone, netns) = alone_with_spare_links();
    netns
        .ip("link add taken type veth peer name other")
        .expect("a name that is taken");
    netns
        .sh("echo 1 > /proc/sys/net/ipv6/conf/other/disable_ipv6")
        .expect("a setting");
    let good = "interfaces: { x0: { mtu: 1400, addresses: [ 10.9.0.1/24 ] } }\n";
    let mut router = Router::start(&netns, good);
    let before = state(&netns);
    let x1 = "x1: { mac: 02:00:00:00:03:01, mtu: 1300, addresses: [ 10.10.0.1/24 ] }";
    let x0 = "x0: { lcp: y0, mtu: 1300, addresses: [ 10.9.0.2/24 ] }";
    for (rest, why) in [
        (
            ", other: { addresses: [ '2001:db8:7::1/64' ] } }\n",
            "other cannot have IPv6 address 2001:db8:7::1/64: IPv6 is disabled on it",
        ),
        (
            ", other: { lcp: taken } }\n",
            "cannot rename other to taken",
        ),
        (
            " }\nnetns: /run/netns/missing\n",
            "no network namespace /run/netns/missing",
        ),
        (
            " }\nworkers: { cpus: [ 4000 ] }\n",
            "there is no processor 4000",
        ),
    ] {
        // In good order or without warning: the file wins if it can, and is not used else.
        for kill in [false, true] {
            match kill {
                true => router.process.kill(),
                false => drop(router.process.stop().expect("it stops")),
            }
            let bad = format!("interfaces: {{ {x0}, {x1}{rest}");
            start_again(&mut router, &netns, &bad);
            assert_eq!(state(&netns), before, "{bad}");
            let shown = router.show_text(&["warnings"]);
            for said in [shown, router.process.log()] {
                assert!(said.contains(why), "{said}");
                let last = "cannot be used: starting with the last good configuration, number 1";
                assert!(said.contains(last), "{said}");
            }
            let history = router.ask(&["history"]).expect("it is there");
            assert_eq!(history.lines().count(), 1, "{history}");
        }
    }
    // Once something is applied, that is in force.
    router.ask(&["rollback", "1"]).expect("applied");
    let gone = || !router.show_text(&["warnings"]).contains("cannot be used");
    assert!(
        until(patience(), gone),
        "{}",
        router.show_text(&["warnings"])
    );
    // Without a good one it does not run.
    router.process.kill();
    std::fs::remove_dir_all(router.file().with_extension("state")).expect("removed");
    std::fs::write(router.file(), "interfaces: { x0: { lcp: taken } }\n").expect("written");
    router.relaunch(&netns);
    let ended = router.process.wait(patience()).expect("it ends");
    let log = router.process.log();
    assert!(
        !ended.success() && log.contains("cannot rename x0 to taken"),
        "{log}"
    );
    drop((router, netns, alone));
}

/// What was applied last is not used once the machine refuses it, nor what it refuses before that; as
/// soon as it takes it, it is used again.
#[test]
fn what_the_machine_refuses_by_now_is_passed_over() {
    const NAME: &str = "what_the_machine_refuses_by_now";
    if skipped(NAME, &["ip"]) || testbed::lacks(NAME, (6, 2), "sets devices down to rename them") {
        return;
    }
    let (alone, netns) = alone_with_spare_links();
    let x0 = |rest: &str| format!("interfaces: {{ x0: {{ addresses: [ 10.9.0.1/24 ] }}{rest} }}\n");
    let mut router = Router::start(&netns, &x0(""));
    for name in ["y2", "y3"] {
        becomes(
            &router,
            &x0(&format!(
                ", x1: {{ lcp: {name}, addresses: [ 10.10.0.1/24 ] }}"
            )),
        );
    }
    let last = state(&netns);
    for kill in [false, true] {
        match kill {
            true => router.process.kill(),
            false => drop(router.process.stop().expect("it stops")),
        }
        if kill {
            netns.exec(&[PARSHALL, "cleanup"]).expect("it is put back");
        }
        netns
            .ip("link add y2 type veth peer name y3")
            .expect("names that are taken");
        router.relaunch(&netns);
        router.wait();
        assert!(has(&netns, "address show x0", &["10.9.0.1/24"]));
        assert!(!has(&netns, "address show x1", &["10.10.0.1/24"]));
        let shown = router.show_text(&["warnings"]);
        for said in [shown, router.process.log()] {
            let refused = ["cannot rename x1 to y3", "cannot rename x1 to y2"];
            assert!(refused.iter().all(|why| said.contains(why)), "{said}");
            let used = "cannot be used: starting with the last good configuration, number 1 of";
            assert!(said.contains(used), "{said}");
        }
        let history = router.ask(&["history"]).expect("it is there");
        assert_eq!(history.matches(" unusable ").count(), 2, "{history}");
        let detail = router.ask(&["history", "3"]).expect("it is there");
        assert!(detail.contains("cannot rename x1 to y3"), "{detail}");
        router.process.stop().expect("it stops");
        netns.ip("link del y2").expect("the names are free");
        router.relaunch(&netns);
        router.wait();
        assert!(
            until(patience(), || state(&netns) == last),
            "{:#?}",
            state(&netns)
        );
        assert!(!router.show_text(&["warnings"]).contains("cannot be used"));
    }
    drop((router, netns, alone));
}

/// What the service runs before the router: words for `parshall`.
fn before_the_start() -> impl Iterator<Item = &'static str> {
    let unit = include_str!("../../dist/parshall.service");
    let begin = "ExecStartPre=/usr/local/sbin/parshall ";
    unit.lines()
        .filter_map(move |line| line.strip_prefix(begin))
}
