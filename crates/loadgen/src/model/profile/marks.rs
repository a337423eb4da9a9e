//! Checks that the marks of a profile's streams fit.

use wire::{eth, ip4, ip6};

use crate::model::stream::Stream;
use crate::source::mark::{self, COUNTERS, LATENCIES, TRAILER, counters_of};

/// Checks that all marks fit, into the packets and into the receiver's counters.
pub(super) fn check(streams: &[Stream]) -> Result<(), String> {
    for (i, stream) in streams.iter().enumerate() {
        let Some(mark) = stream.mark else { continue };
        let refused = |why: &str| Err(format!("stream `{}`: flow_stats: {why}", stream.name));
        let headers = match headers(&stream.frame()) {
            Some(headers) => headers,
            None if mark.latency => eth::LEN,
            None => {
                return refused("its packets are not IP; such are counted by rule_type latency");
            }
        };
        let (least, needed) = (stream.least_frame_len(), headers + TRAILER);
        if mark.latency && least < needed {
            return refused(&format!(
                "no room for {TRAILER} bytes behind the header in frames of {least} bytes, which \
                 need {needed}"
            ));
        }
        if let Some(field) = mark::overwritten(stream) {
            return refused(&format!(
                "its instructions write the {field}, by which a receiver knows its packets"
            ));
        }
        // As in T-Rex, where the second stream is refused, whichever it is.
        let others = streams[..i].iter().filter_map(|other| other.mark);
        let mut others = others.filter(|other| other.group == mark.group);
        if others.any(|other| other.latency || mark.latency) {
            return refused(&format!(
                "group {} has another stream; one with rule_type latency has to be the only one",
                mark.group
            ));
        }
    }
    let counters = counters_of(streams);
    let most = |latency: bool| {
        let marked = streams
            .iter()
            .zip(&counters)
            .filter(|(s, _)| s.mark.is_some_and(|m| m.latency == latency));
        marked.map(|(_, c)| c + 1).max().unwrap_or(0)
    };
    if most(false) > COUNTERS || most(true) > LATENCIES {
        return Err(format!(
            "flow_stats: more than {COUNTERS} groups, or more than {LATENCIES} with latency"
        ));
    }
    Ok(())
}

/// Bytes up to the end of the IP header; None if the frame has none.
fn headers(frame: &[u8]) -> Option<usize> {
    let (at, version) = mark::network(frame)?;
    let header = match version {
        4 => ip4::Header::parse(&frame[at..])?
            .0
            .header_len()
            .max(ip4::LEN),
        _ => ip6::LEN,
    };
    Some(at + header)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use wire::craft::Packet;

    use crate::model::profile::parse;

    /// A stream that measures latency in this frame, with these instructions.
    fn latency(frame: &[u8], instructions: &str) -> String {
        let frame = STANDARD.encode(frame);
        format!(
            r#"[{{"mode": {{"type": "continuous"}}, "packet": {{"binary": "{frame}"}},
                "flow_stats": {{"enabled": true, "rule_type": "latency", "stream_id": 3}},
                "vm": {{"instructions": [{instructions}]}}}}]"#
        )
    }

    /// However a frame is cut, its trailer stays behind the header.
    #[test]
    fn a_cut_frame_has_room_for_its_trailer() {
        let local = Ipv6Addr::LOCALHOST;
        let frame = Packet::udp6((local, 1), (local, 2)).frame_len(100);
        for (lengths, fits) in [
            (r#""min_value": 70, "max_value": 100"#, true),
            (r#""min_value": 69, "max_value": 100"#, false),
            (r#""min_value": 1, "max_value": 100"#, false),
            (r#""value_list": [100, 70]"#, true),
            (r#""value_list": [100, 69, 70]"#, false),
        ] {
            let cut = format!(
                r#"{{"type": "flow_var", "name": "n", "size": 2, "op": "inc", "step": 1, {lengths}}},
                {{"type": "trim_pkt_size", "name": "n"}}"#
            );
            let parsed = parse("p.json", &latency(frame.frame().as_slice(), &cut));
            assert_eq!(parsed.is_ok(), fits, "{lengths}: {parsed:?}");
            if let Err(e) = parsed {
                assert!(e.to_string().contains("need 70"), "{e}");
            }
        }
    }

    /// Shows that a packet which is not IP has no place for a mark, but has one for a trailer.
    #[test]
    fn what_is_not_ip_can_measure_latency_only() {
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&[0x88, 0xb5]);
        let latency = latency(&frame, "");
        let streams = parse("p.json", &latency).unwrap();
        assert!(streams[0].is_fixed());
        let stats = parse("p.json", &latency.replace("latency", "stats"));
        let why = stats.unwrap_err().to_string();
        assert!(why.contains("counted by rule_type latency"), "{why}");
    }

    /// Shows that the fields a receiver knows a packet by stay as they are.
    #[test]
    fn a_mark_that_is_overwritten_is_refused() {
        let frame = Packet::udp((1, 1), (2, 2)).frame_len(100);
        for (offset, fits) in [(16, true), (18, false), (19, false), (20, true)] {
            let vary = format!(
                r#"{{"type": "flow_var", "name": "n", "size": 1, "op": "inc", "step": 1,
                "min_value": 0, "max_value": 9}},
                {{"type": "write_flow_var", "name": "n", "pkt_offset": {offset}}}"#
            );
            let profile = latency(frame.frame().as_slice(), &vary);
            for profile in [profile.replace("latency", "stats"), profile] {
                let parsed = parse("p.json", &profile);
                assert_eq!(parsed.is_ok(), fits, "{offset}: {parsed:?}");
                if let Err(e) = parsed {
                    assert!(e.to_string().contains("write the identification"), "{e}");
                }
            }
        }
    }

    /// A group with latency has one stream, and one without has any number.
    #[test]
    fn a_stream_with_latency_shares_its_group_with_none() {
        let frame = Packet::udp((1, 1), (2, 2)).frame_len(100);
        let one = latency(frame.frame().as_slice(), "");
        let one = one.trim_matches(['[', ']']);
        let (latency, stats) = (one.to_owned(), one.replace("latency", "stats"));
        let other = |stream: &str| stream.replace("\"stream_id\": 3", "\"stream_id\": 4");
        for (first, second, fits) in [
            (&stats, &stats, true),
            (&latency, &latency, false),
            (&latency, &stats, false),
            (&stats, &latency, false),
            (&latency, &other(&latency), true),
            (&other(&stats), &latency, true),
        ] {
            let parsed = parse("p.json", &format!("[{first}, {second}]"));
            assert_eq!(parsed.is_ok(), fits, "{first} {second}: {parsed:?}");
        }
    }

    /// Options belong to the header.
    #[test]
    fn a_header_with_options_leaves_less_room() {
        let mut frame = vec![0; 60];
        (frame[12], frame[13]) = (8, 0);
        for (first, fits) in [(0x45, true), (0x47, true), (0x48, false), (0x4f, false)] {
            frame[14] = first;
            assert_eq!(parse("p.json", &latency(&frame, "")).is_ok(), fits);
        }
    }
}
