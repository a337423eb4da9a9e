//! The sections that vppcfg does not have.

use super::vppcfg::{self, DESCRIPTION, DEVICE, FILTER_NAME};
use super::{Field, Key, Text, Type};
use crate::config::model;

static ANY_TEXT: Type = Type::Text(Text::ANY);
static PATH: Type = Type::Text(Text::ANY.long(1, 4095));
static SOCKET: Type = Type::Text(Text::ANY.long(1, 107));
static NETDEV: Type = Type::Text(
    Text::form(
        r"^[^\s/:]+$",
        "the name of a network device: no blank, `/` or `:`",
    )
    .long(1, 15),
);
static TABLE: Type = Type::Int {
    least: 1,
    most: 4_294_967_295,
};

pub(super) static POLICIES: Type = Type::Map {
    key: Key::Name(FILTER_NAME),
    of: &Type::Object(&[
        Field::new("description", &DESCRIPTION, "Description for people"),
        Field::new(
            "default",
            &VERDICT,
            "Action on packets that no rule matches",
        )
        .default("drop"),
        Field::new("rules", &RULES, "Rules; the first that matches decides"),
    ]),
};
static RULES: Type = Type::List {
    of: &RULE,
    least: 0,
    most: usize::MAX,
};
static RULE: Type = Type::Object(&[
    Field::new("description", &DESCRIPTION, "Description for people"),
    Field::new("action", &VERDICT, "Action on packets that match").required(),
    Field::new("state", &STATES, "State, or several, of the packets").default("all"),
    vppcfg::family(),
    vppcfg::source(),
    vppcfg::destination(),
    vppcfg::protocol(),
    vppcfg::source_port(),
    vppcfg::destination_port(),
    vppcfg::icmp_type(),
    vppcfg::icmp_code(),
    Field::new(
        "limit",
        &LIMIT,
        "Packets a second of those that match; more are dropped",
    ),
]);
static VERDICT: Type = Type::Choice(&["accept", "drop", "reject"]);
const STATE: Type = Type::Choice(&["new", "established", "related", "invalid"]);
static STATES: Type = Type::Either(&[
    STATE,
    Type::List {
        of: &STATE,
        least: 1,
        most: 4,
    },
]);
static LIMIT: Type = Type::Int {
    least: 1,
    most: u32::MAX as i64,
};

pub(super) static ROUTES: Type = Type::List {
    of: &Type::Object(&[
        Field::new("description", &DESCRIPTION, "Description for people"),
        Field::new("prefix", &Type::Prefix, "Destinations of the packets").required(),
        Field::new(
            "via",
            &VIA,
            "Next hops; packets are spread over several by flow",
        ),
        Field::new("blackhole", &Type::Bool, "Drop the packets").default("false"),
        Field::new("vrf", &DEVICE, "VRF whose table has it"),
        Field::new("table", &TABLE, "Table that has it").default("254, the main table"),
        Field::new(
            "metric",
            &METRIC,
            "Among routes of one prefix the lowest wins",
        )
        .default("the kernel's"),
    ]),
    least: 0,
    most: usize::MAX,
};
static METRIC: Type = Type::Int {
    least: 1,
    most: 4_294_967_295,
};
static VIA: Type = Type::Either(&[
    Type::Ip,
    Type::List {
        of: &HOP,
        least: 1,
        most: 64,
    },
]);
static HOP: Type = Type::Either(&[
    Type::Ip,
    Type::Object(&[
        Field::new("address", &Type::Ip, "The neighbor"),
        Field::new("interface", &ANY_TEXT, "Interface that leads to it"),
        Field::new(
            "weight",
            &WEIGHT,
            "Share of the flows, relative to the other next hops",
        )
        .default("1"),
    ]),
]);
static WEIGHT: Type = Type::Int {
    least: 1,
    most: 256,
};

pub(super) static VRFS: Type = Type::Map {
    key: Key::Name(
        Text::form(
            r"^[a-z][^\s/:]*$",
            "a name that begins with a lower-case letter and has no blank, `/` or `:`",
        )
        .long(1, 15),
    ),
    of: &Type::Object(&[
        Field::new("description", &DESCRIPTION, "Description for people"),
        Field::new("table", &TABLE, "Number of its routing table").required(),
    ]),
};

