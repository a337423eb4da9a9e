//! One configuration over another.

use super::problem::{Problem, Problems};
use super::yaml::{self, Fault, Node, Value};

/// The text of a configuration that has what `base` says, and what `more` says over it: maps are
/// merged key by key, anything else of `more` stands in place of what `base` has. The `workers` of
/// `more` stand in place of all that `base` says of them, since their number and their processors
/// belong together. `name` is what messages call `more`. The result is not checked.
///
/// # Errors
/// One of the texts is not YAML, or has a key twice, or is no map.
pub fn merged(base: &str, name: &str, more: &str) -> Result<String, Problems> {
    let mut tree = read("the base", base)?;
    let more = read(name, more)?;
    if let Value::Map(base) = &mut tree.value {
        let is_theirs = more.child(&"workers".into()).is_some();
        base.retain(|(key, _)| key.text != "workers" || !is_theirs);
    }
    merge(&mut tree, more);
    Ok(yaml::write(&tree))
}

/// The tree of a text; that of a text without values is an empty map.
fn read(name: &str, text: &str) -> Result<Node, Problems> {
    let problems = |faults: Vec<Fault>| {
        let faults = faults.into_iter().map(Problem::from);
        Problems::new(name, text, faults.collect())
    };
    let (tree, faults) = yaml::parse(text).map_err(|fault| problems(vec![fault]))?;
    match (&tree.value, faults.is_empty()) {
        (_, false) => Err(problems(faults)),
        (Value::Map(_), true) => Ok(tree),
        (Value::Null, true) => Ok(Node {
            value: Value::Map(Vec::new()),
            ..tree
        }),
        _ => Err(problems(vec![Fault {
            at: tree.at,
            message: "this is no map".to_owned(),
            help: "write keys with their values, such as `workers: { count: 2 }`",
            also: None,
        }])),
    }
}

fn merge(base: &mut Node, more: Node) {
    let Value::Map(entries) = more.value else {
        *base = more;
        return;
    };
    let Value::Map(known) = &mut base.value else {
        base.value = Value::Map(entries);
        return;
    };
    for (key, node) in entries {
        match known.iter_mut().find(|(k, _)| k.text == key.text) {
            Some((_, old)) => merge(old, node),
            None => known.push((key, node)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    const BASE: &str = "workers: { cpus: [0] }\ninterfaces:\n  dut0: { mtu: 1500 }\n\
                        ports:\n  dut0: { memif: { socket: /a, id: 0, role: server } }\n";

    #[test]
    fn maps_are_merged_and_the_rest_replaced() {
        let more = "workers: { count: 2 }\nports: { dut0: { memif: { id: 7 } } }\n\
                    interfaces: { dut0: { mtu: 9000, description: on }, dut1: { mtu: 1500 } }\n\
                    acls: { all: { terms: [ { action: permit } ] } }\n";
        let text = merged(BASE, "router", more).unwrap();
        let plain = "workers: { count: 2 }\nports: { dut0: { memif: { socket: /a, id: 7, role: server } } }\n";
        for line in [
            "mtu: 9000",
            "id: 7",
            "socket: /a",
            "role: server",
            "count: 2",
            "dut1:",
            "acls:",
            // As it is read here: a boolean.
            "description: true",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(
            !text.contains("cpus") && !text.contains("1500\n    description"),
            "{text}"
        );
        let both = merged(plain, "router", "").unwrap();
        assert_eq!(merged(&both, "router", "# nothing\n").unwrap(), both);
        let config = Config::parse(
            "m",
            &merged(BASE, "router", "workers: { count: 2 }").unwrap(),
        );
        assert_eq!(config.unwrap().workers.count, Some(2));
    }

    #[test]
    fn what_cannot_be_merged_is_named() {
        for (more, said) in [
            ("workers: { count: 1 }\nworkers: { count: 2 }\n", "workers"),
            ("- workers\n", "no map"),
            ("a: [", "router"),
        ] {
            let error = merged(BASE, "router", more).unwrap_err().to_string();
            assert!(error.contains(said) && error.contains("router"), "{error}");
        }
    }
}
