//! Routes of others.

use super::{Router, alone_with_spare_links, has, patience, skipped, until};

/// Routes of one maker that are counted, and listed.
const MANY: u32 = 300;
const FEW: u32 = 12;

/// They are listed if they are few, and counted if they are many, whoever made them; and they stay.
#[test]
fn routes_of_others_are_listed_or_counted() {
    if skipped("routes_of_others_are_listed_or_counted", &["ip"]) {
        return;
    }
    let (alone, netns) = alone_with_spare_links();
    let yaml = "interfaces:\n  x0: { addresses: [ 10.9.0.1/24, '2001:db8:9::1/64' ] }\n\
                \x20 x1: { addresses: [ 10.10.0.1/24 ] }\n\
                routes: [ { prefix: 16.9.0.0/16, via: 10.9.0.9 } ]\n";
    let router = Router::start(&netns, yaml);
    let prefix = |i: u32| format!("17.{}.{}.0/24", i / 256, i % 256);
    let add = |i| format!("route add {} via 10.9.0.9 proto bgp\n", prefix(i));
    let mut lines: String = (0..MANY).map(add).collect();
    lines += "route add 18.2.0.0/16 via 10.10.0.9 proto ospf metric 20\n\
              route add 18.1.0.0/16 proto ospf nexthop via 10.9.0.9 nexthop via 10.10.0.9\n\
              nexthop add id 7 via 10.10.0.8 dev x1\nroute add 18.3.0.0/16 nhid 7 proto isis\n\
              route add 3fff::/20 via 2001:db8:9::9 proto ra\n\
              route add 18.4.0.0/16 via 10.9.0.9 proto 77\nroute add 18.5.0.0/16 via 10.9.0.9\n";
    netns.ip_batch(&lines).expect("routes of others");
    let file = router.file().display().to_string();
    let plan = || router.ask(&["plan", "-c", &file]).expect("a plan");
    let foreign = "no change\n\nforeign, and left as it is:\n\
        \x20 route 18.5.0.0/16 via 10.9.0.9 on x0 (boot)\n\
        \x20 route 3fff::/20 via 2001:db8:9::9 on x0 (ra)\n\
        \x20 route 18.4.0.0/16 via 10.9.0.9 on x0 (protocol 77)\n\
        \x20 route 18.3.0.0/16 via 10.10.0.8 on x1 (isis)\n\
        \x20 route 18.1.0.0/16 via 10.9.0.9 on x0, via 10.10.0.9 on x1 (ospf)\n\
        \x20 route 18.2.0.0/16 via 10.10.0.9 on x1 (ospf)\n\
        \x20 300 routes on x0 (bgp)\n";
    assert!(until(patience(), || plan() == foreign), "{}", plan());
    let dump = router.ask(&["dump"]).expect("it says what it is");
    for line in foreign.lines().skip(3) {
        let comment = format!("# foreign: {}\n", line.trim_start());
        assert!(dump.contains(&comment), "{comment}{dump}");
    }
    assert!(has(&netns, "route show", &["17.1.43.0/24", "18.2.0.0/16"]));
    // Those that are left when others go are listed.
    let remove = |i| format!("route del {} proto bgp\n", prefix(i));
    let lines: String = (FEW..MANY).map(remove).collect();
    netns.ip_batch(&lines).expect("they can go");
    let few = || {
        let listed = plan().matches("  route 17.0.").count();
        listed == FEW as usize
    };
    assert!(until(patience(), few), "{}", plan());
    drop((router, netns, alone));
}
