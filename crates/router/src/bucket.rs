//! Token buckets (RFC 2697): so many at once, so many a second. All workers draw on the same
//! buckets, since they protect something that all of them share.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A bucket. It counts in TSC cycles: a token costs `price`, and at most `burst` tokens are saved
/// up.
#[derive(Debug)]
pub(crate) struct TokenBucket {
    price: u64,
    burst: u64,
    /// The TSC up to which all tokens are spent.
    spent: AtomicU64,
}

impl TokenBucket {
    /// A full bucket of `burst` tokens that gains `rate` a second.
    pub(crate) fn new(rate: u64, burst: u64) -> Self {
        TokenBucket {
            price: graph::cycles::per_second() as u64 / rate,
            burst,
            spent: AtomicU64::new(0),
        }
    }

    /// Takes a token at TSC `now`. False if there is none.
    pub(crate) fn take(&self, now: u64) -> bool {
        let least = now.saturating_sub(self.price * self.burst);
        let next = |spent: u64| {
            let next = spent.max(least) + self.price;
            (next <= now).then_some(next)
        };
        // Relaxed: the bucket guards no memory but its own word.
        self.spent.fetch_update(Relaxed, Relaxed, next).is_ok()
    }
}

/// A bucket for each interface, and one for all together.
#[derive(Debug)]
pub(crate) struct Allowance {
    each: Box<[TokenBucket]>,
    all: TokenBucket,
}

impl Allowance {
    /// Full buckets: tokens a second and at once, for each of `interfaces` and for all.
    pub(crate) fn new(interfaces: usize, each: (u64, u64), all: (u64, u64)) -> Self {
        let bucket = |(rate, burst)| TokenBucket::new(rate, burst);
        Allowance {
            each: (0..interfaces).map(|_| bucket(each)).collect(),
            all: bucket(all),
        }
    }

    /// Takes a token of an interface at TSC `now`. False if its bucket is empty, or the one for
    /// all, and for an interface that does not exist.
    pub(crate) fn take(&self, interface: u16, now: u64) -> bool {
        let own = self.each.get(usize::from(interface));
        own.is_some_and(|own| own.take(now)) && self.all.take(now)
    }
}

/// Buckets of senders: one that floods empties its own bucket and not those of the others.
#[derive(Debug)]
pub(crate) struct BySender {
    buckets: Box<[TokenBucket]>,
    /// So that nobody can tell whose bucket is also somebody else's.
    secret: u64,
}

impl BySender {
    /// Senders share a bucket where their hashes agree in so many values: the ten bits that `take`
    /// keeps of a hash.
    const BUCKETS: usize = 1 << 10;

    /// Full buckets: tokens a second and at once, for each.
    pub(crate) fn new(rate: u64, burst: u64) -> Self {
        let bucket = |_| TokenBucket::new(rate, burst);
        BySender {
            buckets: (0..Self::BUCKETS).map(bucket).collect(),
            secret: RandomState::new().hash_one(0) | 1,
        }
    }

    /// Takes a token of a sender at TSC `now`. False if its bucket is empty.
    pub(crate) fn take(&self, sender: u64, now: u64) -> bool {
        let mixed = (sender ^ sender >> 32).wrapping_mul(self.secret);
        let bucket = (mixed ^ mixed >> 29).wrapping_mul(self.secret) >> 54;
        self.buckets[bucket as usize & (Self::BUCKETS - 1)].take(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_then_the_rate_then_a_burst_again() {
        let bucket = TokenBucket::new(100, 5);
        let (start, price) = (1 << 40, bucket.price);
        let taken = |now| (0..9).filter(|_| bucket.take(now)).count();
        assert_eq!(taken(start), 5);
        assert_eq!(taken(start + price - 1), 0);
        assert_eq!(taken(start + price), 1);
        assert_eq!(taken(start + 4 * price), 3);
        assert_eq!(taken(start + 100 * price), 5);
    }

    #[test]
    fn interfaces_have_their_own_and_share_what_is_for_all() {
        let allowance = Allowance::new(4, (10, 4), (10, 6));
        let taken = |interface| {
            (0..9)
                .filter(|_| allowance.take(interface, 1 << 40))
                .count()
        };
        assert_eq!([taken(4), taken(1), taken(2), taken(3)], [0, 4, 2, 0]);
    }

    #[test]
    fn a_sender_that_floods_leaves_others_their_tokens() {
        let buckets = BySender::new(10, 4);
        let taken = |sender| (0..9).filter(|_| buckets.take(sender, 1 << 40)).count();
        let others = (0..1000).map(|sender| sender << 20);
        assert_eq!(taken(u64::MAX), 4);
        let refused = others
            .filter(|&sender| !buckets.take(sender, 1 << 40))
            .count();
        // At most those that share the bucket; 1 in 1024 do.
        assert!(refused < 20, "{refused} of 1000 found no token");
    }

    #[test]
    fn no_token_is_taken_twice() {
        let bucket = TokenBucket::new(1, 10_000);
        let taken = || (0..5000).filter(|_| bucket.take(1 << 60)).count();
        let all: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(taken)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).sum()
        });
        assert_eq!(all, 10_000);
    }
}
