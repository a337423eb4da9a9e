//! T-Rex's random number generator, a linear congruential one.

/// The generator.
#[derive(Debug, Clone, Copy)]
pub struct Random(pub u32);

impl Random {
    /// 15 bits.
    pub fn draw16(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(214_013).wrapping_add(2_531_011);
        u64::from((self.0 >> 16) & 0x7fff)
    }

    /// 31 bits; the first draw is the high half.
    fn draw32(&mut self) -> u64 {
        (self.draw16() << 16) + self.draw16()
    }

    fn draw64(&mut self) -> u64 {
        (self.draw32() << 32) + self.draw32()
    }

    /// A number from `min` to `max`, drawn with as many bits as a variable of `size` bytes gets.
    pub fn within(&mut self, size: u8, min: u64, max: u64) -> u64 {
        let drawn = match size {
            1 | 2 => self.draw16(),
            4 => self.draw32(),
            _ => self.draw64(),
        };
        match (max - min).checked_add(1) {
            Some(count) => min + drawn % count,
            None => drawn,
        }
    }
}
