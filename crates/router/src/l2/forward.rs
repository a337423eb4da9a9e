//! l2-forward: learns where stations are, and sends frames to where their destination is (IEEE
//! 802.1Q section 8.6).

use graph::{Pkt, Stage, edges};
use tables::interface::{L2, Mode, Tags};
use tables::mac::{Hot, Key};
use wire::arp::Header;
use wire::eth;

use super::arp;
use super::bridges::Domain;
use super::{Stuck, leave};
use crate::change::ArpRequests;
use crate::context::Cx;
use crate::eth::{GROUP, mac};
use crate::event::Event;

edges! {
    /// Ways out of l2-forward.
    pub enum Next {
        /// Out by the interface that its destination is behind.
        Member => Interface,
        /// To the domain's own interface, as if it had come in there.
        Bvi => Node("ethernet-input"),
        /// An answer to an ARP request, in place of the owner of the address.
        ArpReply => Interface,
        /// To all members: broadcast, multicast, and what nobody knows.
        Flood => Node("l2-flood"),
        /// The interface has just left the domain.
        NotMember => Drop("interface is in no bridge domain"),
        /// It claims to come from many, or from nobody.
        BadSource => Drop("source MAC is multicast or zero"),
        /// Its source is configured on another interface.
        Moved => Drop("source MAC is fixed on another interface"),
        /// Its destination is where it comes from.
        SameInterface => Drop("destination is behind the same interface"),
        /// The domain forwards nothing.
        NoForward => Drop("bridge domain does not forward"),
        /// The domain floods no broadcast and multicast.
        NoFlood => Drop("bridge domain does not flood"),
        /// The domain does not flood what nobody knows.
        Unknown => Drop("destination MAC is unknown"),
        /// The interface that its destination is behind is down.
        OtherDown => Drop("bridged interface is down"),
        /// Longer than that interface's link allows.
        TooLong => Drop("frame is longer than MTU of bridged interface"),
        /// There is no room in front of the frame for the tags of that interface.
        NoRoom => Drop("no room for VLAN tags"),
    }
}

/// Stations that a worker remembers to have told of; a power of two.
const TOLD: usize = 256;

/// A station that control was told of, its interface, and when.
type Told = (Key, u16, u32);

/// The stage.
pub struct Forward {
    /// The last ones: control need not be told with every frame until it has learned them.
    told: Box<[Told; TOLD]>,
    /// The last ones that said which address they have, and when.
    owners: Box<[Option<(Event, u32)>; TOLD]>,
}

impl Default for Forward {
    fn default() -> Self {
        Forward {
            told: Box::new([(Key::new(0, 0), 0, 0); TOLD]),
            owners: Box::new([None; TOLD]),
        }
    }
}

impl Stage<Cx> for Forward {
    const NAME: &'static str = "l2-forward";
    type Next = Next;
    const THRU: Next = Next::Member;
    /// A line of the table of stations is in the second or third cache: some 40 cycles away, which
    /// is what a packet takes here.
    const HINT_AHEAD: usize = 4;

    #[inline(always)]
    fn hint(&self, cx: &Cx, p: &Pkt<'_>) {
        if let Some(L2::Bridge(domain)) = cx.interfaces.load(p.rx_if).l2() {
            cx.stations.prefetch(Key::new(domain, mac(p, 0)));
            cx.stations.prefetch(Key::new(domain, mac(p, 6)));
        }
    }

    #[inline(always)]
    fn packet(&mut self, cx: &Cx, p: &mut Pkt<'_>) -> Next {
        let Some(L2::Bridge(number)) = cx.interfaces.load(p.rx_if).l2() else {
            return Next::NotMember;
        };
        let Some(domain) = cx.snapshot().domain(number) else {
            return Next::NotMember;
        };
        let (destination, source) = (mac(p, 0), mac(p, 6));
        if (source & GROUP != 0) | (source << 16 == 0) {
            return Next::BadSource;
        }
        let key = Key::new(number, source);
        match cx.stations.find(key) {
            Some(known) if known.station().interface == p.rx_if => known.see(cx.stations.clock()),
            Some(known) if known.station().fixed => return Next::Moved,
            _ if domain.settings.learn => self.tell(cx, domain, key, p.rx_if),
            _ => {}
        }
        if domain.settings.arp != ArpRequests::Flood
            && let Some(next) = self.arp(cx, p, domain)
        {
            return next;
        }
        if destination & GROUP != 0 {
            return match domain.settings.flood {
                true => Next::Flood,
                false => Next::NoFlood,
            };
        }
        match cx.stations.find(Key::new(number, destination)) {
            Some(station) => forward(cx, p, domain, station),
            None if domain.settings.unknown_flood => Next::Flood,
            None => Next::Unknown,
        }
    }
}

