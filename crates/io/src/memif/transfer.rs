//! Moving packets between descriptors in shared memory and buffers: every check of what a peer
//! wrote is here.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use graph::pool::MAX_PACKET;
use graph::{Buffers, Desc};

use super::Role;
use super::copy::copy_packet;
use super::link::{Link, RingEnd};
use super::ring::{NEXT, Slot};

/// Descriptors of one packet: enough for the longest in buffers of 64 bytes, few enough to walk at
/// every call.
const MAX_CHAIN: u16 = 256;

/// The peer wrote something into shared memory that cannot be right.
pub struct Fault;

/// Why a packet was not received.
pub enum Stop {
    /// It is no packet: go past this many descriptors.
    Skip(u16),
    /// Its last part is not there yet.
    Incomplete,
    /// The pool is used up.
    NoBuffer,
    /// The peer is at fault.
    Fault,
}

impl RingEnd {
    /// Descriptors that one packet may take.
    #[inline(always)]
    pub fn longest_chain(&self) -> u16 {
        self.ring.size().min(MAX_CHAIN)
    }
}

impl Link {
    /// A descriptor of our own ring as it should be, whatever shared memory says now.
    #[inline(always)]
    pub fn own(&self, end: &RingEnd, at: u16, length: u32, flags: u16) -> Slot {
        let index = u32::from(at & (end.ring.size() - 1));
        Slot {
            flags,
            region: 0,
            length,
            offset: end.buffers + index * self.stride,
        }
    }

    /// The buffer of a descriptor of which `length` bytes are to be touched. A client knows its
    /// buffers and does not believe shared memory; a server believes what stays within the regions.
    #[inline(always)]
    fn buffer(
        &self,
        end: &RingEnd,
        at: u16,
        slot: Slot,
        length: u32,
    ) -> Result<NonNull<u8>, Fault> {
        match self.role {
            Role::Client if length > self.buffer_size => Err(Fault),
            Role::Client => {
                let own = self.own(end, at, length, 0);
                self.regions
                    .first()
                    .and_then(|r| r.at(own.offset, length))
                    .ok_or(Fault)
            }
            Role::Server => {
                let region = self.regions.get(slot.region as usize).ok_or(Fault)?;
                region.at(slot.offset, length).ok_or(Fault)
            }
        }
    }

    /// Fetches the buffer of a descriptor ahead of its use. Any address will do.
    #[inline(always)]
    pub fn hint(&self, end: &RingEnd, at: u16, fetch: impl Fn(*const u8)) {
        let slot = match self.role {
            Role::Client => self.own(end, at, 0, 0),
            Role::Server => end.ring.read(at),
        };
        if let Some(region) = self.regions.get(slot.region as usize) {
            fetch(region.hint(slot.offset));
        }
    }

    /// Receives a packet of one descriptor into one buffer.
    #[inline(always)]
    pub fn copy_one(
        &self,
        end: &RingEnd,
        at: u16,
        slot: Slot,
        bufs: &mut Buffers,
    ) -> Result<Desc, Stop> {
        let from = self
            .buffer(end, at, slot, slot.length)
            .map_err(|Fault| Stop::Fault)?;
        let length = slot.length as usize;
        let (d, to) = bufs.alloc_len(length).ok_or(Stop::NoBuffer)?;
        // SAFETY: `length` bytes are within the peer's buffer and within ours. The peer may write
        // meanwhile: then the packet holds a mixture of bytes.
        unsafe { copy_packet(from, to, length) };
        Ok(d)
    }

    /// Receives a packet that lies in several descriptors, or needs several buffers.
    #[cold]
    pub fn copy_chain(
        &self,
        end: &RingEnd,
        at: u16,
        filled: u16,
        bufs: &mut Buffers,
    ) -> Result<(Desc, u16), Stop> {
        let mut parts = [(NonNull::dangling(), 0); MAX_CHAIN as usize];
        let (mut slots, mut total) = (0, 0);
        loop {
            let here = at.wrapping_add(slots);
            let slot = end.ring.read(here);
            let from = self
                .buffer(end, here, slot, slot.length)
                .map_err(|Fault| Stop::Fault)?;
            parts[slots as usize] = (from, slot.length);
            slots += 1;
            total += slot.length as usize;
            if slot.flags & NEXT == 0 {
                break;
            }
            if slots == end.longest_chain() {
                return Err(Stop::Fault);
            }
            if slots == filled {
                return Err(Stop::Incomplete);
            }
        }
        let parts = &parts[..slots as usize];
        let taken = if total == 0 || total > MAX_PACKET {
            Err(Stop::Skip(slots))
        } else {
            Ok((assemble(parts, bufs).ok_or(Stop::NoBuffer)?, slots))
        };
        if self.role == Role::Server {
            self.clear_chain(end, at, slots);
        }
        taken
    }

    /// Takes the flag off descriptors that go back to the client: some set it and never clear it
    /// again.
    fn clear_chain(&self, end: &RingEnd, at: u16, slots: u16) {
        for at in (0..slots).map(|i| at.wrapping_add(i)) {
            let slot = end.ring.read(at);
            end.ring.write(at, Slot { flags: 0, ..slot });
        }
    }

