//! The kinds of items: a row for each.

use router::acl::Direction;

use super::item::{Found, Item, Key, Kind, Object, Table};
use super::rule::{Interrupts, Leaves, Phase, Rule, Shown, Variants};
use crate::config::desired::OpenPort;
use crate::config::{
    Address, Encapsulation, Fields, Firewall, Hop, Port, State, device_name, router_end,
};

impl Item {
    /// The interface that it is, or is a part of.
    pub fn interface(&self) -> Option<&str> {
        rule(self).interface
    }

    /// The object that it is, or is shown with.
    pub fn object(&self) -> Object {
        rule(self).object
    }

    /// Only a new start can change it.
    pub fn is_for_start(&self) -> bool {
        rule(self).is_for_start
    }
}

/// The row of an item.
pub(super) fn rule(item: &Item) -> Rule<'_> {
    match item {
        Item::Vrf { name, table } => Rule {
            claims: vec![device(name), format!("table {table}")],
            ..Rule::object(0, Object::vrf(name), Shown::one("table", table.to_string()))
        },
        Item::Interface { name, kind } => interface(name, kind),
        Item::Bridge { name, settings } => {
            Rule::object(8, Object::bridge(name), Shown::of(settings))
        }
        // The host takes the source of its packets from a loopback, which must be there first.
        Item::Lcp { of, name } => Rule {
            made: Phase::Create,
            claims: vec![device(name)],
            ..Rule::setting(9, of, Shown::one("lcp", name))
        },
        // An interface that changes its ACLs or policies is never without.
        Item::PrefixList { name, members } => Rule {
            leaves: Leaves::Last,
            ..Rule::object(13, Object::PrefixList(name.clone()), Shown::of(members))
        },
        Item::Acl { name, terms } => Rule {
            leaves: Leaves::Last,
            needs: prefix_lists(terms.iter().map(|term| &term.fields)),
            ..Rule::object(14, Object::Acl(name.clone()), Shown::of(terms))
        },
        Item::Policy { name, policy } => Rule {
            leaves: Leaves::Last,
            needs: prefix_lists(policy.rules.iter().map(|rule| &rule.fields)),
            ..Rule::object(14, Object::Policy(name.clone()), Shown::of(policy))
        },
        Item::Nat(nat) => Rule {
            needs: prefix_lists(nat.fields()),
            ..Rule::plain(14, Object::Nat, Shown::of(nat))
        },
        Item::VrfMember { of, vrf } => {
            Rule::setting(15, of, Shown::one("vrf", vrf)).needs([Key::Object(Object::vrf(vrf))])
        }
        Item::Mac { of, mac } => Rule {
            interrupts: Interrupts::Always,
            ..Rule::own(16, of, Shown::one("mac", mac.to_string()))
        },
        Item::BondMember { of, bond } => member(
            17,
            of,
            Object::interface(bond),
            "interfaces",
            "member".to_owned(),
        ),
        Item::BridgeMember {
            of,
            bridge,
            bvi,
            tags,
        } => {
            let role = if *bvi { "bvi" } else { "interfaces" };
            member(18, of, Object::bridge(bridge), role, taken_off(*tags))
        }
        Item::CrossConnect { of, target, .. } => {
            Rule::setting(19, of, Shown::one("l2xc", target)).needs([Key::interface(target)])
        }
        Item::Mtu { of, mtu } => Rule {
            leaves: Leaves::InTurn,
            room: Some(*mtu),
            interrupts: Interrupts::Port,
            ..Rule::attribute(20, of, Shown::one("mtu", mtu.to_string()))
        },
        Item::Address { of, address, vrf } => address_of(of, *address, vrf.as_deref()),
        Item::Unnumbered { of, lender } => {
            Rule::setting(22, of, Shown::one("unnumbered", lender)).needs([Key::interface(lender)])
        }
        Item::Mpls { of } => Rule::own(23, of, Shown::one("mpls", "true")),
        Item::Sflow(sflow) => Rule::plain(24, Object::Sflow, Shown::of(sflow)),
        Item::Sampled { of } => Rule::own(25, of, Shown::one("sflow", "true")),
        Item::Input { of, acls } => filter(of, "acls input", acls),
        Item::Output { of, acls } => filter(of, "acls output", acls),
        Item::Firewall {
            of,
            direction,
            policy,
        } => firewall(of, *direction, policy),
        Item::State { of, state } => state_of(of, *state),
        Item::Route {
            table,
            prefix,
            metric,
            via,
            found,
        } => {
            let object = Object::Route(table.clone(), *prefix, *metric);
            route(object, table, via, found)
        }
        Item::Description { of, text } => Rule::attribute(29, of, Shown::one("description", text)),
        Item::Workers(workers) => Rule::start(Object::Workers, Shown::of(workers)),
        Item::Tables(tables) => Rule::start(Object::Tables, Shown::of(tables)),
        Item::Netns { name } => Rule::start(Object::Netns, Shown::one("name", name)),
        Item::Control(control) => Rule::start(Object::Control, Shown::of(control)),
    }
}

