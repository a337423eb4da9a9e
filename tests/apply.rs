//! The configuration of a running router changes: by hand, by its file, and back, whatever ends
//! meanwhile.

use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use crate::harness::random::Random;
use crate::harness::{Directory, Netns, PARSHALL, Router, Spawn, patience, skipped, until};

const OLD: &str = "interfaces:\n  t0: { lcp: t0, mtu: 1500, addresses: [ 10.9.0.1/24 ] }\n\
                   ports: { t0: { tap: { name: t0-port } } }\n";
const NEW: &str = "interfaces:\n  t0: { lcp: t0, mtu: 1400, addresses: [ 10.9.1.1/24, 10.9.2.1/24 ] }\n\
                   ports: { t0: { tap: { name: t0-port } } }\n";
const WRONG: &str = "interfaces: { t0: { mtu: 1 } }\n";

/// A router with a tap in a namespace of its own, and the files that it may be changed to.
struct Lab {
    router: Router,
    old: String,
    new: String,
    _directory: Directory,
    netns: Netns,
}

impl Lab {
    fn start() -> Self {
        let netns = Netns::create("router").expect("root may");
        let directory = Directory::new();
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).expect("written");
            path.display().to_string()
        };
        Lab {
            router: Router::start(&netns, OLD),
            old: file("old.yaml", OLD),
            new: file("new.yaml", NEW),
            _directory: directory,
            netns,
        }
    }

    fn ask(&self, words: &[&str]) -> String {
        let said = self.router.ask(words);
        said.unwrap_or_else(|error| panic!("{words:?}: {error}\n{}", self.router.process.log()))
    }

    fn refused(&self, words: &[&str]) -> String {
        let said = self.router.ask(words);
        said.expect_err("it is refused").to_string()
    }

    /// Whether the router says that it is what a file says.
    fn says_it_is(&self, file: &str) -> bool {
        self.ask(&["plan", "-c", file]) == "no change\n"
    }

    /// Addresses and MTU of the kernel's device.
    fn device(&self) -> (Vec<String>, bool) {
        let shown = self.netns.ip("-o address show dev t0").unwrap_or_default();
        let addresses = shown.lines().filter_map(|line| line.split(" inet ").nth(1));
        let first = |text: &str| text.split(' ').next().unwrap_or_default().to_owned();
        let mut addresses: Vec<String> = addresses.map(first).collect();
        addresses.sort();
        let link = self.netns.ip("link show dev t0").unwrap_or_default();
        (addresses, link.contains("mtu 1500"))
    }

    fn is_old(&self) -> bool {
        self.device() == (vec!["10.9.0.1/24".to_owned()], true) && self.says_it_is(&self.old)
    }

    fn is_new(&self) -> bool {
        let addresses = ["10.9.1.1/24", "10.9.2.1/24"].map(str::to_owned).to_vec();
        self.device() == (addresses, false) && self.says_it_is(&self.new)
    }

    /// Fails unless it is so soon.
    fn becomes(&self, what: fn(&Self) -> bool) {
        let so = until(patience(), || what(self));
        assert!(
            so,
            "{:?}\n{}\n{}",
            self.device(),
            self.ask(&["dump"]),
            self.router.process.log()
        );
    }

    /// Ends the router without warning and starts it again.
    fn end_and_start(&mut self) {
        self.router.process.kill();
        self.router.relaunch(&self.netns);
        self.router.wait();
    }
}

