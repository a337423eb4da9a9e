//! Preparing devices and putting them back, in network namespaces.

mod support;

use control::config::Checked;
use control::config::desired::Interface;
use control::netdev::{Devices, Kept, VLAN_PARSE, configure};
use control::netlink::Requests;
use kernel::ethtool::Ethtool;
use router::change::Mac;

use support::Netns;

/// The interface that a line of the configuration describes.
fn interface(yaml: &str) -> Interface {
    let checked = Checked::parse("x", &format!("interfaces: {{ {yaml} }}"));
    let wanted = checked.expect("a configuration").wanted();
    wanted.expect("what the router can do").interfaces.remove(0)
}

/// A namespace with a device that has another Ethernet address, MTU and addresses than any other.
fn home(test: &str) -> Option<Netns> {
    let home = Netns::new(test)?;
    home.ip("link add ether0 address 02:00:00:00:00:10 type veth peer name ether1");
    home.ip("address add 192.0.2.1/24 dev ether0");
    home.ip("address add 2001:db8::1/64 dev ether0 nodad");
    home.ip("link set ether0 up mtu 1400");
    Some(home)
}

/// As at an orderly stop.
fn restored(devices: Devices) {
    put_back(devices, Kept::Settings);
}

fn put_back(mut devices: Devices, kept: Kept) {
    for (record, done) in devices.restore(kept) {
        done.unwrap_or_else(|error| panic!("{record:?}: {error}"));
    }
}

