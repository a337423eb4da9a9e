//! Feature arcs: the features that packets may pass, in their order.
//!
//! An interface's line has a mask for each direction: bit n switches the n-th feature of IPv4's arc
//! on, bit 16 + n that of IPv6's. A feature is a node with an edge [`To::Arc`](graph::To::Arc),
//! along which packets go on to the next feature of their mask, or to the end of the arc. An
//! interface without features costs nothing: its packets never come to an arc.

use graph::FeatureArc;
use tables::interface::Reader;

/// Features of IPv4 packets that come in, in their order.
///
/// They see each packet to the interface's own Ethernet address once, unless ip4-input would drop
/// it, and before the look-up: packets for the host and packets with options, too. They do not see
/// what ethernet-input punts (broadcast, multicast, answers to the host's DHCP client), nor, on a
/// port that is the host's own device, what the kernel keeps. They do not see the router's own
/// packets, and packets that were held for a neighbor do not pass them again.
pub const IP4_IN: &[&str] = &[];

/// Features of IPv4 packets that leave, in their order.
///
/// They see each packet that would leave ip4-rewrite for the interface once, with its new Ethernet
/// header and its [`tx_if`](graph::Desc::tx_if), which they must not change: forwarded packets, the
/// router's own errors, fragments (but not the packet that was cut), and packets that were held,
/// when they leave in the end. They do not see what the host sends by its interface.
pub const IP4_OUT: &[&str] = &[];

/// Features of IPv6 packets that come in, in their order: as [`IP4_IN`], where ip6-input stands for
/// ip4-input, and hop-by-hop options for options.
pub const IP6_IN: &[&str] = &[];

/// Features of IPv6 packets that leave, in their order: as [`IP4_OUT`].
pub const IP6_OUT: &[&str] = &[];

/// Where the features of IPv6 begin in a mask; as many are those of IPv4 at most.
pub const IP6_SHIFT: u32 = 16;

/// Name of the arc of [`IP4_IN`].
pub const IP4_IN_ARC: &str = "ip4-in";
/// Name of the arc of [`IP4_OUT`].
pub const IP4_OUT_ARC: &str = "ip4-out";
/// Name of the arc of [`IP6_IN`].
pub const IP6_IN_ARC: &str = "ip6-in";
/// Name of the arc of [`IP6_OUT`].
pub const IP6_OUT_ARC: &str = "ip6-out";

/// The features of all arcs, by name, at most [`IP6_SHIFT`] each; [`Arcs::default`] are the
/// router's.
pub struct Arcs {
    /// As [`IP4_IN`].
    pub ip4_in: Vec<&'static str>,
    /// As [`IP4_OUT`].
    pub ip4_out: Vec<&'static str>,
    /// As [`IP6_IN`].
    pub ip6_in: Vec<&'static str>,
    /// As [`IP6_OUT`].
    pub ip6_out: Vec<&'static str>,
}

impl Default for Arcs {
    fn default() -> Self {
        Arcs {
            ip4_in: IP4_IN.to_vec(),
            ip4_out: IP4_OUT.to_vec(),
            ip6_in: IP6_IN.to_vec(),
            ip6_out: IP6_OUT.to_vec(),
        }
    }
}

impl Arcs {
    /// The arcs as the engine knows them.
    pub(crate) fn build(self, interfaces: &Reader) -> Vec<FeatureArc> {
        let input = |name, features, end, shift: u32| {
            let interfaces = interfaces.clone();
            FeatureArc {
                name,
                features,
                end: Some(end),
                mask: Box::new(move |d| family(interfaces.load(d.rx_if).features().input, shift)),
            }
        };
        let output = |name, features, shift: u32| {
            let interfaces = interfaces.clone();
            FeatureArc {
                name,
                features,
                end: None,
                mask: Box::new(move |d| {
                    family(interfaces.load(d.tx_if()).features().output, shift)
                }),
            }
        };
        vec![
            input(IP4_IN_ARC, self.ip4_in, "ip4-input", 0),
            output(IP4_OUT_ARC, self.ip4_out, 0),
            input(IP6_IN_ARC, self.ip6_in, "ip6-input", IP6_SHIFT),
            output(IP6_OUT_ARC, self.ip6_out, IP6_SHIFT),
        ]
    }
}

/// A family's part of a mask.
fn family(mask: u32, shift: u32) -> u32 {
    mask >> shift & ((1 << IP6_SHIFT) - 1)
}
