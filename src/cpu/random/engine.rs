//! PyTorch's CPU generator: the Mersenne Twister, the spare normal sample, and the saved state. Equal seeds give the
//! same numbers as in PyTorch.

use crate::base::{Error, Result};
use crate::cpu::simd::simd_fn;
use std::hash::{BuildHasher, RandomState};

const N: usize = 624;
const M: usize = 397;
/// The seed of a generator that was not seeded.
pub const DEFAULT_SEED: u64 = 67_280_421_310_721;
/// Size in bytes of a saved state, and of one saved by an old PyTorch, which had no spare sample in single precision.
const STATE_BYTES: usize = 5056;
const LEGACY_BYTES: usize = 5048;

#[derive(Clone, Debug)]
pub struct Generator {
    seed: u64,
    /// Number of draws until the words are renewed, and the index of the next word.
    left: usize,
    next: usize,
    words: [u32; N],
    /// The second half of the last Box-Muller pair.
    pub(super) spare_normal: Option<f64>,
    spare_single: Option<f32>,
}

/// Tempers a word of the state, which gives the number that is drawn.
#[inline(always)]
fn temper(mut y: u32) -> u32 {
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c_5680;
    y ^= (y << 15) & 0xefc6_0000;
    y ^ (y >> 18)
}

simd_fn! {
    /// [`temper`] for `n` words.
    ///
    /// # Safety
    /// `from` has `n` words, and `to` has room for as many.
    unsafe fn temper_all(n: usize, from: *const u32, to: *mut u32) {
        for i in 0..n {
            *to.add(i) = temper(*from.add(i));
        }
    }
}

simd_fn! {
    /// Replaces each of `N` words by a mix of itself, its neighbour and a later word.
    ///
    /// # Safety
    /// There are `N` words.
    unsafe fn twist(words: *mut u32) {
        let mix = |a: u32, b: u32| {
            let mixed = (a & 0x8000_0000) | (b & 0x7fff_ffff);
            (mixed >> 1) ^ ((b & 1).wrapping_neg() & 0x9908_b0df)
        };
        for i in 0..N - M {
            *words.add(i) = *words.add(i + M) ^ mix(*words.add(i), *words.add(i + 1));
        }
        for i in N - M..N - 1 {
            *words.add(i) = *words.add(i + M - N) ^ mix(*words.add(i), *words.add(i + 1));
        }
        *words.add(N - 1) = *words.add(M - 1) ^ mix(*words.add(N - 1), *words);
    }
}

impl Default for Generator {
    fn default() -> Generator {
        Generator::new(DEFAULT_SEED)
    }
}

impl Generator {
    pub fn new(seed: u64) -> Generator {
        let mut words = [0u32; N];
        // The twister uses only 32 bits of the seed.
        words[0] = seed as u32;
        for i in 1..N {
            let last = words[i - 1];
            words[i] = (last ^ (last >> 30)).wrapping_mul(1_812_433_253).wrapping_add(i as u32);
        }
        Generator { seed, left: 1, next: 0, words, spare_normal: None, spare_single: None }
    }

    pub fn manual_seed(&mut self, seed: u64) {
        *self = Generator::new(seed);
    }

    /// Seeds with an unpredictable number, and returns it.
    pub fn seed(&mut self) -> u64 {
        // The hash keys come from the operating system. PyTorch's seeds have 53 bits, so that floats can hold them.
        let seed = RandomState::new().hash_one(std::time::SystemTime::now()) & ((1 << 53) - 1);
        self.manual_seed(seed);
        seed
    }

    pub fn initial_seed(&self) -> u64 {
        self.seed
    }

    /// The next 32 bits.
    #[inline]
    pub fn random(&mut self) -> u32 {
        self.left -= 1;
        if self.left == 0 {
            self.renew();
        }
        let word = self.words[self.next];
        self.next += 1;
        temper(word)
    }

    /// Draws many numbers at a time.
    pub fn draw(&mut self, mut out: &mut [u32]) {
        while !out.is_empty() {
            if self.left == 1 {
                self.renew();
                self.left += 1;
            }
            let count = out.len().min(self.left - 1);
            let (now, later) = out.split_at_mut(count);
            let words = &self.words[self.next..self.next + count];
            // SAFETY: both have `count` elements.
            unsafe { temper_all(count, words.as_ptr(), now.as_mut_ptr()) };
            (self.left, self.next, out) = (self.left - count, self.next + count, later);
        }
    }