/// All of these are so.
fn shows(shown: &str, parts: &[&str]) {
    for part in parts {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

fn is_empty(directory: &tempfile::TempDir) -> bool {
    std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_none())
}

#[test]
fn a_device_is_renamed_moved_and_put_back() {
    let test = "a_device_is_renamed_moved_and_put_back";
    let (Some(home), Some(away)) = (home(test), Netns::new(test)) else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let devices = || Devices::new(Some(&home.path()), Some(&away.path()), directory.path());
    let wanted = interface(
        "ether0: { lcp: e0, mtu: 1300, mac: 02:00:00:00:00:77, addresses: [ 198.51.100.1/24 ] }",
    );

    let link = devices().prepare(&wanted).expect("prepared");
    assert_eq!(
        (link.name.as_str(), link.altnames.as_slice()),
        ("e0", &["ether0".to_owned()][..])
    );
    assert!(!home.ip("link show").contains("ether0:") && away.ip("link show").contains("e0@"));
    // The next start finds it as it is, also where the one before came no further than to move it.
    away.ip("link property del dev e0 altname ether0");
    let mut next = devices();
    assert_eq!(next.prepare(&wanted).expect("adopted"), link);
    // Gone and there again, as for a driver that is bound anew.
    assert_eq!(next.prepare(&wanted).expect("adopted"), link);
    let mut requests = Requests::open(Some(&away.path())).expect("a socket");
    configure(&mut requests, &link, &wanted).expect("configured");
    let configured = [
        "mtu 1300",
        "02:00:00:00:00:77",
        ",UP",
        "198.51.100.1/24 brd 198.51.100.255",
    ];
    shows(&away.ip("address show dev e0"), &configured);

    restored(next);
    let shown = home.ip("address show dev ether0");
    let before = [
        "mtu 1400",
        "02:00:00:00:00:10",
        ",UP",
        "192.0.2.1/24",
        "2001:db8::1/64",
    ];
    shows(&shown, &before);
    assert!(!shown.contains("altname") && is_empty(&directory));
}

/// The kernel goes on forwarding with its settings, and routes by it stay where it is renamed
/// without being set down.
#[test]
fn a_device_that_stays_gets_its_name_back() {
    let test = "a_device_that_stays_gets_its_name_back";
    let Some(home) = home(test) else { return };
    home.ip("link set ether1 up");
    home.ip("route add 203.0.113.0/24 via 192.0.2.2");
    let directory = tempfile::tempdir().expect("a directory");
    let mut devices = Devices::new(Some(&home.path()), None, directory.path());
    let wanted = interface("ether0: { lcp: e0, mtu: 1300, addresses: [ 198.51.100.1/24 ] }");
    let link = devices.prepare(&wanted).expect("prepared");
    let mut requests = Requests::open(Some(&home.path())).expect("a socket");
    configure(&mut requests, &link, &wanted).expect("configured");
    shows(
        &home.ip("address show dev e0"),
        &["mtu 1300", "192.0.2.1/24"],
    );
    restored(devices);
    let after = ["mtu 1300", "192.0.2.1/24", "198.51.100.1/24", ",UP"];
    shows(&home.ip("address show dev ether0"), &after);
    if !testbed::lacks(test, (6, 2), "sets devices down to rename them") {
        let route = "203.0.113.0/24 via 192.0.2.2 dev ether0";
        shows(&home.ip("route show"), &[route]);
    }
}

/// A note that nobody can read keeps nobody from the device.
#[test]
fn a_note_that_says_nothing_is_written_anew() {
    let Some(home) = home("a_note_that_says_nothing_is_written_anew") else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let devices = || Devices::new(Some(&home.path()), None, directory.path());
    let died = devices().prepare(&interface("ether0: {}"));
    died.expect("prepared");
    let mut entries = std::fs::read_dir(directory.path()).expect("a directory");
    let note = entries.next().expect("a note").expect("an entry").path();
    std::fs::write(&note, "{").expect("written");
    let mut next = devices();
    next.prepare(&interface("ether0: {}")).expect("prepared");
    restored(next);
    assert!(is_empty(&directory));
}

/// The kernel gives the inode number of a namespace that has ended to a later one, which may have a
/// device of the same name, kind and Ethernet address.
#[test]
fn a_note_of_a_namespace_that_is_gone_is_removed_and_not_applied() {
    let test = "a_note_of_a_namespace_that_is_gone_is_removed_and_not_applied";
    let Some(home) = home(test) else { return };
    for (known, other) in [("cookie", "7"), ("boot", "\"of another time\"")] {
        let directory = tempfile::tempdir().expect("a directory");
        let devices = || Devices::new(Some(&home.path()), None, directory.path());
        let died = devices().prepare(&interface("ether0: {}"));
        died.expect("prepared");
        let entries = std::fs::read_dir(directory.path()).expect("a directory");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let note = paths.last().expect("a note");
        let text = std::fs::read_to_string(&note).expect("a text");
        let line = text
            .lines()
            .find(|line| line.contains(&format!("\"{known}\":")));
        let line = line.unwrap_or_else(|| panic!("{known}: {text}"));
        let written = text.replace(line, &format!("\"{known}\": {other},"));
        std::fs::write(&note, written).expect("written");

        home.ip("link set ether0 down");
        let mut next = devices();
        assert!(next.take_over().is_empty());
        assert_eq!(next.restore(Kept::Nothing).len(), 0, "{known}");
        shows(&home.ip("link show ether0"), &["state DOWN"]);
        assert!(is_empty(&directory), "{known}");
        home.ip("link set ether0 up");
    }
}

/// A router that died between its note and the renaming.
#[test]
fn a_device_that_was_not_renamed_yet_is_renamed_by_the_next() {
    let test = "a_device_that_was_not_renamed_yet_is_renamed_by_the_next";
    let Some(home) = home(test) else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let devices = || Devices::new(Some(&home.path()), None, directory.path());
    let wanted = interface("ether0: { lcp: e0 }");
    assert_eq!(devices().prepare(&wanted).expect("prepared").name, "e0");
    home.ip("link property del dev e0 altname ether0");
    home.ip("link set dev e0 name ether0");
    let mut next = devices();
    assert_eq!(next.prepare(&wanted).expect("renamed").name, "e0");
    restored(next);
    shows(&home.ip("link show"), &["ether0@"]);
    assert!(is_empty(&directory));
}

/// A device that a dead router has changed is put back, but for settings that are wanted as they
/// are.
#[test]
fn a_device_that_is_wanted_no_longer_is_put_back() {
    let test = "a_device_that_is_wanted_no_longer_is_put_back";
    let (Some(home), Some(away)) = (home(test), Netns::new(test)) else {
        return;
    };
    home.ip("link add other0 type veth peer name other1");
    let directory = tempfile::tempdir().expect("a directory");
    for place in [None, Some(away.path())] {
        let inner = if place.is_some() { &away } else { &home };
        let devices = || Devices::new(Some(&home.path()), place.as_deref(), directory.path());
        let [kept, gone] = ["ether0: { lcp: e0 }", "ether1: { lcp: e1 }"].map(interface);
        let taken = interface("other0: { lcp: e1 }");
        let mut living = devices();
        living
            .prepare(&interface("other1: { lcp: o1 }"))
            .expect("prepared");
        let mut dead = devices();
        for wanted in [&kept, &gone] {
            dead.prepare(wanted).expect("prepared");
        }
        drop(dead);
        let index = || inner.sh("cat /sys/class/net/e0/ifindex");
        let before = index();
        let mut next = devices();
        let wanted = [kept, taken];
        let put_back = next.put_back_unwanted(&wanted);
        let put_back: Vec<_> = put_back
            .into_iter()
            .map(|(record, done)| (record.original, done.expect("put back")))
            .collect();
        assert_eq!(put_back, [("ether1".to_owned(), ())]);
        assert!(home.ip("link show").contains("ether1@"));
        assert!(inner.ip("link show").contains("o1@"));
        for interface in &wanted {
            next.prepare(interface).expect("prepared");
        }
        assert_eq!(index(), before);
        assert!(inner.ip("link show").contains(" e1@"));
        restored(next);
        restored(living);
        assert!(is_empty(&directory));
    }
}

/// The device is gone; somebody has made another one that is called like it.
#[test]
fn a_stranger_with_the_name_is_left_alone() {
    let test = "a_stranger_with_the_name_is_left_alone";
    let (Some(home), Some(away)) = (home(test), Netns::new(test)) else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let wanted = interface("ether0: { lcp: e0, mtu: 1300 }");
    let makes = [
        "link add e0 type bridge",
        "link add e0 type veth peer name e1",
        // With our device's address, as a bridge takes from its ports.
        "link add e0 address 02:00:00:00:00:10 type bridge",
    ];
    for (netns, make) in [None, Some(away.path())]
        .iter()
        .flat_map(|netns| makes.map(|make| (netns, make)))
    {
        let there = if netns.is_some() { &away } else { &home };
        let devices = || Devices::new(Some(&home.path()), netns.as_deref(), directory.path());
        let mut first = devices();
        first.prepare(&wanted).expect("prepared");
        there.ip("link del e0");
        there.ip(make);
        there.ip("link set e0 mtu 1280");
        let stranger = there.ip("link show dev e0");
        // The next start does not take it for its own device either.
        let error = devices().prepare(&wanted).expect_err("in use");
        assert_eq!(error.kind(), std::io::ErrorKind::ResourceBusy);
        restored(first);
        assert_eq!(there.ip("link show dev e0"), stranger);
        assert!(is_empty(&directory));
        let error = devices().prepare(&wanted).expect_err("it is gone");
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
        there.ip("link del e0");
        home.ip("link add ether0 type veth peer name ether1");
    }
}

/// A device that was made otherwise than it is wanted now is put back first.
#[test]
fn a_device_is_readied_otherwise() {
    let test = "a_device_is_readied_otherwise";
    let (Some(home), Some(away)) = (home(test), Netns::new(test)) else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let prepared = |netns: Option<&Netns>, yaml: &str| {
        let netns = netns.map(Netns::path);
        let home = home.path();
        let mut devices = Devices::new(Some(&home), netns.as_deref(), directory.path());
        let link = devices.prepare(&interface(yaml));
        link.expect("prepared").name
    };
    assert_eq!(prepared(Some(&away), "ether0: { lcp: e0 }"), "e0");
    assert_eq!(prepared(Some(&away), "ether0: { lcp: lan0 }"), "lan0");
    assert_eq!(prepared(None, "ether0: { lcp: lan0 }"), "lan0");
    shows(
        &home.ip("address show dev lan0"),
        &["192.0.2.1/24", ",UP", "altname ether0"],
    );
    assert_eq!(prepared(Some(&away), "ether0: {}"), "ether0");
    shows(&away.ip("link show"), &["ether0@"]);
    assert_eq!(prepared(None, "ether0: {}"), "ether0");
    assert!(home.ip("link show").contains("ether0@"));
}

/// Somebody has put it there, and there it stays.
#[test]
fn a_device_that_is_where_it_is_to_live_is_taken() {
    let test = "a_device_that_is_where_it_is_to_live_is_taken";
    let (Some(here), Some(away)) = (Netns::new(test), home(test)) else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let devices = || Devices::new(Some(&here.path()), Some(&away.path()), directory.path());
    let mut first = devices();
    let link = first.prepare(&interface("ether0: { lcp: e0 }"));
    assert_eq!(link.expect("found").name, "e0");
    restored(first);
    shows(
        &away.ip("address show dev ether0"),
        &["192.0.2.1/24", ",UP"],
    );
    let mut next = devices();
    let link = next.prepare(&interface("ether0: {}"));
    assert_eq!(link.expect("found").name, "ether0");
    restored(next);
    assert!(is_empty(&directory));
}

/// A change is put back whatever it was, and also if it was the only one.
#[test]
fn what_a_dead_router_has_set_is_put_back() {
    let test = "what_a_dead_router_has_set_is_put_back";
    let Some(home) = home(test) else { return };
    home.ip("link set ether1 address 02:00:00:00:00:11 mtu 1600");
    let directory = tempfile::tempdir().expect("a directory");
    let devices = || Devices::new(Some(&home.path()), None, directory.path());
    let shown = || {
        let shown = ["ether0", "ether1"].map(|name| home.ip(&format!("-br link show dev {name}")));
        let mtus = home.sh("cat /sys/class/net/ether0/mtu /sys/class/net/ether1/mtu");
        (shown, mtus)
    };
    let before = shown();
    let named = interface("ether0: { mac: 02:00:00:00:00:77, mtu: 1300, state: down }");
    let die = || {
        let mut dead = devices();
        let mut requests = Requests::open(Some(&home.path())).expect("a socket");
        for wanted in [&named, &interface("ether1: { mtu: 1500 }")] {
            let link = dead.prepare(wanted).expect("prepared");
            configure(&mut requests, &link, wanted).expect("configured");
        }
        // It was changed once more while it ran.
        let (mac, mtu) = (Mac([2, 0, 0, 0, 0, 0x78]), 1280);
        dead.note("ether0", Some(mac), None).expect("written");
        dead.note("ether0", None, Some(mtu)).expect("written");
        let link = requests.link_named("ether0").expect("there");
        requests.set_mac(link.index, mac).expect("set");
        requests.set_mtu(link.index, mtu).expect("set");
    };
    // A cleanup, and a start that wants neither.
    for put_back_all in [
        |mut devices: Devices| {
            assert!(devices.take_over().is_empty());
            put_back(devices, Kept::Nothing);
        },
        |mut devices: Devices| {
            for (record, done) in devices.put_back_unwanted(&[]) {
                done.unwrap_or_else(|error| panic!("{record:?}: {error}"));
            }
        },
    ] {
        die();
        assert_ne!(shown(), before);
        put_back_all(devices());
        assert_eq!(shown(), before);
        assert!(is_empty(&directory));
    }
    // One that wants one of them, and names nothing: the device has its own settings again.
    die();
    let mut next = devices();
    let wanted = [interface("ether0: {}")];
    next.put_back_unwanted(&wanted);
    let link = next.prepare(&wanted[0]).expect("prepared");
    assert_eq!(
        (link.mtu, link.mac),
        (1400, Some(Mac([2, 0, 0, 0, 0, 0x10])))
    );
    assert!(next.before(&link).admin_up && !link.admin_up);
    next.release("ether0").expect("put back");
    assert_eq!(shown(), before);
    assert!(is_empty(&directory));
    // What somebody else has set since stays.
    die();
    home.ip("link set ether0 mtu 1350");
    next.put_back_unwanted(&[]);
    assert!(home.ip("link show dev ether0").contains("mtu 1350"));
}

/// A stop in good order leaves a device with what it was given; what it was like before is known to
/// the next start all the same.
#[test]
fn what_a_device_was_like_outlasts_a_stop_in_good_order() {
    let test = "what_a_device_was_like_outlasts_a_stop_in_good_order";
    let Some(home) = home(test) else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let devices = || Devices::new(Some(&home.path()), None, directory.path());
    let shown = || home.ip("link show dev ether0");
    let run = |yaml: &str| {
        let (mut devices, wanted) = (devices(), interface(yaml));
        devices.put_back_unwanted(std::slice::from_ref(&wanted));
        let link = devices.prepare(&wanted).expect("prepared");
        let mut requests = Requests::open(Some(&home.path())).expect("a socket");
        configure(&mut requests, &link, &wanted).expect("configured");
        let link = requests.link_named(&link.name).expect("there");
        (devices, link)
    };
    let (own, given) = (
        ["mtu 1400", "02:00:00:00:00:10"],
        ["mtu 1300", "02:00:00:00:00:77"],
    );
    let settings = "mtu: 1300, mac: 02:00:00:00:00:77";
    for names in [
        ["", ""],
        ["lcp: e0, ", "lcp: e0, "],
        ["lcp: e0, ", ""],
        ["", "lcp: e0, "],
    ] {
        let yaml = names.map(|name| format!("ether0: {{ {name}{settings} }}"));
        restored(run(&yaml[0]).0);
        shows(&shown(), &given);
        // It is no leftover.
        let mut cleanup = devices();
        assert!(cleanup.take_over().is_empty() && cleanup.restore(Kept::Nothing).is_empty());
        shows(&shown(), &given);
        // A start that cannot be does not lose it.
        devices()
            .prepare(&interface(&format!(
                "ether0: {{ lcp: ether1, {settings} }}"
            )))
            .expect_err("that name is taken");
        for end in [restored as fn(Devices), drop] {
            let (next, link) = run(&yaml[1]);
            let before = next.before(&link);
            assert_eq!(
                (before.mtu, before.mac),
                (1400, Some(Mac([2, 0, 0, 0, 0, 0x10])))
            );
            end(next);
        }
        // One that wants the device, and none of the settings.
        let (next, link) = run("ether0: {}");
        assert_eq!(
            (link.mtu, link.mac),
            (1400, Some(Mac([2, 0, 0, 0, 0, 0x10])))
        );
        restored(next);
        shows(&shown(), &own);
        assert!(is_empty(&directory), "{names:?}");
    }
    let stop = || restored(run(&format!("ether0: {{ {settings} }}")).0);
    // One that does not want the device, which stays up.
    stop();
    for (record, done) in devices().put_back_unwanted(&[]) {
        done.unwrap_or_else(|error| panic!("{record:?}: {error}"));
    }
    shows(&shown(), &own);
    shows(&shown(), &[",UP"]);
    assert!(is_empty(&directory));
    // What somebody else has set since stays.
    stop();
    home.ip("link set ether0 mtu 1350 down");
    devices().put_back_unwanted(&[]);
    shows(&shown(), &["mtu 1350", own[1], "state DOWN"]);
    // A device that is gone is forgotten.
    stop();
    home.ip("link del ether0");
    assert!(devices().take_over().is_empty());
    devices().put_back_unwanted(&[]);
    assert!(is_empty(&directory));
}

/// Two in one namespace, as with two configurations: each looks after its own, and what a dead one
/// left is for anyone.
#[test]
fn each_router_has_its_own_devices() {
    let test = "each_router_has_its_own_devices";
    let Some(home) = home(test) else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let devices = || Devices::new(Some(&home.path()), None, directory.path());
    let (mut one, mut two) = (devices(), devices());
    one.prepare(&interface("ether0: { lcp: e0 }"))
        .expect("prepared");
    two.prepare(&interface("ether1: { lcp: e1 }"))
        .expect("prepared");
    let error = two
        .prepare(&interface("ether0: { lcp: x0 }"))
        .expect_err("in use");
    let expected = format!(
        "device ether0 is in use by another router (pid {})",
        std::process::id()
    );
    assert_eq!(error.to_string(), expected);
    let mut cleanup = devices();
    let kept = cleanup.take_over();
    assert!(
        kept.len() == 2 && cleanup.restore(Kept::Nothing).is_empty(),
        "{kept:?}"
    );
    // Dead without a chance to put anything back.
    drop(one);
    let kept = cleanup.take_over();
    assert!(kept.len() == 1 && kept[0].0.name == "e1", "{kept:?}");
    restored(cleanup);
    shows(&home.ip("link show"), &["ether0@", "e1@"]);
    restored(two);
    shows(&home.ip("link show"), &["ether0@", "ether1@"]);
    assert!(is_empty(&directory));
}

#[test]
fn what_cannot_be_done_is_said_and_changes_nothing() {
    let Some(home) = home("what_cannot_be_done_is_said_and_changes_nothing") else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let mut devices = Devices::new(Some(&home.path()), None, directory.path());
    let mut refused = |yaml: &str| {
        devices
            .prepare(&interface(yaml))
            .expect_err("refused")
            .to_string()
    };
    let error = refused("ether9: { lcp: e0 }");
    assert!(error.contains("no network device ether9"), "{error}");
    let error = refused("ether0: { lcp: ether1 }");
    assert!(error.contains("cannot rename ether0 to ether1"), "{error}");
    assert!(is_empty(&directory) && home.ip("link show ether0").contains("ether0"));
    let wanted = interface("ether0: { mac: 02:00:00:00:00:01, mtu: 9216 }");
    let mut requests = Requests::open(Some(&home.path())).expect("a socket");
    let link = requests.link_named("ether0").expect("there");
    configure(&mut requests, &link, &wanted).expect("a veth can have it");
}

/// The features that take VLAN tags out of frames and are on: C-tags, S-tags.
fn vlan_parse(netns: &Netns, device: &str) -> [bool; 2] {
    let requests = Requests::open(Some(&netns.path()));
    let link = requests.and_then(|mut r| r.link_named(device));
    let link = link.expect("there");
    let mut ethtool = Ethtool::open(Some(&netns.path())).expect("ethtool");
    let on = ethtool.features(link.index).expect("a veth has some");
    VLAN_PARSE.map(|name| on.iter().any(|found| found.name == name))
}

/// Sets one of them, as somebody with `ethtool -K` does.
fn set_vlan_parse(netns: &Netns, device: &str, which: usize, on: bool) {
    let requests = Requests::open(Some(&netns.path()));
    let link = requests.and_then(|mut r| r.link_named(device));
    let mut ethtool = Ethtool::open(Some(&netns.path())).expect("ethtool");
    let (index, name) = (link.expect("there").index, VLAN_PARSE[which].to_owned());
    let refused = ethtool.set_features(index, &[name], on);
    assert!(refused.expect("set").is_empty());
}

/// Readies a device as the router does before it attaches its program; gives its name.
fn readied(devices: &mut Devices, wanted: &Interface) -> String {
    let link = devices.prepare(wanted).expect("prepared");
    let kept = devices.keep_vlan_tags(&link);
    kept.expect("it can be switched off");
    link.name
}

#[test]
fn vlan_tags_stay_in_frames_while_the_router_has_a_device() {
    let test = "vlan_tags_stay_in_frames";
    let (Some(home), Some(away)) = (home(test), Netns::new(test)) else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let cases = [
        (None, "ether0: {}", "ether0"),
        (None, "ether0: { mac: 02:00:00:00:00:77 }", "ether0"),
        (None, "ether0: { lcp: e0 }", "e0"),
        (Some(&away), "ether0: {}", "ether0"),
        (Some(&away), "ether0: { lcp: e0 }", "e0"),
    ];
    for (netns, yaml, name) in cases {
        let (wanted, path) = (interface(yaml), netns.map(Netns::path));
        let there = netns.unwrap_or(&home);
        let devices = || Devices::new(Some(&home.path()), path.as_deref(), directory.path());
        assert_eq!(vlan_parse(&home, "ether0"), [true, true]);
        let mut first = devices();
        assert_eq!(readied(&mut first, &wanted), name);
        assert_eq!(vlan_parse(there, name), [false, false], "{yaml}");
        // Bound anew, it may have them on again.
        set_vlan_parse(there, name, 0, true);
        assert_eq!(readied(&mut first, &wanted), name);
        assert_eq!(vlan_parse(there, name), [false, false], "{yaml}");
        restored(first);
        assert_eq!(vlan_parse(&home, "ether0"), [true, true], "{yaml}");
        assert!(is_empty(&directory));
        // Dead without a chance to put anything back, for a cleanup and for the next start.
        readied(&mut devices(), &wanted);
        let mut requests = Requests::open(Some(&there.path())).expect("a socket");
        let link = requests.link_named(name).expect("there");
        configure(&mut requests, &link, &wanted).expect("configured");
        assert_eq!(vlan_parse(there, name), [false, false], "{yaml}");
        let mut cleanup = Devices::new(Some(&home.path()), None, directory.path());
        assert!(cleanup.take_over().is_empty());
        put_back(cleanup, Kept::Nothing);
        assert_eq!(vlan_parse(&home, "ether0"), [true, true], "{yaml}");
        readied(&mut devices(), &wanted);
        let mut next = devices();
        readied(&mut next, &wanted);
        assert_eq!(vlan_parse(there, name), [false, false], "{yaml}");
        put_back(next, Kept::Nothing);
        assert_eq!(vlan_parse(&home, "ether0"), [true, true], "{yaml}");
        assert!(is_empty(&directory));
    }
}

#[test]
fn vlan_offload_that_is_somebody_elses_choice_stays() {
    let test = "vlan_offload_that_is_somebody_elses";
    let Some(home) = home(test) else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let devices = || Devices::new(Some(&home.path()), None, directory.path());
    let wanted = interface("ether0: {}");
    // What was off stays off; what has been switched on since stays on.
    set_vlan_parse(&home, "ether0", 1, false);
    let mut first = devices();
    readied(&mut first, &wanted);
    set_vlan_parse(&home, "ether0", 0, true);
    restored(first);
    assert_eq!(vlan_parse(&home, "ether0"), [true, false]);
    // There is nothing to switch off.
    set_vlan_parse(&home, "ether0", 0, false);
    let mut next = devices();
    readied(&mut next, &wanted);
    restored(next);
    assert_eq!(vlan_parse(&home, "ether0"), [false, false]);
    home.ip("link add bridge0 type bridge");
    for fixed in ["lo", "bridge0"] {
        let mut next = devices();
        readied(&mut next, &interface(&format!("{fixed}: {{}}")));
        restored(next);
        assert!(is_empty(&directory), "{fixed}");
    }
}

/// As routers in one namespace, each with `netns:`.
#[test]
fn namesakes_that_stay_in_their_namespaces_are_kept_apart() {
    let test = "namesakes_that_stay";
    let (Some(here), Some(one), Some(two)) = (Netns::new(test), home(test), home(test)) else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let devices =
        |netns: &Netns| Devices::new(Some(&here.path()), Some(&netns.path()), directory.path());
    let both = || [&one, &two].map(|netns| vlan_parse(netns, "ether0"));
    let wanted = interface("ether0: {}");
    let (mut first, mut second) = (devices(&one), devices(&two));
    readied(&mut first, &wanted);
    readied(&mut second, &wanted);
    assert_eq!(both(), [[false; 2]; 2]);
    let error = devices(&one).prepare(&wanted).expect_err("in use");
    assert_eq!(error.kind(), std::io::ErrorKind::ResourceBusy);
    restored(first);
    assert_eq!(both(), [[true; 2], [false; 2]]);
    readied(&mut devices(&one), &wanted);
    drop(second);
    let mut cleanup = Devices::new(Some(&here.path()), None, directory.path());
    assert!(cleanup.take_over().is_empty());
    restored(cleanup);
    assert_eq!(both(), [[true; 2]; 2]);
    // Somebody has put it elsewhere, and there it stays.
    let mut first = devices(&one);
    readied(&mut first, &wanted);
    one.ip(&format!("link set ether0 netns {}", here.name()));
    restored(first);
    assert_eq!(vlan_parse(&here, "ether0"), [true; 2]);
    assert!(is_empty(&directory));
}

#[test]
fn a_device_is_written_down_before_it_is_changed() {
    let Some(home) = home("a_device_is_written_down") else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let notes = directory.path().join("notes");
    std::fs::write(&notes, "no directory").expect("a file");
    let wanted = interface("ether0: {}");
    let mut devices = Devices::new(Some(&home.path()), None, &notes);
    devices
        .prepare(&wanted)
        .expect_err("it cannot be written down");
    assert_eq!(vlan_parse(&home, "ether0"), [true, true]);
    // Gone meanwhile: it is waited for, and there is nothing to put back.
    let mut devices = Devices::new(Some(&home.path()), None, directory.path());
    let link = devices.prepare(&wanted).expect("prepared");
    home.ip("link del ether0");
    let error = devices.keep_vlan_tags(&link).expect_err("it is gone");
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    drop(devices);
    // Another one that is called like it.
    home.ip("link add ether0 type veth peer name ether1");
    home.ip("link property add dev ether0 altname other0");
    let mut devices = Devices::new(Some(&home.path()), None, directory.path());
    readied(&mut devices, &interface("other0: {}"));
    restored(devices);
    assert_eq!(vlan_parse(&home, "ether0"), [true, true]);
    std::fs::remove_file(&notes).expect("removed");
    assert!(is_empty(&directory));
}

/// And a note of a program that knew nothing of VLAN offload is read.
#[test]
fn vlan_offload_that_does_not_come_on_again_is_said() {
    let Some(home) = home("vlan_offload_that_does_not_come_on") else {
        return;
    };
    home.ip("link add bridge0 address 02:00:00:00:00:20 type bridge");
    let directory = tempfile::tempdir().expect("a directory");
    let devices = || {
        let mut devices = Devices::new(Some(&home.path()), None, directory.path());
        assert!(devices.take_over().is_empty());
        devices
    };
    let mut first = devices();
    readied(&mut first, &interface("bridge0: { lcp: b0 }"));
    drop(first);
    let entry = std::fs::read_dir(&directory).expect("read").next();
    let note = entry.expect("a note").expect("read").path();
    let text = std::fs::read_to_string(&note).expect("read");
    let field = ",\n  \"vlan_parse\": []";
    assert!(text.contains(field), "{text}");
    let with = |new: &str| std::fs::write(&note, text.replace(field, new)).expect("written");

    with(",\n  \"vlan_parse\": [\"rx-vlan-hw-parse\"]");
    let error = devices()
        .restore(Kept::Nothing)
        .remove(0)
        .1
        .expect_err("refused");
    let expected = "b0: rx-vlan-hw-parse cannot be switched on again; \
                    try `ethtool -K b0 rx-vlan-hw-parse on`";
    assert_eq!(error.to_string(), expected);
    shows(&home.ip("link show"), &["bridge0:"]);
    assert!(note.exists());
    with("");
    restored(devices());
    assert!(is_empty(&directory));
}
