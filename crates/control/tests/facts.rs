//! Facts that the kernel tells of devices, neighbors and rules, in network namespaces.

mod support;

use control::machine::hardware::Hardware;
use control::netlink::Requests;
use kernel::ethtool::Ethtool;
use router::change::Mac;

use support::Netns;

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
        there.name()
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

/// Multicast that the host sends, and what does not answer, are no neighbors to send to.
#[test]
fn only_hosts_are_neighbors() {
    let Some(here) = Netns::new("only_hosts_are_neighbors") else {
        return;
    };
    here.ip("link add near type veth peer name far");
    here.ip("address add 192.0.2.1/24 dev near");
    here.ip("link set near up");
    here.ip("link set far up");
    for neighbor in [
        "192.0.2.2 lladdr 02:00:00:00:00:02 nud reachable",
        "2001:db8::2 lladdr 02:00:00:00:00:02 nud stale",
        "ff02::2 lladdr 33:33:00:00:00:02 nud noarp",
        "ff02::16 lladdr 33:33:00:00:00:16 nud permanent",
        "192.0.2.255 lladdr ff:ff:ff:ff:ff:ff nud noarp",
        "192.0.2.3 lladdr 02:00:00:00:00:03 nud failed",
    ] {
        here.ip(&format!("neighbor replace {neighbor} dev near"));
    }
    let mut requests = Requests::open(Some(&here.path())).expect("a socket");
    let link = requests.link_named("near").expect("there").index;
    let neighbors = requests.neighbors(link).expect("a list");
    let mut hosts: Vec<(String, Mac)> = neighbors
        .into_iter()
        .filter_map(|neighbor| Some((neighbor.address.to_string(), neighbor.mac?)))
        .collect();
    hosts.sort();
    let host = |address: &str| (address.to_owned(), Mac([2, 0, 0, 0, 0, 2]));
    assert_eq!(hosts, [host("192.0.2.2"), host("2001:db8::2")]);
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
    let mut ethtool = Ethtool::open(Some(&netns.path())).expect("ethtool");
    let facts = Hardware::of(&link, &mut ethtool);
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
