//! Changes of the very interfaces and routes that the traffic takes.

use serde_json::Value;

use super::{Hosts, Router, becomes, skipped, speak_ip6, without_loss};
use crate::harness::random::Random;
use crate::harness::router::forwards;

/// Walks from the bare interfaces, and transitions of each that the plan says nobody notices.
const WALKS: usize = 2;
const QUIET: usize = 12;

/// What an interface may have beside its name: `N` stands for its number.
const FIELDS: [&str; 8] = [
    "10.2N.0.1/24",
    "10.2N.0.2/24",
    "10.2N.1.1/25",
    "198.18.N.77/24",
    "'2001:db8:2N::1/64'",
    "'2001:db8:2N::2/64'",
    "description: words",
    "mtu: 1400",
];

/// Parts of what the traffic goes to, by the host that it goes to anyhow: the route that is there is
/// another's; and some more.
const ROUTES: [&str; 7] = [
    "{ prefix: 48.0.0.0/9, via: 198.18.1.2 }",
    "{ prefix: 48.0.0.0/16, via: 198.18.1.2 }",
    "{ prefix: 48.0.0.0/24, via: 198.18.1.2 }",
    "{ prefix: 48.0.0.0/17, via: 198.18.1.2, metric: 7 }",
    "{ prefix: 48.0.0.0/17, via: 198.18.1.2, metric: 9 }",
    "{ prefix: 16.9.0.0/16, via: 198.18.0.2 }",
    "{ prefix: 16.8.0.0/16, blackhole: true }",
];

/// What of all that is there: of r0, of r1, of the routes.
type Choice = [bool; 2 * FIELDS.len() + ROUTES.len()];

/// One, two or three things more or less.
fn varied(random: &mut Random, mut choice: Choice) -> Choice {
    for _ in 0..1 + random.below(3) {
        let which = random.below(choice.len());
        choice[which] ^= true;
    }
    choice
}

fn yaml(choice: &Choice) -> String {
    let (interfaces, routes) = choice.split_at(2 * FIELDS.len());
    let mut text = String::from("interfaces:\n");
    for (i, chosen) in interfaces.chunks(FIELDS.len()).enumerate() {
        let chosen = FIELDS.iter().zip(chosen).filter(|(_, chosen)| **chosen);
        let fields = chosen.map(|(field, _)| field.replace('N', &i.to_string()));
        let (addresses, mut fields): (Vec<_>, Vec<_>) = fields.partition(|f| f.contains('/'));
        if !addresses.is_empty() {
            fields.push(format!("addresses: [ {} ]", addresses.join(", ")));
        }
        text += &format!("  r{i}: {{ {} }}\n", fields.join(", "));
    }
    let routes: Vec<_> = ROUTES
        .iter()
        .zip(routes)
        .filter(|(_, chosen)| **chosen)
        .collect();
    if !routes.is_empty() {
        text += "routes:\n";
    }
    for (route, _) in routes {
        text += &format!("  - {route}\n");
    }
    text
}

/// The interfaces that the router says a change to this file would interrupt.
fn interrupted(router: &Router, yaml: &str) -> Vec<Value> {
    let file = router.file();
    std::fs::write(&file, yaml).expect("root may write to /run");
    let words = ["plan", "-c", &file.display().to_string(), "--json"];
    let plan = router.ask(&words).expect("a plan");
    let plan: Value = serde_json::from_str(&plan).expect("JSON");
    let steps = plan["steps"].as_array().expect("steps");
    let named = steps.iter().map(|step| step["interrupts"].clone());
    named.filter(|named| !named.is_null()).collect()
}

#[test]
fn what_the_plan_calls_quiet_loses_no_packet() {
    const NAME: &str = "what_the_plan_calls_quiet_loses_no_packet";
    if skipped(NAME, &["ip"]) {
        return;
    }
    let hosts = Hosts::new(1500, false);
    speak_ip6(&hosts.router, ["r0", "r1"]);
    let mut random = Random::new(NAME);
    let bare = yaml(&[false; 2 * FIELDS.len() + ROUTES.len()]);
    let router = Router::start(&hosts.router, &bare);
    let mut all_others = 0;
    for _ in 0..WALKS {
        let (mut choice, mut quiet, mut others) = (Choice::default(), 0, 0);
        without_loss(&hosts, || {
            while quiet < QUIET {
                let next = varied(&mut random, choice);
                if interrupted(&router, &yaml(&next)).is_empty() {
                    becomes(&router, &yaml(&next));
                    choice = next;
                    quiet += 1;
                } else {
                    others += 1;
                    assert!(
                        others < 10 * QUIET,
                        "nearly everything is said to interrupt"
                    );
                }
            }
        });
        all_others += others;
        becomes(&router, &bare);
        let (left, right) = hosts.raw();
        assert!(forwards(&left, &right), "{}", router.process.log());
    }
    assert!(all_others > 0, "nothing is said to interrupt");
}
