//! The built-in profiles. They send the same packets as the T-Rex profiles of the same name.

use std::net::{Ipv4Addr, Ipv6Addr};

use wire::craft::Packet;
use wire::eth::{self, MIN_FRAME, Mac};
use wire::{ip, ip4, ip6, udp, vlan};

use super::{Tunables, Way};
use crate::model::fields::{Op, Step, Variable};
use crate::model::stream::{Mark, Stream, StreamRate};
use crate::model::units::{FCS, Pps};
use crate::source::mark::TRAILER;

/// A built-in profile.
pub struct Builtin {
    /// Name, as given to `-f` or `--profile`.
    pub name: &'static str,
    /// One line for `--help`.
    pub about: &'static str,
    build: fn(Way, &Tunables) -> Result<Vec<Stream>, String>,
}

/// All built-in profiles.
pub const BUILTIN: &[Builtin] = &[
    Builtin {
        name: "bench",
        about: "UDP 16.0.0.4-254 to 48.0.0.4-254; size=64|imix|64..9216, vm=none|var1|var2|random|tuple|size|cached, flow=no-fs|fs|fsl, pg_id=7, vlan=1..4094; ipv6=1: 2001:db8::16.0.0.4 and so on, from 66 B",
        build: bench,
    },
    Builtin {
        name: "imix",
        about: "28 x 64, 16 x 594, 4 x 1518 B, 254 addresses each way",
        build: imix,
    },
    Builtin {
        name: "imix_ipv6",
        about: "28 x 66, 16 x 594, 4 x 1518 B, ff80::16.0.0.1-254 to ff80::48.0.0.1-254",
        build: imix_ipv6,
    },
    Builtin {
        name: "udp_1pkt_simple",
        about: "one 64 B packet, 16.0.0.1 to 48.0.0.1",
        build: simple,
    },
    Builtin {
        name: "udp_1pkt_simple_bdir",
        about: "the same with addresses swapped on the way back",
        build: simple_bdir,
    },
];

/// Their names, for messages.
pub(super) fn names() -> String {
    BUILTIN
        .iter()
        .map(|b| b.name)
        .collect::<Vec<_>>()
        .join(", ")
}

/// The built-in profile called `name`; `bench.py` and `stl/bench.py` are the same as `bench`.
pub(super) fn find(name: &str) -> Option<&'static Builtin> {
    let name = name.strip_prefix("stl/").unwrap_or(name);
    let name = name.strip_suffix(".py").unwrap_or(name);
    BUILTIN.iter().find(|b| b.name == name)
}

impl Builtin {
    pub(super) fn streams(&self, way: Way, tunables: &Tunables) -> Result<Vec<Stream>, String> {
        (self.build)(way, tunables)
    }
}

/// Addresses `(first, last)` of the senders of direction 0 and of direction 1.
type Ranges = [(Ipv4Addr, Ipv4Addr); 2];

const BENCH: Ranges = [
    (Ipv4Addr::new(16, 0, 0, 4), Ipv4Addr::new(16, 0, 0, 254)),
    (Ipv4Addr::new(48, 0, 0, 4), Ipv4Addr::new(48, 0, 0, 254)),
];
const IMIX: Ranges = [
    (Ipv4Addr::new(16, 0, 0, 1), Ipv4Addr::new(16, 0, 0, 254)),
    (Ipv4Addr::new(48, 0, 0, 1), Ipv4Addr::new(48, 0, 0, 254)),
];

/// Rate and start time of the three streams of an imix, smallest frames first.
const IMIX_RATES: [(f64, f64); 3] = [(28.0, 0.0), (16.0, 0.1), (4.0, 0.2)];

