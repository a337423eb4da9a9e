//! Feature arcs: the features that packets may pass, in their order.
//!
//! An interface's line has a mask for each direction: bit n switches the n-th feature of the arc
//! on. A feature is a node with an edge [`To::Arc`](graph::To::Arc), along which packets go on to
//! the next feature of their mask, or to the end of the arc. An interface without features costs
//! nothing: its packets never come to an arc.

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

/// Name of the arc of [`IP4_IN`].
pub const IP4_IN_ARC: &str = "ip4-in";
/// Name of the arc of [`IP4_OUT`].
pub const IP4_OUT_ARC: &str = "ip4-out";

/// The features of all arcs, by name; [`Arcs::default`] are the router's.
pub struct Arcs {
    /// As [`IP4_IN`].
    pub ip4_in: Vec<&'static str>,
    /// As [`IP4_OUT`].
    pub ip4_out: Vec<&'static str>,
}

impl Default for Arcs {
    fn default() -> Self {
        Arcs {
            ip4_in: IP4_IN.to_vec(),
            ip4_out: IP4_OUT.to_vec(),
        }
    }
}

impl Arcs {
    /// The arcs as the engine knows them.
    pub(crate) fn build(self, interfaces: &Reader) -> Vec<FeatureArc> {
        let (input, output) = (interfaces.clone(), interfaces.clone());
        vec![
            FeatureArc {
                name: IP4_IN_ARC,
                features: self.ip4_in,
                end: Some("ip4-input"),
                mask: Box::new(move |d| input.load(d.rx_if).features().input),
            },
            FeatureArc {
                name: IP4_OUT_ARC,
                features: self.ip4_out,
                end: None,
                mask: Box::new(move |d| output.load(d.tx_if()).features().output),
            },
        ]
    }
}
