//! Commands of T-Rex that there are not, and what there is in their place.

/// What to do instead of some commands.
type Instead = (&'static [&'static str], &'static str);

const INSTEAD: &[Instead] = &[
    (
        &["api_sync"],
        "a client of API 5 begins with `api_sync_v2`; older ones are not served",
    ),
    (
        &["get_profile_list"],
        "a port has one profile, `_`; `get_all_streams` says what is in it",
    ),
    (
        &["pause_streams", "resume_streams", "update_streams"],
        "the streams of a port go together: `pause_traffic`, `resume_traffic`, `update_traffic`",
    ),
    (
        &["push_remote"],
        "the server reads no files; `parshall send` replays captures",
    ),
    (
        &["push_pkts"],
        "`add_stream` with a burst sends single packets",
    ),
    (
        &["get_global_cfg", "set_global_cfg"],
        "the server's command line sets it up",
    ),
    (
        &["set_l3", "set_vlan", "conf_ipv6", "conf_ns_batch"],
        "addresses and VLANs of an interface are the kernel's (`ip`), those of packets their \
         streams'",
    ),
    (
        &[
            "get_rx_queue_pkts",
            "start_capture_port",
            "stop_capture_port",
        ],
        "what a port receives is counted, and cannot be fetched; `tcpdump` captures on an \
         interface",
    ),
    (
        &["get_async_results", "cancel_async_task"],
        "every request has its answer at once",
    ),
    (
        &["shutdown"],
        "SIGINT or SIGTERM ends the server, where it runs",
    ),
];

/// What there is in place of a command; None if T-Rex has no such command either, or if there is
/// nothing to say.
pub fn instead(method: &str) -> Option<&'static str> {
    if method.contains("_tpg") {
        return Some("packets are counted by groups without tags: `get_pgid_stats`");
    }
    let known = INSTEAD.iter().find(|(names, _)| names.contains(&method));
    known.map(|(_, instead)| *instead)
}
