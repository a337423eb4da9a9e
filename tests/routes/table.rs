//! The routes of the kernel and of the router, in one form.

use std::collections::{BTreeMap, BTreeSet};

use crate::harness::{Netns, Router};

/// Gateway, if there is one, device and weight.
pub type Path = (String, String, u64);

/// The kind of a route, and its paths in order.
pub type Target = (String, Vec<Path>);

/// Routes by prefix.
pub type Table = BTreeMap<String, Target>;

/// Where the router takes no routes of the kernel's: it has its own there, whatever they are.
const RESERVED: [&str; 3] = ["fe80:", "ff00:", "::/127"];

fn reserved(prefix: &str) -> bool {
    RESERVED.iter().any(|start| prefix.starts_with(start))
}

/// The kernel's table, as `ip` prints it: of several routes of a prefix the one of the lowest
/// metric is first and counts.
pub fn kernels(netns: &Netns) -> Table {
    let mut table = Table::new();
    for (option, default, host) in [("-4", "0.0.0.0/0", 32), ("-6", "::/0", 128)] {
        let text = netns
            .ip(&format!("{option} -o route show table all"))
            .unwrap();
        for (prefix, target) in text.lines().map(kernels_route) {
            let prefix = match prefix {
                "default" => default.to_owned(),
                prefix if prefix.contains('/') => prefix.to_owned(),
                address => format!("{address}/{host}"),
            };
            if !reserved(&prefix) {
                table.entry(prefix).or_insert(target);
            }
        }
    }
    table
}

/// Prefix or address, as `ip` writes it, and target.
fn kernels_route(line: &str) -> (&str, Target) {
    let mut words = line.split_whitespace().peekable();
    let kinds = [
        ("local", "local"),
        ("anycast", "local"),
        ("multicast", "multicast"),
        ("broadcast", "broadcast"),
        ("blackhole", "blackhole"),
        ("unreachable", "unreachable"),
        ("prohibit", "prohibit"),
    ];
    let of = |word: &&str| kinds.iter().find(|(said, _)| said == word);
    let kind = words.peek().and_then(of).map(|(_, kind)| *kind);
    if kind.is_some() {
        words.next();
    }
    let prefix = words.next().unwrap();
    if let Some(kind) = kind {
        return (prefix, (kind.to_owned(), Vec::new()));
    }
    let (mut gateway, mut paths, mut idle) = (String::new(), Vec::<Path>::new(), Vec::new());
    while let Some(word) = words.next() {
        match word {
            "via" => gateway = words.next().unwrap().to_owned(),
            "dev" => {
                let device = words.next().unwrap().to_owned();
                paths.push((std::mem::take(&mut gateway), device, 1));
            }
            "weight" => {
                let weight = words.next().unwrap().parse().unwrap();
                paths.last_mut().unwrap().2 = weight;
            }
            // The path before it has gone down with its link.
            "dead" => {
                paths.pop();
                words.next_if_eq(&"linkdown");
            }
            "linkdown" => idle.extend(paths.pop()),
            _ => {}
        }
    }
    // The router takes paths without carrier only where there is no other; the kernel takes them in
    // any case.
    if paths.is_empty() {
        paths = idle;
    }
    paths.sort();
    (prefix, ("forward".to_owned(), paths))
}

/// The router's table, page by page.
pub fn routers(router: &Router) -> Table {
    let mut table = Table::new();
    for family in ["ip", "ip6"] {
        add_pages(router, family, &mut table);
    }
    table
}

fn add_pages(router: &Router, family: &str, table: &mut Table) {
    let mut words = vec![family.to_owned(), "fib".to_owned()];
    loop {
        let page = router.show(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let list = page["list"].as_array().unwrap();
        for route in list.iter().filter(|route| route["source"] == "route") {
            let prefix = route["prefix"].as_str().unwrap().to_owned();
            if !reserved(&prefix) {
                table.insert(prefix, routers_route(route));
            }
        }
        if page["left_out"] == 0 {
            return;
        }
        let last = list.last().unwrap()["prefix"].as_str().unwrap();
        words = [family, "fib", "after", last].map(str::to_owned).to_vec();
    }
}

/// The target of one route in what `show ip fib` prints.
pub fn routers_route(route: &serde_json::Value) -> Target {
    let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let paths = route["paths"].as_array().unwrap().iter();
    let mut paths: Vec<_> = paths
        .map(|path| {
            let weight = path["weight"].as_u64().unwrap();
            (word(&path["gateway"]), word(&path["interface"]), weight)
        })
        .collect();
    paths.sort();
    (word(&route["kind"]), paths)
}

/// Where the two tables differ, in words; empty if they are the same.
pub fn differences(kernel: &Table, router: &Table) -> Vec<String> {
    let prefixes: BTreeSet<&String> = kernel.keys().chain(router.keys()).collect();
    let differing = prefixes
        .into_iter()
        .filter(|prefix| kernel.get(*prefix) != router.get(*prefix));
    differing
        .map(|p| {
            format!(
                "{p}: kernel {:?}, router {:?}",
                kernel.get(p),
                router.get(p)
            )
        })
        .collect()
}

/// Whether the way that the kernel takes is one of a route's.
pub fn way_fits(answer: &str, (kind, paths): &Target) -> bool {
    let said = match kind.as_str() {
        "forward" => {
            let (_, ways) = kernels_route(answer).1;
            let way = |path: &Path| (path.0.clone(), path.1.clone());
            return paths.iter().any(|p| ways.iter().any(|w| way(w) == way(p)));
        }
        "blackhole" => "Invalid argument",
        "unreachable" => "No route to host",
        "prohibit" => "Permission denied",
        own => own,
    };
    answer.contains(said)
}
