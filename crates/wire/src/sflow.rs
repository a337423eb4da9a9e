//! sFlow version 5: samples of packets and counters, in UDP datagrams to a collector
//! (sflow.org/sflow_version_5.txt).
//!
//! All is in XDR (RFC 4506): words of 32 bits, and bytes whose number stands before them and that are
//! filled up with zeros to whole words.

use std::net::IpAddr;

/// UDP port of collectors.
pub const PORT: u16 = 6343;
/// Bytes of a datagram at most, which the usual link takes whole with any headers and tunnel.
pub const MOST: usize = 1400;
/// Bytes of a packet in a sample at most.
pub const MOST_HEADER: usize = 256;

const VERSION: u32 = 5;
/// Bytes of the frame check sequence, which counts and is not there to be sampled.
const FRAME_CHECK_SEQUENCE: u32 = 4;
/// Formats of samples and records, all of enterprise 0.
const FLOW_SAMPLE: u32 = 1;
const COUNTERS_SAMPLE: u32 = 2;
const RAW_HEADER: u32 = 1;
const GENERIC_COUNTERS: u32 = 1;
/// Header protocol: Ethernet.
const ETHERNET: u32 = 1;
/// A counter that the agent has not got.
pub const UNKNOWN: u32 = u32::MAX;
/// The interface is not known (section 5, `interface`).
const UNKNOWN_INTERFACE: u32 = 0;

/// A sampled packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow<'a> {
    /// Number of the sample, of those of this source.
    pub sequence: u32,
    /// ifIndex of the interface that was sampled, which the packet came in by.
    pub source: u32,
    /// One packet in this many is sampled, on average.
    pub rate: u32,
    /// Packets that could have been sampled.
    pub pool: u32,
    /// Samples that were lost in the agent.
    pub drops: u32,
    /// Bytes of the frame, without its frame check sequence.
    pub length: u32,
    /// The begin of the frame, up to [`MOST_HEADER`] bytes.
    pub header: &'a [u8],
}

/// Counters of an interface, of the ifTable (RFC 2863); [`UNKNOWN`] where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    /// Number of the sample, of those of this source.
    pub sequence: u32,
    /// ifIndex of the interface.
    pub source: u32,
    /// Bits a second; 0: not known.
    pub speed: u64,
    /// Administratively up.
    pub admin_up: bool,
    /// Up and with carrier.
    pub up: bool,
    /// Listens to every station.
    pub promiscuous: bool,
    /// Came in.
    pub input: Direction,
    /// Left.
    pub output: Direction,
}

/// Counters of what came in, or left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Direction {
    /// Bytes.
    pub octets: u64,
    /// Packets.
    pub packets: u32,
    /// Packets that were dropped, though nothing was wrong with them.
    pub discards: u32,
    /// Packets with which something was wrong.
    pub errors: u32,
}

/// A datagram that is being filled.
#[derive(Debug)]
pub struct Datagram {
    bytes: Vec<u8>,
    /// Bytes in front of the samples.
    head: usize,
    samples: u32,
}

impl Datagram {
    /// Without samples, of the agent with this address.
    pub fn new(agent: IpAddr) -> Self {
        let mut bytes = Vec::with_capacity(MOST);
        put(&mut bytes, VERSION);
        match agent {
            IpAddr::V4(address) => {
                put(&mut bytes, 1);
                bytes.extend(address.octets());
            }
            IpAddr::V6(address) => {
                put(&mut bytes, 2);
                bytes.extend(address.octets());
            }
        }
        // The only sub-agent; sequence, time and number of samples come last.
        for _ in 0..4 {
            put(&mut bytes, 0);
        }
        Datagram {
            head: bytes.len(),
            bytes,
            samples: 0,
        }
    }

    /// Adds a sample. False if there is no room for it: send what there is, then try again.
    pub fn push_flow(&mut self, flow: &Flow<'_>) -> bool {
        let header = flow.header.get(..MOST_HEADER).unwrap_or(flow.header);
        let record = 16 + header.len().next_multiple_of(4);
        let body = 40 + record;
        if !self.begin(FLOW_SAMPLE, body) {
            return false;
        }
        let words = [
            flow.sequence,
            flow.source,
            flow.rate,
            flow.pool,
            flow.drops,
            flow.source,
            UNKNOWN_INTERFACE,
            1,
            RAW_HEADER,
            word(record),
            ETHERNET,
            flow.length.saturating_add(FRAME_CHECK_SEQUENCE),
            FRAME_CHECK_SEQUENCE,
            word(header.len()),
        ];
        words.into_iter().for_each(|n| put(&mut self.bytes, n));
        self.bytes.extend(header);
        let whole = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(whole, 0);
        true
    }

