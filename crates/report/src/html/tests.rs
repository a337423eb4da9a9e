//! The page: what it says, hostile input, and that a browser draws it.

use std::time::Duration;

use loadgen::device::Sender;
use loadgen::measure::point::Point;
use testbed::Spawn;

use super::*;
use crate::model::*;
use crate::setup::*;

/// A comparison with two devices, two load tests, two rounds.
fn example() -> LabResult {
    let mut runs = Vec::new();
    for round in 1..=2 {
        for size in [Size::Bytes(64), Size::Imix] {
            for (dut, io, lane, capacity) in [
                (Dut::Kernel, Io::Veth, Lane::Kernel, 1.1e6),
                (Dut::Parshall, Io::Veth, Lane::Userspace, 0.68e6),
                (Dut::Parshall, Io::Memif, Lane::Userspace, 5.2e6),
            ] {
                let capacity = capacity
                    * (1.0 + 0.02 * f64::from(round))
                    * if size == Size::Bytes(64) { 1.0 } else { 0.9 };
                runs.push(run(dut, io, lane, size, capacity, round));
            }
        }
    }
    LabResult {
        generator: Generator {
            ceiling_pps: 7.4e6,
            method: "XDP live frames into a counting XDP program.".into(),
            ceilings: vec![Ceiling {
                io: Io::Veth,
                sender: Sender::Live,
                size: Size::Bytes(64),
                pps: 7.4e6,
            }],
        },
        machine: Machine {
            kernel: "6.18.0".into(),
            cpu: "AMD EPYC <Zen 4>".into(),
            cpus: 2,
            memory_bytes: 8 << 30,
            os: "Debian GNU/Linux 12".into(),
            steal_percent: 1.25,
            round_trip_ns: Some((110.0, 370.0)),
            ports: vec![PortMode {
                user: "kernel".into(),
                name: "k0".into(),
                driver: "veth".into(),
                mode: "kernel forwarding".into(),
            }],
            versions: [("parshall".to_owned(), "0.1.0".to_owned())].into(),
            command: "parshall lab --full -o report.html".into(),
            started: "2026-01-01T12:00:00Z".into(),
            seconds: 118.0,
            ..Machine::default()
        },
        runs,
    }
}

fn run(dut: Dut, io: Io, lane: Lane, size: Size, capacity: f64, round: u32) -> Run {
    let point = |offered: f64| {
        let forwarded = offered.min(capacity);
        Point {
            offered_pps: offered,
            sent_pps: offered,
            forwarded_pps: forwarded,
            loss: 1.0 - forwarded / offered,
            valid: offered < 7e6,
            seconds: 1.0,
            disturbed: false,
            unfit: String::new(),
        }
    };
    let steps = [
        7.4e6,
        capacity * 0.97,
        capacity * 1.02,
        capacity * 0.99,
        capacity * 1.2,
        capacity * 0.5,
    ];
    Run {
        dut: dut.into(),
        io: io.into(),
        lane: lane.into(),
        profile: "bench".into(),
        load: Load {
            size,
            ..Load::default()
        },
        valid: true,
        max_pps: capacity * 0.99,
        l1_bps: capacity * 0.99 * 672.0,
        loss: 0.0002,
        mpps_per_cpu_second: Some(capacity / 1e6 * 1.1),
        placement: (io == Io::Memif).then_some(Placement::Near),
        spread: Some(if io == Io::Memif {
            Spread::Apart
        } else {
            Spread::Shared
        }),
        round,
        saturation_pps: Some(capacity),
        why: if io == Io::Memif {
            "bounded by the generator".into()
        } else {
            String::new()
        },
        cpu_method: "all processor time less that of the generator alone".into(),
        sender: Sender::Live.into(),
        ramp: steps.into_iter().map(point).collect(),
        ..Run::default()
    }
}

