//! How a list becomes a tree.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use super::block::{Block, LANES};
use super::tree::{Acl, Slot};
use super::{Key, Line};

/// Rules that one tree is enough for.
const ONE_TREE: usize = 64;
/// Copies of a rule in the leaves of its tree, on average and at most. Where cuts would make more,
/// leaves stay long: that bounds memory.
const COPIES: usize = 8;
/// Most bits that a node cuts.
const BITS: u32 = 8;

impl<R, const W: usize> FromIterator<(u32, R)> for Acl<W>
where
    R: Into<Line<W>>,
{
    /// Compiles rules with their numbers, which grow. Takes milliseconds for thousands of rules.
    fn from_iter<I: IntoIterator<Item = (u32, R)>>(rules: I) -> Self {
        let rules = rules
            .into_iter()
            .map(|(number, rule)| (number, rule.into()));
        let lines: Vec<(u32, Line<W>)> = rules.collect();
        let mut builder = Builder {
            lines: &lines,
            // What a key reads that has nowhere to go.
            slots: vec![Slot::leaf(0, 1)],
            blocks: Vec::new(),
            leaves: HashMap::new(),
        };
        let groups = groups(&lines);
        let roots = groups.into_iter().map(|rules| {
            let copies = rules.len() * COPIES;
            builder.tree(rules, &Region::ALL, copies)
        });
        Acl {
            roots: roots.collect(),
            slots: builder.slots,
            blocks: builder.blocks,
        }
    }
}

/// The rules that share a tree, by their places in the list.
fn groups<const W: usize>(lines: &[(u32, Line<W>)]) -> Vec<Vec<u32>> {
    let all = 0..lines.len() as u32;
    if lines.len() <= ONE_TREE {
        return vec![all.collect()];
    }
    // A prefix is long from /14 on of IPv4, and /32 of IPv6.
    let long = if W == super::IP4 { 14 } else { 32 };
    let address = W / 2;
    let group = |place: &u32| {
        let mask = &lines[*place as usize].1.mask;
        let is_long =
            |words: &[u32]| words.iter().map(|word| word.count_ones()).sum::<u32>() >= long;
        usize::from(is_long(&mask[..address])) * 2
            + usize::from(is_long(&mask[address..2 * address]))
    };
    let mut groups = vec![Vec::new(); 4];
    all.for_each(|place| groups[group(&place)].push(place));
    groups.retain(|group| !group.is_empty());
    groups
}

/// What is known of the keys that come to a node: these bits of their words and ports.
#[derive(Clone)]
struct Region<const W: usize> {
    value: Key<W>,
    mask: Key<W>,
}

/// Bits of a word that a node may cut. The word after the last is the ports.
#[derive(Debug, Clone, Copy)]
struct Cut {
    word: usize,
    shift: u32,
    bits: u32,
}

impl Cut {
    /// The part of a word that it cuts.
    fn of(self, word: u32) -> usize {
        (word >> self.shift & ((1 << self.bits) - 1)) as usize
    }
}

impl<const W: usize> Region<W> {
    const ALL: Self = Region {
        value: Key::EMPTY,
        mask: Key::EMPTY,
    };

    /// The keys of it that have this value where a node cuts.
    fn child(&self, cut: Cut, value: usize) -> Self {
        let mut child = self.clone();
        let set = |key: &mut Key<W>, bits: u32| {
            let word = key.words.get_mut(cut.word).unwrap_or(&mut key.ports);
            *word &= !(((1 << cut.bits) - 1) << cut.shift);
            *word |= bits << cut.shift;
        };
        set(&mut child.value, value as u32);
        set(&mut child.mask, (1 << cut.bits) - 1);
        child
    }

    /// Its lowest and highest ports, in the upper or the lower half of the word.
    fn ports(&self, half: u32) -> (u32, u32) {
        let low = self.value.ports >> half & 0xffff;
        (low, low | !(self.mask.ports >> half) & 0xffff)
    }

    /// True if a rule matches all keys that come here.
    fn is_in(&self, line: &Line<W>) -> bool {
        let words = (0..W).all(|word| {
            let unknown = line.mask[word] & !self.mask.words[word];
            let differs = (line.value[word] ^ self.value.words[word]) & line.mask[word];
            unknown | differs == 0
        });
        let ports = [16, 0].into_iter().all(|half| {
            let (low, high) = self.ports(half);
            let (first, last) = line.ports(half);
            first <= low && high <= last
        });
        words && ports
    }
}

impl<const W: usize> Line<W> {
    /// Its lowest and highest ports, in the upper or the lower half of the word.
    fn ports(&self, half: u32) -> (u32, u32) {
        let [low, span] = [self.low, self.span].map(|word| word >> half & 0xffff);
        (low, low + span)
    }

    /// The values that keys which it matches have where a node cuts.
    fn values(&self, cut: Cut, region: &Region<W>) -> RangeInclusive<usize> {
        if let Some(mask) = self.mask.get(cut.word) {
            // Within a word the bits that count are the highest ones, or those of the protocol.
            let value = cut.of(self.value[cut.word] & mask);
            return value..=value | cut.of(!mask);
        }
        let half = cut.shift & 16;
        let ((low, high), (first, last)) = (region.ports(half), self.ports(half));
        if last < low || high < first {
            return RangeInclusive::new(1, 0);
        }
        cut.of(first.max(low) << half)..=cut.of(last.min(high) << half)
    }
}