fn bench(way: Way, tunables: &Tunables) -> Result<Vec<Stream>, String> {
    const KNOWN: &[&str] = &["size", "vm", "flow", "pg_id", "ipv6", "vlan"];
    if let Some(name) = tunables.unknown(KNOWN) {
        return Err(format!(
            "tunable `{name}` is not one of {}",
            KNOWN.join(", ")
        ));
    }
    let mark = mark(way, tunables)?;
    let tag = tag(tunables)?;
    let layout = layout(tunables)?.behind(tag.map_or(0, |tag| tag.to_bytes().len()));
    let [from, to] = facing(BENCH, way);
    let vm = tunables.get("vm").unwrap_or("none");
    let stream = |size: usize, pps, isg| {
        let (ports, len) = ((1025, 12), size - FCS);
        let len = len - layout.tags();
        let packet = if layout.is_6 {
            udp6_frame(BENCH6, from.0, to.0, ports, len)
        } else {
            udp_frame(from.0, to.0, ports, false, len)
        };
        let stream = continuous(tagged(packet, tag), pps, isg);
        let stream = vary(Stream { mark, ..stream }, vm, layout, from, to)?;
        Ok::<_, String>(stream)
    };
    let room = match mark {
        Some(mark) if mark.latency => TRAILER,
        _ => 0,
    };
    let least = (layout.headers() + room).max(MIN_FRAME) + FCS;
    let smallest = least.to_string();
    match (tunables.get("size").unwrap_or(&smallest), vm) {
        ("imix", "size") => Err("size=imix and vm=size: sizes vary either way or the other".into()),
        ("imix", _) => {
            const SIZES: [usize; 3] = [68, 590, 1514];
            if mark.is_some_and(|mark| mark.latency) {
                return Err(
                    "flow=fsl: one stream measures latency, but size=imix makes three".into(),
                );
            }
            SIZES
                .into_iter()
                .zip(IMIX_RATES)
                .map(|(size, (pps, isg))| stream(size, pps, isg))
                .collect()
        }
        (_, "size") => Ok(vec![stream(LARGEST, 1.0, 0.0)?]),
        (size, _) => Ok(vec![stream(frame_size(size, least)?, 1.0, 0.0)?]),
    }
}

/// Largest frame of `bench`, with its check sequence.
const LARGEST: usize = 9216;

/// A frame size with its check sequence, `least` or more.
fn frame_size(text: &str, least: usize) -> Result<usize, String> {
    let size = text.parse().ok();
    size.filter(|size| (least..=LARGEST).contains(size))
        .ok_or_else(|| format!("size={text}: expected imix or {least} to {LARGEST}"))
}

/// The family that the tunables ask for.
fn layout(tunables: &Tunables) -> Result<Layout, String> {
    match tunables.get("ipv6").unwrap_or("0") {
        "0" => Ok(V4),
        "1" => Ok(V6),
        other => Err(format!("ipv6={other}: expected 0 or 1")),
    }
}

/// The tag that packets have, if any.
fn tag(tunables: &Tunables) -> Result<Option<vlan::Tag>, String> {
    let Some(text) = tunables.get("vlan") else {
        return Ok(None);
    };
    let number = text.parse().ok().filter(|id| (1..=4094).contains(id));
    let number = number.ok_or_else(|| format!("vlan={text}: expected 1 to 4094"))?;
    Ok(Some(vlan::Tag::new(eth::VLAN, number)))
}

/// Mark of packets for flow statistics.
fn mark(way: Way, tunables: &Tunables) -> Result<Option<Mark>, String> {
    let group = tunables.get("pg_id").unwrap_or("7");
    let group: u32 = group
        .parse()
        .map_err(|_| format!("pg_id={group}: expected a number"))?;
    // Each port of the pair has a number of its own.
    let group = group.saturating_add(match way {
        Way::Out => 0,
        Way::Back => 1,
    });
    match tunables.get("flow").unwrap_or("no-fs") {
        "no-fs" => Ok(None),
        flow @ ("fs" | "fsl") => Ok(Some(Mark {
            group,
            latency: flow == "fsl",
        })),
        flow => Err(format!("flow={flow}: expected no-fs, fs or fsl")),
    }
}

fn imix(way: Way, tunables: &Tunables) -> Result<Vec<Stream>, String> {
    none(tunables)?;
    // The template is the same in both directions: addresses are overwritten, but not the UDP
    // checksum.
    let (first, last) = (IMIX[0].0, IMIX[1].0);
    let [from, to] = facing(IMIX, way);
    const FRAMES: [usize; 3] = [60, 590, 1514];
    let stream = |(frame, (pps, isg))| {
        vary(
            continuous(udp_frame(first, last, (53, 53), true, frame), pps, isg),
            "var2",
            V4,
            from,
            to,
        )
    };
    FRAMES.into_iter().zip(IMIX_RATES).map(stream).collect()
}

