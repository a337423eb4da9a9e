//! Features: what an interface's packets pass beside their usual way.

/// A mask of features in an interface's line: the packets that it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Mask {
    /// IP packets that come in.
    Input = 0,
    /// IP packets that leave, behind their rewrite.
    Output = 1,
    /// Frames that leave, whatever is in them.
    InterfaceOutput = 2,
    /// Frames that come in, whatever is in them, before all else.
    InterfaceInput = 3,
}

impl Mask {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 4] = [
        Self::Input,
        Self::Output,
        Self::InterfaceOutput,
        Self::InterfaceInput,
    ];
}

/// Bits of a mask.
const BITS: u8 = u32::BITS as u8;

/// A feature: a bit of a mask. The bit says whether an interface has it, its argument which one,
/// such as the number of an access list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Feature(u8);

impl Feature {
    /// Words for the arguments of an interface: a power of two, and one for each feature that there
    /// can be.
    pub(super) const WORDS: usize = (Mask::ALL.len() * BITS as usize).next_power_of_two();

    /// Bit `bit`, from 0, of a mask.
    ///
    /// # Panics
    /// If a mask has no such bit.
    pub const fn new(mask: Mask, bit: u8) -> Self {
        assert!(bit < BITS, "a mask has 32 bits");
        Self(mask as u8 * BITS + bit)
    }

    /// Its mask.
    pub const fn mask(self) -> Mask {
        Mask::ALL[(self.0 / BITS) as usize]
    }

    /// Its bit of the mask.
    pub const fn bit(self) -> u32 {
        1 << (self.0 % BITS)
    }

    /// Its place among an interface's arguments.
    #[inline(always)]
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Features that an interface's packets pass, by mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features {
    /// IP packets that come in. XDP programs then leave what arrives here to the workers.
    pub input: u32,
    /// IP packets that leave. The adjacencies of such an interface have no fast MTU.
    pub output: u32,
    /// Frames that leave. They pass interface-output before their port.
    pub interface_output: u32,
    /// Frames that come in. They pass a node before ethernet-input; XDP programs leave what arrives
    /// here to the workers.
    pub interface_input: u32,
}

impl FromIterator<Feature> for Features {
    fn from_iter<I: IntoIterator<Item = Feature>>(all: I) -> Self {
        let mut features = Self::default();
        for feature in all {
            let mask = match feature.mask() {
                Mask::Input => &mut features.input,
                Mask::Output => &mut features.output,
                Mask::InterfaceOutput => &mut features.interface_output,
                Mask::InterfaceInput => &mut features.interface_input,
            };
            *mask |= feature.bit();
        }
        features
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_feature_has_a_bit_and_a_word_of_its_own() {
        let all = Mask::ALL
            .into_iter()
            .flat_map(|mask| (0..BITS).map(move |bit| Feature::new(mask, bit)));
        for (index, feature) in all.enumerate() {
            assert_eq!(feature.index(), index);
            assert!(index < Feature::WORDS);
            let alone = Features::from_iter([feature]);
            let masks = [
                alone.input,
                alone.output,
                alone.interface_output,
                alone.interface_input,
            ];
            let bits: u32 = masks.into_iter().map(u32::count_ones).sum();
            assert_eq!(bits, 1);
            assert_eq!(masks[feature.mask() as usize], feature.bit());
        }
    }
}
