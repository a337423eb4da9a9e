//! Next-hop groups: the ways that one route's flows are spread over.
//!
//! A group is a line of [`BUCKETS`] words, each the number of an adjacency; the flow hash chooses
//! the bucket. A member's share of the buckets is its share of the weights, rounded by largest
//! remainders. A change moves as few buckets, and so as few flows, as it can.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::adjacency::AdjacencyId;
use crate::ids::{Full, Ids, Retired, Usage};
use crate::mem::{Cells, LINE};
use crate::special::FIRST_FREE;

/// Buckets of a group: a cache line, so that the choice of a next hop loads one line. Of more
/// members than buckets only the heaviest get one.
pub const BUCKETS: usize = LINE;

/// The number of a group. Below [`FIRST_FREE`]: all its buckets are the special adjacency of the
/// same number.
pub type GroupId = u32;

/// One way out of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Its adjacency.
    pub adjacency: AdjacencyId,
    /// Share of the flows, relative to the other members. 0: none.
    pub weight: u16,
}

/// All groups; the one writer.
#[derive(Debug)]
pub struct Groups {
    cells: Cells,
    ids: Ids<Self>,
}

impl Groups {
    /// Room for as many groups as `cells` has lines, of which the first [`FIRST_FREE`] are the
    /// special ones.
    ///
    /// # Panics
    /// If there is not even room for those, or for more than 2^30.
    pub fn new(cells: Cells) -> Self {
        let groups = cells.len() / LINE;
        assert!(
            (FIRST_FREE as usize..=1 << 30).contains(&groups),
            "room for {groups} next-hop groups"
        );
        let this = Self {
            cells,
            ids: Ids::new(FIRST_FREE, groups as u32),
        };
        (0..FIRST_FREE).for_each(|special| this.store(special, [special; BUCKETS]));
        this
    }

    /// A reader of the groups; clone it for every worker.
    pub fn reader(&self) -> Reader {
        Reader {
            cells: self.cells.clone(),
        }
    }

    /// A new group of these members. Without any (or any weight) its packets find no route.
    ///
    /// # Errors
    /// [`Full`].
    pub fn alloc(&mut self, members: &[Member]) -> Result<GroupId, Full> {
        let group = self.ids.alloc()?;
        self.store(group, assign([0; BUCKETS], members));
        Ok(group)
    }

    /// Gives a live group other members, bucket by bucket, under traffic. False if there is no such
    /// group.
    ///
    /// A FIB entry that names the group must be made with `multi` if the group is ever to have more
    /// than one member.
    pub fn update(&mut self, group: GroupId, members: &[Member]) -> bool {
        let live = self.ids.is_live(group);
        if live {
            self.store(group, assign(self.buckets(group), members));
        }
        live
    }

    /// Puts `new` into every bucket of a live group that is `old`; returns how many there were.
    pub fn replace(&mut self, group: GroupId, old: AdjacencyId, new: AdjacencyId) -> usize {
        if !self.ids.is_live(group) {
            return 0;
        }
        let line = self.cells.line(group as usize);
        let buckets = line.iter().filter(|bucket| bucket.load(Relaxed) == old);
        // Release: the new adjacency was written before a bucket names it.
        buckets.map(|bucket| bucket.store(new, Release)).count()
    }

    /// The buckets of a group as they are.
    pub fn buckets(&self, group: GroupId) -> [AdjacencyId; BUCKETS] {
        std::array::from_fn(|bucket| self.cells.line(group as usize)[bucket].load(Relaxed))
    }

    /// Lets go of a group that no FIB entry names any more. False if there is no such group.
    pub fn retire(&mut self, group: GroupId) -> bool {
        self.ids.retire(group)
    }

    /// The groups retired since the last call. Wait for a grace period (see [`crate::ids`]), then
    /// [`reclaim`](Self::reclaim) them.
    pub fn retired(&mut self) -> Retired<Self> {
        self.ids.take_retired()
    }

    /// Makes groups usable again that no reader holds any more.
    pub fn reclaim(&mut self, retired: Retired<Self>) {
        self.ids.reclaim(retired);
    }