pub(super) static PORTS: Type = Type::Map {
    key: Key::Name(Text::ANY),
    of: &Type::Object(&[
        Field::new("netdev", &NETDEV, "A network device of the kernel"),
        Field::new("pci", &PCI, "The network device of a PCI function"),
        Field::new("memif", &MEMIF, "Shared memory with another program"),
        Field::new("tap", &TAP, "A tap device"),
        Field::new("pcap", &PCAP, "Packets from and to files"),
        Field::new(
            "null",
            &Type::Object(&[]),
            "Receives nothing, drops what it is given",
        ),
        Field::new("queues", &QUEUES, "Queues to use").default("all"),
        Field::new("mode", &MODE, "How AF_XDP moves packets").default("auto"),
    ]),
};
static QUEUES: Type = Type::Int {
    least: 1,
    most: 256,
};
static MODE: Type = Type::Choice(&["auto", "zero-copy", "copy", "generic"]);
static PCI: Type = Type::Text(Text::form(
    r"^[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]$",
    "a PCI address as `parshall show pci` prints it: 0000:03:00.0",
));
static MEMIF: Type = Type::Object(&[
    Field::new("socket", &SOCKET, "Socket by which both sides meet").required(),
    Field::new(
        "id",
        &MEMIF_ID,
        "Number on that socket, the same on both sides",
    )
    .default("0"),
    Field::new(
        "role",
        &Type::Choice(&["server", "client"]),
        "Server: listens",
    )
    .default("client"),
    Field::new("mode", &Type::Choice(&["ethernet"]), "Layer of the packets").default("ethernet"),
    Field::new("rings", &RINGS, "Ring pairs").default("1"),
    Field::new("ring-size", &RING, "Descriptors: a power of two").default("1024"),
    Field::new("secret", &SECRET, "Secret that the peer must give"),
]);
static MEMIF_ID: Type = Type::Int {
    least: 0,
    most: 4_294_967_295,
};
static RINGS: Type = Type::Int {
    least: 1,
    most: 256,
};
static RING: Type = Type::Int {
    least: 64,
    most: 16384,
};
static SECRET: Type = Type::Text(Text::ANY.long(0, 24));
static TAP: Type = Type::Object(&[
    Field::new("name", &NETDEV, "Name of the device").default("that of the interface")
]);
static PCAP: Type = Type::Object(&[
    Field::new("rx", &PATH, "File to replay"),
    Field::new("tx", &PATH, "File to write"),
]);

pub(super) static WORKERS: Type = Type::Object(&[
    Field::new("count", &COUNT, "Number of workers").default("as many as cpus, or 1"),
    Field::new("cpus", &CPUS, "Processors to pin them to, in order"),
]);
static COUNT: Type = Type::Int {
    least: 1,
    most: router::WORKERS as i64,
};
static CPUS: Type = Type::List {
    of: &CPU,
    least: 0,
    most: router::WORKERS,
};
static CPU: Type = Type::Int {
    least: 0,
    most: 4095,
};

pub(super) static TABLES: Type = Type::Object(&[
    Field::new(
        "ip4-routes",
        &ROOM,
        "Number of IPv4 routes to make room for",
    )
    .default("chosen by the machine's memory"),
    Field::new(
        "ip6-routes",
        &ROOM,
        "Number of IPv6 routes to make room for",
    )
    .default("chosen by the machine's memory"),
    Field::new(
        "flows",
        &FLOWS,
        "Number of flows that each worker makes room for",
    )
    .default("1000000"),
]);
static FLOWS: Type = Type::Int {
    least: 1000,
    most: 16_000_000,
};
static ROOM: Type = Type::Int {
    least: 1000,
    most: tables::Sizes::MOST_ROUTES as i64,
};

pub(super) static NETNS: Type = Type::Text(Text::ANY.long(1, 4095));

pub(super) static CONTROL: Type = Type::Object(&[
    Field::new("socket", &SOCKET, "The Unix socket").default(model::SOCKET),
    Field::new(
        "group",
        &ANY_TEXT,
        "Group that may read and change everything, which is as good as root",
    )
    .default("parshall"),
    Field::new("show-group", &ANY_TEXT, "Group that may only read"),
]);