/// The claim of a device's name.
fn device(name: &str) -> String {
    format!("device {name}")
}

fn interface<'i>(name: &'i str, kind: &'i Kind) -> Rule<'i> {
    let of = |rank, word, parent| Rule {
        interface: Some(name),
        mould: Some((word, parent)),
        interrupts: Interrupts::Always,
        ..Rule::object(rank, Object::interface(name), Shown::of(kind))
    };
    match kind {
        Kind::Loopback {} => Rule {
            claims: vec![device(name)],
            // It lies outside of everything.
            depth: -1,
            ..of(1, "loopback", "")
        },
        Kind::Bond { .. } => Rule {
            claims: vec![device(&device_name(name))],
            ..of(2, "bond", "")
        },
        Kind::Vxlan { vni, .. } => Rule {
            claims: vec![format!("vni {vni}"), device(&device_name(name))],
            ..of(3, "vxlan", "")
        },
        Kind::Tap { host, .. } => Rule {
            claims: vec![
                device(&router_end(name)),
                match &host.namespace {
                    Some(namespace) => format!("device {} in {namespace}", host.name),
                    None => device(&host.name),
                },
            ],
            ..of(4, "tap", "")
        },
        Kind::Port { port } => {
            let memif = port.as_ref().and_then(|port| port.memif.as_ref());
            let secret = memif.and_then(|memif| memif.secret.as_ref());
            let open = OpenPort::of(name, port.as_deref());
            let names = open.device(name).into_iter().chain(open.tap(name));
            Rule {
                claims: names.map(|name| device(&name)).collect(),
                // On another device it is another interface.
                mould: device_of(name, port.as_deref()),
                shown: Shown::Leaves {
                    name: "",
                    value: kind,
                    found: Vec::new(),
                    secret: secret.map(|secret| secret.reveal()),
                },
                ..of(5, "port", "")
            }
        }
        Kind::Sub {
            parent,
            encapsulation,
        } => {
            let tags = tags(encapsulation);
            Rule {
                depth: tags.into(),
                claims: vec![format!("tags {parent} {encapsulation:?}")],
                ..of(5 + tags, "sub-interface", parent)
            }
            .needs([Key::interface(parent)])
        }
    }
}

/// The network device that a port is; `None`: it is none.
fn device_of<'i>(name: &'i str, port: Option<&'i Port>) -> Option<(&'static str, &'i str)> {
    let Some(port) = port else {
        return Some(("netdev", name));
    };
    let netdev = port.netdev.as_deref().map(|netdev| ("netdev", netdev));
    netdev.or(port.pci.as_deref().map(|pci| ("pci", pci)))
}

/// The number of tags that the packets of a sub-interface have.
fn tags(encapsulation: &Encapsulation) -> u8 {
    if encapsulation.inner_dot1q > 0 { 2 } else { 1 }
}