struct Builder<'a, const W: usize> {
    lines: &'a [(u32, Line<W>)],
    slots: Vec<Slot>,
    blocks: Vec<Block<W>>,
    leaves: HashMap<Vec<u32>, Slot>,
}

impl<const W: usize> Builder<'_, W> {
    /// The tree of these rules for the keys of a region, with at most so many copies of rules in its
    /// leaves.
    fn tree(&mut self, mut rules: Vec<u32>, region: &Region<W>, copies: usize) -> Slot {
        // No key comes to a rule behind one that matches all.
        let all = rules.iter().position(|rule| region.is_in(self.line(*rule)));
        rules.truncate(all.map_or(rules.len(), |at| at + 1));
        let cut = (rules.len() > LANES).then(|| self.cut(&rules, region, copies));
        let Some(cut) = cut.flatten() else {
            return self.leaf(rules);
        };
        let mut children = vec![Vec::new(); 1 << cut.bits];
        for rule in &rules {
            children[self.line(*rule).values(cut, region)]
                .iter_mut()
                .for_each(|child| child.push(*rule));
        }
        let total: usize = children.iter().map(Vec::len).sum();
        let base = self.slots.len();
        self.slots.resize(base + children.len(), Slot::leaf(0, 1));
        for (value, rules) in children.into_iter().enumerate() {
            let copies = copies * rules.len() / total.max(1);
            self.slots[base + value] = self.tree(rules, &region.child(cut, value), copies);
        }
        Slot::node(cut.word, cut.shift, cut.bits, base as u32)
    }

    fn line(&self, rule: u32) -> &Line<W> {
        &self.lines[rule as usize].1
    }

    /// The leaf of these rules; the same as another one's, if they are the same.
    fn leaf(&mut self, rules: Vec<u32>) -> Slot {
        let (lines, blocks) = (self.lines, &mut self.blocks);
        *self.leaves.entry(rules).or_insert_with_key(|rules| {
            let base = blocks.len();
            let chunks = rules.chunks(LANES);
            blocks.extend(chunks.map(|c| Block::new(c.iter().map(|rule| lines[*rule as usize]))));
            if rules.is_empty() {
                blocks.push(Block::new(std::iter::empty()));
            }
            Slot::leaf(base as u32, (blocks.len() - base) as u32)
        })
    }

    /// The best cut of these rules: few rules for each key, and few copies. `None` if there is none
    /// with no more copies than are allowed, or none that leaves fewer rules for every key.
    fn cut(&self, rules: &[u32], region: &Region<W>, copies: usize) -> Option<Cut> {
        let mut best = None;
        let mut sizes = [0usize; (1 << BITS) + 1];
        for (word, top) in self.tops(rules, region) {
            let floor = if word == W { top & 16 } else { 0 };
            // A node has no more than a few slots for each of its rules.
            let most = BITS.min(top + 1 - floor).min(rules.len().ilog2() + 1);
            for bits in 1..=most {
                let cut = Cut {
                    word,
                    shift: top + 1 - bits,
                    bits,
                };
                let (total, largest, squares) = self.sizes(rules, region, cut, &mut sizes);
                if total > copies || largest >= rules.len() {
                    continue;
                }
                let cost = squares * (total as f64 / rules.len() as f64).powi(3);
                if best.is_none_or(|(_, least)| cost < least) {
                    best = Some((cut, cost));
                }
            }
        }
        best.map(|(cut, _)| cut)
    }

    /// The highest bit that is worth cutting of each word, and of each half of the ports.
    fn tops(&self, rules: &[u32], region: &Region<W>) -> impl Iterator<Item = (usize, u32)> {
        let words = (0..W).filter_map(|word| {
            let lines = rules.iter().map(|rule| self.line(*rule));
            let (ones, zeros) = lines.fold((0, 0), |(ones, zeros), line| {
                let (value, mask) = (line.value[word], line.mask[word]);
                (ones | value & mask, zeros | !value & mask)
            });
            let unknown = !region.mask.words[word];
            // What all rules say alike tells none of them from another one.
            let differ = ones & zeros & unknown;
            let bits = if differ == 0 {
                (ones | zeros) & unknown
            } else {
                differ
            };
            Some((word, bits.checked_ilog2()?))
        });
        let unknown = !region.mask.ports;
        let halves = [unknown & 0xffff_0000, unknown & 0xffff];
        let ports = halves
            .into_iter()
            .filter_map(|bits| Some((W, bits.checked_ilog2()?)));
        words.chain(ports).collect::<Vec<_>>().into_iter()
    }

    /// How many rules the children of a cut have, all together and the largest, and the sum of their
    /// squares.
    fn sizes(
        &self,
        rules: &[u32],
        region: &Region<W>,
        cut: Cut,
        sizes: &mut [usize; (1 << BITS) + 1],
    ) -> (usize, usize, f64) {
        sizes.fill(0);
        for rule in rules {
            // Where the rules of the children begin and end; sums of that are their numbers.
            let values = self.line(*rule).values(cut, region);
            if !values.is_empty() {
                sizes[*values.start()] = sizes[*values.start()].wrapping_add(1);
                sizes[values.end() + 1] = sizes[values.end() + 1].wrapping_sub(1);
            }
        }
        let (mut size, mut total, mut largest, mut squares) = (0usize, 0, 0, 0.0);
        for change in &sizes[..1 << cut.bits] {
            size = size.wrapping_add(*change);
            total += size;
            largest = largest.max(size);
            squares += (size * size) as f64;
        }
        (total, largest, squares)
    }
}
