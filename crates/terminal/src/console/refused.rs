//! Words of T-Rex's console that there are not, and what there is in their place.

const REFUSED: &[(&[&str], &str)] = &[
    (
        &["push"],
        "a capture is a profile like others: `start -f FILE.pcap`, or `parshall send`",
    ),
    (
        &["connect", "disconnect"],
        "the ports are of this process; for a server of T-Rex's RPC, `parshall trex-server`",
    ),
    (
        &["tui"],
        "`parshall top --trex` shows a server; here, `stats` shows the ports",
    ),
    (
        &["capture", "pkt"],
        "packets are counted, not captured; `tcpdump` captures on an interface",
    ),
    (
        &[
            "service", "arp", "ping", "l3", "ipv6", "scan6", "vlan", "resolve", "ns", "bird",
        ],
        "there is no service mode: the kernel answers ARP, ND and ping (`ip`, `ping`)",
    ),
    (
        &["l2"],
        "--dst-mac sets where packets go when the console starts",
    ),
    (
        &["pause_streams", "resume_streams", "update_streams"],
        "the streams of a port go together: `pause`, `resume`, `update`",
    ),
    (
        &[
            "profiles",
            "template_group",
            "tpg_enable",
            "tpg_disable",
            "tpg_stats",
        ],
        "a port has one profile; its packet groups are in `stats -s`",
    ),
    (
        &[
            "shutdown",
            "reacquire",
            "events",
            "map",
            "plugins",
            "debug",
            "set_rx_sniffer",
        ],
        "there is no server behind this console that it would be for",
    ),
];

/// Why a word is not there, if T-Rex has it.
pub fn instead(word: &str) -> Option<&'static str> {
    let row = REFUSED.iter().find(|(words, _)| words.contains(&word));
    row.map(|(_, why)| *why)
}

/// All of these words, for completion tests.
#[cfg(test)]
pub fn all() -> impl Iterator<Item = &'static str> {
    REFUSED.iter().flat_map(|(words, _)| words.iter().copied())
}
