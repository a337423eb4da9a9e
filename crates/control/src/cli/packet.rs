//! A packet in words: `interface eth1 source 10.0.1.2 destination 48.0.0.1 protocol tcp
//! destination-port 443`. Names and values are those of rules in the configuration.

use std::net::IpAddr;
use std::str::FromStr;

use router::Mac;
use router::explain::{Asked, Fields, Question};

use super::options::{choose, protocol_number};
use crate::config::registry;

/// The words of the fields that an IP packet has, and its frame.
const FIELDS: [&str; 14] = [
    "family",
    "source",
    "destination",
    "protocol",
    "source-port",
    "destination-port",
    "icmp-type",
    "icmp-code",
    "tcp-flags",
    "length",
    "ttl",
    "vlan",
    "source-mac",
    "destination-mac",
];
/// The others.
const INTERFACE: &str = "interface";
const HEX: &str = "hex";

/// Flags of TCP (RFC 9293 section 3.1).
const FLAGS: [(&str, u8); 8] = [
    ("fin", 1 << 0),
    ("syn", 1 << 1),
    ("rst", 1 << 2),
    ("psh", 1 << 3),
    ("ack", 1 << 4),
    ("urg", 1 << 5),
    ("ece", 1 << 6),
    ("cwr", 1 << 7),
];
const SYN: u8 = 1 << 1;

/// Protocols with fields of their own.
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP6: u8 = 58;
/// Types of an echo request.
const ECHO: u8 = 8;
const ECHO6: u8 = 128;

/// Ports that nobody has given: a client's, and that of HTTP.
const SOURCE_PORT: u16 = 50_000;
const DESTINATION_PORT: u16 = 80;
const TTL: u8 = 64;

/// What was given, each once.
struct Given<'a>(Vec<(&'static str, &'a str)>);

impl<'a> Given<'a> {
    fn read(words: &[&'a str]) -> Result<Self, String> {
        let mut given = Self(Vec::new());
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let name = name(word)?;
            let Some(value) = rest.next() else {
                return Err(format!("explain: {name}: a value must follow"));
            };
            if given.text(name).is_some() {
                return Err(format!("explain: {name} is given twice"));
            }
            given.0.push((name, value));
        }
        Ok(given)
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        let mut all = self.0.iter();
        all.find(|(given, _)| *given == name).map(|(_, text)| *text)
    }

    /// A value, of which `must` says what it has to be.
    fn value<T: FromStr>(&self, name: &str, must: &str) -> Result<Option<T>, String> {
        self.with(name, must, |text| text.parse().ok())
    }

    fn with<T>(
        &self,
        name: &str,
        must: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, String> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let refused = || format!("explain: {name}: `{text}` is not {must}");
        read(text).map(Some).ok_or_else(refused)
    }

    /// Refuses these fields, which only other packets have.
    fn none_of(&self, names: &[&str], only: &str) -> Result<(), String> {
        match self.0.iter().find(|(name, _)| names.contains(name)) {
            Some((name, _)) => Err(format!("explain: {name} can only be given {only}")),
            None => Ok(()),
        }
    }
}

/// The name that a word is, or a beginning of.
fn name(word: &str) -> Result<&'static str, String> {
    let all: Vec<_> = [INTERFACE].into_iter().chain(FIELDS).chain([HEX]).collect();
    let unknown = || {
        let known = all.join(", ");
        format!("explain: a packet has no `{word}`; known here: {known}")
    };
    let several = |meant: Vec<_>| format!("explain: `{word}` could be {}", meant.join(", "));
    choose(&all, word).map_err(several)?.ok_or_else(unknown)
}

/// Understands the words of a packet.
///
/// # Errors
/// A text for whoever typed them.
pub fn read(words: &[&str]) -> Result<Question, String> {
    let given = Given::read(words)?;
    let interface = given.text(INTERFACE).filter(|name| !name.is_empty());
    let interface = interface
        .ok_or("explain: by which interface does the packet come in? begin with interface NAME")?;
    let frame = given.with(HEX, "the bytes of a frame, two digits each", bytes)?;
    let packet = match frame {
        Some(frame) => {
            given.none_of(&FIELDS, "without hex, which is the whole frame")?;
            Asked::Frame(frame)
        }
        None => Asked::Fields(fields(&given)?),
    };
    Ok(Question {
        interface: interface.to_owned(),
        packet,
    })
}