fn imix_ipv6(way: Way, tunables: &Tunables) -> Result<Vec<Stream>, String> {
    none(tunables)?;
    let [from, to] = facing(IMIX, way);
    const FRAMES: [usize; 3] = [60, 590, 1514];
    // Headers alone are longer than the smallest frame.
    let [one, two] = [1, 2].map(Ipv4Addr::from_bits);
    let stream = |(frame, (pps, isg))| {
        let packet = udp6_frame(IMIX6, one, two, (12345, 12345), frame);
        vary(continuous(packet, pps, isg), "var2", V6, from, to)
    };
    FRAMES.into_iter().zip(IMIX_RATES).map(stream).collect()
}

fn simple(_: Way, tunables: &Tunables) -> Result<Vec<Stream>, String> {
    simple_bdir(Way::Out, tunables)
}

fn simple_bdir(way: Way, tunables: &Tunables) -> Result<Vec<Stream>, String> {
    none(tunables)?;
    let [from, to] = facing(IMIX, way);
    Ok(vec![continuous(
        udp_frame(from.0, to.0, (1025, 12), true, 52),
        1.0,
        0.0,
    )])
}

fn none(tunables: &Tunables) -> Result<(), String> {
    tunables.unknown(&[]).map_or(Ok(()), |name| {
        Err(format!("tunable `{name}`: this profile has none"))
    })
}

fn facing([a, b]: Ranges, way: Way) -> Ranges {
    match way {
        Way::Out => [a, b],
        Way::Back => [b, a],
    }
}

fn continuous(packet: Vec<u8>, pps: f64, isg: f64) -> Stream {
    let name = format!("{} B", packet.len().max(MIN_FRAME) + FCS);
    Stream {
        isg,
        ..Stream::new(&name, packet, StreamRate::Packets(Pps(pps)))
    }
}

/// The first 96 bits of the IPv6 addresses; the others are those of the IPv4 addresses.
const BENCH6: [u16; 6] = [0x2001, 0xdb8, 0, 0, 0, 0];
const IMIX6: [u16; 6] = [0xff80, 0, 0, 0, 0, 0];

/// Offsets of the fields of a UDP packet that vary.
#[derive(Clone, Copy)]
struct Layout {
    is_6: bool,
    /// The IP header.
    network: usize,
    /// The IPv4 address, or the last 4 bytes of the IPv6 address.
    source: usize,
    destination: usize,
    /// Length of the packet, and the bytes of the frame that do not count.
    length: usize,
    uncounted: usize,
    /// The UDP header.
    udp: usize,
}

const V4: Layout = Layout {
    is_6: false,
    network: eth::LEN,
    source: eth::LEN + ip4::at::SRC,
    destination: eth::LEN + ip4::at::DST,
    length: eth::LEN + ip4::at::TOTAL_LEN,
    uncounted: eth::LEN,
    udp: eth::LEN + ip4::LEN,
};

const V6: Layout = Layout {
    is_6: true,
    network: eth::LEN,
    source: eth::LEN + ip6::at::SRC + 12,
    destination: eth::LEN + ip6::at::DST + 12,
    length: eth::LEN + ip6::at::PAYLOAD_LEN,
    uncounted: eth::LEN + ip6::LEN,
    udp: eth::LEN + ip6::LEN,
};

impl Layout {
    /// Bytes before the UDP payload.
    const fn headers(self) -> usize {
        self.udp + udp::LEN
    }

    /// Bytes of tags.
    const fn tags(self) -> usize {
        self.network - eth::LEN
    }

    /// The same behind tags of so many bytes.
    const fn behind(self, tags: usize) -> Self {
        Layout {
            is_6: self.is_6,
            network: self.network + tags,
            source: self.source + tags,
            destination: self.destination + tags,
            length: self.length + tags,
            uncounted: self.uncounted + tags,
            udp: self.udp + tags,
        }
    }
}

