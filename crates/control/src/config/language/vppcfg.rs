//! The sections of vppcfg, with their limits, and the fields that we add to them: `vrf`, `acls` and
//! `firewall` of interfaces.

use super::{Field, Key, Text, Type};

/// No limit that the language sets.
const ANY: usize = usize::MAX;

static BOOL: Type = Type::Bool;
static NAME: Type = Type::Text(Text::ANY);
static MAC: Type = Type::Mac;
static IP: Type = Type::Ip;
static MTU: Type = Type::Int {
    least: 128,
    most: 9216,
};
pub(super) static DESCRIPTION: Type = Type::Text(Text {
    excludes: "'\"",
    nothing: true,
    ..Text::ANY
});
/// The name of a network device of the host.
pub(super) static DEVICE: Type = Type::Text(DEVICE_NAME);
const DEVICE_NAME: Text = Text::form(
    r"^[a-z][^\s/:]*$",
    "a name that begins with a lower-case letter and has no blank, `/` or `:`",
)
.long(1, 15);

static ADDRESSES: Type = Type::List {
    of: &Type::InterfaceAddress,
    least: 1,
    most: 6,
};
static SUB_ADDRESSES: Type = Type::List {
    of: &Type::InterfaceAddress,
    least: 0,
    most: ANY,
};
static STATE: Type = Type::Choice(&["up", "down"]);

static ACL_NAMES: Type = Type::Either(&[
    Type::Text(Text::ANY),
    Type::List {
        of: &NAME,
        least: 0,
        most: ANY,
    },
]);
static ATTACHED: Type = Type::Object(&[
    Field::new(
        "input",
        &ACL_NAMES,
        "ACLs for packets that come in, in order",
    ),
    Field::new(
        "output",
        &ACL_NAMES,
        "ACLs for packets that go out, in order",
    ),
]);

static FIREWALL: Type = Type::Object(&[
    Field::new("in", &NAME, "Policy for packets that come in by it"),
    Field::new("out", &NAME, "Policy for packets that leave by it"),
]);

const fn description() -> Field {
    Field::new("description", &DESCRIPTION, "Description for people")
}
const fn lcp() -> Field {
    Field::new("lcp", &DEVICE, "Name of the host's device for it")
}
const fn mtu(default: &'static str) -> Field {
    Field::new("mtu", &MTU, "Largest IP packet, bytes").default(default)
}
const fn mac() -> Field {
    Field::new("mac", &MAC, "Ethernet address")
}
const fn unnumbered() -> Field {
    Field::new("unnumbered", &NAME, "Interface whose addresses it borrows")
}
const fn l2xc() -> Field {
    Field::new(
        "l2xc",
        &NAME,
        "Interface that gets, unrouted, all packets it receives",
    )
}
const fn state() -> Field {
    Field::new("state", &STATE, "Down: it carries no packets").default("up")
}
const fn mpls() -> Field {
    Field::new("mpls", &BOOL, "Accept MPLS packets; has no effect yet").default("false")
}
const fn vrf() -> Field {
    Field::new(
        "vrf",
        &DEVICE,
        "VRF that it belongs to; if left out, the main table",
    )
}
const fn acls() -> Field {
    Field::new("acls", &ATTACHED, "Access control lists to apply")
}
const fn firewall() -> Field {
    Field::new(
        "firewall",
        &FIREWALL,
        "Policies for packets that are forwarded",
    )
}
const fn addresses(of: &'static Type) -> Field {
    Field::new("addresses", of, "Addresses with their prefix length")
}

pub(super) static INTERFACES: Type = Type::Map {
    key: Key::Name(Text::ANY),
    of: &Type::Object(&[
        description(),
        Field::new(
            "device-type",
            &Type::Choice(&["dpdk"]),
            "Has no effect here",
        ),
        mac(),
        lcp(),
        mtu("1500"),
        addresses(&ADDRESSES),
        unnumbered(),
        l2xc(),
        state(),
        mpls(),
        Field::new("sflow", &BOOL, "Sample its packets").default("false"),
        Field::new(
            "sub-interfaces",
            &SUBS,
            "VLAN interfaces on top of it, by number",
        ),
        vrf(),
        acls(),
        firewall(),
    ]),
};

static SUBS: Type = Type::Map {
    key: Key::Number {
        least: 1,
        most: 4_294_967_295,
    },
    of: &Type::Object(&[
        description(),
        lcp(),
        mtu("the interface's"),
        addresses(&SUB_ADDRESSES),
        unnumbered(),
        l2xc(),
        state(),
        mpls(),
        Field::new("encapsulation", &ENCAPSULATION, "Its VLAN tags")
            .default("dot1q with its own number, exact-match"),
        vrf(),
        acls(),
        firewall(),
    ]),
};

