//! A token bucket, as RFC 2697 describes one: so many at once, so many a second.

/// Tokens are counted in TSC cycles: one costs `price`, and at most `burst` of them are saved up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenBucket {
    price: u64,
    burst: u64,
    /// TSC up to which everything is spent.
    spent: u64,
}

impl TokenBucket {
    /// A full bucket of `burst` tokens that gains `rate` a second.
    pub(crate) fn new(rate: u64, burst: u64) -> Self {
        TokenBucket {
            price: graph::cycles::per_second() as u64 / rate,
            burst,
            spent: 0,
        }
    }

    /// Takes a token at TSC `now`. False if there is none.
    pub(crate) fn take(&mut self, now: u64) -> bool {
        self.spent = self.spent.max(now.saturating_sub(self.price * self.burst));
        let there = self.spent + self.price <= now;
        if there {
            self.spent += self.price;
        }
        there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_then_the_rate_then_a_burst_again() {
        let mut bucket = TokenBucket::new(100, 5);
        let (start, price) = (1 << 40, bucket.price);
        let taken = |bucket: &mut TokenBucket, now| (0..9).filter(|_| bucket.take(now)).count();
        assert_eq!(taken(&mut bucket, start), 5);
        assert_eq!(taken(&mut bucket, start + price - 1), 0);
        assert_eq!(taken(&mut bucket, start + price), 1);
        assert_eq!(taken(&mut bucket, start + 4 * price), 3);
        assert_eq!(taken(&mut bucket, start + 100 * price), 5);
    }
}