    /// Two draws, of which the first gives the high bits.
    #[inline]
    pub fn random64(&mut self) -> u64 {
        let high = u64::from(self.random());
        (high << 32) | u64::from(self.random())
    }

    #[cold]
    fn renew(&mut self) {
        // SAFETY: there are `N` words.
        unsafe { twist(self.words.as_mut_ptr()) };
        (self.left, self.next) = (N, 0);
    }

    /// The state in PyTorch's layout, so that either library reads a state that the other one saved.
    pub fn state(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(STATE_BYTES);
        bytes.extend(self.seed.to_le_bytes());
        bytes.extend((self.left as u32).to_le_bytes());
        bytes.extend(1u32.to_le_bytes());
        bytes.extend((self.next as u64).to_le_bytes());
        bytes.resize(24 + 8 * N, 0);
        bytes[24..]
            .chunks_exact_mut(8)
            .zip(&self.words)
            .for_each(|(to, word)| to[..4].copy_from_slice(&word.to_le_bytes()));
        bytes.extend(0f64.to_le_bytes());
        bytes.extend(self.spare_normal.unwrap_or(0.0).to_le_bytes());
        bytes.extend(0f64.to_le_bytes());
        bytes.extend(u64::from(self.spare_normal.is_some()).to_le_bytes());
        bytes.extend(self.spare_single.unwrap_or(0.0).to_le_bytes());
        bytes.extend(u32::from(self.spare_single.is_some()).to_le_bytes());
        bytes
    }

    /// Restores a state that [`Generator::state`] or PyTorch saved.
    pub fn set_state(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() != STATE_BYTES && bytes.len() != LEGACY_BYTES {
            return Err(Error::runtime(format!(
                "Expected either a CPUGeneratorImplStateLegacy of size {LEGACY_BYTES} or a CPUGeneratorImplState \
                 of size {STATE_BYTES} but found the input RNG state size to be {}",
                bytes.len()
            )));
        }
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | (u64::from(word(at + 4)) << 32);
        let (left, seeded, next) = (word(8) as usize, word(12), long(16) as usize);
        let tail = 24 + 8 * N;
        if seeded != 1
            || next > N
            || left == 0
            || left > N
            || (next + left != N + 1 && (next, left) != (0, 1))
        {
            return Err(Error::runtime("Invalid mt19937 state"));
        }
        let mut words = [0u32; N];
        let read = |from: &[u8]| u32::from_le_bytes([from[0], from[1], from[2], from[3]]);
        words.iter_mut().zip(bytes[24..tail].chunks_exact(8)).for_each(|(to, from)| *to = read(from));
        let spare_normal = (word(tail + 24) != 0).then(|| f64::from_bits(long(tail + 8)));
        let has_single = bytes.len() == STATE_BYTES && bytes[tail + 36] != 0;
        let spare_single = has_single.then(|| f32::from_bits(word(tail + 32)));
        *self = Generator { seed: long(0), left, next, words, spare_normal, spare_single };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_the_twisters() {
        let mut generator = Generator::new(7);
        assert_eq!([0; 4].map(|_| generator.random()), [0x1388_f0af, 0x3a32_e4c4, 0xc7a8_c219, 0x51a8_29f6]);
    }

    #[test]
    fn many_draws_are_those_one_by_one() {
        let (mut one, mut many) = (Generator::new(5), Generator::new(5));
        for count in [0, 1, 7, 623, 624, 1, 625, 2000, 3] {
            let mut drawn = vec![0; count];
            many.draw(&mut drawn);
            assert!(drawn.iter().all(|&draw| draw == one.random()));
            assert_eq!(many.state(), one.state());
        }
        assert_eq!(many.random64(), one.random64());
    }

    #[test]
    fn a_state_goes_there_and_back() {
        let mut one = Generator::new(3);
        (0..700).for_each(|_| _ = one.random());
        one.spare_normal = Some(0.25);
        let mut two = Generator::default();
        two.set_state(&one.state()).unwrap();
        assert_eq!((one.random64(), one.initial_seed()), (two.random64(), 3));
        assert_eq!(two.spare_normal, Some(0.25));
        assert!(two.set_state(&[0; 10]).is_err());
        assert!(two.set_state(&[0; 5056]).is_err());
    }
}