/// Adds the variables that `vm` names.
fn vary(
    mut stream: Stream,
    vm: &str,
    layout: Layout,
    from: (Ipv4Addr, Ipv4Addr),
    to: (Ipv4Addr, Ipv4Addr),
) -> Result<Stream, String> {
    let range = |name: &str, (first, last): (Ipv4Addr, Ipv4Addr)| {
        Variable::range(name, 4, first.to_bits().into(), last.to_bits().into())
    };
    let (src, dst) = (range("src", from), range("dst", to));
    match vm {
        "none" => {}
        "var1" => add(&mut stream, src, &[(layout.source, 0)]),
        "var2" => {
            add(&mut stream, src, &[(layout.source, 0)]);
            add(&mut stream, dst, &[(layout.destination, 0)]);
        }
        "random" => {
            let op = Op::Random;
            add(&mut stream, Variable { op, ..src }, &[(layout.source, 0)]);
        }
        "cached" => {
            add(&mut stream, src, &[(layout.source, 0)]);
            stream.cache = 255;
        }
        "tuple" => {
            let (name, next) = ("tuple.ip".to_owned(), Some(1));
            add(
                &mut stream,
                Variable { name, next, ..src },
                &[(layout.source, 0)],
            );
            let port = Variable::range("tuple.port", 2, 1234, 65_500);
            add(&mut stream, port, &[(layout.udp, 0)]);
        }
        "size" => {
            let longest = stream.packet.len() as u64;
            let room = if stream.is_fixed() { TRAILER } else { 0 };
            let least = (layout.headers() + room).max(MIN_FRAME);
            let length = Variable {
                op: Op::Random,
                ..Variable::range("fv_rand", 2, least as u64, longest)
            };
            stream.steps.push(Step::Trim { variable: 0 });
            let less = |bytes: usize| -(bytes as i64);
            let places = [
                (layout.length, less(layout.uncounted)),
                (layout.udp + 4, less(layout.udp)),
            ];
            add(&mut stream, length, &places);
        }
        _ => {
            return Err(format!(
                "vm={vm}: expected none, var1, var2, random, tuple, size or cached"
            ));
        }
    }
    let varies = !stream.steps.is_empty();
    if layout.is_6 && (varies || stream.is_fixed()) {
        // Unlike IPv4, IPv6 has no UDP without a checksum.
        stream.steps.push(Step::ChecksumTransport {
            network: layout.network,
            transport: layout.udp,
            protocol: Some(ip::UDP),
        });
    } else if varies {
        stream.steps.push(Step::Checksum4 {
            offset: layout.network,
        });
    }
    Ok(stream)
}

/// Adds a variable that is written to some places, each with a number added.
fn add(stream: &mut Stream, variable: Variable, places: &[(usize, i64)]) {
    let index = stream.variables.len();
    stream.variables.push(variable);
    let steps = places.iter().map(|&(offset, add)| Step::Write {
        variable: index,
        offset,
        add,
        big_endian: true,
    });
    stream.steps.extend(steps);
}

/// An Ethernet frame of `len` bytes, or enough for the headers, with an IPv4 UDP packet and a
/// payload of `x`.
fn udp_frame(
    source: Ipv4Addr,
    destination: Ipv4Addr,
    ports: (u16, u16),
    checksum: bool,
    len: usize,
) -> Vec<u8> {
    let (from, to) = (source.to_bits(), destination.to_bits());
    let mut packet = Packet::udp((from, ports.0), (to, ports.1))
        .id(1)
        .payload(&payload(len, V4));
    if !checksum {
        packet = packet.without_udp_checksum();
    }
    frame(eth::IP4, &packet)
}

/// The frame with a tag, if there is one.
fn tagged(mut frame: Vec<u8>, tag: Option<vlan::Tag>) -> Vec<u8> {
    frame.splice(
        vlan::AT..vlan::AT,
        tag.into_iter().flat_map(vlan::Tag::to_bytes),
    );
    frame
}

/// As [`udp_frame`] with IPv6, between addresses that end in those of IPv4.
fn udp6_frame(
    prefix: [u16; 6],
    source: Ipv4Addr,
    destination: Ipv4Addr,
    ports: (u16, u16),
    len: usize,
) -> Vec<u8> {
    let address = |v4: Ipv4Addr| {
        let [a, b, c, d, e, f] = prefix;
        let prefix = Ipv6Addr::new(a, b, c, d, e, f, 0, 0);
        Ipv6Addr::from_bits(prefix.to_bits() | u128::from(v4.to_bits()))
    };
    let packet = Packet::udp6((address(source), ports.0), (address(destination), ports.1))
        .payload(&payload(len, V6));
    frame(eth::IP6, &packet)
}

/// Content of a frame of `len` bytes behind its headers.
fn payload(len: usize, layout: Layout) -> Vec<u8> {
    vec![b'x'; len.saturating_sub(layout.headers())]
}

fn frame(kind: u16, packet: &Packet) -> Vec<u8> {
    // T-Rex's placeholders; the port's own addresses replace them.
    let [dst, src] = [1, 2].map(|number| Mac([0, 0, 0, number, 0, 0]));
    let ethernet = eth::Header::new(dst, src, kind);
    [&ethernet.bytes()[..], &packet.packet()].concat()
}