    /// As [`push_flow`](Self::push_flow), of counters.
    pub fn push_counters(&mut self, counters: &Counters) -> bool {
        const RECORD: usize = 88;
        /// ethernetCsmacd of IANAifType.
        const IF_TYPE: u32 = 6;
        const FULL_DUPLEX: u32 = 1;
        if !self.begin(COUNTERS_SAMPLE, 20 + RECORD) {
            return false;
        }
        let bytes = &mut self.bytes;
        let (source, input, output) = (counters.source, counters.input, counters.output);
        for n in [counters.sequence, source, 1, GENERIC_COUNTERS, word(RECORD)] {
            put(bytes, n);
        }
        put(bytes, source);
        put(bytes, IF_TYPE);
        bytes.extend(counters.speed.to_be_bytes());
        put(bytes, FULL_DUPLEX);
        put(
            bytes,
            u32::from(counters.admin_up) | u32::from(counters.up) << 1,
        );
        bytes.extend(input.octets.to_be_bytes());
        // Of all kinds of destinations together: multicast and broadcast are not counted by themselves.
        for n in [
            input.packets,
            UNKNOWN,
            UNKNOWN,
            input.discards,
            input.errors,
            UNKNOWN,
        ] {
            put(bytes, n);
        }
        bytes.extend(output.octets.to_be_bytes());
        for n in [
            output.packets,
            UNKNOWN,
            UNKNOWN,
            output.discards,
            output.errors,
        ] {
            put(bytes, n);
        }
        put(bytes, if counters.promiscuous { 1 } else { 2 });
        true
    }

    /// A sample of a format, of so many bytes, is to be added.
    fn begin(&mut self, format: u32, body: usize) -> bool {
        if self.bytes.len() + 8 + body > MOST {
            return false;
        }
        self.samples += 1;
        put(&mut self.bytes, format);
        put(&mut self.bytes, word(body));
        true
    }

    /// True if there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.samples == 0
    }

    /// The datagram, with its number and the milliseconds since the agent's start.
    pub fn finish(&mut self, sequence: u32, uptime: u32) -> &[u8] {
        let end = [sequence, uptime, self.samples].map(u32::to_be_bytes);
        self.bytes[self.head - 12..self.head].copy_from_slice(end.as_flattened());
        &self.bytes
    }

    /// Takes all samples out.
    pub fn clear(&mut self) {
        self.bytes.truncate(self.head);
        self.samples = 0;
    }
}

fn put(bytes: &mut Vec<u8>, n: u32) {
    bytes.extend(n.to_be_bytes());
}