#[test]
fn says_what_was_measured() {
    let page = page(&example());
    for needle in [
        "Router comparison: kernel and parshall",
        "One way, 64 B many flows: parshall forwards 5.30 Mpps (parshall, memif, userspace, two CPUs near)",
        "kernel 1.12 Mpps (kernel, veth, one CPU), a factor of 4.7",
        "AMD EPYC &lt;Zen 4&gt;",
        "7.40 Mpps",
        "pfSense",
        "ipng.ch",
        "110 to 370 ns",
        "parshall lab --full",
    ] {
        assert!(page.contains(needle), "{needle}");
    }
    let ours = page.split("<script").next().unwrap();
    assert!(
        !ours.contains("http://") && !ours.contains("https://"),
        "the page needs no network"
    );
}

#[test]
fn survives_hostile_and_empty_input() {
    let mut result = example();
    for text in ["</script><script>alert(1)</script>", "\"'&<!--"] {
        result.runs[0].dut = Word::Other(text.into());
        result.machine.command = text.into();
        result.machine.ports[0].mode = text.into();
        let page = page(&result);
        assert!(!page.contains("alert(1)</script>") && !page.contains("\"'&<"));
    }
    result.runs[1].max_pps = f64::NAN;
    result.runs[2].ramp[0].offered_pps = f64::INFINITY;
    result.runs[3].ramp.clear();
    result.runs[4].valid = false;
    assert!(page(&result).contains("no rate found in 1 of 2 rounds"));
    assert!(page(&LabResult::default()).contains("No run has a result."));
}

#[test]
fn model_reads_back_and_tolerates_more_and_less() {
    let result = example();
    let text = serde_json::to_string(&result).unwrap();
    let back: LabResult = serde_json::from_str(&text).unwrap();
    assert_eq!(back.machine, result.machine);
    assert_eq!(
        (back.runs.len(), back.runs[0].ramp.len()),
        (result.runs.len(), 6)
    );
    let short = r#"{"generator":{"ceiling_pps":1e6,"new":1},"runs":[{"dut":"kernel","io":"veth","lane":"kernel","profile":"bench",
        "size":"64","flows":"many","direction":"both-ways","valid":true,"max_pps":1.0,"l1_bps":2.0,"loss":0.0,
        "mpps_per_cpu_second":null,"placement":"far"}]}"#;
    let result: LabResult = serde_json::from_str(short).unwrap();
    assert_eq!(result.runs[0].placement, Some(Placement::Far));
    assert!(page(&result).contains("both ways, 64 B many flows"));
}

/// Opens a page in a browser: there is no script error, and the graph `chart` is there, and so many
/// `lines` in all graphs. The page is kept in the directory that PARSHALL_KEEP_REPORT names.
pub(super) fn assert_drawn(page: &str, chart: &str, lines: usize) -> Option<String> {
    if !testbed::root_with(chart, &["chromium"]) {
        return None;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("report.html");
    let guard = "<script>window.onerror = function (m) { document.documentElement.setAttribute('data-error', m); };</script>";
    if let Ok(keep) = std::env::var("PARSHALL_KEEP_REPORT") {
        std::fs::write(format!("{keep}/{chart}.html"), page).unwrap();
    }
    std::fs::write(&file, page.replace("<head>", &format!("<head>{guard}"))).unwrap();
    let output = Spawn::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
        ])
        .args([
            "--disable-component-update",
            "--disable-sync",
            "--virtual-time-budget=5000",
            "--dump-dom",
        ])
        .args([
            format!("--user-data-dir={}", dir.path().join("profile").display()),
            format!("file://{}", file.display()),
        ])
        .output(Duration::from_secs(120))
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    assert!(
        dom.contains(&format!("id=\"{chart}\"")),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(!dom.contains("data-error="), "a script error");
    let drawn = dom.matches("class=\"trace scatter").count();
    assert!(drawn >= lines, "{drawn} lines of {lines}");
    assert!(dom.contains("class=\"js-line\""));
    Some(dom.into_owned())
}

#[test]
fn a_browser_draws_the_graphs() {
    // In each of the two ramps: rate and loss of three devices, one mark of each that fell short,
    // and the diagonal.
    if let Some(dom) = assert_drawn(&page(&example()), "overview", 2 * (3 * 2 + 1)) {
        assert!(dom.contains("class=\"barlayer"));
    }
}
