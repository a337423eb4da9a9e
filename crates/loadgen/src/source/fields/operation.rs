//! The operations that a stream is compiled to.

use wire::checksum::Sum;

use crate::source::checksum;
use crate::source::variable::Running;

/// One operation of a compiled stream.
#[derive(Debug, Clone, Copy)]
pub(super) enum Compiled {
    /// Four bytes in network byte order, in an IPv4 header that a `Delta` completes.
    Summed {
        variable: usize,
        offset: usize,
        add: u64,
    },
    Write {
        variable: usize,
        offset: usize,
        add: u64,
        size: usize,
        big_endian: bool,
    },
    Masked {
        variable: usize,
        offset: usize,
        size: usize,
        mask: u32,
        shift: i8,
        add: i32,
        big_endian: bool,
    },
    /// Sums the whole header.
    Sum { header: usize },
    /// Adds what the `Summed` stored to `base`, the sum of the rest of the header.
    Delta { header: usize, base: u16 },
    /// Sums an ICMPv6 message.
    Icmp6(Transport),
}

/// Place of a segment whose checksum is computed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Transport {
    pub network: usize,
    pub transport: usize,
    pub protocol: Option<u8>,
}

impl Compiled {
    #[inline(always)]
    pub fn run(&self, out: &mut [u8], variables: &[Running], sum: &mut Sum) {
        match *self {
            Self::Summed {
                variable,
                offset,
                add,
            } => {
                let value = (variables[variable].value.wrapping_add(add) & 0xffff_ffff) as u32;
                if let Some(field) = out.get_mut(offset..offset + 4) {
                    field.copy_from_slice(&value.to_be_bytes());
                }
                *sum = sum.with_u32(value);
            }
            Self::Write {
                variable,
                offset,
                add,
                size,
                big_endian,
            } => {
                let value = variables[variable].value.wrapping_add(add);
                // What lies beyond a trimmed frame is not sent.
                let Some(field) = out.get_mut(offset..offset + size) else {
                    return;
                };
                if big_endian {
                    field.copy_from_slice(&value.to_be_bytes()[8 - size..]);
                } else {
                    field.copy_from_slice(&value.to_le_bytes()[..size]);
                }
            }
            Self::Delta { header, base } => {
                if let Some(field) = out.get_mut(header + 10..header + 12) {
                    field.copy_from_slice(&sum.with_u16(base).checksum().to_be_bytes());
                }
            }
            Self::Sum { header } => checksum::ip4_header(out, header),
            Self::Masked { .. } => self.masked(out, variables),
            Self::Icmp6(segment) => segment.run(out),
        }
    }

    fn masked(&self, out: &mut [u8], variables: &[Running]) {
        let Self::Masked {
            variable,
            offset,
            size,
            mask,
            shift,
            add,
            big_endian,
        } = *self
        else {
            return;
        };
        let Some(field) = out.get_mut(offset..offset + size) else {
            return;
        };
        let value = (variables[variable].value & 0xffff_ffff) as u32;
        let value = value.wrapping_add_signed(add);
        let by = u32::from(shift.unsigned_abs());
        let value = match shift {
            0.. => value.checked_shl(by),
            _ => value.checked_shr(by),
        };
        let value = value.unwrap_or(0) & mask;
        for (i, byte) in field.iter_mut().enumerate() {
            let place = if big_endian { size - 1 - i } else { i };
            let (value, mask) = (value.to_le_bytes()[place], mask.to_le_bytes()[place]);
            *byte = *byte & !mask | value;
        }
    }
}

impl Transport {
    pub fn run(&self, out: &mut [u8]) {
        checksum::transport(out, self.network, self.transport, self.protocol);
    }
}
