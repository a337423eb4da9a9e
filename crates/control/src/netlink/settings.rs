//! Settings of the kernel that send packets another way than an operator may expect.
//!
//! Packets that the router forwards pass neither the kernel's firewall nor its policy rules, and
//! those that it leaves to the kernel are forwarded there only if the kernel forwards at all.

use std::fs;
use std::io;
use std::path::Path;

use kernel::netlink::layout::{FirewallHeader, Header, INET, INET6, UNSPEC, read};
use kernel::netlink::{Attributes, Socket, text};
use kernel::netns::within;

use super::Requests;

/// Asks for chains: NFT_MSG_GETCHAIN of the subsystem NFNL_SUBSYS_NFTABLES.
const GET_CHAIN: u16 = 10 << 8 | 4;
/// Attributes of a chain (linux/netfilter/nf_tables.h).
const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const CHAIN_POLICY: u16 = 5;
/// Number of its rules, plus the number of rules that jump to it.
const CHAIN_USE: u16 = 6;
/// Within CHAIN_HOOK, in network byte order.
const HOOK_NUMBER: u16 = 1;
/// NF_DROP.
const DROP: u32 = 0;
/// Hooks that packets pass which the kernel forwards: NF_INET_PRE_ROUTING, NF_INET_FORWARD,
/// NF_INET_POST_ROUTING, NF_INET_INGRESS.
const HOOKS: [u32; 4] = [0, 2, 4, 5];
/// NFPROTO_INET: both families.
const BOTH: u8 = 1;
/// NFPROTO_NETDEV: all that a device takes in or sends. Its hooks are NF_NETDEV_INGRESS, 0, and
/// NF_NETDEV_EGRESS, 1.
const NETDEV: u8 = 5;
/// Chains that a warning names: more would hide what to do, which follows them.
const NAMED: usize = 5;

/// Warnings for the operator, a sentence each with what to do; what cannot be found out is left
/// out. `netns`: the namespace (`None`: our own).
pub fn warnings(netns: Option<&Path>) -> Vec<String> {
    let mut found = Vec::new();
    for (name, kept) in [
        ("net.ipv4.ip_forward", "those with IP options"),
        (
            "net.ipv6.conf.all.forwarding",
            "those with hop-by-hop options",
        ),
    ] {
        if let Ok(false) = is_set(netns, name) {
            found.push(format!(
                "{name} is 0: the kernel drops packets that only it can forward, {kept} or \
                 routed through devices that are not the router's (sysctl -w {name}=1)"
            ));
        }
    }
    let rules = Requests::open(netns).and_then(|mut requests| requests.has_policy_rules());
    if let Ok(true) = rules {
        found.push(
            "there are policy rules (ip rule): the router ignores them and follows the main table (ip rule show)".to_owned(),
        );
    }
    let mut filters = chains(netns).unwrap_or_default();
    filters.sort();
    filters.extend(tables(netns));
    if !filters.is_empty() {
        let more = match filters.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        filters.truncate(NAMED);
        found.push(format!(
            "the kernel has firewall or NAT rules for forwarded packets, in {}{more}: packets \
             that the router forwards do not pass them (nft list ruleset; iptables-save)",
            filters.join(", ")
        ));
    }
    found
}

/// Returns true if IPv6 is disabled on a device, or will be on one of that name that does not exist
/// yet.
///
/// # Errors
/// The setting cannot be read: there is no IPv6 here.
pub(super) fn is_ip6_off(netns: Option<&Path>, device: &str) -> io::Result<bool> {
    let of = |device| is_one(netns, &format!("net/ipv6/conf/{device}/disable_ipv6"));
    match of(device) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => of("default"),
        set => set,
    }
}

/// Returns true if a setting, named as for sysctl(8), is 1.
fn is_set(netns: Option<&Path>, name: &str) -> io::Result<bool> {
    is_one(netns, &name.replace('.', "/"))
}

/// Returns true if the file of a setting says 1; `path`: from /proc/sys.
fn is_one(netns: Option<&Path>, path: &str) -> io::Result<bool> {
    let path = Path::new("/proc/sys").join(path);
    within(netns, || Ok(fs::read_to_string(path)?.trim() == "1"))
}

/// nftables' base chains that forwarded packets pass and that do something.
fn chains(netns: Option<&Path>) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    let request = FirewallHeader::of(UNSPEC).message(GET_CHAIN);
    Socket::netfilter(netns)?.dump(request, |message| {
        if let Some((header, attributes)) = read::<FirewallHeader>(message.payload)
            && passed(header.family).is_some_and(|hooks| acts(&attributes, hooks))
        {
            let name = |kind| attributes.clone().find(kind).map(text).unwrap_or_default();
            found.push(format!("{} {}", name(CHAIN_TABLE), name(CHAIN_NAME)));
        }
    })?;
    Ok(found)
}

/// The hooks of a family that forwarded packets pass.
fn passed(family: u8) -> Option<&'static [u32]> {
    match family {
        BOTH | INET | INET6 => Some(&HOOKS),
        NETDEV => Some(&[0, 1]),
        _ => None,
    }
}

/// Returns true if a chain is at one of these hooks and has rules, or drops by default.
fn acts(chain: &Attributes<'_>, hooks: &[u32]) -> bool {
    let hook = chain.clone().find(CHAIN_HOOK);
    hook.and_then(|hook| number(&Attributes(hook), HOOK_NUMBER))
        .is_some_and(|hook| hooks.contains(&hook))
        && (number(chain, CHAIN_USE) > Some(0) || number(chain, CHAIN_POLICY) == Some(DROP))
}

/// A number in network byte order.
fn number(within: &Attributes<'_>, kind: u16) -> Option<u32> {
    let bytes = within.clone().find(kind)?.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*bytes))
}

/// Tables of iptables' older kind (x_tables), which are there once somebody has asked for them.
fn tables(netns: Option<&Path>) -> Vec<String> {
    let names = |program: &str, file: &str| {
        let names = within(netns, || {
            fs::read_to_string(format!("/proc/thread-self/net/{file}"))
        });
        names
            .unwrap_or_default()
            .lines()
            .map(|name| format!("{program} {name}"))
            .collect::<Vec<_>>()
    };
    [
        names("iptables", "ip_tables_names"),
        names("ip6tables", "ip6_tables_names"),
    ]
    .concat()
}
