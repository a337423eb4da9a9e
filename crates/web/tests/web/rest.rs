//! REST: what it answers, and what it refuses.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use testbed::{patience, until};

use crate::http::{ask, get, raw};
use crate::router::Site;

fn wait() -> Duration {
    patience(Duration::from_secs(20))
}

#[test]
fn state_samples_and_graph_come_from_the_router() {
    let site = Site::start();
    let at = site.server.address();
    assert!(until(wait(), || get(at, "/api/v1/samples")
        .json()
        .as_array()
        .unwrap()
        .len()
        >= 2));
    let state = get(at, "/api/v1/state").json();
    assert_eq!(state["problem"], serde_json::Value::Null);
    assert_eq!(state["router"]["interfaces"][0]["name"], "e0");
    let samples = get(at, "/api/v1/samples").json();
    let e0 = &samples[1]["interfaces"][0];
    let rate = e0["rx_pps"].as_f64().unwrap();
    assert!(rate > 50.0 && rate < 2000.0, "{e0}");
    assert_eq!(
        e0["rx_bps"].as_f64().unwrap().round(),
        (800.0 * rate).round()
    );
    // What is read may be the next number to what was written.
    let since = samples[0]["time"].as_f64().unwrap() + 0.1;
    let path = format!("/api/v1/samples?since={since}");
    let later = get(at, &path).json();
    assert_eq!(later[0], samples[1]);
    let graph = get(at, "/api/v1/graph").json();
    assert!(graph["nodes"][0]["edges"][0]["pps"].as_f64().unwrap() > 50.0);
    assert_eq!(get(at, "/api/v1/samples?since=x").status, 400);
    assert_eq!(get(at, "/api/v1/history/x").status, 400);
    assert_eq!(get(at, "/nothing").status, 404);
    assert_eq!(
        get(at, "/api/v1/history").json()["configurations"][0]["number"],
        1
    );
}

#[test]
fn a_router_may_come_later() {
    let mut site = Site::without_router();
    let at = site.server.address();
    let problem = || get(at, "/api/v1/state").json()["problem"].to_string();
    assert!(
        until(wait(), || problem().contains("no router is running")),
        "{}",
        problem()
    );
    assert_eq!(get(at, "/api/v1/graph").status, 503);
    assert_eq!(get(at, "/api/v1/history").status, 503);
    assert!(get(at, "/metrics").body.contains("parshall_up 0"));
    site.start_router();
    assert!(until(wait(), || problem() == "null"), "{}", problem());
}

#[test]
fn changes_need_the_token() {
    let site = Site::start();
    let at = site.server.address();
    let wrong = "0".repeat(64);
    let token = site.token();
    let [right, wrong] = [&token, &wrong].map(|token| format!("Authorization: Bearer {token}"));
    for (request, body) in [
        ("GET /api/v1/configuration", ""),
        ("POST /api/v1/apply?confirm=60", "interfaces: {}"),
        ("POST /api/v1/confirm", ""),
        ("POST /api/v1/rollback?number=1", ""),
    ] {
        let basic = format!("Authorization: Basic {token}");
        for headers in [&[][..], &[&*wrong], &[&*basic], &["Authorization: Bearer"]] {
            let refused = ask(at, request, headers, body);
            assert_eq!(refused.status, 401, "{request} {refused:?}");
            assert!(refused.body.contains("ui-"), "{refused:?}");
        }
        assert!(site.fake.changes.lock().unwrap().is_empty());
        let done = ask(at, request, &[&right], body);
        assert_eq!(done.status, 200, "{request} {done:?}");
        assert_eq!(site.fake.changes.lock().unwrap().drain(..).len(), 1);
    }
    let plan = ask(at, "POST /api/v1/plan", &[], "interfaces: {}");
    assert_eq!(
        (plan.status, plan.json()["changes"][0]["action"].as_str()),
        (200, Some("change"))
    );
    let apply = "POST /api/v1/apply?confirm=60&comment=so%20what";
    assert_eq!(ask(at, apply, &[&right], "a: b").json()["seconds_left"], 60);
    let asked = site.fake.changes.lock().unwrap().remove(0);
    assert_eq!(
        (asked.text.as_deref(), asked.comment.as_deref()),
        (Some("a: b"), Some("so what"))
    );
    let refused = ask(at, "POST /api/v1/apply", &[&right], "bogus: 1");
    assert_eq!(refused.status, 422);
    assert!(refused.json()["error"].as_str().unwrap().contains("bogus"));
    assert_eq!(
        ask(at, "POST /api/v1/apply?confirm=x", &[&right], "").status,
        400
    );
}

