//! Several clients that change one router at once.

use std::thread;

use serde_json::Value;

use super::{Router, alone_with_spare_links, has, skipped};

/// Changes that each client asks for.
const EACH: usize = 4;

fn history(router: &Router) -> Vec<Value> {
    let text = router.ask(&["history", "--json"]).expect("it says");
    let history: Value = serde_json::from_str(&text).expect("JSON");
    history["configurations"].as_array().expect("rows").clone()
}

/// Each change is made wholly, one after the other, and the history has all of them; while one waits
/// to be confirmed, no other is made.
#[test]
fn two_clients_take_turns() {
    if skipped("two_clients_take_turns", &["ip"]) {
        return;
    }
    let (_alone, netns) = alone_with_spare_links();
    let router = Router::start(&netns, "interfaces:\n  x0: {}\n");
    // Of each client, two configurations of an address and a route each.
    let yaml = |client: usize, turn: usize| {
        let host = 10 * (client + 1) + turn % 2;
        format!(
            "interfaces:\n  x0: {{ addresses: [ 10.9.0.{host}/24 ] }}\n\
             routes: [ {{ prefix: 16.{host}.0.0/16, via: 10.9.0.9 }} ]\n"
        )
    };
    let apply = |client: usize, turn: usize, more: &[&str]| {
        let file = router.file().with_extension(format!("{client}.yaml"));
        std::fs::write(&file, yaml(client, turn)).expect("root may write to /run");
        let words = ["apply", "-c", &file.display().to_string()];
        router
            .ask(&[&words, more].concat())
            .map_err(|e| e.to_string())
    };
    let before = history(&router).len();
    thread::scope(|scope| {
        for client in 0..2 {
            let apply = &apply;
            scope.spawn(move || {
                for turn in 0..EACH {
                    let done = apply(client, turn, &[]);
                    assert!(done.is_ok(), "{done:?}");
                }
            });
        }
    });
    assert_eq!(history(&router).len() - before, 2 * EACH);
    let is_whole = || {
        let hosts = [10, 11, 20, 21].into_iter().filter(|host| {
            has(
                &netns,
                "address show dev x0",
                &[&format!("10.9.0.{host}/24")],
            )
        });
        let hosts: Vec<i32> = hosts.collect();
        let [host] = hosts[..] else { return None };
        let shown = netns.ip("route show").expect("routes");
        let routes = shown.lines().filter(|line| line.starts_with("16."));
        let routes: Vec<&str> = routes.collect();
        let whole = routes.len() == 1 && routes[0].starts_with(&format!("16.{host}.0.0/16 "));
        whole.then_some(host)
    };
    let last = is_whole();
    assert!(last.is_some(), "{}", router.process.log());

    let other = usize::from(last < Some(20));
    apply(other, 0, &["--confirm", "60s"]).expect("it waits");
    let refused = apply(1 - other, 0, &[]).expect_err("another change waits");
    assert!(refused.contains("confirm"), "{refused}");
    router.ask(&["rollback"]).expect("it is taken back");
    assert_eq!(is_whole(), last, "{}", router.process.log());
}
