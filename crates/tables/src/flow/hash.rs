//! The hash of flows' keys: who does not know the secret cannot choose keys that collide.
#![allow(unsafe_code)]

use super::Key;

/// Words of a secret.
const WORDS: usize = 6;

/// Hashes keys with a secret. All workers that share flows have the same one.
#[derive(Debug, Clone, Copy)]
pub struct Hasher {
    secret: [u64; WORDS],
    /// The processor has AES instructions.
    aes: bool,
}

impl Hasher {
    /// With a secret, which is to be random.
    pub fn new(secret: [u64; WORDS]) -> Self {
        #[cfg(target_arch = "x86_64")]
        let aes = is_x86_feature_detected!("aes");
        #[cfg(not(target_arch = "x86_64"))]
        let aes = false;
        Hasher { secret, aes }
    }

    /// The same on any processor, a little slower.
    #[cfg(test)]
    pub(super) const fn portable(secret: [u64; WORDS]) -> Self {
        Hasher { secret, aes: false }
    }

    /// The hash of each key; as many as there are both keys and places. The lower half of a hash
    /// leads to the flow in a table; by the upper half, its owner is chosen among workers.
    #[inline]
    pub fn hash(&self, keys: &[Key], hashes: &mut [u64]) {
        #[cfg(target_arch = "x86_64")]
        if self.aes {
            // SAFETY: the processor has AES.
            return unsafe { self.hash_aes(keys, hashes) };
        }
        for (key, hash) in keys.iter().zip(hashes) {
            *hash = self.folded(key);
        }
    }

    /// The hash of one key.
    #[inline]
    pub fn one(&self, key: &Key) -> u64 {
        let mut hash = [0];
        self.hash(std::slice::from_ref(key), &mut hash);
        hash[0]
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "aes")]
    fn hash_aes(&self, keys: &[Key], hashes: &mut [u64]) {
        for (key, hash) in keys.iter().zip(hashes) {
            *hash = self.encrypted(key);
        }
    }

    /// Three blocks, each three rounds of AES with the secret, and one more of their sum. A
    /// difference of blocks is past three rounds where it could be cancelled by another's.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "aes")]
    #[inline]
    fn encrypted(&self, Key(key): &Key) -> u64 {
        use std::arch::x86_64::*;
        let block = |low: u64, high: u64| _mm_set_epi64x(high as i64, low as i64);
        let secret = |at: usize| block(self.secret[at], self.secret[at + 1]);
        let secrets = [secret(0), secret(2), secret(4)];
        let mixed = |block, at: usize| {
            let [a, b, c] = std::array::from_fn(|n| secrets[(at + n) % 3]);
            let block = _mm_aesenc_si128(_mm_xor_si128(block, a), b);
            _mm_aesenc_si128(_mm_aesenc_si128(block, c), a)
        };
        let [first, second] = [
            mixed(block(key[0], key[1]), 0),
            mixed(block(key[2], key[3]), 1),
        ];
        let sum = _mm_xor_si128(first, second);
        let sum = _mm_xor_si128(sum, mixed(block(key[4], 0), 2));
        _mm_cvtsi128_si64(_mm_aesenc_si128(sum, secrets[1])) as u64
    }

    /// Products of words that are hidden by the secret, folded.
    #[inline(always)]
    fn folded(&self, Key(key): &Key) -> u64 {
        let fold = |a: u64, b: u64| {
            let product = u128::from(a) * u128::from(b);
            product as u64 ^ (product >> 64) as u64
        };
        let hidden: [u64; 5] = std::array::from_fn(|at| key[at] ^ self.secret[at]);
        let addresses = fold(hidden[0], hidden[1]) ^ fold(hidden[2], hidden[3].rotate_left(32));
        let all = fold(addresses ^ self.secret[5], hidden[4]);
        fold(all ^ self.secret[0], self.secret[5] | 1)
    }
}