static VLAN: Type = Type::Int {
    least: 1,
    most: 4095,
};
static ENCAPSULATION: Type = Type::Object(&[
    Field::new("dot1q", &VLAN, "Outer tag, of type 0x8100"),
    Field::new("dot1ad", &VLAN, "Outer tag, of type 0x88a8"),
    Field::new("inner-dot1q", &VLAN, "Inner tag, of type 0x8100"),
    Field::new("exact-match", &BOOL, "Only packets with exactly these tags").default("false"),
]);

pub(super) static LOOPBACKS: Type = Type::Map {
    key: Key::Name(Text::form(r"^loop[0-9]+$", "loopN")),
    of: &Type::Object(&[
        description(),
        mac(),
        lcp(),
        mtu("1500"),
        addresses(&ADDRESSES),
        unnumbered(),
        mpls(),
        vrf(),
        firewall(),
    ]),
};

pub(super) static BONDS: Type = Type::Map {
    key: Key::Name(Text::form(r"^BondEthernet[0-9]+$", "BondEthernetN")),
    of: &Type::Object(&[
        description(),
        mac(),
        Field::new("interfaces", &NAMES, "Its members"),
        Field::new(
            "mode",
            &BOND_MODE,
            "How packets are spread over the members",
        )
        .default("lacp"),
        Field::new(
            "load-balance",
            &BALANCE,
            "Headers that are hashed in modes lacp and xor",
        )
        .default("l34"),
    ]),
};
static BOND_MODE: Type =
    Type::Choice(&["round-robin", "active-backup", "broadcast", "lacp", "xor"]);
static BALANCE: Type = Type::Choice(&["l2", "l23", "l34"]);
static NAMES: Type = Type::List {
    of: &NAME,
    least: 0,
    most: ANY,
};

pub(super) static BRIDGES: Type = Type::Map {
    key: Key::Name(Text::form(r"^bd[0-9]+$", "bdN")),
    of: &Type::Object(&[
        description(),
        mtu("1500"),
        Field::new("bvi", &LOOPBACK, "Loopback that routes for the bridge"),
        Field::new("interfaces", &NAMES, "Its members"),
        Field::new(
            "settings",
            &BRIDGE_SETTINGS,
            "Learning, flooding, forwarding and ARP",
        ),
    ]),
};
static LOOPBACK: Type = Type::Text(Text::form(r"^loop[0-9]+$", "loopN"));
static BRIDGE_SETTINGS: Type = Type::Object(&[
    Field::new("learn", &BOOL, "Learn where stations are").default("true"),
    Field::new("unicast-flood", &BOOL, "Flood unicast").default("true"),
    Field::new(
        "unknown-unicast-flood",
        &BOOL,
        "Flood unicast to unknown stations",
    )
    .default("true"),
    Field::new(
        "unicast-forward",
        &BOOL,
        "Forward unicast to known stations",
    )
    .default("true"),
    Field::new("arp-termination", &BOOL, "Answer ARP from the table").default("false"),
    Field::new("arp-unicast-forward", &BOOL, "Forward ARP as unicast").default("false"),
    Field::new(
        "mac-age-minutes",
        &AGE,
        "Minutes until a silent station is forgotten; 0: never",
    )
    .default("0"),
]);
static AGE: Type = Type::Int {
    least: 0,
    most: 255,
};

pub(super) static VXLANS: Type = Type::Map {
    key: Key::Name(Text::form(r"^vxlan_tunnel[0-9]+$", "vxlan_tunnelN")),
    of: &Type::Object(&[
        description(),
        Field::new("local", &IP, "Our address").required(),
        Field::new("remote", &IP, "The other end's address").required(),
        Field::new("vni", &VNI, "Number of the network").required(),
    ]),
};
static VNI: Type = Type::Int {
    least: 1,
    most: 16_777_215,
};

pub(super) static TAPS: Type = Type::Map {
    key: Key::Name(Text::form(r"^tap[0-9]+$", "tapN")),
    of: &Type::Object(&[
        description(),
        Field::new("host", &TAP_HOST, "The host's end").required(),
        Field::new("rx-ring-size", &RING, "Descriptors: a power of two").default("256"),
        Field::new("tx-ring-size", &RING, "Descriptors: a power of two").default("256"),
    ]),
};
static RING: Type = Type::Int {
    least: 8,
    most: 32768,
};
static TAP_HOST: Type = Type::Object(&[
    Field::new("name", &DEVICE, "Name of the device").required(),
    Field::new("mac", &MAC, "Its Ethernet address").default("random"),
    Field::new("mtu", &MTU, "Its MTU, bytes"),
    Field::new("bridge", &DEVICE, "Bridge of the host that it joins"),
    Field::new("bridge-create", &BOOL, "Make that bridge").default("false"),
    Field::new("namespace", &NAMESPACE, "Network namespace that it is in"),
    Field::new("namespace-create", &BOOL, "Make that namespace").default("false"),
]);
static NAMESPACE: Type = Type::Text(
    Text::form(
        r"^[a-z][^\s/]*$",
        "a name that begins with a lower-case letter and has no blank or `/`",
    )
    .long(1, 64),
);

