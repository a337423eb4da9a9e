//! The section of address translation.

use super::vppcfg::{self, DESCRIPTION};
use super::{Field, Text, Type};

pub(super) static NAT: Type = Type::Object(&[
    Field::new(
        "source",
        &SOURCES,
        "What sources become as packets leave; the first that matches decides",
    ),
    Field::new(
        "destination",
        &DESTINATIONS,
        "What destinations become as packets come in; the first that matches decides",
    ),
    Field::new(
        "static",
        &STATICS,
        "Addresses that stand for others, both ways, before all other rules",
    ),
]);

static SOURCES: Type = Type::List {
    of: &SOURCE,
    least: 0,
    most: usize::MAX,
};
static SOURCE: Type = Type::Object(&[
    Field::new("description", &DESCRIPTION, "Description for people"),
    Field::new("interface", &INTERFACE, "Interface that packets leave by").default("any"),
    vppcfg::source(),
    vppcfg::destination(),
    vppcfg::protocol(),
    vppcfg::source_port(),
    vppcfg::destination_port(),
    Field::new("to", &TO, "What the source becomes").required(),
    Field::new("ports", &PORTS, "Ports to choose from")
        .default("10000-32767 with `interface`, else 1024-65535"),
    Field::new(
        "ports-per-host",
        &COUNT,
        "Ports that each address of the source has for itself",
    ),
]);

static DESTINATIONS: Type = Type::List {
    of: &DESTINATION,
    least: 0,
    most: usize::MAX,
};
static DESTINATION: Type = Type::Object(&[
    Field::new("description", &DESCRIPTION, "Description for people"),
    Field::new("interface", &INTERFACE, "Interface that packets come in by").default("any"),
    vppcfg::source(),
    vppcfg::destination().default("the addresses of the interface"),
    vppcfg::protocol(),
    vppcfg::source_port(),
    vppcfg::destination_port(),
    Field::new("to", &ADDRESS, "New destination").required(),
    Field::new(
        "to-port",
        &COUNT,
        "New port: of several, that of the first one",
    )
    .default("the same"),
]);

static STATICS: Type = Type::List {
    of: &Type::Object(&[
        Field::new("description", &DESCRIPTION, "Description for people"),
        Field::new(
            "interface",
            &INTERFACE,
            "Interface that packets leave by for the outside",
        )
        .default("any"),
        Field::new(
            "outside",
            &Type::Network,
            "Address or network as it is seen outside",
        )
        .required(),
        Field::new(
            "inside",
            &Type::Network,
            "Address or network that it stands for",
        )
        .required(),
    ]),
    least: 0,
    most: usize::MAX,
};

static INTERFACE: Type = Type::Text(Text::ANY.long(1, 63));
static TO: Type = Type::Text(Text::form(
    r"^(interface|none|[0-9./]+|[0-9.]+-[0-9.]+)$",
    "`interface`, `none`, an address, a network, or two addresses such as 192.0.2.1-192.0.2.9",
));
static ADDRESS: Type = Type::Ip;
static PORTS: Type = Type::Text(Text::form(
    r"^[1-9][0-9]*-[1-9][0-9]*$",
    "in quotes a range such as \"1024-65535\"",
));
static COUNT: Type = Type::Int {
    least: 1,
    most: 65535,
};
