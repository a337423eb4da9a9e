//! Preparing devices and putting them back, in network namespaces.

mod support;

use control::config::Config;
use control::netdev::{Devices, configure};
use control::netlink::{Requests, ethtool::Ethtool};
use support::Netns;

#[test]
fn a_device_is_renamed_moved_and_put_back() {
    let (Some(home), Some(away)) = (
        Netns::new("a_device_is_renamed"),
        Netns::new("a_device_is_renamed"),
    ) else {
        return;
    };
    home.ip("link add ether0 type veth peer name ether1");
    home.ip("address add 192.0.2.1/24 dev ether0");
    home.ip("link set ether0 up mtu 1400");
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state.json");
    let devices = || Devices::new(Some(&home.path()), Some(&away.path()), &state);

    let link = devices().prepare("ether0", Some("e0")).expect("prepared");
    assert_eq!(
        (link.name.as_str(), link.altnames.as_slice()),
        ("e0", &["ether0".to_owned()][..])
    );
    assert!(!home.ip("link show").contains("ether0:") && away.ip("link show").contains("e0@"));
    // The next start finds it as it is.
    assert_eq!(
        devices()
            .prepare("ether0", Some("e0"))
            .expect("adopted")
            .index,
        link.index
    );
    let mut requests = Requests::open(Some(&away.path())).expect("a socket");
    let yaml = "interfaces: { ether0: { lcp: e0, mtu: 1300, mac: 02:00:00:00:00:77, addresses: [ 198.51.100.1/24 ] } }";
    let config = Config::parse("x", yaml).expect("a configuration");
    configure(&mut requests, &link, &config.interfaces[0]).expect("configured");
    let shown = away.ip("address show dev e0");
    for part in [
        "mtu 1300",
        "02:00:00:00:00:77",
        "198.51.100.1/24 brd 198.51.100.255",
        ",UP",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }

    assert!(devices().restore().is_empty());
    let shown = home.ip("address show dev ether0");
    for part in ["mtu 1400", "192.0.2.1/24", ",UP"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("altname") && !state.exists());
}

#[test]
fn a_device_that_stays_is_only_renamed() {
    let Some(home) = Netns::new("a_device_that_stays_is_only_renamed") else {
        return;
    };
    home.ip("link add ether0 type veth peer name ether1");
    home.ip("link set ether0 up");
    home.ip("address add 192.0.2.1/24 dev ether0");
    let directory = tempfile::tempdir().expect("a directory");
    let mut devices = Devices::new(
        Some(&home.path()),
        None,
        &directory.path().join("state.json"),
    );
    devices.prepare("ether0", Some("e0")).expect("prepared");
    assert!(home.ip("address show dev e0").contains("192.0.2.1/24"));
    assert!(devices.restore().is_empty());
    assert!(home.ip("address show dev ether0").contains("192.0.2.1/24"));
}

#[test]
fn what_cannot_be_done_is_said_and_changes_nothing() {
    let Some(home) = Netns::new("what_cannot_be_done_is_said") else {
        return;
    };
    home.ip("link add ether0 type veth peer name ether1");
    let directory = tempfile::tempdir().expect("a directory");
    let mut devices = Devices::new(
        Some(&home.path()),
        None,
        &directory.path().join("state.json"),
    );
    let error = devices
        .prepare("ether9", Some("e0"))
        .expect_err("there is none");
    assert!(
        error.to_string().contains("no network device ether9"),
        "{error}"
    );
    let error = devices
        .prepare("ether0", Some("ether1"))
        .expect_err("taken");
    assert!(
        error.to_string().contains("cannot make ether0 into ether1"),
        "{error}"
    );
    assert!(devices.records().is_empty() && home.ip("link show ether0").contains("ether0"));
    let config = Config::parse(
        "x",
        "interfaces: { ether0: { mac: 02:00:00:00:00:01, mtu: 9216 } }",
    )
    .expect("read");
    let mut requests = Requests::open(Some(&home.path())).expect("a socket");
    let link = requests.link_named("ether0").expect("there");
    configure(&mut requests, &link, &config.interfaces[0]).expect("a veth can have it");
}

#[test]
fn neighbors_are_resolved_on_request() {
    let (Some(here), Some(there)) = (
        Netns::new("neighbors_are_resolved"),
        Netns::new("neighbors_are_resolved"),
    ) else {
        return;
    };
    here.ip(&format!(
        "link add near type veth peer name far netns {}",
        there.0
    ));
    here.ip("address add 192.0.2.1/24 dev near");
    there.ip("address add 192.0.2.2/24 dev far");
    here.ip("link set near up");
    there.ip("link set far up");
    let mut requests = Requests::open(Some(&here.path())).expect("a socket");
    let link = requests.link_named("near").expect("there").index;
    requests
        .use_neighbor(link, "192.0.2.2".parse().unwrap())
        .expect("asked");
    let resolved = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        here.ip("neighbor show dev near").contains("REACHABLE")
    });
    assert!(resolved, "{}", here.ip("neighbor show dev near"));
    requests
        .use_neighbor(link, "192.0.2.2".parse().unwrap())
        .expect("asked again");
}

#[test]
fn neighbors_set_for_good_stay() {
    let Some(here) = Netns::new("neighbors_set_for_good_stay") else {
        return;
    };
    here.ip("link add near type veth peer name far");
    here.ip("address add 192.0.2.1/24 dev near");
    here.ip("link set near up");
    here.ip("link set far up");
    here.ip("neighbor add 192.0.2.2 lladdr 02:00:00:00:00:02 dev near nud permanent");
    let mut requests = Requests::open(Some(&here.path())).expect("a socket");
    let link = requests.link_named("near").expect("there").index;
    requests
        .use_neighbor(link, "192.0.2.2".parse().unwrap())
        .expect("asked");
    let shown = here.ip("neighbor show dev near");
    assert!(
        shown.contains("02:00:00:00:00:02") && shown.contains("PERMANENT"),
        "{shown}"
    );
}

#[test]
fn facts_about_a_device_are_found() {
    let Some(netns) = Netns::new("facts_about_a_device_are_found") else {
        return;
    };
    netns.ip("link add near numtxqueues 4 numrxqueues 4 type veth peer name far");
    netns.ip("link set near up");
    netns.ip("link set far up");
    let link = Requests::open(Some(&netns.path()))
        .and_then(|mut r| r.link_named("near"))
        .expect("there");
    let facts = Ethtool::open(Some(&netns.path()))
        .expect("ethtool")
        .hardware(&link);
    assert_eq!(facts.driver.as_deref(), Some("veth"));
    assert_eq!(facts.speed, Some(10_000));
    assert_eq!(facts.full_duplex, Some(true));
    assert_eq!(facts.rx_queues, Some((4, 4)));
    assert!(
        facts
            .offloads
            .iter()
            .any(|name| name == "tx-scatter-gather"),
        "{facts:?}"
    );
}

#[test]
fn policy_rules_are_noticed() {
    let Some(netns) = Netns::new("policy_rules_are_noticed") else {
        return;
    };
    let mut requests = Requests::open(Some(&netns.path())).expect("a socket");
    assert!(!requests.has_policy_rules().expect("asked"));
    netns.ip("rule add from 192.0.2.1 table 100");
    assert!(requests.has_policy_rules().expect("asked"));
}