/// Bytes as `02 00:ff`, or without anything between them.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let text: String = text.chars().filter(|c| !" :\n".contains(*c)).collect();
    let digits = text.as_bytes();
    let is_whole = !digits.is_empty() && digits.len().is_multiple_of(2);
    let pairs = digits.chunks_exact(2).map(|pair| {
        let [high, low] = [pair[0], pair[1]].map(|digit| char::from(digit).to_digit(16));
        Some((high? << 4 | low?) as u8)
    });
    pairs.collect::<Option<Vec<u8>>>().filter(|_| is_whole)
}

fn fields(given: &Given<'_>) -> Result<Fields, String> {
    let address = |name| {
        let address = given.value::<IpAddr>(name, "an address as in 192.0.2.1 or 2001:db8::1")?;
        address.ok_or_else(|| format!("explain: {name} is missing: give its address, or hex"))
    };
    let (source, destination) = (address("source")?, address("destination")?);
    if source.is_ipv4() != destination.is_ipv4() {
        return Err(
            "explain: source and destination are of different families; give two IPv4 or two IPv6 \
             addresses"
                .to_owned(),
        );
    }
    let family = if source.is_ipv4() { "ipv4" } else { "ipv6" };
    let must = format!("`{family}`, which the addresses are of");
    given.with("family", &must, |text| {
        ["any", family].contains(&text).then_some(())
    })?;
    let protocol = protocol(given, source.is_ipv4())?;
    let icmp = if source.is_ipv4() { ICMP } else { ICMP6 };
    if ![TCP, UDP].contains(&protocol) {
        given.none_of(
            &["source-port", "destination-port"],
            "with protocol tcp or udp",
        )?;
    }
    if protocol != TCP {
        given.none_of(&["tcp-flags"], "with protocol tcp")?;
    }
    if protocol != icmp {
        given.none_of(&["icmp-type", "icmp-code"], "with protocol icmp")?;
    }
    let port = |name| given.with(name, "a port from 0 to 65535, or its name", port);
    let octet = |name| given.value::<u8>(name, "a number from 0 to 255");
    let mac = |name| given.value::<Mac>(name, "an Ethernet address as in 02:00:00:00:00:01");
    let echo = if icmp == ICMP { ECHO } else { ECHO6 };
    Ok(Fields {
        source,
        destination,
        protocol,
        ports: (
            port("source-port")?.unwrap_or(SOURCE_PORT),
            port("destination-port")?.unwrap_or(DESTINATION_PORT),
        ),
        tcp_flags: given
            .with("tcp-flags", &flags_must(), flags)?
            .unwrap_or(SYN),
        icmp: (
            octet("icmp-type")?.unwrap_or(echo),
            octet("icmp-code")?.unwrap_or(0),
        ),
        length: given.value("length", "a number of bytes from 0 to 65535")?,
        ttl: octet("ttl")?.unwrap_or(TTL),
        vlans: given
            .with(
                "vlan",
                "a VLAN from 0 to 4095, or two with a comma between",
                vlans,
            )?
            .unwrap_or_default(),
        source_mac: mac("source-mac")?,
        destination_mac: mac("destination-mac")?,
    })
}

/// The protocol: that of the fields which are given, else an echo request's.
fn protocol(given: &Given<'_>, is_ip4: bool) -> Result<u8, String> {
    let icmp = if is_ip4 { ICMP } else { ICMP6 };
    let named = given.with(
        "protocol",
        "a number from 0 to 255, or a protocol's name",
        |text| {
            match text {
                // As the command `ping` has one name.
                "icmp" => Some(icmp),
                _ => protocol_number(text),
            }
        },
    )?;
    let has = |name| given.text(name).is_some();
    Ok(named.unwrap_or_else(|| {
        if has("tcp-flags") {
            TCP
        } else if has("source-port") || has("destination-port") {
            UDP
        } else {
            icmp
        }
    }))
}

fn port(text: &str) -> Option<u16> {
    text.parse().ok().or_else(|| registry::service(text))
}

fn flags(text: &str) -> Option<u8> {
    let flag = |name: &str| {
        FLAGS
            .iter()
            .find(|(of, _)| *of == name)
            .map(|(_, bit)| *bit)
    };
    text.split(',')
        .try_fold(0, |all, name| Some(all | flag(name)?))
}

fn flags_must() -> String {
    let names = FLAGS.map(|(name, _)| name);
    format!("some of {}, with commas between", names.join(", "))
}

