//! The language as data: which sections and fields there are, what each may hold, and what it is
//! for. Reading a file, its messages, the suggestions for a mistyped name, and the JSON schema for
//! editors all come from these tables.

mod nat;
mod ours;
mod print;
mod read;
mod schema;
mod vppcfg;

pub(super) use print::print;
pub(super) use read::read;
pub use schema::schema;

/// A field of an object.
pub(super) struct Field {
    pub name: &'static str,
    pub of: &'static Type,
    pub required: bool,
    /// Its value when it is left out; empty: none.
    pub default: &'static str,
    /// Its purpose, in a line.
    pub about: &'static str,
}

/// The values that a field may hold.
pub(super) enum Type {
    /// `true`, `yes`, `on` or their opposites.
    Bool,
    /// A whole number within a range.
    Int { least: i64, most: i64 },
    /// A text.
    Text(Text),
    /// One of some words.
    Choice(&'static [&'static str]),
    /// An Ethernet address.
    Mac,
    /// An address.
    Ip,
    /// An address, with a UDP port or without.
    Endpoint,
    /// An address with a prefix length.
    InterfaceAddress,
    /// A prefix without host bits.
    Prefix,
    /// An address, or a prefix whose host bits do not matter.
    Network,
    /// A list.
    List {
        of: &'static Type,
        least: usize,
        most: usize,
    },
    /// Fields, each with its own name and type.
    Object(&'static [Field]),
    /// Objects by the name or number that the operator chose.
    Map { key: Key, of: &'static Type },
    /// Any of these.
    Either(&'static [Type]),
}

/// The text of a field, or of the name of an object.
pub(super) struct Text {
    pub least: usize,
    pub most: usize,
    /// A regular expression that it matches; empty: any.
    pub pattern: &'static str,
    /// Characters that it must not have.
    pub excludes: &'static str,
    /// The form in words.
    pub form: &'static str,
    /// Nothing (`description:`) is an empty text.
    pub nothing: bool,
}

/// The names of the objects in a map.
pub(super) enum Key {
    /// A text of this form.
    Name(Text),
    /// A number.
    Number { least: i64, most: i64 },
}

impl Text {
    const ANY: Text = Text {
        least: 0,
        most: usize::MAX,
        pattern: "",
        excludes: "",
        form: "",
        nothing: false,
    };

    const fn form(pattern: &'static str, form: &'static str) -> Text {
        Text {
            pattern,
            form,
            ..Text::ANY
        }
    }

    const fn long(self, least: usize, most: usize) -> Text {
        Text {
            least,
            most,
            ..self
        }
    }

    /// What to write: its form, and how long it may be.
    fn rule(&self) -> String {
        let Text {
            least, most, form, ..
        } = self;
        match (*most == usize::MAX, form.is_empty()) {
            (true, _) => format!("write {form}"),
            (_, true) => format!("write {least} to {most} bytes"),
            (_, false) => format!("write {least} to {most} bytes: {form}"),
        }
    }
}

impl Field {
    const fn new(name: &'static str, of: &'static Type, about: &'static str) -> Field {
        Field {
            name,
            of,
            required: false,
            default: "",
            about,
        }
    }

    const fn required(self) -> Field {
        Field {
            required: true,
            ..self
        }
    }

    const fn default(self, default: &'static str) -> Field {
        Field { default, ..self }
    }
}

/// The whole file.
pub(super) static DOCUMENT: &[Field] = &[
    Field::new("interfaces", &vppcfg::INTERFACES, "Interfaces by name"),
    Field::new(
        "loopbacks",
        &vppcfg::LOOPBACKS,
        "Interfaces without a port, loopN",
    ),
    Field::new(
        "bondethernets",
        &vppcfg::BONDS,
        "Bonds of interfaces, BondEthernetN",
    ),
    Field::new("bridgedomains", &vppcfg::BRIDGES, "Ethernet bridges, bdN"),
    Field::new(
        "vxlan_tunnels",
        &vppcfg::VXLANS,
        "VXLAN tunnels (RFC 7348), vxlan_tunnelN",
    ),
    Field::new(
        "taps",
        &vppcfg::TAPS,
        "Interfaces whose other end is a device of the host, tapN",
    ),
    Field::new(
        "prefixlists",
        &vppcfg::PREFIXLISTS,
        "Lists of networks that ACLs and policies name",
    ),
    Field::new("acls", &vppcfg::ACLS, "Access control lists"),
    Field::new("policies", &ours::POLICIES, "Policies of the firewall"),
    Field::new("nat", &nat::NAT, "Translation of IPv4 addresses"),
    Field::new("sflow", &vppcfg::SFLOW, "Packet samples for a collector"),
    Field::new("routes", &ours::ROUTES, "Static routes"),
    Field::new(
        "vrfs",
        &ours::VRFS,
        "Routing tables with interfaces of their own",
    ),
    Field::new(
        "ports",
        &ours::PORTS,
        "Devices that carry the packets of interfaces",
    ),
    Field::new("workers", &ours::WORKERS, "Threads that forward packets"),
    Field::new("tables", &ours::TABLES, "Sizes of the tables"),
    Field::new(
        "netns",
        &ours::NETNS,
        "Network namespace of devices and routes: its name or path",
    ),
    Field::new(
        "control",
        &ours::CONTROL,
        "Control socket of the running router, and who may use it",
    ),
];