#[test]
fn a_running_router_changes_and_goes_back() {
    if skipped("a_running_router_changes_and_goes_back", &["ip"]) {
        return;
    }
    let mut lab = Lab::start();
    lab.becomes(Lab::is_old);
    let new = lab.new.clone();
    let plan = lab.ask(&["plan", "-c", &new, "--steps"]);
    assert!(plan.contains("    + address 10.9.1.1/24\n"), "{plan}");
    assert!(plan.contains("\nprune\n"), "{plan}");
    lab.becomes(Lab::is_old);
    let said = lab.ask(&["apply", "-c", &new, "--comment", "two networks"]);
    assert!(said.ends_with("\nconfiguration 2 is in force\n"), "{said}");
    lab.becomes(Lab::is_new);
    assert_eq!(lab.ask(&["apply", "-c", &new]), "no change\n");

    // What is dumped is what is in force.
    let dumped = lab.old.replace("old.yaml", "dump.yaml");
    std::fs::write(&dumped, lab.ask(&["dump"])).expect("written");
    assert!(lab.says_it_is(&dumped));
    // It outlives the router, though the file is older.
    lab.end_and_start();
    lab.becomes(Lab::is_new);
    let log = lab.router.process.log();
    assert!(
        log.contains("starting with the configuration applied last, number 2"),
        "{log}"
    );

    let history = lab.ask(&["history"]);
    assert!(
        history.contains("  applied   the router  started with "),
        "{history}"
    );
    assert!(history.contains("(uid 0, pid "), "{history}");
    assert!(history.contains("  two networks\n"), "{history}");
    let change = lab.ask(&["history", "2"]);
    assert!(change.contains("    - address 10.9.0.1/24\n"), "{change}");
    let json = |words: &[&str]| -> serde_json::Value {
        let text = lab.ask(&[words, &["--json"]].concat());
        serde_json::from_str(&text).expect("it is JSON")
    };
    let history = json(&["history"]);
    assert_eq!(history["configurations"][1]["who"]["uid"], 0);
    assert_eq!(history["configurations"][1]["state"], "applied");
    assert!(history["seconds_left"].is_null());
    assert_eq!(
        json(&["history", "2"])["changes"][0]["object"],
        "interface t0"
    );
    let done = json(&["rollback", "--confirm", "60s"]);
    assert_eq!(
        (&done["number"], &done["seconds_left"]),
        (&3.into(), &60.into())
    );
    assert_eq!(done["steps"][0]["phase"], "prune");
    assert_eq!(json(&["confirm"])["done"], true);
    assert!(
        json(&["dump"])["yaml"]
            .as_str()
            .is_some_and(|yaml| yaml.contains("t0:"))
    );
    lab.becomes(Lab::is_old);
    lab.ask(&["rollback", "2"]);
    lab.becomes(Lab::is_new);
    assert!(
        lab.refused(&["rollback", "77"])
            .contains("no configuration 77")
    );
    assert!(
        lab.refused(&["confirm"])
            .contains("nothing waits for confirmation")
    );

    // What cannot be done is refused by name, before anything changes.
    std::fs::write(
        &dumped,
        format!("{NEW}sflow: {{}}\nworkers: {{ count: 2 }}\n"),
    )
    .expect("written");
    let why = lab.refused(&["apply", "-c", &dumped]);
    assert!(why.contains("sflow has no collector"), "{why}");
    lab.becomes(Lab::is_new);
    assert_eq!(lab.ask(&["history"]).lines().count(), 4);
}

/// The commands of the guide, one after the other.
#[test]
fn the_guides_commands_work() {
    if skipped("the_guides_commands_work", &["ip"]) {
        return;
    }
    let lab = Lab::start();
    let guide = include_str!("../docs/configuration.md");
    let (_, section) = guide
        .split_once("## Change the running router")
        .expect("it is there");
    let block = section.split("```").nth(1).expect("it has an example");
    let commands: Vec<&str> = block
        .lines()
        .filter(|line| line.starts_with("parshall "))
        .collect();
    assert!(commands.len() >= 7, "{commands:?}");
    let new = Path::new(&lab.new);
    let directory = new.parent().expect("it is in one").display().to_string();
    std::fs::copy(new, format!("{directory}/router.yaml")).expect("there is room");
    for command in commands {
        let (command, _) = command.split_once('#').unwrap_or((command, ""));
        let (command, file) = command.split_once('>').unwrap_or((command, "/dev/stdout"));
        let words = command.trim().trim_start_matches("parshall ");
        let socket = lab.router.socket();
        let line = format!("cd {directory} && {PARSHALL} {words} --socket {socket} > {file}");
        let output = Spawn::new("sh").args(["-c", &line]).output(patience());
        let output = output.expect("it ends");
        assert!(output.status.success(), "{line}: {output:?}");
    }
    lab.becomes(Lab::is_old);
    assert!(lab.says_it_is(&format!("{directory}/saved.yaml")));
}