    /// Sends a packet. Returns how many descriptors it took, 0 if `room` are too few.
    #[inline(always)]
    pub fn put(
        &self,
        end: &RingEnd,
        at: u16,
        room: u16,
        d: &Desc,
        bufs: &Buffers,
    ) -> Result<u16, Fault> {
        if !d.is_chained() && self.put_one(end, at, d, bufs)? {
            return Ok(1);
        }
        self.put_chain(end, at, room, d, bufs)
    }

    /// Sends a packet of one buffer with one descriptor; false if it does not fit into it.
    #[inline(always)]
    fn put_one(&self, end: &RingEnd, at: u16, d: &Desc, bufs: &Buffers) -> Result<bool, Fault> {
        let length = u32::from(d.len());
        let slot = self.offered(end, at);
        if length > slot.length {
            return Ok(false);
        }
        let to = self.buffer(end, at, slot, length)?;
        // SAFETY: `length` bytes are within our buffer and within the peer's.
        unsafe { copy_packet(bufs.pool().data(d), to, length as usize) };
        end.ring.write(
            at,
            Slot {
                flags: 0,
                length,
                ..slot
            },
        );
        Ok(true)
    }

    /// The buffer on offer at a transmit descriptor.
    #[inline(always)]
    fn offered(&self, end: &RingEnd, at: u16) -> Slot {
        match self.role {
            Role::Client => self.own(end, at, self.buffer_size, 0),
            Role::Server => end.ring.read(at),
        }
    }

    /// Sends a packet over as many descriptors as it needs, at most `room`. Returns how many, 0 if
    /// too few.
    #[cold]
    fn put_chain(
        &self,
        end: &RingEnd,
        at: u16,
        room: u16,
        d: &Desc,
        bufs: &Buffers,
    ) -> Result<u16, Fault> {
        let room = room.min(end.longest_chain());
        let (mut used, mut filled) = (0u16, 0u32);
        let mut slot = self.offered(end, at);
        let mut result = Ok(());
        bufs.pool().segments(d, |mut bytes| {
            while !bytes.is_empty() && result.is_ok() {
                if filled == slot.length {
                    used += 1;
                    if used == room {
                        result = Err(None);
                        return;
                    }
                    let before = at.wrapping_add(used - 1);
                    end.ring.write(
                        before,
                        Slot {
                            flags: NEXT,
                            ..slot
                        },
                    );
                    (slot, filled) = (self.offered(end, at.wrapping_add(used)), 0);
                    continue;
                }
                let left = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                let n = left.min(slot.length - filled);
                match self.buffer(end, at.wrapping_add(used), slot, filled + n) {
                    Ok(to) => {
                        // SAFETY: filled + n bytes are within the peer's buffer.
                        let to = unsafe { to.add(filled as usize) };
                        // SAFETY: so are the n from there on, which the segment has too.
                        unsafe { to.copy_from_nonoverlapping(as_ptr(bytes), n as usize) };
                    }
                    Err(Fault) => result = Err(Some(Fault)),
                }
                filled += n;
                bytes = &bytes[n as usize..];
            }
        });
        match result {
            Ok(()) => {
                let last = Slot {
                    flags: 0,
                    length: filled,
                    ..slot
                };
                end.ring.write(at.wrapping_add(used), last);
                Ok(used + 1)
            }
            Err(None) => Ok(0),
            Err(Some(fault)) => Err(fault),
        }
    }
}

fn as_ptr(bytes: &[u8]) -> NonNull<u8> {
    NonNull::from(bytes).cast()
}

/// Copies the parts of a packet into as many buffers as it needs; `None` if there are too few.
fn assemble(parts: &[(NonNull<u8>, u32)], bufs: &mut Buffers) -> Option<Desc> {
    let room = bufs.pool().room();
    let mut head: Option<Desc> = None;
    let mut fill = |bufs: &mut Buffers, mut segment: Desc, length: u16| {
        // It fits: the length is at most the room.
        bufs.resize(&mut segment, length.into());
        match head.as_mut() {
            None => head = Some(segment),
            Some(head) => bufs.chain(head, segment),
        }
    };
    let (mut segment, mut length) = (bufs.alloc()?, 0u16);
    for &(from, bytes) in parts {
        let mut done = 0;
        while done < bytes {
            if length == room {
                let Some(next) = bufs.alloc() else {
                    bufs.free(segment);
                    if let Some(head) = head {
                        bufs.free(head);
                    }
                    return None;
                };
                fill(bufs, std::mem::replace(&mut segment, next), length);
                length = 0;
            }
            let left = u16::try_from(bytes - done).unwrap_or(u16::MAX);
            let n = left.min(room - length);
            let to = bufs.pool().data(&segment);
            // SAFETY: `from` holds `bytes` bytes of shared memory, and done + n are at most all of
            // them.
            let from = unsafe { from.add(done as usize) };
            // SAFETY: our buffer holds `room` bytes, and length + n are at most all of them.
            let to = unsafe { to.add(length as usize) };
            // SAFETY: both hold n more bytes there, as just said. The peer may write meanwhile:
            // then the packet holds a mixture of bytes.
            unsafe { to.copy_from_nonoverlapping(from, usize::from(n)) };
            done += u32::from(n);
            length += n;
        }
    }
    fill(bufs, segment, length);
    head
}