fn vlans(text: &str) -> Option<Vec<u16>> {
    let vlan = |text: &str| text.parse().ok().filter(|vlan: &u16| *vlan < 4096);
    let vlans: Option<Vec<u16>> = text.split(',').map(vlan).collect();
    vlans.filter(|vlans| vlans.len() <= 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> Result<Question, String> {
        read(&line.split_whitespace().collect::<Vec<_>>())
    }

    fn asked(line: &str) -> Fields {
        match said(&format!("interface eth1 {line}")).unwrap().packet {
            Asked::Fields(fields) => fields,
            Asked::Frame(frame) => panic!("a frame: {frame:?}"),
        }
    }

    #[test]
    fn what_is_left_out_is_usual() {
        let ping = asked("source 10.0.1.2 destination 48.0.0.1");
        assert_eq!((ping.protocol, ping.icmp, ping.ttl), (ICMP, (8, 0), 64));
        let ping = asked("source 2001:db8::1 destination 2001:db8::2 icmp-c 3");
        assert_eq!((ping.protocol, ping.icmp), (ICMP6, (128, 3)));
        let ping = asked("source ::1 destination ::2 protocol icmp");
        assert_eq!(ping.protocol, ICMP6);
        let udp = asked("source 10.0.1.2 destination 48.0.0.1 destination-port domain");
        assert_eq!((udp.protocol, udp.ports), (UDP, (50_000, 53)));
        let tcp = asked("source 10.0.1.2 destination 48.0.0.1 tcp-flags syn,ack vlan 7,4095");
        assert_eq!((tcp.protocol, tcp.tcp_flags), (TCP, 0x12));
        assert_eq!(tcp.vlans, [7, 4095]);
        let gre = asked("source 10.0.1.2 destination 48.0.0.1 protocol 47 length 999 ttl 1");
        assert_eq!((gre.protocol, gre.length, gre.ttl), (47, Some(999), 1));
    }

    #[test]
    fn a_frame_is_bytes() {
        for text in ["02ff10", "02:ff:10", "02FF:10"] {
            let question = said(&format!("interface e hex {text}")).unwrap();
            assert_eq!(question.interface, "e");
            assert_eq!(question.packet, Asked::Frame(vec![2, 0xff, 0x10]));
        }
    }

    #[test]
    fn what_is_not_understood_is_said() {
        for (line, why) in [
            ("", "by which interface"),
            ("source 10.0.0.1", "by which interface"),
            ("interface", "interface: a value must follow"),
            ("interface e", "source is missing"),
            ("interface e source 10.0.0.1", "destination is missing"),
            (
                "interface e sauce 1",
                "a packet has no `sauce`; known here: interface, family",
            ),
            (
                "interface e source ::1 destination ::2 destination-m 1",
                "destination-mac: `1` is not an Ethernet address",
            ),
            (
                "interface e dest 1",
                "`dest` could be destination, destination-port, destination-mac",
            ),
            ("interface e interface f", "interface is given twice"),
            (
                "interface e source ten destination ::1",
                "source: `ten` is not an address",
            ),
            (
                "interface e source ::1 destination 1.2.3.4",
                "different families",
            ),
            (
                "interface e source ::1 destination ::2 family ipv4",
                "family: `ipv4` is not `ipv6`",
            ),
            (
                "interface e source ::1 destination ::2 protocol x",
                "protocol: `x` is not a number",
            ),
            (
                "interface e source ::1 destination ::2 protocol 47 source-port 5",
                "source-port can only be given with protocol tcp or udp",
            ),
            (
                "interface e source ::1 destination ::2 protocol udp tcp-flags syn",
                "tcp-flags can only be given with protocol tcp",
            ),
            (
                "interface e source ::1 destination ::2 protocol tcp icmp-type 1",
                "icmp-type can only be given with protocol icmp",
            ),
            (
                "interface e source ::1 destination ::2 tcp-flags sin",
                "tcp-flags: `sin` is not some of fin, syn",
            ),
            (
                "interface e source ::1 destination ::2 vlan 1,2,3",
                "vlan: `1,2,3` is not",
            ),
            (
                "interface e source ::1 destination ::2 vlan 4096",
                "vlan: `4096` is not",
            ),
            (
                "interface e source ::1 destination ::2 ttl 256",
                "ttl: `256` is not a number",
            ),
            (
                "interface e source ::1 destination ::2 source-port 70000",
                "is not a port",
            ),
            (
                "interface e hex 0g",
                "hex: `0g` is not the bytes of a frame",
            ),
            ("interface e hex 123", "hex: `123` is not"),
            (
                "interface e hex 12 ttl 3",
                "ttl can only be given without hex",
            ),
        ] {
            let said = said(line).unwrap_err();
            assert!(said.contains(why), "{line}: {said}");
        }
    }
}
