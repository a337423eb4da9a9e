//! The built-in profiles. They send the same packets as the T-Rex profiles of the same name.

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use wire::craft::Packet;
use wire::eth::{self, MIN_FRAME, Mac};
use wire::{ip4, udp};

use super::{Tunables, Way};
use crate::model::fields::{Op, Step, Variable};
use crate::model::stream::{Mark, Stream, StreamRate};
use crate::model::units::{FCS, Pps};

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
        about: "UDP 16.0.0.4-254 to 48.0.0.4-254; size=64|imix|64..9216, vm=none|var1|var2|random|tuple|size|cached, flow=no-fs|fs|fsl, pg_id=7",
        build: bench,
    },
    Builtin {
        name: "imix",
        about: "28 x 64, 16 x 594, 4 x 1518 B, 254 addresses each way",
        build: imix,
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
    const KNOWN: &[&str] = &["size", "vm", "flow", "pg_id"];
    if let Some(name) = tunables.unknown(KNOWN) {
        return Err(format!(
            "tunable `{name}` is not one of {}",
            KNOWN.join(", ")
        ));
    }
    let mark = mark(way, tunables)?;
    let [from, to] = facing(BENCH, way);
    let vm = tunables.get("vm").unwrap_or("none");
    let stream = |size: usize, pps, isg| {
        let packet = udp_frame(from.0, to.0, (1025, 12), false, size - FCS);
        let stream = vary(continuous(packet, pps, isg), vm, from, to)?;
        Ok(Stream { mark, ..stream })
    };
    match (tunables.get("size").unwrap_or("64"), vm) {
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
        (size, _) => Ok(vec![stream(frame_size(size)?, 1.0, 0.0)?]),
    }
}

/// Largest frame of `bench`, with its check sequence.
const LARGEST: usize = 9216;

/// A frame size with its check sequence.
fn frame_size(text: &str) -> Result<usize, String> {
    const SIZES: RangeInclusive<usize> = MIN_FRAME + FCS..=LARGEST;
    let size = text.parse().ok().filter(|size| SIZES.contains(size));
    size.ok_or_else(|| {
        let (least, most) = SIZES.into_inner();
        format!("size={text}: expected imix or {least} to {most}")
    })
}

/// How packets are marked for flow statistics.
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
            from,
            to,
        )
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

/// Bytes before the UDP payload: Ethernet, IPv4, UDP.
const HEADERS: usize = eth::LEN + ip4::LEN + udp::LEN;
const SOURCE: usize = eth::LEN + ip4::at::SRC;
const DESTINATION: usize = eth::LEN + ip4::at::DST;
const TOTAL_LENGTH: usize = eth::LEN + ip4::at::TOTAL_LEN;
/// UDP source port, and length of the datagram.
const PORT: usize = eth::LEN + ip4::LEN;
const UDP_LENGTH: usize = PORT + 4;

/// Adds the variables that `vm` names.
fn vary(
    mut stream: Stream,
    vm: &str,
    from: (Ipv4Addr, Ipv4Addr),
    to: (Ipv4Addr, Ipv4Addr),
) -> Result<Stream, String> {
    let range = |name: &str, (first, last): (Ipv4Addr, Ipv4Addr)| {
        Variable::range(name, 4, first.to_bits().into(), last.to_bits().into())
    };
    let (src, dst) = (range("src", from), range("dst", to));
    match vm {
        "none" => return Ok(stream),
        "var1" => add(&mut stream, src, &[(SOURCE, 0)]),
        "var2" => {
            add(&mut stream, src, &[(SOURCE, 0)]);
            add(&mut stream, dst, &[(DESTINATION, 0)]);
        }
        "random" => {
            let op = Op::Random;
            add(&mut stream, Variable { op, ..src }, &[(SOURCE, 0)]);
        }
        "cached" => {
            add(&mut stream, src, &[(SOURCE, 0)]);
            stream.cache = 255;
        }
        "tuple" => {
            let (name, next) = ("tuple.ip".to_owned(), Some(1));
            add(&mut stream, Variable { name, next, ..src }, &[(SOURCE, 0)]);
            let port = Variable::range("tuple.port", 2, 1234, 65_500);
            add(&mut stream, port, &[(PORT, 0)]);
        }
        "size" => {
            let longest = stream.packet.len() as u64;
            let length = Variable {
                op: Op::Random,
                ..Variable::range("fv_rand", 2, MIN_FRAME as u64, longest)
            };
            stream.steps.push(Step::Trim { variable: 0 });
            let of_ip = -(eth::LEN as i64);
            let of_udp = of_ip - ip4::LEN as i64;
            add(
                &mut stream,
                length,
                &[(TOTAL_LENGTH, of_ip), (UDP_LENGTH, of_udp)],
            );
        }
        _ => {
            return Err(format!(
                "vm={vm}: expected none, var1, var2, random, tuple, size or cached"
            ));
        }
    }
    stream.steps.push(Step::Checksum4 { offset: eth::LEN });
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
        .payload(&vec![b'x'; len.saturating_sub(HEADERS)]);
    if !checksum {
        packet = packet.without_udp_checksum();
    }
    // T-Rex's placeholders; the port's own addresses replace them.
    let [dst, src] = [1, 2].map(|number| Mac([0, 0, 0, number, 0, 0]));
    let ethernet = eth::Header::new(dst, src, eth::IP4);
    [&ethernet.bytes()[..], &packet.packet()].concat()
}
