//! Wrong input: one line that says what, where and what to do, with the lines of the file where
//! there is one; an exit code that is not 0; nothing half set up.

use std::process::Output;
use std::time::Duration;

use crate::harness::topology::CONFIGURATION;
use crate::harness::{Directory, Hosts, Netns, PARSHALL, Router, Spawn, for_everyone, skipped};

/// A router that accepted wrong input would run for ever.
const LIMIT: Duration = Duration::from_secs(20);

/// Runs the binary inside a namespace, or in ours.
fn run(netns: Option<&Netns>, arguments: &[&str]) -> Output {
    let spawn = Spawn::new(PARSHALL).args(arguments);
    let spawn = match netns {
        Some(netns) => spawn.inside(netns),
        None => spawn,
    };
    spawn.output(LIMIT).expect("it ends")
}

/// Fails unless the run failed with one line, or for a file a line for each error, that have all the
/// words.
fn assert_refused(output: &Output, words: &[&str]) {
    let text = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code();
    assert!(
        code.is_some_and(|code| code != 0 && code != 101),
        "exit code {code:?}: {text}"
    );
    assert!(!text.contains("panicked"), "{text}");
    // The log comes first. An error is one line of its own; its details are indented.
    let said = |line: &&str| !line.trim().is_empty() && !line.contains(" INFO ");
    let lines: Vec<&str> = text.lines().filter(said).collect();
    let mut heads = lines.iter().filter(|line| !line.starts_with(' '));
    let one = heads.clone().count() == 1;
    assert!(
        one || heads.all(|head| head.starts_with("error: ")),
        "one error: {text}"
    );
    let text = lines.join("\n");
    let missing: Vec<&&str> = words.iter().filter(|word| !text.contains(**word)).collect();
    assert!(missing.is_empty(), "{missing:?} not in: {text}");
}

/// Runs the router with a configuration, and everything that it needs in this directory.
fn run_with(netns: &Netns, directory: &Directory, yaml: &str) -> Output {
    let at = |name: &str| directory.path().join(name).display().to_string();
    let (file, socket, state) = (at("router.yaml"), at("cli.sock"), at("state"));
    std::fs::write(&file, yaml).expect("there is room");
    let arguments = ["run", "-c", &file, "--socket", &socket, "--state", &state];
    run(Some(netns), &arguments)
}

/// Runs the router with a configuration that it must refuse.
fn refuses(netns: &Netns, yaml: &str, words: &[&str]) {
    let directory = Directory::new();
    assert_refused(&run_with(netns, &directory, yaml), words);
    assert!(
        !directory.path().join("cli.sock").exists(),
        "a socket is left"
    );
    let links = netns.ip("-d link show").unwrap();
    assert!(
        !links.contains("xdp") && !links.contains("tun "),
        "something is left: {links}"
    );
}

#[test]
fn wrong_commands_are_refused() {
    assert_refused(
        &run(None, &["run", "-c", "/nonexistent/router.yaml"]),
        &["/nonexistent/router.yaml"],
    );
    // What has no end is not read to its end.
    for command in ["check", "plan", "apply", "run"] {
        let words = ["/dev/zero", "larger than 16 MiB"];
        assert_refused(&run(None, &[command, "-c", "/dev/zero"]), &words);
    }
    assert_refused(
        &run(None, &["lab", "--dut", "cisco"]),
        &["cisco", "kernel", "parshall"],
    );
    assert_refused(
        &run(
            None,
            &["show", "--socket", "/nonexistent/parshall.sock", "version"],
        ),
        &["/nonexistent/parshall.sock"],
    );
    assert_refused(
        &run(
            None,
            &[
                "loadtest",
                "--tx",
                "live:lo",
                "--rx",
                "sink:lo",
                "--profile",
                "no-such-profile",
            ],
        ),
        &["no-such-profile"],
    );
}

#[test]
fn wrong_configurations_are_refused() {
    if skipped("wrong_configurations_are_refused", &["ip", "ethtool"]) {
        return;
    }
    let hosts = Hosts::new(1500, false);
    let refuses = |yaml: &str, words: &[&str]| refuses(&hosts.router, yaml, words);
    // A list where a map belongs, an unknown key, an MTU out of range, a mode that does not exist:
    // with their places.
    refuses("interfaces: [\n", &[".yaml:"]);
    refuses(
        "interfaces:\n  r1: {}\n  r0: { colour: red }\n",
        &[".yaml:3:", "3 │   r0: { colour: red }", "^^^^^^"],
    );
    // All mistakes of a file at once, with advice.
    refuses(
        "interfaces:\n  r0: { mtu: 100000 }\n  r1: { lcp: X }\n",
        &[".yaml:2:", "mtu", ".yaml:3:", "lcp", "help: "],
    );
    // What is right but cannot be done yet.
    refuses(
        "interfaces:\n  r0: { vrf: a }\n  r1: {}\nsflow: {}\nvrfs: { a: { table: 5 } }\n",
        &[
            ".yaml:2:",
            "vrf of interface r0: not supported yet",
            ".yaml:4:",
            "sflow has no collector",
            "help: add `sflow: { collector: 192.0.2.1 }`",
        ],
    );
    refuses(
        "interfaces:\n  r0: { mtu: 1500 }\nports:\n  r0: { netdev: r0, mode: warp }\n",
        &[".yaml:4:", "warp", "zero-copy"],
    );
    refuses("ports:\n  r0: { queues: 1 }\n", &["r0"]);
    refuses(
        "netns: no-such-namespace\ninterfaces:\n  r0: {}\n",
        &["no-such-namespace"],
    );
    refuses(
        "interfaces:\n  r0: {}\nworkers: { cpus: [ 3999 ] }\n",
        &["processor 3999"],
    );
    refuses(
        "interfaces:\n  r0: {}\ncontrol: { group: no-such-group }\n",
        &["no-such-group"],
    );
    refuses(
        "interfaces:\n  r0: {}\n  other: {}\nports:\n  other: { netdev: r0 }\n",
        &[".yaml:5:", "r0", "other"],
    );
}

