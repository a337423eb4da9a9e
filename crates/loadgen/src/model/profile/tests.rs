//! Built-in profiles compared with compiled ones, and wrong compiled profiles.

use proptest::prelude::*;

use super::*;
use crate::clock::Nanos;
use crate::model::load::Load;
use crate::model::units::MAX_FRAME;
use crate::source::fields::Fields;

macro_rules! compiled {
    ($name:literal) => {
        (
            concat!($name, ".json"),
            include_str!(concat!("../../../tests/profiles/", $name, ".json")),
        )
    };
}

fn tunables(text: &str) -> Tunables {
    Tunables::parse(text).unwrap()
}

/// Every built-in profile equals the compiled one of the same tunables, byte for byte.
#[test]
fn built_in_profiles_are_the_compiled_ones() {
    for (profile, settings, way, (file, text)) in [
        ("bench", "", Way::Out, compiled!("bench")),
        ("bench", "size=64", Way::Back, compiled!("bench@dir1")),
        (
            "bench.py",
            "size=1514,vm=var2",
            Way::Out,
            compiled!("bench@size-1514,vm-var2"),
        ),
        (
            "stl/bench.py",
            "--size 64 --vm var2",
            Way::Out,
            compiled!("bench@size-64,vm-var2"),
        ),
        (
            "bench",
            "size=imix,vm=var2",
            Way::Out,
            compiled!("bench@size-imix,vm-var2"),
        ),
        ("bench", "vm=cached", Way::Out, compiled!("bench@vm-cached")),
        ("bench", "vm=random", Way::Out, compiled!("bench@vm-random")),
        ("bench", "vm=tuple", Way::Out, compiled!("bench@vm-tuple")),
        ("bench", "vm=size", Way::Out, compiled!("bench@vm-size")),
        (
            "bench",
            "flow=fsl,vm=var2,pg_id=42",
            Way::Back,
            compiled!("bench@flow-fsl,vm-var2,pg_id-42,dir1"),
        ),
        ("imix", "", Way::Out, compiled!("imix")),
        ("imix", "", Way::Back, compiled!("imix@dir1")),
        (
            "udp_1pkt_simple",
            "",
            Way::Out,
            compiled!("udp_1pkt_simple"),
        ),
        (
            "udp_1pkt_simple",
            "",
            Way::Back,
            compiled!("udp_1pkt_simple"),
        ),
        (
            "udp_1pkt_simple_bdir",
            "",
            Way::Out,
            compiled!("udp_1pkt_simple_bdir"),
        ),
        (
            "udp_1pkt_simple_bdir",
            "",
            Way::Back,
            compiled!("udp_1pkt_simple_bdir@dir1"),
        ),
    ] {
        let mut ours = open(profile, way, &tunables(settings)).unwrap();
        let theirs = parse(file, text).unwrap();
        for (i, stream) in ours.iter_mut().enumerate() {
            stream.name = format!("stream {i}");
        }
        assert_eq!(ours, theirs, "{file}");
        for (a, b) in ours.iter().zip(&theirs) {
            let (mut a, mut b) = (Fields::new(a, 1, 0), Fields::new(b, 1, 0));
            let (mut x, mut y) = ([0; MAX_FRAME], [0; MAX_FRAME]);
            for _ in 0..600 {
                let (len, other) = (a.write(Nanos(0), &mut x), b.write(Nanos(0), &mut y));
                assert_eq!(x[..len], y[..other], "{file}");
            }
        }
    }
}

#[test]
fn the_way_back_swaps_the_variables_too() {
    let out = open("bench", Way::Out, &tunables("vm=var2")).unwrap();
    let back = open("bench", Way::Back, &tunables("vm=var2")).unwrap();
    assert_eq!(out[0].variables[0].min, back[0].variables[1].min);
    assert_eq!(out[0].variables[1].max, back[0].variables[0].max);
    assert_eq!(out[0].packet[26..30], back[0].packet[30..34]);
}