/// A length that is at most [`MOST`].
fn word(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader of XDR.
    struct Xdr<'a>(&'a [u8]);

    impl<'a> Xdr<'a> {
        fn bytes(&mut self, count: usize) -> &'a [u8] {
            let (bytes, rest) = self.0.split_at(count);
            self.0 = rest;
            bytes
        }

        fn u32(&mut self) -> u32 {
            u32::from_be_bytes(self.bytes(4).try_into().unwrap())
        }

        fn u64(&mut self) -> u64 {
            u64::from_be_bytes(self.bytes(8).try_into().unwrap())
        }

        fn words<const N: usize>(&mut self) -> [u32; N] {
            std::array::from_fn(|_| self.u32())
        }

        /// opaque<>: filled up with zeros.
        fn opaque(&mut self) -> &'a [u8] {
            let count = self.u32() as usize;
            let bytes = self.bytes(count);
            assert!(self.bytes(count.wrapping_neg() % 4).iter().all(|b| *b == 0));
            bytes
        }
    }

    fn flow(header: &[u8]) -> Flow<'_> {
        Flow {
            sequence: 11,
            source: 3,
            rate: 1000,
            pool: 12_345,
            drops: 2,
            length: 1514,
            header,
        }
    }

    fn counters() -> Counters {
        Counters {
            sequence: 7,
            source: 4,
            speed: 10_000_000_000,
            admin_up: true,
            up: false,
            promiscuous: true,
            input: Direction {
                octets: 1 << 40,
                packets: 21,
                discards: 22,
                errors: 23,
            },
            output: Direction {
                octets: 1 << 41,
                packets: 31,
                discards: 32,
                errors: 33,
            },
        }
    }

    #[test]
    fn a_datagram_is_laid_out_as_in_the_standard() {
        let agents = ["192.0.2.1", "2001:db8::1"].map(|text| text.parse().unwrap());
        for agent in agents {
            let header: Vec<u8> = (0..61).collect();
            let mut datagram = Datagram::new(agent);
            assert!(datagram.is_empty());
            assert!(datagram.push_flow(&flow(&header)));
            assert!(datagram.push_counters(&counters()));
            assert!(!datagram.is_empty());
            let mut xdr = Xdr(datagram.finish(5, 60_000));
            assert_eq!(xdr.u32(), 5, "version");
            let (kind, address) = match agent {
                IpAddr::V4(address) => (1, address.octets().to_vec()),
                IpAddr::V6(address) => (2, address.octets().to_vec()),
            };
            assert_eq!(xdr.u32(), kind);
            assert_eq!(xdr.bytes(address.len()), address);
            // sub_agent_id, sequence_number, uptime, samples
            assert_eq!(xdr.words(), [0, 5, 60_000, 2]);

            assert_eq!(xdr.u32(), 1, "flow_sample");
            let mut sample = Xdr(xdr.opaque());
            // sequence_number, source_id, sampling_rate, sample_pool, drops, input, output
            assert_eq!(sample.words(), [11, 3, 1000, 12_345, 2, 3, 0]);
            assert_eq!(sample.words(), [1, 1], "one record, sampled_header");
            let mut record = Xdr(sample.opaque());
            // header_protocol, frame_length, stripped
            assert_eq!(record.words(), [1, 1518, 4]);
            assert_eq!(record.opaque(), header);
            assert!(record.0.is_empty() && sample.0.is_empty());

            assert_eq!(xdr.u32(), 2, "counters_sample");
            let mut sample = Xdr(xdr.opaque());
            assert_eq!(sample.words(), [7, 4]);
            assert_eq!(sample.words(), [1, 1], "one record, if_counters");
            let mut record = Xdr(sample.opaque());
            // ifIndex, ifType
            assert_eq!(record.words(), [4, 6]);
            assert_eq!(record.u64(), 10_000_000_000, "ifSpeed");
            // ifDirection: full duplex; ifStatus: ifAdminStatus is up, ifOperStatus is down
            assert_eq!(record.words(), [1, 1]);
            assert_eq!(record.u64(), 1 << 40, "ifInOctets");
            // Unicast, multicast, broadcast, discards, errors, unknown protocols
            assert_eq!(record.words(), [21, UNKNOWN, UNKNOWN, 22, 23, UNKNOWN]);
            assert_eq!(record.u64(), 1 << 41, "ifOutOctets");
            assert_eq!(record.words(), [31, UNKNOWN, UNKNOWN, 32, 33]);
            assert_eq!(record.u32(), 1, "ifPromiscuousMode is true");
            assert!(record.0.is_empty() && sample.0.is_empty() && xdr.0.is_empty());
        }
    }

    #[test]
    fn it_takes_what_fits_and_is_used_again() {
        let mut datagram = Datagram::new([192, 0, 2, 1].into());
        let long = [9; 300];
        for length in [0, 1, 2, 3, 4, 128, 255, 256, 300] {
            let mut count = 0;
            while datagram.push_flow(&flow(&long[..length])) {
                count += 1;
            }
            while datagram.push_counters(&counters()) {
                count += 1;
            }
            let bytes = datagram.finish(1, 2);
            assert!(bytes.len() <= MOST && bytes.len().is_multiple_of(4));
            assert!(MOST - bytes.len() < 8 + 20 + 88, "{length}");
            let mut xdr = Xdr(&bytes[24..]);
            assert_eq!(xdr.u32(), count);
            for _ in 0..count {
                let kind = xdr.u32();
                let mut sample = Xdr(xdr.opaque());
                if kind == 1 {
                    let mut record = Xdr(&sample.bytes(sample.0.len())[36..]);
                    let mut record = Xdr(record.opaque());
                    record.words::<3>();
                    assert_eq!(record.opaque().len(), length.min(MOST_HEADER));
                }
            }
            assert!(xdr.0.is_empty());
            datagram.clear();
            assert!(datagram.is_empty());
        }
        // Lengths at the end of what a word holds.
        let most = Flow {
            length: u32::MAX,
            ..flow(&[])
        };
        assert!(datagram.push_flow(&most));
    }
}
