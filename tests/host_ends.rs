//! TAPs: the host's end lies in the namespace and bridge that the configuration names, and what was
//! made for it goes with it.

use std::path::Path;

use rustix::process::Signal;

use crate::harness::{Netns, Router, patience, skipped, until};

/// A router, a namespace of guests with a bridge of its own, and the name of one that is not there.
struct Lab {
    router: Router,
    guests: Netns,
    made: String,
    netns: Netns,
}

impl Lab {
    fn start() -> Self {
        let netns = Netns::create("router").expect("root may");
        let guests = Netns::create("guests").expect("root may");
        let router = Router::start(&netns, NOTHING);
        Lab {
            router,
            made: format!("{}-made", netns.name()),
            guests,
            netns,
        }
    }

    /// Two TAPs that are one wire, the first in a bridge of the guests.
    fn joined(&self, bridge: &str) -> String {
        let (guests, made) = (self.guests.name(), &self.made);
        format!(
            "{NOTHING}interfaces: {{ tap0: {{ mtu: 1400, l2xc: tap1 }}, tap1: {{ mtu: 1400, l2xc: tap0 }} }}\n\
             taps:\n  \
               tap0: {{ host: {{ name: tap0, mac: 02:00:00:00:00:0a, mtu: 1400, bridge: {bridge}, \
                        bridge-create: yes, namespace: {guests} }} }}\n  \
               tap1: {{ host: {{ name: h1, mtu: 1400, namespace: {made}, namespace-create: yes }} }}\n"
        )
    }

    fn apply(&self, yaml: &str) -> Result<String, sandbox::Error> {
        std::fs::write(self.router.file(), yaml).expect("a file");
        let file = self.router.file().display().to_string();
        self.router.ask(&["apply", "-c", &file])
    }

    /// What `ip` says in the namespace that was made. A process in `ip netns exec` sees mounts of
    /// its own.
    fn in_made(&self, arguments: &str) -> Result<String, sandbox::Error> {
        let mounts = format!("--mount=/proc/{}/ns/mnt", self.router.process.pid());
        let argv = ["nsenter", &mounts, "ip", "-n", &self.made];
        sandbox::command::run(
            &argv
                .into_iter()
                .chain(arguments.split(' '))
                .collect::<Vec<_>>(),
        )
    }

    /// The guests reach what is in the other namespace.
    fn assert_joined(&self, bridge: &str) {
        let own = format!("addr replace 10.9.0.1/24 dev {bridge}");
        self.guests.ip(&own).expect("an address");
        self.in_made("addr replace 10.9.0.2/24 dev h1")
            .expect("an address");
        let ping = ["ping", "-c", "1", "-W", "1", "10.9.0.2"];
        let pings = until(patience(), || self.guests.exec(&ping).is_ok());
        assert!(pings, "{}", self.router.process.log());
    }

    /// A device is in the guests' namespace.
    fn has(&self, device: &str) -> bool {
        self.guests.ip(&format!("link show dev {device}")).is_ok()
    }

    /// The namespace that was made has a name still.
    fn is_made(&self) -> bool {
        Path::new("/run/netns").join(&self.made).exists()
    }
}

const NOTHING: &str = "ports: { n: { null: {} } }\n";

impl Drop for Lab {
    fn drop(&mut self) {
        self.router.process.kill();
        let _ = std::fs::remove_file(Path::new("/run/netns").join(&self.made));
    }
}

#[test]
fn the_hosts_end_of_a_tap_lies_where_the_configuration_says() {
    let test = "the_hosts_end_of_a_tap_lies_where_the_configuration_says";
    if skipped(test, &["ip", "ping", "nsenter"]) || lacks_bridges(test) {
        return;
    }
    let mut lab = Lab::start();
    let yaml = lab.joined("br0");
    lab.apply(&yaml).expect("it can be done");
    let shown = lab.guests.ip("link show dev tap0").expect("it is there");
    for said in ["02:00:00:00:00:0a", "mtu 1400", "master br0", "qlen 256"] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    lab.assert_joined("br0");
    lab.apply(NOTHING).expect("it can be done");
    assert!(!lab.has("tap0") && !lab.has("br0") && !lab.is_made());
    // As after a sudden end: the next start removes it, or goes on with it.
    for next in [NOTHING, &yaml] {
        lab.apply(&yaml).expect("it can be done");
        lab.router.process.signal(Signal::KILL);
        lab.router.process.wait(patience()).expect("it ends");
        assert!(lab.has("br0") && lab.is_made());
        std::fs::write(lab.router.file(), next).expect("a file");
        lab.router.relaunch(&lab.netns);
        lab.router.wait();
        assert_eq!(
            (lab.has("br0"), lab.is_made()),
            (next == yaml, next == yaml)
        );
    }
    lab.assert_joined("br0");
    lab.router.process.stop().expect("it ends");
    assert!(!lab.has("br0") && !lab.is_made());
}