#[test]
fn sizes_count_the_frame_check_sequence() {
    for size in [64usize, 65, 1518, 9216] {
        let stream = &open("bench", Way::Out, &Tunables::default().with("size", size)).unwrap()[0];
        assert_eq!((stream.frame_len(), stream.size()), (size - 4, size as f64));
    }
    let imix = open("imix", Way::Out, &Tunables::default()).unwrap();
    let imix = imix
        .into_iter()
        .map(|s| (s.clone(), s.rate.pps(s.size(), None).unwrap()));
    let imix = Load::of(&imix.collect::<Vec<_>>()).unwrap();
    assert_eq!(imix.base.0, 48.0);
    assert!((imix.size - 361.8).abs() < 0.05, "{}", imix.size);
    assert_eq!(
        open("udp_1pkt_simple", Way::Out, &Tunables::default()).unwrap()[0].size(),
        64.0
    );
}

/// Shows that a separator of settings separates none within a value in quotes.
#[test]
fn a_value_in_quotes_is_one() {
    for (text, settings) in [
        ("a='x,y',b=2", &[("a", "'x,y'"), ("b", "2")][..]),
        (
            "--a \"x, y\"\t--b='1 2'",
            &[("a", "\"x, y\""), ("b", "'1 2'")],
        ),
        ("a='\"x,y',b='',", &[("a", "'\"x,y'"), ("b", "''")]),
        ("a='k=1,k=2'z,b=2", &[("a", "'k=1,k=2'z"), ("b", "2")]),
        ("a=it's,b=it's", &[("a", "it's"), ("b", "it's")]),
        ("a=',b=2", &[("a", "'"), ("b", "2")]),
        (
            "a='\u{e9},\u{e9}',b=\u{e9}",
            &[("a", "'\u{e9},\u{e9}'"), ("b", "\u{e9}")],
        ),
    ] {
        let settings = settings
            .iter()
            .fold(Tunables::default(), |all, (key, value)| {
                all.with(key, value)
            });
        assert_eq!(Tunables::parse(text), Ok(settings), "{text}");
    }
}

#[test]
fn wrong_settings_say_what_is_accepted() {
    for (profile, settings, needle) in [
        ("bench", "size=63", "64 to 9216"),
        ("bench", "size=9217", "64 to 9216"),
        ("bench", "size=big", "imix or 64"),
        ("bench", "vm=var3", "var2"),
        ("bench", "size=imix,vm=size", "vm=size"),
        ("bench", "size=imix,flow=fsl", "three"),
        ("bench", "flow=all", "fsl"),
        ("bench", "pg_id=x", "pg_id"),
        ("bench", "vlan=0", "1 to 4094"),
        ("bench", "vlan=4095", "1 to 4094"),
        ("bench", "colour=red", "size, vm"),
        ("imix", "size=64", "none"),
        ("nothing", "", "bench, imix"),
        ("missing.json", "", "missing.json"),
        ("missing.json", "size=64", "no tunables"),
    ] {
        let error = open(profile, Way::Out, &tunables(settings))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(needle) && error.contains(profile),
            "{profile} {settings}: {error}"
        );
        assert!(!error.contains('\n'), "{error}");
    }
    for text in ["size", "--size", "=64", "size=", "--", "a='x,y',b"] {
        assert!(Tunables::parse(text).is_err(), "{text}");
    }
}

/// A minimal stream with one variable and one write, for tests to break.
fn one(variable: &str, write: &str) -> String {
    format!(
        r#"[{{"mode": {{"type": "continuous"}}, "packet": {{"binary": "{}"}}, "x": 1, "vm": {{"instructions": [
            {{"type": "flow_var", "name": "a", {variable}}}, {{"type": "write_flow_var", "name": "a", {write}}}]}}}}]"#,
        "A".repeat(80)
    )
}

#[test]
fn ranges_become_whole_steps() {
    let range = |op: &str, size: u8, min: u64, max: u64, step: u64| {
        let text = one(
            &format!(
                r#""size": {size}, "op": "{op}", "min_value": {min}, "max_value": {max}, "step": {step}"#
            ),
            r#""pkt_offset": 0"#,
        );
        parse("t", &text)
            .map(|s| (s[0].variables[0].min, s[0].variables[0].max))
            .map_err(|e| e.to_string())
    };
    assert_eq!(range("inc", 4, 10, 20, 5), Ok((10, 24)));
    assert_eq!(range("dec", 4, 10, 20, 5), Ok((6, 20)));
    assert_eq!(range("random", 4, 10, 20, 5), Ok((10, 20)));
    assert_eq!(range("inc", 8, 0, u64::MAX, 1), Ok((0, u64::MAX)));
    assert!(
        range("inc", 1, 0, 255, 3)
            .unwrap_err()
            .contains("whole number of steps")
    );
    assert!(
        range("dec", 1, 0, 9, 3)
            .unwrap_err()
            .contains("whole number of steps")
    );
    assert!(range("inc", 1, 0, 256, 1).unwrap_err().contains("1 bytes"));
    assert!(range("inc", 3, 0, 5, 1).unwrap_err().contains("size 3"));
    assert!(range("inc", 4, 0, 5, 0).unwrap_err().contains("step is 0"));
}

