//! Changes that fail on the way.

use serde_json::Value;

use super::transitions::varied;
use super::{BTreeSet, Netns, Router, Spawn, change, patience, skipped, spare_links, state, until};
use crate::harness::alone;
use crate::harness::random::Random;

/// Something of every kind.
const RICH: &str = "interfaces:\n\
    \x20 x0: { lcp: y0, mtu: 1400, mac: '02:00:00:00:09:01', addresses: [ 10.9.0.1/24, '2001:db8:9::1/64' ] }\n\
    \x20 t0: { lcp: t0, addresses: [ 10.10.0.1/24 ] }\nports: { t0: { tap: {} } }\n\
    loopbacks: { loop0: { addresses: [ 10.12.0.1/32 ] } }\n\
    routes:\n  - { prefix: 16.2.0.0/16, via: [ 10.9.0.9, { address: 10.10.0.9, weight: 4 } ] }\n\
    \x20 - { prefix: '3fff:1::/32', via: '2001:db8:9::9' }\n";

/// The same otherwise, or gone.
const OTHERWISE: &str = "interfaces:\n\
    \x20 x0: { lcp: z0, mtu: 1300, mac: '02:00:00:00:09:02', addresses: [ 10.9.0.1/25, '2001:db8:9::1/48' ], state: down }\n\
    routes: [ { prefix: 16.2.0.0/16, blackhole: true } ]\n";

/// Pairs of configurations of which the second is any.
const PAIRS: usize = 1;

/// What there is: in the namespace that devices come from, where they live; what the router says of
/// itself, and what it has of its interfaces.
type Seen = ([BTreeSet<String>; 2], String, Value, BTreeSet<String>);

/// Whichever step of a change fails, the configuration is unchanged, and the change can be made.
#[test]
fn a_failure_at_any_step_changes_nothing() {
    const NAME: &str = "a_failure_at_any_step_changes_nothing";
    if skipped(NAME, &["ip"]) {
        return;
    }
    let alone = alone();
    let [home, place] = ["home", "place"].map(|label| Netns::with_ipv6(label).expect("root"));
    spare_links(&home);
    let spawn = Spawn::new("ip").args(["monitor", "link"]).inside(&place);
    let monitor = spawn.start().expect("it listens");
    let mut random = Random::new(NAME);
    let mut all = vec![RICH.to_owned(), OTHERWISE.to_owned()];
    all.extend((0..PAIRS).map(|_| varied(&mut random, "")));
    let within = |yaml: &str| format!("netns: {}\n{yaml}", place.name());
    let router = Router::start_with(&home, &within("interfaces: {}\n"), &["--fail-each-step"]);
    let seen = || -> Seen {
        let dump = router.ask(&["dump"]).expect("it says what it is");
        (
            [state(&home), state(&place)],
            dump,
            in_order(router.show(&["config"])),
            ports(&router),
        )
    };
    let (mut kinds, mut failures) = (BTreeSet::new(), 0);
    for yaml in &all {
        let planned = steps(&router, &within(yaml));
        let before = seen();
        for step in &planned {
            let why = change(&router, &within(yaml)).expect_err("it is told to fail");
            failures += 1;
            let end = ": it is told to fail; the configuration is unchanged";
            let said = || router.process.log().matches(end).count() == failures;
            assert!(
                until(patience(), said),
                "{step}: {why}\n{}",
                router.process.log()
            );
            let same = until(patience(), || seen() == before);
            assert!(
                same,
                "{yaml}\n{step}\n{before:#?}\n{:#?}\n{}",
                seen(),
                router.process.log()
            );
            let back = steps(&router, &before.1);
            assert!(back.is_empty(), "{yaml}\n{step}\n{back:#?}");
        }
        if yaml == RICH {
            // A step before one that failed was taken, and taken back.
            let gone = || monitor.log().contains(" loop0: ") && monitor.log().contains("Deleted ");
            assert!(until(patience(), gone), "{}", monitor.log());
        }
        let done = change(&router, &within(yaml));
        assert_eq!(done, Ok(()), "{yaml}\n{}", router.process.log());
        kinds.extend(planned);
    }
    // Whatever there is has been made, changed and removed.
    for kind in [
        "create interface x0",
        "change interface x0",
        "create interface loop0",
        "remove interface loop0",
        "create route",
        "remove route",
        "lcp",
        "mac",
        "mtu",
        "state",
        "address",
    ] {
        let any = kinds.iter().any(|step| step.contains(kind));
        assert!(any, "{kind}: {kinds:#?}");
    }
    println!("{failures} failures");
    drop((router, monitor, place, home, alone));
}

/// What carries the packets of each interface.
fn ports(router: &Router) -> BTreeSet<String> {
    let hardware = router.show(&["hardware"]);
    let interfaces = hardware["interfaces"].as_array().expect("a list").iter();
    let fields = ["name", "device", "mode", "up", "mac", "mtu"];
    let text = |interface: &Value| fields.map(|field| interface[field].to_string()).join(" ");
    interfaces.map(text).collect()
}

/// With all lists in one order: what comes back stands behind the others.
fn in_order(value: Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut items: Vec<Value> = items.into_iter().map(in_order).collect();
            items.sort_by_key(Value::to_string);
            items.into()
        }
        Value::Object(fields) => {
            let fields = fields.into_iter();
            Value::Object(
                fields
                    .map(|(name, value)| (name, in_order(value)))
                    .collect(),
            )
        }
        value => value,
    }
}

/// The steps that lead to a configuration.
fn steps(router: &Router, yaml: &str) -> Vec<String> {
    let file = router.file().with_extension("wanted.yaml");
    std::fs::write(&file, yaml).expect("root may write to /run");
    let words = ["plan", "-c", &file.display().to_string(), "--json"];
    let plan: Value = serde_json::from_str(&router.ask(&words).expect("a plan")).expect("JSON");
    let steps = plan["steps"].as_array().expect("steps");
    let word = |step: &Value, key: &str| step[key].as_str().unwrap_or_default().to_owned();
    let text = |step: &Value| {
        let (action, object) = (word(step, "action"), word(step, "object"));
        format!("{action} {object} {}", step["fields"])
    };
    steps.iter().map(text).collect()
}
