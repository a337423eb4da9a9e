//! What the kernel drops is given to it again.

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
