//! Feature arcs: the features that packets may pass, in their order.
//!
//! An interface's line has a mask for each direction, in which a feature is a bit: [`ip4_in`] and
//! its siblings say which. A feature is a node with an edge [`To::Arc`], along which
//! packets go on to the next feature of their mask, or to the end of the arc. What a feature is to
//! do on an interface, such as the number of an access list, is its argument
//! ([`Reader::argument`](tables::interface::Reader::argument)). An interface without features costs
//! nothing: its packets never come to an arc.

use graph::{By, FeatureArc, To};
use tables::interface::{Feature, Mask, Reader};

/// Features of IPv4 packets that come in, in their order.
///
/// They see each packet to the interface's own Ethernet address once, unless ip4-input would drop
/// it, and before the look-up: packets for the host and packets with options, too. They do not see
/// what ethernet-input punts (broadcast, multicast, answers to the host's DHCP client), nor, on a
/// port that is the host's own device, what the kernel keeps. They do not see the router's own
/// packets, and packets that were held for a neighbor do not pass them again.
pub const IP4_IN: &[&str] = &["ip4-acl-in", "ip4-nat"];

/// Features of IPv4 packets that leave, in their order.
///
/// They see each packet that would leave ip4-rewrite for the interface once, with its new Ethernet
/// header and its [`tx_if`](graph::Desc::tx_if), which they must not change: forwarded packets, the
/// router's own errors, fragments (but not the packet that was cut), and packets that were held,
/// when they leave in the end. They do not see what the host sends by its interface.
pub const IP4_OUT: &[&str] = &["ip4-acl-out", "ip4-firewall"];

/// Features of IPv6 packets that come in, in their order: as [`IP4_IN`], where ip6-input stands for
/// ip4-input, and hop-by-hop options for options.
pub const IP6_IN: &[&str] = &["ip6-acl-in"];

/// Features of IPv6 packets that leave, in their order: as [`IP4_OUT`].
pub const IP6_OUT: &[&str] = &["ip6-acl-out", "ip6-firewall"];

/// Features of frames that leave, whatever is in them, in their order.
///
/// They see each frame that is to leave by the interface once, before its port: routed packets
/// behind [`IP4_OUT`] and [`IP6_OUT`], and what the host sends, too. They do not see what XDP
/// programs send, nor what the kernel sends by itself.
pub const INTERFACE_OUT: &[&str] = &["bvi-output", "bond-output", "vxlan-encap"];

/// The own interface of a bridge domain: the first of [`INTERFACE_OUT`].
pub(crate) const BVI: Feature = interface_out(0);

/// A bond, or what has tags on it: the second of [`INTERFACE_OUT`].
pub(crate) const BOND: Feature = interface_out(1);

/// A VXLAN tunnel, or what has tags on it: the third of [`INTERFACE_OUT`].
pub(crate) const VXLAN: Feature = interface_out(2);

/// The firewall, of both families: the last of [`IP4_OUT`] and [`IP6_OUT`].
pub(crate) const FIREWALL: [Feature; 2] = [ip4_out(1), ip6_out(1)];

/// Translation of addresses: the last of [`IP4_IN`].
pub(crate) const NAT: Feature = ip4_in(1);

/// Packets of it are sampled, one in as many as its argument says: what comes in by its port passes
/// [`sflow`](crate::sflow). There is no arc, since it is the only feature on all frames that come in.
pub const SAMPLED: Feature = Feature::new(Mask::InterfaceInput, 0);

/// First bit of IPv6's features in a mask; as many are those of IPv4 at most.
const IP6_SHIFT: u8 = 16;

/// The `n`-th feature of [`IP4_IN`], from 0, as an interface's line has it.
pub const fn ip4_in(n: u8) -> Feature {
    Feature::new(Mask::Input, n)
}

/// The `n`-th feature of [`IP4_OUT`].
pub const fn ip4_out(n: u8) -> Feature {
    Feature::new(Mask::Output, n)
}

/// The `n`-th feature of [`IP6_IN`].
pub const fn ip6_in(n: u8) -> Feature {
    Feature::new(Mask::Input, IP6_SHIFT + n)
}

/// The `n`-th feature of [`IP6_OUT`].
pub const fn ip6_out(n: u8) -> Feature {
    Feature::new(Mask::Output, IP6_SHIFT + n)
}

/// The `n`-th feature of [`INTERFACE_OUT`].
pub const fn interface_out(n: u8) -> Feature {
    Feature::new(Mask::InterfaceOutput, n)
}

/// Name of the arc of [`IP4_IN`].
pub const IP4_IN_ARC: &str = "ip4-in";
/// Name of the arc of [`IP4_OUT`].
pub const IP4_OUT_ARC: &str = "ip4-out";
/// Name of the arc of [`IP6_IN`].
pub const IP6_IN_ARC: &str = "ip6-in";
/// Name of the arc of [`IP6_OUT`].
pub const IP6_OUT_ARC: &str = "ip6-out";
/// Name of the arc of [`INTERFACE_OUT`].
pub const INTERFACE_OUT_ARC: &str = "interface-out";

/// The features of all arcs, by name, at most 16 each; [`Arcs::default`] are the router's.
pub struct Arcs {
    /// As [`IP4_IN`].
    pub ip4_in: Vec<&'static str>,
    /// As [`IP4_OUT`].
    pub ip4_out: Vec<&'static str>,
    /// As [`IP6_IN`].
    pub ip6_in: Vec<&'static str>,
    /// As [`IP6_OUT`].
    pub ip6_out: Vec<&'static str>,
    /// As [`INTERFACE_OUT`].
    pub interface_out: Vec<&'static str>,
}

impl Default for Arcs {
    fn default() -> Self {
        Arcs {
            ip4_in: IP4_IN.to_vec(),
            ip4_out: IP4_OUT.to_vec(),
            ip6_in: IP6_IN.to_vec(),
            ip6_out: IP6_OUT.to_vec(),
            interface_out: INTERFACE_OUT.to_vec(),
        }
    }
}

impl Arcs {
    /// The arcs as the engine knows them.
    pub(crate) fn build(self, interfaces: &Reader) -> Vec<FeatureArc> {
        let input = |name, features, end, shift| {
            let interfaces = interfaces.clone();
            FeatureArc {
                name,
                features,
                end: To::Node(end),
                by: By::Rx,
                mask: Box::new(move |interface| {
                    family(interfaces.load(interface).features().input, shift)
                }),
            }
        };
        let output = |name, features, shift| {
            let interfaces = interfaces.clone();
            FeatureArc {
                name,
                features,
                end: To::Interface,
                by: By::Tx,
                mask: Box::new(move |interface| {
                    family(interfaces.load(interface).features().output, shift)
                }),
            }
        };
        let lines = interfaces.clone();
        let interface_out = FeatureArc {
            name: INTERFACE_OUT_ARC,
            features: self.interface_out,
            end: To::Port,
            by: By::Tx,
            mask: Box::new(move |interface| lines.load(interface).features().interface_output),
        };
        vec![
            input(IP4_IN_ARC, self.ip4_in, "ip4-input", 0),
            output(IP4_OUT_ARC, self.ip4_out, 0),
            input(IP6_IN_ARC, self.ip6_in, "ip6-input", IP6_SHIFT),
            output(IP6_OUT_ARC, self.ip6_out, IP6_SHIFT),
            interface_out,
        ]
    }
}

/// A family's part of a mask.
fn family(mask: u32, shift: u8) -> u32 {
    mask >> shift & ((1 << IP6_SHIFT) - 1)
}