/// The first interface is ready when the second one fails: nothing may be left of it.
#[test]
fn a_port_that_cannot_open_takes_the_others_back() {
    if skipped(
        "a_port_that_cannot_open_takes_the_others_back",
        &["ip", "ethtool"],
    ) {
        return;
    }
    let hosts = Hosts::new(1500, false);
    // A veth has no zero-copy.
    refuses(
        &hosts.router,
        "interfaces:\n  r0: {}\n  r1: {}\nports:\n  r1: { netdev: r1, mode: zero-copy }\n",
        &["r1", "zero-copy"],
    );
    // A macvlan takes no larger packets than the device below it.
    hosts
        .router
        .ip("link add link r1 name m1 type macvlan")
        .unwrap();
    refuses(
        &hosts.router,
        "interfaces:\n  r0: {}\n  m1: { mtu: 9000 }\n",
        &["m1", "MTU 9000"],
    );
    // Names are put back, too.
    hosts
        .router
        .ip("link add link r1 name m2 type macvlan")
        .unwrap();
    refuses(
        &hosts.router,
        "interfaces:\n  r0: { lcp: e0 }\n  m2: { mtu: 9000 }\n",
        &["m2", "MTU 9000"],
    );
    assert!(hosts.router.ip("link show r0").unwrap().contains("r0@"));
    // A new name that something else has.
    refuses(
        &hosts.router,
        "interfaces:\n  r0: {}\n  m2: { lcp: r1 }\n",
        &["m2", "r1"],
    );
    refuses(
        &hosts.router,
        "interfaces:\n  r0: {}\n  n0: { lcp: r1 }\nports:\n  n0: { null: {} }\n",
        &["n0", "tap r1", "choose another"],
    );
    refuses(
        &hosts.router,
        "interfaces:\n  r0: {}\nports:\n  r0: { netdev: r0, queues: 3 }\n",
        &["r0", "queue", "ethtool -L"],
    );
}

/// The router waits for a missing interface; commands that need it at once name it.
#[test]
fn missing_interfaces_are_named() {
    if skipped("missing_interfaces_are_named", &["ip"]) {
        return;
    }
    let netns = Netns::create("missing").unwrap();
    for arguments in [
        &["send", "af_xdp:nowhere0"][..],
        &[
            "loadtest",
            "--tx",
            "af_xdp:nowhere0",
            "--rx",
            "sink:nowhere1",
        ][..],
    ] {
        assert_refused(&run(Some(&netns), arguments), &["nowhere0"]);
    }
}

#[test]
fn an_interface_of_another_router_is_refused() {
    if skipped(
        "an_interface_of_another_router_is_refused",
        &["ip", "ethtool"],
    ) {
        return;
    }
    let hosts = Hosts::new(1500, false);
    let first = Router::start(&hosts.router, CONFIGURATION);
    let output = run_with(&hosts.router, &Directory::new(), CONFIGURATION);
    assert_refused(&output, &["r0", "in use by another router"]);
    assert!(
        hosts.router.ip("-d link show r0").unwrap().contains("xdp"),
        "the first one's program is still there"
    );
    assert!(
        !first.show_text(&["version"]).is_empty(),
        "the first one still answers"
    );
}

#[test]
fn a_memif_socket_in_use_is_refused() {
    if skipped("a_memif_socket_in_use_is_refused", &["ip"]) {
        return;
    }
    let netns = Netns::create("taken").unwrap();
    let directory = Directory::new();
    let socket = directory.path().join("taken.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let socket = socket.display();
    let yaml = format!(
        "interfaces:\n  m0: {{ lcp: m0 }}\nports:\n  m0: {{ memif: {{ socket: {socket}, id: 0, role: server }} }}\n"
    );
    refuses(&netns, &yaml, &["taken.sock"]);
}

#[test]
fn root_is_asked_for() {
    if skipped("root_is_asked_for", &["setpriv"]) {
        return;
    }
    let (_directory, program) = for_everyone();
    let who = [
        "--reuid=65534",
        "--clear-groups",
        "--bounding-set=-all",
        "--inh-caps=-all",
    ];
    let router = [
        &program,
        "run",
        "-c",
        "/dev/null",
        "--socket",
        "/tmp/parshall-no-permission.sock",
    ];
    let output = Spawn::new("setpriv").args([&who[..], &router].concat());
    let output = output.output(LIMIT).expect("it ends");
    assert_refused(&output, &["root"]);
}