impl Forward {
    /// Takes in what ARP says. A request for an address whose owner is known goes its own way.
    fn arp(&mut self, cx: &Cx, p: &mut Pkt<'_>, domain: &Domain) -> Option<Next> {
        let said = arp::said(p)?;
        if said.sender() != 0 {
            self.tell_owner(cx, domain, &said);
        }
        if mac(p, 0) & GROUP == 0 {
            return None;
        }
        let owner = arp::owner(cx, p, domain, &said)?;
        let bytes = match domain.settings.arp {
            ArpRequests::Flood => return None,
            ArpRequests::Forward => {
                p.header_mut::<eth::Header>(0).dst = owner;
                mac(p, 0)
            }
            ArpRequests::Answer => {
                arp::answer(p, &said, owner);
                return Some(answer(cx, p, domain));
            }
        };
        let station = cx.stations.find(Key::new(domain.settings.id, bytes))?;
        Some(forward(cx, p, domain, station))
    }

    /// Tells control who has an address: once a second.
    #[cold]
    fn tell_owner(&mut self, cx: &Cx, domain: &Domain, said: &Header) {
        let now = cx.stations.clock();
        let event = Event::Owner {
            domain: domain.settings.id,
            address: said.sender(),
            mac: said.sender_mac.0,
        };
        let slot = &mut self.owners[said.sender() as usize % TOLD];
        if *slot != Some((event, now)) && cx.events.send(event) {
            *slot = Some((event, now));
        }
    }

    /// Tells control that a station is behind an interface: once a second, until it knows.
    #[cold]
    fn tell(&mut self, cx: &Cx, domain: &Domain, key: Key, interface: u16) {
        let now = cx.stations.clock();
        let event = Event::Station {
            domain: key.domain(),
            mac: key.mac(),
            interface,
        };
        let [.., a, b] = key.mac();
        let slot = &mut self.told[usize::from(u16::from_le_bytes([a, b])) % TOLD];
        let told = (key, interface, now);
        if *slot == told {
            return;
        }
        match cx.events.send(event) {
            true => *slot = told,
            // The station's next frame tells it.
            false => domain.frames.lose(),
        }
    }
}

/// Sends an answer back to where the request came from.
fn answer(cx: &Cx, p: &mut Pkt<'_>, domain: &Domain) -> Next {
    let back = p.rx_if;
    if domain.settings.bvi == Some(back) {
        return Next::Bvi;
    }
    match leave(cx, p, Tags::NONE, (back, cx.interfaces.load(back))) {
        Ok(()) => Next::ArpReply,
        Err(Stuck::TooLong) => Next::TooLong,
        Err(Stuck::NoRoom) => Next::NoRoom,
    }
}

/// Sends a frame to where its destination is.
#[inline(always)]
fn forward(cx: &Cx, p: &mut Pkt<'_>, domain: &Domain, to: Hot<'_>) -> Next {
    let to = to.station().interface;
    if to == p.rx_if {
        return Next::SameInterface;
    }
    if !domain.settings.forward {
        return Next::NoForward;
    }
    if domain.settings.bvi == Some(to) {
        cx.received(to, p.total());
        p.set_rx_if(to);
        return Next::Bvi;
    }
    let other = cx.interfaces.load(to);
    if other.mode() == Mode::Down {
        return Next::OtherDown;
    }
    match leave(cx, p, Tags::NONE, (to, other)) {
        Ok(()) => Next::Member,
        Err(Stuck::TooLong) => Next::TooLong,
        Err(Stuck::NoRoom) => Next::NoRoom,
    }
}