#[test]
fn what_was_there_before_a_tap_stays_and_what_is_missing_is_named() {
    let test = "what_was_there_before_a_tap_stays_and_what_is_missing_is_named";
    if skipped(test, &["ip", "ping", "nsenter"]) || lacks_bridges(test) {
        return;
    }
    let lab = Lab::start();
    lab.guests
        .ip("link add br1 up type bridge")
        .expect("a bridge");
    let yaml = lab.joined("br1");
    let refused = yaml.replace("namespace-create: yes", "namespace-create: no");
    let why = lab
        .apply(&refused)
        .expect_err("it is not there")
        .to_string();
    let said = format!("there is no network namespace /run/netns/{}", lab.made);
    assert!(why.contains(&said), "{why}");
    assert!(!lab.has("tap0"));
    lab.apply(&yaml).expect("it can be done");
    lab.assert_joined("br1");
    lab.apply(NOTHING).expect("it can be done");
    assert!(lab.has("br1") && !lab.has("tap0") && !lab.is_made());
}

#[test]
fn what_somebody_has_put_in_a_place_stays_and_a_tap_comes_back() {
    let test = "what_somebody_has_put_in_a_place_stays_and_a_tap_comes_back";
    if skipped(test, &["ip", "ping", "nsenter"]) || lacks_bridges(test) {
        return;
    }
    let mut lab = Lab::start();
    let yaml = lab.joined("br0");
    lab.apply(&yaml).expect("it can be done");
    let file = lab.router.file().display().to_string();
    // The bridge goes and another one comes; the tap leaves its namespace.
    let remake = |lab: &Lab| {
        lab.guests.ip("link del br0").expect("it is there");
        lab.guests
            .ip("link add br0 up type bridge")
            .expect("a bridge");
    };
    remake(&lab);
    lab.in_made("link set h1 netns 1").expect("it can be moved");
    let plan = lab.router.ask(&["plan", "-c", &file]).expect("a plan");
    let made = &lab.made;
    for said in [
        "+ host bridge: br0".to_owned(),
        format!("~ host namespace: elsewhere -> {made}"),
    ] {
        assert!(plan.contains(&said), "{plan}");
    }
    let warnings = lab.router.ask(&["show", "warnings"]).expect("warnings");
    for said in [
        "tap tap0 is no longer in bridge br0".to_owned(),
        format!("tap h1 is no longer in namespace {made}"),
    ] {
        assert!(warnings.contains(&said), "{warnings}");
    }
    lab.apply(&yaml).expect("it can be done");
    let plan = lab.router.ask(&["plan", "-c", &file]).expect("a plan");
    assert!(plan.contains("no change"), "{plan}");
    lab.assert_joined("br0");
    lab.apply(NOTHING).expect("it can be done");
    assert!(!lab.has("tap0") && lab.has("br0") && !lab.is_made());
    lab.guests.ip("link del br0").expect("it is there");
    // The next start removes no bridge that somebody has made meanwhile.
    lab.apply(&yaml).expect("it can be done");
    lab.router.process.signal(Signal::KILL);
    lab.router.process.wait(patience()).expect("it ends");
    remake(&lab);
    std::fs::write(lab.router.file(), NOTHING).expect("a file");
    lab.router.relaunch(&lab.netns);
    lab.router.wait();
    assert!(lab.has("br0") && !lab.is_made());
}

/// The kernel has no bridges; says so.
fn lacks_bridges(test: &str) -> bool {
    let netns = Netns::create("bridges").expect("root may");
    let lacks = netns.ip("link add br0 type bridge").is_err();
    if lacks {
        println!("SKIP {test}: the kernel has no bridges");
    }
    lacks
}