    /// Number of groups: in all, free, retired.
    pub fn usage(&self) -> Usage {
        self.ids.usage()
    }

    fn store(&self, group: GroupId, buckets: [AdjacencyId; BUCKETS]) {
        for (cell, adjacency) in self.cells.line(group as usize).iter().zip(buckets) {
            if cell.load(Relaxed) != adjacency {
                cell.store(adjacency, Release);
            }
        }
    }
}

/// The workers' side.
#[derive(Debug, Clone)]
pub struct Reader {
    cells: Cells,
}

impl Reader {
    /// The adjacency that `group` has for a flow, chosen by the top four bits of its hash
    /// ([`flow5`](crate::hash::flow5); anything where the entry is not multi).
    #[inline(always)]
    pub fn bucket(&self, group: GroupId, hash: u32) -> AdjacencyId {
        self.cells.line(group as usize)[(hash >> 28) as usize].load(Acquire)
    }

    /// Prefetches the line of `group`.
    #[inline(always)]
    pub fn prefetch(&self, group: GroupId) {
        self.cells.prefetch(group as usize * LINE);
    }
}

/// A member while buckets are being shared out.
struct Share {
    adjacency: AdjacencyId,
    weight: u64,
    /// Buckets it had.
    held: u64,
    /// Buckets it gets.
    quota: u64,
}

/// The buckets of these members, as like `old` as possible.
fn assign(old: [AdjacencyId; BUCKETS], members: &[Member]) -> [AdjacencyId; BUCKETS] {
    let mut shares = shares(old, members);
    if shares.is_empty() {
        return [0; BUCKETS];
    }
    // First the buckets that stay; the quotas that are left then go to the buckets that are left,
    // in order.
    let kept = old.map(|adjacency| {
        let share = shares
            .iter_mut()
            .find(|share| share.adjacency == adjacency && share.quota > 0)?;
        share.quota -= 1;
        Some(adjacency)
    });
    let mut rest = shares
        .iter()
        .flat_map(|share| (0..share.quota).map(|_| share.adjacency));
    kept.map(|bucket| bucket.or_else(|| rest.next()).unwrap_or(0))
}