#[test]
fn what_nobody_confirms_is_taken_back() {
    if skipped("what_nobody_confirms_is_taken_back", &["ip"]) {
        return;
    }
    let lab = Lab::start();
    let new = lab.new.clone();
    // The shell that typed it is gone.
    let socket = lab.router.socket();
    let line = format!("{PARSHALL} apply -c {new} --confirm 5s --socket {socket}; sleep 600");
    let mut shell = Spawn::new("sh")
        .args(["-c", &line])
        .start()
        .expect("it starts");
    lab.becomes(Lab::is_new);
    shell.kill();
    let why = lab.refused(&["apply", "-c", &new]);
    assert!(
        why.contains("configuration 2 waits for confirmation for another "),
        "{why}"
    );
    assert!(lab.ask(&["history"]).contains("rolled back in "));
    lab.becomes(Lab::is_old);
    assert!(lab.ask(&["history"]).contains("  reverted  "));

    lab.ask(&["apply", "-c", &new, "--confirm", "600s"]);
    lab.becomes(Lab::is_new);
    lab.ask(&["rollback"]);
    lab.becomes(Lab::is_old);
    lab.ask(&["apply", "-c", &new, "--confirm", "1s"]);
    lab.ask(&["confirm"]);
    // A later change is taken back when the time of this one is long over: to this one.
    let reverted = || lab.ask(&["history"]).matches("  reverted  ").count();
    let before = reverted();
    lab.ask(&["apply", "-c", &lab.old, "--confirm", "1s"]);
    assert!(until(patience(), || reverted() == before + 1));
    lab.becomes(Lab::is_new);
}

#[test]
fn the_file_is_read_again_and_a_broken_one_is_not_used() {
    if skipped(
        "the_file_is_read_again_and_a_broken_one_is_not_used",
        &["ip"],
    ) {
        return;
    }
    let mut lab = Lab::start();
    let edit = |file: &Path, text: &str| std::fs::write(file, text).expect("written");
    edit(&lab.router.file(), NEW);
    lab.router.process.signal(Signal::HUP);
    lab.becomes(Lab::is_new);
    edit(&lab.router.file(), WRONG);
    lab.router.process.signal(Signal::HUP);
    let refused = || {
        lab.router
            .process
            .log()
            .contains("SIGHUP: nothing is changed")
    };
    assert!(until(patience(), refused), "{}", lab.router.process.log());
    lab.becomes(Lab::is_new);
    lab.end_and_start();
    lab.becomes(Lab::is_new);
    let log = lab.router.process.log();
    assert!(log.contains("1 is less than 128"), "{log}");
    assert!(
        log.contains("starting with the last good configuration, number 2"),
        "{log}"
    );
    // Edited and restarted, as ever.
    edit(&lab.router.file(), OLD);
    lab.end_and_start();
    lab.becomes(Lab::is_old);
}

/// Whatever the moment at which the router ends, the old configuration is back, or the new one is
/// in force if that was confirmed; never something of both.
#[test]
fn a_sudden_end_leaves_the_old_or_the_new() {
    if skipped("a_sudden_end_leaves_the_old_or_the_new", &["ip"]) {
        return;
    }
    let mut random = Random::new("a_sudden_end_leaves_the_old_or_the_new");
    let mut lab = Lab::start();
    let (old, new, socket) = (lab.old.clone(), lab.new.clone(), lab.router.socket());
    let mut counts = [0; 3];
    for round in 0..30 {
        let words = ["apply", "-c", &new, "--confirm", "60s", "--socket", &socket];
        let mut apply = Spawn::new(PARSHALL).args(words).start().expect("it starts");
        std::thread::sleep(Duration::from_millis(random.below(50) as u64));
        // In a third of the rounds it is confirmed, if there is something to confirm.
        let confirmed = round % 3 == 0 && lab.router.ask(&["confirm"]).is_ok();
        lab.end_and_start();
        apply.kill();
        let applied = apply.log().contains("is in force");
        lab.becomes(if confirmed { Lab::is_new } else { Lab::is_old });
        counts[usize::from(confirmed) + usize::from(applied)] += 1;
        if confirmed {
            lab.ask(&["apply", "-c", &old]);
            lab.becomes(Lab::is_old);
        }
    }
    println!("neither applied nor confirmed, applied, confirmed: {counts:?}");
}
