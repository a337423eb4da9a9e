//! The flows of scenarios past the firewall: three of four are TCP's, the others UDP's. Packets are
//! of random ones, half of them in each direction.

use std::net::{IpAddr, Ipv4Addr};

use router::Change;
use router::acl::{Direction, Packets};
use router::firewall::{Action, Policy, Rule, State, States};
use tables::acl;
use tables::flow::Sizes;
use tables::prefix::Prefix;
use tables::random::Random;
use wire::craft::Packet;
use wire::ip;
use wire::tcp::{ACK, SYN};

/// The port that all flows begin to.
const PORT: u16 = 12;

/// So many flows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Talk(pub u32);

/// What one end says.
pub struct Said {
    source: (u32, u16),
    destination: (u32, u16),
    /// Flags and numbers; `None`: UDP.
    tcp: Option<(u8, u32, u32)>,
}

impl Said {
    /// Its source and destination.
    pub fn addresses(&self) -> (IpAddr, IpAddr) {
        let address = |(address, _): (u32, u16)| Ipv4Addr::from(address).into();
        (address(self.source), address(self.destination))
    }

    /// Its packet.
    pub fn packet(&self) -> Packet {
        match self.tcp {
            Some((flags, seq, ack)) => Packet::tcp(self.source, self.destination, flags, seq, ack),
            None => Packet::udp(self.source, self.destination).without_udp_checksum(),
        }
    }
}

impl Talk {
    /// Room for them, and for some more that are not answered yet.
    pub fn sizes(self) -> Sizes {
        Sizes::of((self.0 / 4 * 5).max(1 << 16))
    }

    /// Packet `i`, of any flow that is established.
    pub fn packet(self, i: usize) -> Said {
        let mut random = Random::new(i as u64);
        let flow = random.below(self.0);
        said(flow, random.below(2) == 0, (ACK, 1, 1))
    }

    /// The packets that establish flows, in steps: those of a step are of one flow each.
    pub fn opening(self) -> impl Iterator<Item = Vec<Said>> {
        const TOGETHER: usize = 2048;
        const STEPS: [(bool, (u8, u32, u32)); 3] = [
            (true, (SYN, 0, 0)),
            (false, (SYN | ACK, 0, 1)),
            (true, (ACK, 1, 1)),
        ];
        (0..self.0).step_by(TOGETHER).flat_map(move |first| {
            let end = self.0.min(first + TOGETHER as u32);
            STEPS.map(|(forth, tcp)| (first..end).map(|flow| said(flow, forth, tcp)).collect())
        })
    }

    /// The policy of what comes in by an interface.
    pub fn policy(self, interface: u16) -> Vec<Change> {
        let any = 0..=u16::MAX;
        let rule = |action, states: &[State], protocol, ports| Rule {
            action,
            states: states.iter().fold(States::NONE, |all, one| all.with(*one)),
            packets: vec![Packets::V4(acl::Rule {
                source: Prefix::DEFAULT,
                destination: Prefix::DEFAULT,
                protocol,
                source_ports: 0..=u16::MAX,
                destination_ports: ports,
            })],
            limit: None,
        };
        let known = [State::Established, State::Related];
        let rules = vec![
            rule(Action::Accept, &known, None, any.clone()),
            rule(Action::Drop, &[State::Invalid], None, any.clone()),
            rule(Action::Accept, &[State::New], Some(ip::TCP), PORT..=PORT),
            rule(Action::Accept, &[State::New], Some(ip::UDP), any),
        ];
        let (name, default) = ("policy".to_owned(), Action::Drop);
        vec![
            Change::PolicySet {
                name: name.clone(),
                policy: Policy { rules, default },
            },
            Change::PolicyAttach {
                interface,
                direction: Direction::Input,
                policy: Some(name),
            },
        ]
    }
}

/// What the end that has begun a flow says, or the other one.
fn said(flow: u32, forth: bool, tcp: (u8, u32, u32)) -> Said {
    let near = (16 << 24 | (flow + 4), 1024 + (flow % 50_000) as u16);
    let far = (48 << 24 | (flow % 1000 + 4), PORT);
    let (source, destination) = if forth { (near, far) } else { (far, near) };
    let tcp = (!flow.is_multiple_of(4)).then_some(tcp);
    Said {
        source,
        destination,
        tcp,
    }
}
