//! Values that the steps of a stream write into its packets.

use std::ops::Range;

use crate::model::fields::Step;
use crate::model::stream::Stream;

impl Stream {
    /// The bytes of the frame that `step` writes, checksums aside.
    fn written(&self, step: &Step) -> Range<usize> {
        let (offset, size) = match *step {
            Step::Write {
                variable, offset, ..
            } => {
                let variable = self.variables.get(variable);
                (offset, variable.map_or(0, |v| usize::from(v.size)))
            }
            Step::WriteMasked { offset, size, .. } => (offset, size.into()),
            Step::Trim { .. }
            | Step::Checksum4 { .. }
            | Step::ChecksumTransport { .. }
            | Step::ChecksumIcmp6 { .. } => return 0..0,
        };
        offset..offset.saturating_add(size)
    }

    /// The steps that write into these bytes of the frame, checksums aside.
    fn writers(&self, bytes: Range<usize>) -> impl Iterator<Item = &Step> + Clone {
        self.steps.iter().filter(move |step| {
            let written = self.written(step);
            written.start < bytes.end && written.end > bytes.start
        })
    }

    /// True if a step writes into these bytes of the frame, checksums aside.
    pub(crate) fn writes(&self, bytes: Range<usize>) -> bool {
        self.writers(bytes).next().is_some()
    }

    /// First and last value in network byte order of the `len` bytes at `at`, which are `fixed`
    /// where no step writes.
    pub(crate) fn values(&self, fixed: u128, at: usize, len: usize) -> (u128, u128) {
        let end = at + len;
        let mut writers = self.writers(at..end);
        let bytes = writers.clone().flat_map(|step| self.written(step));
        let any = bytes
            .filter(|byte| (at..end).contains(byte))
            .fold(0u128, |any, byte| any | 0xff << (8 * (end - 1 - byte)));
        let rest = fixed & !any;
        if let (Some(step), None) = (writers.next(), writers.next())
            && let Some((first, last)) = self.bounds(step)
            && let bytes = self.written(step)
            && at <= bytes.start
            && bytes.end <= end
        {
            let place = 8 * (end - bytes.end);
            return (rest | first << place, rest | last << place);
        }
        (rest, rest | any)
    }

    /// Least and greatest value that a step writes, if it writes all in between in network byte
    /// order.
    fn bounds(&self, step: &Step) -> Option<(u128, u128)> {
        let Step::Write {
            variable,
            add,
            big_endian: true,
            ..
        } = *step
        else {
            return None;
        };
        let variable = self.variables.get(variable)?;
        let ones = u64::MAX.checked_shr(64 - 8 * u32::from(variable.size))?;
        let written = |value: u64| u128::from(value.wrapping_add_signed(add) & ones);
        let (min, max) = variable.bounds();
        let (first, last) = (written(min), written(max));
        (first <= last).then_some((first, last))
    }
}
