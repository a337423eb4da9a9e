//! The built-in profiles. They send the same packets as the T-Rex profiles of the same name.

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use wire::craft::Packet;
use wire::eth::{self, MIN_FRAME, Mac};
use wire::ip4;

use super::{Tunables, Way};
use crate::model::stream::{Macs, Op, Step, Stream, StreamRate, Variable};
use crate::model::units::{FCS, MAX_FRAME, Pps};

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
        about: "UDP 16.0.0.4-254 to 48.0.0.4-254; size=64|imix|64..9216, vm=none|var1|var2|random|cached",
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
    no_flow_statistics(tunables)?;
    let [from, to] = facing(BENCH, way);
    let stream = |size: usize, pps, isg| {
        let packet = udp(from.0, to.0, (1025, 12), false, size - FCS);
        vary(
            continuous(packet, pps, isg),
            tunables.get("vm").unwrap_or("none"),
            from,
            to,
        )
    };
    match tunables.get("size").unwrap_or("64") {
        "imix" => {
            const SIZES: [usize; 3] = [68, 590, 1514];
            SIZES
                .into_iter()
                .zip(IMIX_RATES)
                .map(|(size, (pps, isg))| stream(size, pps, isg))
                .collect()
        }
        size => Ok(vec![stream(frame_size(size)?, 1.0, 0.0)?]),
    }
}

/// A frame size with its check sequence.
fn frame_size(text: &str) -> Result<usize, String> {
    const SIZES: RangeInclusive<usize> = MIN_FRAME + FCS..=MAX_FRAME + FCS;
    let size = text.parse().ok().filter(|size| SIZES.contains(size));
    size.ok_or_else(|| {
        let (least, most) = SIZES.into_inner();
        format!("size={text}: expected imix or {least} to {most}")
    })
}

/// Refuses flow statistics.
fn no_flow_statistics(tunables: &Tunables) -> Result<(), String> {
    match tunables.get("flow") {
        None | Some("no-fs") => {}
        Some(flow @ ("fs" | "fsl")) => {
            return Err(format!(
                "flow={flow} (flow statistics) is not supported yet; leave it out"
            ));
        }
        Some(flow) => return Err(format!("flow={flow}: expected no-fs")),
    }
    if tunables.get("pg_id").is_some() {
        return Err(
            "pg_id numbers flow statistics, which are not supported yet; leave it out".to_owned(),
        );
    }
    Ok(())
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
            continuous(udp(first, last, (53, 53), true, frame), pps, isg),
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
        udp(from.0, to.0, (1025, 12), true, 52),
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
    Stream {
        name: format!("{} B", packet.len().max(MIN_FRAME) + FCS),
        packet,
        rate: StreamRate::Packets(Pps(pps)),
        isg,
        macs: Macs::default(),
        variables: Vec::new(),
        steps: Vec::new(),
        random_seed: 0,
        cache: 0,
    }
}

/// Bytes before the UDP payload: Ethernet, IPv4, UDP.
const HEADERS: usize = eth::LEN + ip4::LEN + wire::udp::LEN;
const SOURCE: usize = eth::LEN + ip4::at::SRC;
const DESTINATION: usize = eth::LEN + ip4::at::DST;

/// Adds the variables that `vm` names.
fn vary(
    mut stream: Stream,
    vm: &str,
    from: (Ipv4Addr, Ipv4Addr),
    to: (Ipv4Addr, Ipv4Addr),
) -> Result<Stream, String> {
    let (op, both, cache) = match vm {
        "none" => return Ok(stream),
        "var1" => (Op::Inc, false, 0),
        "var2" => (Op::Inc, true, 0),
        "random" => (Op::Random, false, 0),
        "cached" => (Op::Inc, false, 255),
        "tuple" | "size" => {
            return Err(format!(
                "vm={vm} is not supported yet; expected none, var1, var2, random or cached"
            ));
        }
        _ => {
            return Err(format!(
                "vm={vm}: expected none, var1, var2, random or cached"
            ));
        }
    };
    let mut add = |name: &str, (first, last): (Ipv4Addr, Ipv4Addr), offset| {
        let (min, max) = (u64::from(first.to_bits()), u64::from(last.to_bits()));
        stream.steps.push(Step::Write {
            variable: stream.variables.len(),
            offset,
            add: 0,
            big_endian: true,
        });
        stream.variables.push(Variable {
            name: name.to_owned(),
            size: 4,
            op,
            init: min,
            min,
            max,
            step: 1,
        });
    };
    add("src", from, SOURCE);
    if both {
        add("dst", to, DESTINATION);
    }
    stream.steps.push(Step::Checksum4 { offset: eth::LEN });
    stream.cache = cache;
    Ok(stream)
}

/// An Ethernet frame of `len` bytes, or enough for the headers, with an IPv4 UDP packet and a
/// payload of `x`.
fn udp(
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