/// Of an interface that is a member of something, with which it is shown.
fn member<'i>(rank: u8, of: &'i str, group: Object, role: &str, text: String) -> Rule<'i> {
    let shown = Shown::Field(format!("{role} {of}").into(), text.into());
    let needs = Key::Object(group.clone());
    Rule {
        object: group,
        ..Rule::setting(rank, of, shown)
    }
    .needs([needs])
}

/// The description of a member of a bridge.
fn taken_off(tags: u8) -> String {
    match tags {
        0 => "member".to_owned(),
        tags => format!("member, {tags} tags removed"),
    }
}

/// Of an address.
///
/// To the kernel an IPv4 address with another length is another address, and the new one comes
/// before the old one goes. Of an IPv6 address a device has one length at a time: the old one has
/// to go first, and the new one comes at once.
fn address_of<'i>(of: &'i str, address: Address, vrf: Option<&str>) -> Rule<'i> {
    let text = vrf.map(|vrf| format!("vrf {vrf}")).unwrap_or_default();
    let length = |length| Key::Address(of.to_owned(), Address { length, ..address });
    Rule {
        // The kernel drops it on the way to another VRF.
        mould: None,
        variants: Some(Variants {
            keys: length(0)..=length(u8::MAX),
            together: address.address.is_ipv4(),
        }),
        interrupts: Interrupts::Removal,
        ..Rule::setting(
            21,
            of,
            Shown::Field(format!("address {address}").into(), text.into()),
        )
    }
    .needs(vrf.map(|_| Key::VrfMember(of.to_owned())))
}

fn filter<'i>(of: &'i str, field: &'static str, acls: &[String]) -> Rule<'i> {
    let needs = acls.iter().cloned().map(Object::Acl).map(Key::Object);
    Rule {
        interrupts: Interrupts::Never,
        ..Rule::setting(26, of, Shown::one(field, acls.join(", ")))
    }
    .needs(needs)
}

fn firewall<'i>(of: &'i str, direction: Direction, policy: &'i str) -> Rule<'i> {
    // It has it before it routes, also for a bridge.
    let field = format!("firewall {}", Firewall::word(direction));
    Rule {
        interrupts: Interrupts::Never,
        ..Rule::setting(15, of, Shown::Field(field.into(), policy.into()))
    }
    .needs([Key::Object(Object::Policy(policy.to_owned()))])
}

/// The prefix lists that terms or rules name.
fn prefix_lists<'f>(all: impl Iterator<Item = &'f Fields>) -> Vec<Key> {
    let lists = all.flat_map(Fields::lists).cloned();
    lists.map(Object::PrefixList).map(Key::Object).collect()
}

fn state_of(of: &str, state: State) -> Rule<'_> {
    let (text, room, interrupts) = match state {
        State::Up => ("up", 1, Interrupts::Never),
        State::Down => ("down", 0, Interrupts::Change),
    };
    Rule {
        room: Some(room),
        interrupts,
        ..Rule::own(27, of, Shown::one("state", text))
    }
}

fn route<'i>(object: Object, table: &'i Table, via: &'i Vec<Hop>, found: &Found) -> Rule<'i> {
    let vrf = match table {
        Table::Vrf(vrf) => Some(vrf),
        Table::Number(_) => None,
    };
    let interfaces = via.iter().filter_map(|hop| hop.interface.as_ref());
    let whose = interfaces.clone().next().or(vrf);
    let shown = if via.is_empty() {
        Shown::one("blackhole", "true")
    } else {
        Shown::Leaves {
            name: "via",
            value: via,
            found: found
                .0
                .iter()
                .map(|at| format!("via {} interface", at + 1))
                .collect(),
            secret: None,
        }
    };
    Rule {
        leaves: Leaves::First,
        interrupts: Interrupts::Absence(whose.map(String::as_str)),
        ..Rule::plain(28, object, shown)
    }
    .needs(vrf.map(|vrf| Key::Object(Object::vrf(vrf))))
    .needs(interfaces.map(|name| Key::interface(name)))
}
