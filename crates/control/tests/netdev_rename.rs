//! Another name for a device that is in use.

mod support;

use control::config::Checked;
use control::config::desired::Interface;
use control::netdev::{Devices, Kept, configure};
use control::netlink::Requests;

use support::Netns;

/// An interface with this `lcp`, for a device ether0.
fn wanted(lcp: &str) -> Interface {
    let yaml = format!("interfaces: {{ ether0: {{ {lcp} addresses: [ 192.0.2.1/24 ] }} }}");
    let checked = Checked::parse("x", &yaml).expect("a configuration");
    let wanted = checked.wanted().expect("what the router can do");
    wanted.interfaces.into_iter().next().expect("one")
}

/// From each name to each other: addresses and routes of others stay, and in the end the device is as
/// it was, whether its router stops in good order or dies.
#[test]
fn a_device_in_use_keeps_what_others_gave_it() {
    let test = "a_device_in_use_keeps_what_others_gave_it";
    for (death, first, names) in [
        (false, "", vec![Some("e0"), Some("e1"), None]),
        (false, "lcp: e0,", vec![None, Some("e1")]),
        (true, "lcp: e0,", vec![Some("e1"), None]),
        (true, "", vec![Some("e0")]),
    ] {
        let Some(home) = Netns::new(test) else { return };
        home.ip("link add ether0 type veth peer name ether1");
        home.ip("link set ether1 up");
        let directory = tempfile::tempdir().expect("a directory");
        let devices = || Devices::new(Some(&home.path()), None, directory.path());
        let mut ours = devices();
        let config = wanted(first);
        let link = ours.prepare(&config).expect("prepared");
        let mut requests = Requests::open(Some(&home.path())).expect("a socket");
        configure(&mut requests, &link, &config).expect("configured");
        home.ip(&format!(
            "address add 2001:db8::9/64 nodad dev {}",
            link.name
        ));
        home.ip("route add 203.0.113.0/24 via 192.0.2.2");
        home.ip("route add 2001:db8:1::/48 via 2001:db8::2");
        let mut now = link.name;
        for name in names {
            now = ours.rename(&now, name).expect("renamed");
            assert_eq!(now, name.unwrap_or("ether0"));
            let shown = home.ip(&format!("address show dev {now}"));
            assert!(shown.contains("192.0.2.1/24") && shown.contains("2001:db8::9/64"));
            let alternative = shown.contains("altname ether0");
            assert_eq!(alternative, name.is_some(), "{shown}");
            let routes = home.ip("route show") + &home.ip("-6 route show");
            for there in ["203.0.113.0/24", "2001:db8:1::/48"] {
                assert!(routes.contains(there), "{routes}");
            }
        }
        // A name that is taken changes nothing.
        let taken = ours.rename(&now, Some("ether1"));
        assert_eq!(taken.unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
        assert!(home.ip("link show").contains(&format!("{now}@")));
        let mut last = if death {
            drop(ours);
            let mut next = devices();
            assert!(next.take_over().is_empty());
            next
        } else {
            ours
        };
        // It was down before.
        for (record, done) in last.restore(Kept::Nothing) {
            done.unwrap_or_else(|error| panic!("{record:?}: {error}"));
        }
        let shown = home.ip("link show ether0");
        assert!(
            !shown.contains("altname") && !shown.contains(",UP"),
            "{shown}"
        );
        assert_eq!(std::fs::read_dir(&directory).expect("there").count(), 0);
    }
}