pub(super) static PREFIXLISTS: Type = Type::Map {
    key: Key::Name(
        Text::form(
            r"^[a-z][a-z0-9-]+$",
            "a lower-case letter, then such letters, digits and `-`",
        )
        .long(2, 64),
    ),
    of: &Type::Object(&[
        description(),
        Field::new("members", &NETWORKS, "Addresses and networks").required(),
    ]),
};
static NETWORKS: Type = Type::List {
    of: &Type::Network,
    least: 0,
    most: ANY,
};

/// The name of an ACL or a policy.
pub(super) const FILTER_NAME: Text = Text::form(
    r"^[a-z][a-z0-9-]+$",
    "a lower-case letter, then such letters, digits and `-`",
)
.long(2, 56);

pub(super) static ACLS: Type = Type::Map {
    key: Key::Name(FILTER_NAME),
    of: &Type::Object(&[
        description(),
        Field::new("terms", &TERMS, "Terms; the first that matches decides").required(),
    ]),
};
static TERMS: Type = Type::List {
    of: &TERM,
    least: 1,
    most: 100,
};
static TERM: Type = Type::Object(&[
    description(),
    Field::new(
        "action",
        &Type::Choice(&["permit", "deny", "permit+reflect"]),
        "Action on packets that match",
    )
    .required(),
    family(),
    source(),
    destination(),
    protocol(),
    source_port(),
    destination_port(),
    icmp_type(),
    icmp_code(),
]);
pub(super) const fn family() -> Field {
    Field::new(
        "family",
        &Type::Choice(&["ipv4", "ipv6", "any"]),
        "Address family of the packets",
    )
    .default("any")
}
pub(super) const fn source() -> Field {
    Field::new("source", &WHO, "Network, address or prefix list").default("any")
}
pub(super) const fn destination() -> Field {
    Field::new("destination", &WHO, "Network, address or prefix list").default("any")
}
pub(super) const fn protocol() -> Field {
    Field::new("protocol", &PROTOCOL, "Name or number").default("any")
}
pub(super) const fn source_port() -> Field {
    Field::new("source-port", &TRANSPORT_PORT, "Number, range or service").default("any")
}
pub(super) const fn destination_port() -> Field {
    Field::new(
        "destination-port",
        &TRANSPORT_PORT,
        "Number, range or service",
    )
    .default("any")
}
pub(super) const fn icmp_type() -> Field {
    Field::new("icmp-type", &ICMP, "Number or range").default("any")
}
pub(super) const fn icmp_code() -> Field {
    Field::new("icmp-code", &ICMP, "Number or range").default("any")
}
static WHO: Type = Type::Text(Text::ANY.long(1, 56));
static PROTOCOL: Type = Type::Either(&[
    Type::Int {
        least: 1,
        most: 255,
    },
    Type::Text(Text::form(
        r"^[a-z][a-z0-9-]*$",
        "a number from 1 to 255, or a name such as tcp",
    )),
]);
static TRANSPORT_PORT: Type = Type::Either(&[
    Type::Int {
        least: 1,
        most: 65535,
    },
    Type::Text(Text::form(
        r"^([1-9][0-9]*-([1-9][0-9]*)?|-[1-9][0-9]*|[a-z][a-z0-9-]*)$",
        "a number from 1 to 65535, a name such as www, or in quotes \"1024-\", \"-1023\", \
         \"80-88\"",
    )),
]);
static ICMP: Type = Type::Either(&[
    Type::Int {
        least: 0,
        most: 255,
    },
    Type::Text(Text::form(
        r"^([0-9]+-([1-9][0-9]*)?|-[1-9][0-9]*|any)$",
        "a number from 0 to 255, any, or in quotes \"8-\", \"-3\", \"3-5\"",
    )),
]);

pub(super) static SFLOW: Type = Type::Object(&[
    Field::new(
        "collector",
        &Type::Endpoint,
        "Where the samples go by UDP: its address, and its port unless that is 6343",
    ),
    Field::new(
        "agent",
        &IP,
        "Address by which the collector knows this router",
    )
    .default("its lowest address"),
    Field::new(
        "header-bytes",
        &HEADER,
        "Bytes of each sampled packet to export",
    )
    .default("128"),
    Field::new(
        "polling-interval",
        &POLLING,
        "Seconds between exports of counters",
    )
    .default("20"),
    Field::new(
        "sampling-rate",
        &SAMPLING,
        "One packet in this many is sampled",
    )
    .default("10000"),
]);
static HEADER: Type = Type::Int {
    least: 1,
    most: 256,
};
static POLLING: Type = Type::Int {
    least: 5,
    most: 600,
};
static SAMPLING: Type = Type::Int {
    least: 100,
    most: 1_000_000,
};