#[test]
fn other_hosts_and_pages_are_refused() {
    let site = Site::start();
    let at = site.server.address();
    let port = at.port();
    let own = format!("Host: localhost:{port}");
    let origin = format!("Origin: http://localhost:{port}");
    let status = |headers: &[&str]| {
        let headers = [headers, &["Connection: close"]].concat();
        raw(at, "GET /api/v1/state", &headers, "").status
    };
    assert_eq!(status(&[&own]), 200);
    assert_eq!(status(&[&own, &origin]), 200);
    let rebound = format!("Host: rebound.example:{port}");
    assert_eq!(status(&[&rebound]), 403);
    assert_eq!(status(&[&own, &rebound]), 403);
    assert_eq!(status(&[]), 403);
    assert_eq!(status(&["Host: localhost"]), 403);
    assert_eq!(status(&[&own, "Origin: http://evil.example"]), 403);
    assert_eq!(status(&[&own, "Origin: null"]), 403);
    // Simple requests of other pages come without a question before, so plan is checked as well.
    let token = format!("Authorization: Bearer {}", site.token());
    let evil = ask(
        at,
        "POST /api/v1/apply",
        &[&token, "Origin: http://evil.example"],
        "a: b",
    );
    assert_eq!(evil.status, 403);
    assert!(site.fake.changes.lock().unwrap().is_empty());
    let page = get(at, "/");
    assert_eq!(page.status, 200);
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self'",
        "x-content-type-options: nosniff",
        "x-frame-options: deny",
    ] {
        assert!(page.head.contains(header), "{page:?}");
    }
    assert!(!page.body.contains("http://") && !page.body.contains("https://"));
}

#[test]
fn large_bodies_and_slow_clients_are_bounded() {
    let site = Site::start();
    let at = site.server.address();
    let large = "#".repeat((16 << 20) + 1);
    assert_eq!(ask(at, "POST /api/v1/plan", &[], &large).status, 413);
    assert_eq!(
        ask(at, "POST /api/v1/plan", &[], &large[..3 << 20]).status,
        200
    );
    // A client that sends a head and no body, and one that never ends its head.
    let mut slow = TcpStream::connect(at).unwrap();
    write!(
        slow,
        "POST /api/v1/plan HTTP/1.1\r\nHost: {at}\r\nContent-Length: 9\r\n\r\n"
    )
    .unwrap();
    let mut endless = TcpStream::connect(at).unwrap();
    write!(endless, "GET / HTTP/1.1\r\nHost:").unwrap();
    // Others are served meanwhile.
    assert_eq!(get(at, "/api/v1/state").status, 200);
    let answer = |stream: &mut TcpStream| {
        stream
            .set_read_timeout(Some(patience(Duration::from_secs(60))))
            .unwrap();
        let mut text = [0; 12];
        stream
            .read(&mut text)
            .map(|read| String::from_utf8_lossy(&text[..read]).into_owned())
            .unwrap()
    };
    assert_eq!(answer(&mut slow), "HTTP/1.1 408");
    let ended = answer(&mut endless);
    assert!(["", "HTTP/1.1 408"].contains(&&*ended), "{ended}");
}

#[test]
fn the_description_has_every_route() {
    let site = Site::start();
    let at = site.server.address();
    let description = get(at, "/api/v1/openapi.json").json();
    let mut listed = Vec::new();
    for (path, methods) in description["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            listed.push(format!("{method} {path}"));
            let path = path.replace("{number}", "1");
            let answer = ask(
                at,
                &format!("{} {path}", method.to_uppercase()),
                &[],
                "a: b",
            );
            assert!(!answer.body.contains("there is nothing here"), "{path}");
            let status = answer.status.to_string();
            let known = operation["responses"].as_object().unwrap();
            assert!(known.contains_key(&status), "{method} {path}: {status}");
            // What it says of the token is so.
            assert_eq!(
                operation.get("security").is_some(),
                answer.status == 401,
                "{path}"
            );
        }
    }
    listed.sort();
    let expected = [
        "get /api/v1/configuration",
        "get /api/v1/graph",
        "get /api/v1/history",
        "get /api/v1/history/{number}",
        "get /api/v1/loadtest",
        "get /api/v1/loadtest/progress",
        "get /api/v1/loadtest/report",
        "get /api/v1/loadtest/result",
        "get /api/v1/samples",
        "get /api/v1/state",
        "get /metrics",
        "post /api/v1/apply",
        "post /api/v1/confirm",
        "post /api/v1/loadtest",
        "post /api/v1/loadtest/stop",
        "post /api/v1/plan",
        "post /api/v1/rollback",
    ];
    assert_eq!(listed, expected);
}

#[test]
fn mistakes_are_said_at_the_start() {
    let site = Site::without_router();
    let start = |listen: &str, token: &str| {
        let options = web::Options {
            listen: listen.parse().unwrap(),
            socket: site.directory().join("cli.sock"),
            token_file: Some(site.directory().join(token)),
            program: "parshall".into(),
        };
        web::Server::start(options)
            .map(drop)
            .map_err(|e| e.to_string())
    };
    let taken = start(&site.server.address().to_string(), "t").unwrap_err();
    assert!(taken.contains("--listen"), "{taken}");
    let nowhere = start("127.0.0.1:0", "no/t").unwrap_err();
    assert!(nowhere.contains("--token-file"), "{nowhere}");
    assert_eq!(start("127.0.0.1:0", "t"), Ok(()));
}
