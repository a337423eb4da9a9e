//! The receiving end of a load test: counts by stream and drops.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::StreamCount;
use crate::attach::Attachment;
use crate::error::Error;
use crate::map::{Mapping, Shared};
use crate::mode::Mode;
use crate::object::{Loaded, elf};
use crate::sys;
use crate::times::{Times, TimesState};

/// Most streams that a sink tells apart; `MATCHES` of sink.bpf.c.
pub const MAX_MATCHES: usize = 32;

/// The packets of a stream: IPv4 without options or IPv6 in untagged Ethernet, and all of this.
/// Addresses are in host order, those of IPv4 in the low 32 bits; ranges are inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// Version of IP: 4 or 6.
    pub version: u8,
    /// Length in the header, bytes: IPv4's total length, IPv6's payload length. 0: any.
    pub length: u16,
    /// IPv4's protocol, IPv6's first next header; 0: any.
    pub protocol: u8,
    /// Least and greatest source address.
    pub src: (u128, u128),
    /// Least and greatest destination address.
    pub dst: (u128, u128),
    /// Source port; 0: any. There are none behind IPv6's extension headers.
    pub sport: u16,
    /// Destination port; 0: any.
    pub dport: u16,
    /// Packets end with a trailer that says when they were sent.
    pub latency: bool,
}

/// `struct match` in sink.bpf.c; an address is its high and its low half.
#[repr(C)]
struct Row {
    src: [[AtomicU64; 2]; 2],
    dst: [[AtomicU64; 2]; 2],
    length: AtomicU16,
    sport: AtomicU16,
    dport: AtomicU16,
    protocol: AtomicU8,
    version: AtomicU8,
}

/// `struct table` in sink.bpf.c.
#[repr(C)]
struct Table {
    count: AtomicU32,
    measured: AtomicU32,
    epoch: AtomicU64,
    rows: [Row; MAX_MATCHES],
    times: [TimesState; MAX_MATCHES],
}

// SAFETY: repr(C), atomics and arrays of them.
#[allow(unsafe_code)]
unsafe impl Shared for Table {}

/// The counting program on an interface; dropping it takes the program off.
#[derive(Debug)]
pub struct Sink {
    program: Loaded,
    table: Mapping,
    /// Whether packets measure latency, by stream.
    latency: Vec<bool>,
    attachment: Attachment,
}

impl Sink {
    /// Puts a sink on an interface, native if possible. A packet belongs to the first of `matches`
    /// that fits; what fits none goes to the kernel. So the stream with most packets should come
    /// first. `epoch` is what [`monotonic`](crate::monotonic) was when the clock was 0 by which
    /// packets say when they were sent.
    ///
    /// # Errors
    /// As [`Router::attach`](crate::Router::attach), or more than [`MAX_MATCHES`].
    pub fn attach(ifindex: u32, matches: &[Match], epoch: u64) -> Result<Self, Error> {
        if matches.len() > MAX_MATCHES {
            let why = format!(
                "a sink tells {MAX_MATCHES} streams apart, not {}",
                matches.len()
            );
            return Err(Error::Parameter(why));
        }
        let program = Loaded::new(elf!("sink"), "parshall_sink", &[])?;
        let table = program.map(".bss").mapping()?;
        fill(table.view(), matches, epoch);
        let attachment = Attachment::new(program.as_fd(), ifindex, &[Mode::Native, Mode::Generic])?;
        Ok(Self {
            program,
            table,
            latency: matches.iter().map(|m| m.latency).collect(),
            attachment,
        })
    }

    /// Attachment to the interface.
    pub fn attachment(&self) -> &Attachment {
        &self.attachment
    }

    /// Packets and bytes received by stream, in the order of the matches. Bytes are frame lengths
    /// without FCS.
    ///
    /// # Errors
    /// Error of the kernel.
    pub fn counts(&self) -> Result<Vec<StreamCount>, Error> {
        (0..self.latency.len())
            .map(|stream| self.count(stream))
            .collect()
    }

    /// How long packets took, by stream; None of those that do not measure it. Where packets of one
    /// stream come by several CPUs at once, some may be missed.
    pub fn latencies(&self) -> Vec<Option<Times>> {
        let times = self.table.view::<Table>().times.iter();
        let latency = self.latency.iter().zip(times);
        latency
            .map(|(measured, times)| measured.then(|| times.read()))
            .collect()
    }

    /// Forgets how long packets took until now. Only while none is on its way.
    pub fn forget_latencies(&self) {
        let times = &self.table.view::<Table>().times;
        times.iter().for_each(TimesState::clear);
    }

    /// Packets that belong to no stream.
    ///
    /// # Errors
    /// Error of the kernel.
    pub fn other(&self) -> Result<u64, Error> {
        Ok(self.count(MAX_MATCHES)?.packets)
    }

    fn count(&self, row: usize) -> Result<StreamCount, Error> {
        let sum = self.program.map("counters").sum::<2>(sys::count(row));
        let [packets, bytes] = sum.map_err(Error::doing("reading the counters of a sink"))?;
        Ok(StreamCount { packets, bytes })
    }
}

// Every store is Relaxed: the program runs only once it is attached, by a later system call.
fn fill(table: &Table, matches: &[Match], epoch: u64) {
    for (row, m) in table.rows.iter().zip(matches) {
        for (bounds, (min, max)) in [(&row.src, m.src), (&row.dst, m.dst)] {
            for ([high, low], address) in bounds.iter().zip([min, max]) {
                high.store((address >> 64) as u64, Relaxed);
                low.store((address & 0xffff_ffff_ffff_ffff) as u64, Relaxed);
            }
        }
        row.length.store(m.length, Relaxed);
        row.sport.store(m.sport, Relaxed);
        row.dport.store(m.dport, Relaxed);
        row.protocol.store(m.protocol, Relaxed);
        row.version.store(m.version, Relaxed);
    }
    let measured = matches.iter().enumerate().filter(|(_, m)| m.latency);
    let measured = measured.fold(0, |bits, (row, _)| bits | 1 << row);
    table.measured.store(measured, Relaxed);
    table.epoch.store(epoch, Relaxed);
    table.count.store(sys::count(matches.len()), Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{agree, facts};

    #[test]
    fn the_table_is_laid_out_as_in_the_program() {
        let all = [
            facts!("match" as Row: src = src_min, dst = dst_min, length, sport, dport, protocol, version),
            facts!("table" as Table: count, measured, epoch, rows = match, times),
            facts!("times" as TimesState: sum, min, max, bucket),
        ];
        agree(
            "the_table_is_laid_out_as_in_the_program",
            "sink.bpf.c",
            &all.concat(),
        );
    }
}