/// The members with a weight, each adjacency once, and how many of the buckets each gets; in all
/// [`BUCKETS`].
fn shares(old: [AdjacencyId; BUCKETS], members: &[Member]) -> Vec<Share> {
    let mut shares: Vec<Share> = Vec::with_capacity(members.len());
    for &Member { adjacency, weight } in members.iter().filter(|member| member.weight > 0) {
        match shares.iter_mut().find(|share| share.adjacency == adjacency) {
            Some(share) => share.weight += u64::from(weight),
            None => {
                let held = old.iter().filter(|&&bucket| bucket == adjacency).count() as u64;
                shares.push(Share {
                    adjacency,
                    weight: u64::from(weight),
                    held,
                    quota: 0,
                });
            }
        }
    }
    let total: u64 = shares.iter().map(|share| share.weight).sum();
    for share in &mut shares {
        share.quota = share.weight * BUCKETS as u64 / total;
    }
    let left = BUCKETS as u64 - shares.iter().map(|share| share.quota).sum::<u64>();
    // Equal remainders: whoever holds more keeps it, so that the order of members does not matter
    // to a group that exists.
    let remainder = |share: &Share| share.weight * BUCKETS as u64 % total;
    let mut by_remainder: Vec<_> = shares.iter_mut().collect();
    by_remainder.sort_by_key(|share| std::cmp::Reverse((remainder(share), share.held)));
    by_remainder
        .into_iter()
        .take(left as usize)
        .for_each(|share| share.quota += 1);
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn members(of: &[(u32, u16)]) -> Vec<Member> {
        of.iter()
            .map(|&(adjacency, weight)| Member { adjacency, weight })
            .collect()
    }

    fn count(buckets: [u32; BUCKETS], adjacency: u32) -> usize {
        buckets
            .iter()
            .filter(|&&bucket| bucket == adjacency)
            .count()
    }

    fn groups() -> Groups {
        Groups::new(Cells::boxed(32 * LINE))
    }

    #[test]
    fn special_groups_lead_to_themselves() {
        let reader = groups().reader();
        for special in 0..FIRST_FREE {
            reader.prefetch(special);
            assert!((0..16).all(|top| reader.bucket(special, top << 28) == special));
        }
    }

    #[test]
    fn weights_are_shared_out() {
        let mut groups = groups();
        for (of, expected) in [
            (&[(20, 1)][..], &[16][..]),
            (&[(20, 1), (21, 1)], &[8, 8]),
            (&[(20, 1), (21, 1), (22, 1)], &[6, 5, 5]),
            (&[(20, 3), (21, 1)], &[12, 4]),
            (&[(20, 256), (21, 1)], &[16, 0]),
            (&[(20, 1), (21, 0), (22, 1)], &[8, 0, 8]),
        ] {
            let group = groups.alloc(&members(of)).unwrap();
            let counts: Vec<_> = of
                .iter()
                .map(|&(id, _)| count(groups.buckets(group), id))
                .collect();
            assert_eq!(counts, expected, "{of:?}");
        }
        let none = groups.alloc(&[]).unwrap();
        assert_eq!(groups.buckets(none), [0; BUCKETS]);
    }

    #[test]
    fn a_lost_member_disturbs_no_other() {
        let mut groups = groups();
        let all = members(&[(20, 1), (21, 1), (22, 1), (23, 1)]);
        let group = groups.alloc(&all).unwrap();
        let before = groups.buckets(group);
        assert!(groups.update(group, &all[1..]));
        let after = groups.buckets(group);
        assert!(
            before
                .iter()
                .zip(after)
                .all(|(&old, new)| old == 20 || old == new)
        );
        assert!(groups.update(group, &[all[3], all[1], all[2]]));
        assert_eq!(
            groups.buckets(group),
            after,
            "the order of members does not matter"
        );
        assert!(groups.update(group, &all));
        assert_eq!(count(groups.buckets(group), 20), 4);
        assert!(
            !groups.update(3, &all) && !groups.update(31, &all) && !groups.update(u32::MAX, &all)
        );
    }

    #[test]
    fn replace_and_reuse() {
        let mut groups = groups();
        let group = groups.alloc(&members(&[(20, 1), (21, 1)])).unwrap();
        assert_eq!(
            (
                groups.replace(group, 20, 30),
                groups.replace(group, 20, 30),
                groups.replace(0, 0, 30)
            ),
            (8, 0, 0)
        );
        assert_eq!(count(groups.buckets(group), 30), 8);
        assert!(groups.retire(group) && !groups.retire(group) && !groups.retire(0));
        let next = groups.alloc(&[]).unwrap();
        assert_ne!(next, group);
        let retired = groups.retired();
        groups.reclaim(retired);
        assert_eq!(groups.alloc(&[]), Ok(group));
        while groups.alloc(&[]).is_ok() {}
        assert_eq!(
            groups.usage(),
            Usage {
                total: 16,
                free: 0,
                retired: 0
            }
        );
    }

    /// Shares to within one bucket of exact, and no bucket moved that could have stayed.
    #[test]
    fn random_groups() {
        let mut random = Random::new(0x6563_6d70);
        for _ in 0..200_000 {
            let old = std::array::from_fn(|_| 16 + random.below(24));
            let members: Vec<_> = (0..1 + random.below(24))
                .map(|id| Member {
                    adjacency: 16 + id,
                    weight: 1 << random.below(6) | random.below(2) as u16,
                })
                .collect();
            let new = assign(old, &members);
            let total: f64 = members.iter().map(|member| f64::from(member.weight)).sum();
            let mut kept = 0;
            for member in &members {
                let (held, has) = (count(old, member.adjacency), count(new, member.adjacency));
                let exact = f64::from(member.weight) * BUCKETS as f64 / total;
                assert!((has as f64 - exact).abs() < 1.0, "{members:?} {new:?}");
                kept += held.min(has);
            }
            assert_eq!(
                old.iter()
                    .zip(new)
                    .filter(|(old, new)| **old == *new)
                    .count(),
                kept,
                "{old:?} {new:?}"
            );
            assert!(
                new.iter()
                    .all(|bucket| members.iter().any(|member| member.adjacency == *bucket))
            );
        }
    }
}
