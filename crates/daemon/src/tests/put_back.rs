//! Settings that the kernel drops are given to it again.

use control::netlink::Kernel;

use super::*;

/// An event that shows that something may be missing does not wait for the next try of what was
/// refused before.
#[test]
fn what_is_dropped_is_back_soon_though_something_was_refused_before() {
    let text = "interfaces: { e0: { addresses: [ 2001:db8::1/64 ] } }";
    let config = Config::parse("test.yaml", text).expect("valid");
    let mut lab = Lab::start(&["e0"], config);
    let before = lab.state();
    let link = lab.machine.link_named("e0").expect("it is there").index;
    let dropped = |lab: &mut Lab, fails| {
        lab.machine.set_up(link, false).expect("it goes down");
        lab.machine.set_up(link, true).expect("it comes up");
        lab.look();
        lab.machine.fail(fails);
        let soon = Instant::now() + Duration::from_secs(1);
        lab.daemon.tick(soon).expect("workers live");
    };
    dropped(&mut lab, Some(0));
    assert!(lab.machine.has_failed());
    assert_ne!(lab.state(), before);
    dropped(&mut lab, None);
    assert_eq!(lab.state(), before);
}

/// An address that somebody else gives a device is a way to the next hop of a route that waits.
#[test]
fn a_route_that_waits_comes_with_a_way_to_its_next_hop() {
    let text = "interfaces: { e0: { addresses: [ 10.9.0.1/24 ] } }\n\
                routes: [ { prefix: 16.3.0.0/16, via: 192.0.2.9 } ]";
    let config = Config::parse("test.yaml", text).expect("valid");
    let mut lab = Lab::start(&["e0"], config);
    assert_eq!(lab.daemon.static_routes.awaited().len(), 1);
    let link = lab.machine.link_named("e0").expect("it is there").index;
    let address = "192.0.2.1".parse().expect("an address");
    lab.machine.add_address(link, address, 24).expect("given");
    lab.look();
    let soon = Instant::now() + Duration::from_secs(1);
    lab.daemon.tick(soon).expect("workers live");
    assert!(lab.daemon.static_routes.awaited().is_empty());
    let state = lab.state();
    assert!(
        state
            .kernel
            .iter()
            .any(|line| line.starts_with("16.3.0.0/16")),
        "{state:?}"
    );
}