#[test]
fn wrong_profiles_say_where() {
    let good = r#""size": 4, "op": "inc", "min_value": 1, "max_value": 3"#;
    assert!(parse("t", &one(good, r#""pkt_offset": 56"#)).is_ok());
    for (text, needle) in [
        (
            one(good, r#""pkt_offset": 57"#),
            "instruction 1 (write_flow_var): reaches beyond the frame's 60 bytes",
        ),
        (one(good, r#""pkt_offset": -1"#), "instruction 1"),
        (
            one(
                r#""size": 4, "op": "up", "min_value": 1, "max_value": 3"#,
                r#""pkt_offset": 0"#,
            ),
            "op `up`",
        ),
        (
            one(
                r#""size": 4, "op": "inc", "min_value": 3, "max_value": 1"#,
                r#""pkt_offset": 0"#,
            ),
            "min 3",
        ),
        (
            one(
                r#""size": 1, "op": "inc", "value_list": [256]"#,
                r#""pkt_offset": 0"#,
            ),
            "value 256 does not fit",
        ),
        (
            one(
                r#""size": 1, "op": "inc", "value_list": []"#,
                r#""pkt_offset": 0"#,
            ),
            "value_list is empty",
        ),
        (
            one(&format!(r#"{good}, "next_var": "b""#), r#""pkt_offset": 0"#),
            "variable `a`: next_var `b`: no such variable",
        ),
        (
            one(&format!(r#"{good}, "next_var": "a""#), r#""pkt_offset": 0"#),
            "leads back",
        ),
        ("{}".to_owned(), "not a JSON array"),
        ("[]".to_owned(), "no stream"),
        ("[1]".to_owned(), "stream 0"),
        (
            r#"[{"mode": {"type": "continuous"}}]"#.to_owned(),
            "stream 0: missing field `packet`",
        ),
        (
            r#"[{"mode": {"type": "continuous"}, "packet": {"binary": "!"}}]"#.to_owned(),
            "packet.binary",
        ),
        (
            r#"[{"mode": {"type": "continuous"}, "packet": {"binary": "AAAA"}}]"#.to_owned(),
            "3 bytes",
        ),
        (
            one(good, r#""pkt_offset": 0"#).replace(
                r#""continuous""#,
                r#""continuous", "rate": {"type": "pps", "value": 1e308}"#,
            ),
            "rate 1e308 is not between 1e-6 and 1e15",
        ),
        (
            r#"[{"mode": {"type": "sometimes"}, "packet": {"binary": "AAAA"}}]"#.to_owned(),
            "sometimes",
        ),
    ] {
        let error = parse("t", &text).unwrap_err().to_string();
        assert!(error.contains(needle), "{error}");
    }
}

/// A stream with these keys beside a packet of 14 bytes.
fn keys(more: &str) -> String {
    format!(
        r#"{{"packet": {{"binary": "AAAAAQAAAAAAAgAACAA="}}, "mode": {{"type": "continuous"}}{more}}}"#
    )
}

fn burst(more: &str) -> String {
    keys(more).replace(
        r#""type": "continuous""#,
        r#""type": "single_burst", "total_pkts": 1"#,
    )
}

#[test]
fn wrong_streams_say_what_is_wrong() {
    let one = |text: String| format!("[{text}]");
    let latency = |kind: &str| {
        one(keys(&format!(
            r#", "flow_stats": {{"enabled": true, "rule_type": "{kind}", "stream_id": 3}}"#
        )))
    };
    let instruction = |text: &str| one(keys(&format!(r#", "vm": {{"instructions": [{text}]}}"#)));
    for (text, needle) in [
        (one(keys(r#", "isg": -1"#)), "isg -1e0 is not a time"),
        (one(keys(r#", "isg": 1e300"#)), "isg 1e300 is not a time"),
        (one(keys(r#", "start_paused": true"#)), "start_paused"),
        (one(keys(r#", "self_start": false"#)), "starts by itself"),
        (one(keys(r#", "next": 7"#)), "next `7`: no such stream"),
        (one(keys(r#", "next": [7]"#)), "next [7] is not a name"),
        (one(keys(r#", "name": true"#)), "true is not a name"),
        (
            one(keys("").replace("continuous", "single_burst")),
            "total_pkts is missing",
        ),
        (one(burst("").replace(": 1}", ": 0}")), "total_pkts is 0"),
        (
            one(burst(r#", "name": "a", "next": "b""#)),
            "stream `a`: next `b`: no such stream",
        ),
        (
            one(burst(r#", "next_stream_id": 9"#)),
            "next `9`: no such stream",
        ),
        (one(burst(r#", "name": "a", "next": "a""#)), "takes no time"),
        (
            format!(
                "[{}, {}]",
                keys(r#", "name": "a""#),
                keys(r#", "name": "a""#)
            ),
            "two streams are called `a`",
        ),
        (
            format!(
                "[{}, {}]",
                burst(r#", "name": "a", "next": "b""#),
                burst(r#", "name": "b", "core_id": 1"#)
            ),
            "next `b` has another core_id",
        ),
        (latency("tpg"), "rule_type `tpg` is not supported"),
        (latency("stats"), "its packets are not IP"),
        (
            instruction(r#"{"type": "jump"}"#),
            "instruction 0 (jump): not an instruction",
        ),
        (instruction("{}"), "instruction 0 (no type)"),
        (
            instruction(r#"{"type": "fix_checksum_ipv4", "pkt_offset": 41}"#),
            "reaches beyond the frame's 60 bytes",
        ),
        (
            instruction(r#"{"type": "fix_checksum_icmpv6", "l2_len": 14, "l3_len": 43}"#),
            "reaches beyond",
        ),
        (
            instruction(
                r#"{"type": "fix_checksum_hw", "l2_len": 14, "l3_len": 20, "l4_type": 11}"#,
            ),
            "no IP packet at l2_len",
        ),
        (
            instruction(r#"{"type": "trim_pkt_size", "name": "x"}"#),
            "no variable `x`",
        ),
        (
            instruction(
                r#"{"type": "tuple_flow_var", "name": "t", "ip_min": 9, "ip_max": 1, "port_min": 1, "port_max": 2}"#,
            ),
            "end is before its start",
        ),
        (
            instruction(
                r#"{"type": "flow_var_rand_limit", "name": "r", "size": 1, "limit": 4, "max_value": 256}"#,
            ),
            "min 0 and max 256",
        ),
        (
            instruction(
                r#"{"type": "flow_var_rand_limit", "name": "r", "size": 1, "limit": 0, "max_value": 9}"#,
            ),
            "limit is 0",
        ),
    ] {
        let error = parse("t", &text).unwrap_err().to_string();
        assert!(
            error.contains(needle) && !error.contains('\n'),
            "{text}: {error}"
        );
    }
}

#[test]
fn a_stream_that_is_off_ends_the_chain() {
    let chain = [
        burst(r#", "name": "a", "next": "b", "isg": 5"#),
        burst(r#", "name": "b", "next": "c", "self_start": false"#),
        keys(r#", "name": "c", "enabled": false"#),
    ];
    let streams = parse("t", &format!("[{}]", chain.join(", "))).unwrap();
    let nexts: Vec<_> = streams.iter().map(|s| s.next).collect();
    assert_eq!(nexts, [Some(1), None]);
}

#[test]
fn port_addresses_respect_the_flags() {
    let mut stream = open("bench", Way::Out, &Tunables::default())
        .unwrap()
        .remove(0);
    stream.address([2; 6], [4; 6]);
    assert_eq!(stream.packet[..12], [4, 4, 4, 4, 4, 4, 2, 2, 2, 2, 2, 2]);
    stream.macs.keep_source = true;
    stream.macs.keep_destination = true;
    stream.address([7; 6], [7; 6]);
    assert_eq!(stream.packet[..12], [4, 4, 4, 4, 4, 4, 2, 2, 2, 2, 2, 2]);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        if let Err(error) = parse("t", &text) {
            prop_assert!(error.to_string().contains('t'));
        }
        if let Err(error) = Tunables::parse(&text) {
            prop_assert!(!error.is_empty());
        }
    }

    /// Real profiles with a few changed bytes are either refused, or read and then can be executed.
    #[test]
    fn damaged_profiles_are_read_or_refused(
        which in 0..7usize,
        damage in proptest::collection::vec((any::<prop::sample::Index>(), prop_oneof![any::<u8>(), b'0'..=b'9', Just(b'-')]), 1..4),
    ) {
        let (_, text) = [
            compiled!("bench@size-64,vm-var2"), compiled!("imix"), compiled!("bench@vm-random"), compiled!("udp_1pkt_mac_mask5"),
            compiled!("bench@vm-tuple"), compiled!("burst_3st_loop_x_times"), compiled!("flow_stats_latency"),
        ][which];
        let mut bytes = text.as_bytes().to_vec();
        for (place, byte) in damage {
            let at = place.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(streams) = parse("t", &String::from_utf8_lossy(&bytes)) {
            let mut out = vec![0; 16384];
            for stream in &streams {
                let mut fields = Fields::new(stream, 3, 0);
                for _ in 0..5 {
                    let len = fields.write(Nanos(0), &mut out);
                    prop_assert!((60..=stream.frame_len()).contains(&len), "{}", len);
                }
            }
        }
    }
}

/// Names are text or numbers, in JSON and in YAML, wherever one is written or meant.
#[test]
fn names_may_be_numbers() {
    let text = r#"[{"name": 1, "next": "2", "mode": {"type": "single_burst", "total_pkts": 2},
          "packet": {"binary": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="},
          "vm": {"instructions": [
            {"type": "flow_var", "name": 8, "size": 1, "op": "inc", "min_value": 1,
             "max_value": 9, "next_var": "9"},
            {"type": "flow_var_rand_limit", "name": 9, "size": 1, "limit": 3, "max_value": 5},
            {"type": "write_flow_var", "name": "8", "pkt_offset": 15},
            {"type": "write_mask_flow_var", "name": 9, "pkt_offset": 16, "pkt_cast_size": 1,
             "mask": 255}]}},
         {"name": "2", "next": 2.5, "stream": {"self_start": false, "isg": 9,
          "mode": {"type": "single_burst", "total_pkts": 2},
          "packet": {"binary": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}}},
         {"name": 2.5, "next": -1, "mode": {"type": "single_burst", "total_pkts": 2},
          "packet": {"binary": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}}]"#;
    // All JSON is YAML.
    for file in ["p.json", "p.yaml"] {
        let streams = parse(file, text).unwrap();
        let names: Vec<_> = streams.iter().map(|s| (s.name.as_str(), s.next)).collect();
        assert_eq!(names, [("1", Some(1)), ("2", Some(2)), ("2.5", None)]);
        let variables = &streams[0].variables;
        let variables: Vec<_> = variables
            .iter()
            .map(|v| (v.name.as_str(), v.next))
            .collect();
        assert_eq!(variables, [("8", Some(1)), ("9", None)]);
        assert_eq!(streams[0].steps.len(), 2);
    }
    let twice = text.replace(r#""name": 2.5"#, r#""name": "1""#);
    let why = parse("p.json", &twice).unwrap_err().to_string();
    assert!(why.contains("two streams are called `1`"), "{why}");
}

#[test]
fn a_profile_without_an_end_is_refused() {
    let file = std::env::temp_dir().join(format!("parshall-endless-{}.json", std::process::id()));
    std::os::unix::fs::symlink("/dev/zero", &file).expect("there is room");
    let name = file.display().to_string();
    let error = open(&name, Way::Out, &Tunables::default());
    std::fs::remove_file(&file).expect("it is ours");
    let error = error.expect_err("it has no end").to_string();
    let says = [&name, "larger than 64 MiB"];
    assert!(says.iter().all(|part| error.contains(*part)), "{error}");
}
