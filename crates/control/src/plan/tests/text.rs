//! Plans as people read them.

use super::super::*;
use super::plan;

/// A plan says what the file says: no value that nobody wrote, no field without its value.
#[test]
fn a_plan_reads_as_the_file_does() {
    let to = "routes:\n- { prefix: 10.0.0.0/8, blackhole: yes }\n\
              - { prefix: 10.1.0.0/16, via: [ { interface: e0 } ], metric: 5 }\n\
              - { prefix: 10.2.0.0/16, via: [ { interface: e0, weight: 3 }, { interface: e1 } ] }\n\
              bridgedomains: { bd1: { mtu: 1500, settings: { learn: no } } }\n\
              sflow: {}\ninterfaces: { e0: {}, e1: {} }";
    let plan = plan("interfaces: { e0: {}, e1: {} }", to);
    let wanted = "\
+ bridgedomain bd1
    + learn: false
    + mtu: 1500
+ route 10.0.0.0/8
    + blackhole: true
+ route 10.1.0.0/16 metric 5
    + via 1 interface: e0
+ route 10.2.0.0/16
    + via 1 interface: e0
    + via 1 weight: 3
    + via 2 interface: e1
+ sflow
";
    let text = plan.text(true);
    assert!(text.starts_with(wanted), "{text}");
    assert!(
        text.contains(" create route 10.0.0.0/8 blackhole: true\n"),
        "{text}"
    );
}

/// An interface that follows from an address is shown only where it becomes another.
#[test]
fn an_interface_that_nobody_wrote_is_not_shown() {
    let at = |e0: &str, e1: &str, via: &str| {
        format!(
            "interfaces: {{ e0: {{ addresses: [ {e0} ] }}, e1: {{ addresses: [ {e1} ] }} }}\n\
             routes: [ {{ prefix: 10.0.0.0/8, via: [ {via} ] }} ]"
        )
    };
    let (here, there) = ("192.0.2.1/24", "198.51.100.1/24");
    let found = at(here, there, "192.0.2.2");
    let none = found.split("routes").next().unwrap_or_default();
    let text = plan(none, &found).text(true);
    assert!(
        text.starts_with("+ route 10.0.0.0/8\n    + via 1 address: 192.0.2.2\n\n"),
        "{text}"
    );
    assert!(!text.contains("interface: e0"), "{text}");
    let moved = plan(&found, &at(there, here, "192.0.2.2")).text(false);
    assert!(
        moved.contains("\n    ~ via 1 interface: e0 -> e1\n"),
        "{moved}"
    );
    let written = at(here, there, "{ address: 192.0.2.2, interface: e0 }");
    assert!(plan(&found, &written).is_empty());
    let text = plan(none, &written).text(false);
    assert!(text.contains("    + via 1 interface: e0\n"), "{text}");
}

/// That a secret changes is no secret.
#[test]
fn a_secret_that_changes_is_named_and_not_shown() {
    let of = |secret: &str| format!("ports: {{ m: {{ memif: {{ socket: /s{secret} }} }} }}");
    let [none, one, other] = ["", ", secret: apple", ", secret: pear"].map(of);
    let cases = [
        (
            &one,
            &other,
            "    ~ port memif secret: (hidden) -> (hidden)\n",
        ),
        (&none, &one, "    + port memif secret: (hidden)\n"),
        (&one, &none, "    - port memif secret: (hidden)\n"),
    ];
    for (from, to, line) in cases {
        let plan = plan(from, to);
        let text = plan.text(true);
        assert!(
            text.starts_with(&format!("~ interface m\n{line}\n")),
            "{text}"
        );
        let all = text + &plan.json().to_string();
        assert!(!all.contains("apple") && !all.contains("pear"), "{all}");
    }
}

#[test]
fn what_the_kernel_drops_by_itself_is_said() {
    let [up, down] =
        ["up", "down"].map(|state| format!("interfaces: {{ e0: {{ state: {state} }} }}"));
    let new = "is new, and its device goes down if it is up";
    let cases = [
        (&*up, &*down, Some("goes down")),
        (&down, &up, None),
        ("{}", &down, Some(new)),
    ];
    for (from, to, how) in cases {
        let plan = plan(from, to);
        let (text, notes) = (plan.text(false), plan.json()["notes"].to_string());
        let why = ": the kernel then drops its IPv6 addresses and the routes ";
        for shown in [text, notes] {
            match how {
                Some(how) => assert!(
                    shown.contains(&format!("interface e0 {how}{why}")),
                    "{shown}"
                ),
                None => assert!(!shown.contains(why), "{shown}"),
            }
        }
    }
}

#[test]
fn the_text_shows_objects_fields_and_steps() {
    let plan = plan(
        "interfaces: { e0: { mtu: 1500, addresses: [ 10.0.0.1/24 ] }, e1: { lcp: a } }",
        "interfaces: { e0: { mtu: 9000, addresses: [ 10.0.0.1/24, 10.0.0.2/24 ] } }\nloopbacks: { loop0: {} }",
    );
    let wanted = "\
~ interface e0
    + address 10.0.0.2/24
    ~ mtu: 1500 -> 9000
- interface e1
    - lcp: a
    - state: up
+ interface loop0

1 to create, 1 to change, 1 to remove; 3 of 5 steps interrupt traffic

prune
   1 remove interface e1 lcp: a  (interrupts e1)
   2 remove interface e1  (interrupts e1)

create
   3 create interface loop0

sync
   4 change interface e0 mtu: 1500 -> 9000  (interrupts e0)
   5 create interface e0 address 10.0.0.2/24
";
    assert_eq!(plan.text(true), wanted);
    assert!(wanted.starts_with(&plan.text(false)));
    let json = plan.json();
    assert_eq!(json["changes"][0]["fields"][1]["after"], "9000");
    assert_eq!(json["changes"][1]["action"], "remove");
    assert_eq!(json["steps"][0]["action"], "remove");
    assert_eq!(json["steps"][0]["object"], "interface e1");
    assert_eq!(json["steps"][0]["fields"][0]["before"], "a");
    assert_eq!(json["steps"][0]["phase"], "prune");
    assert_eq!(json["steps"][0]["interrupts"], "e1");
    assert_eq!(
        Plan::new(&Config::default(), &Config::default()).text(true),
        "no change\n"
    );
}
