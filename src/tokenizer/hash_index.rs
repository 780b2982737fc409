//! An open-addressing index: hash → number, four bytes an entry and no key of its own. It knows neither tokens nor
//! merges: whoever looks up says which number is the one.

/// Why an entry was not put in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotPut {
    /// It is there under this number.
    Same(u32),
    /// Its place and [`MAX_PROBES`] behind it are taken.
    Crowded,
}

/// Numbers below [`HashIndex::MAX_ENTRIES`] under their hashes. Each slot holds a number and eight bits of its hash, so
/// most numbers that merely share a slot are passed over without a look at their key.
#[derive(Debug, Default)]
pub(super) struct HashIndex {
    slots: Box<[u32]>,
}

impl HashIndex {
    /// How many entries an index can hold.
    pub(super) const MAX_ENTRIES: usize = (1 << NUMBER_BITS) - 1;

    /// An empty index with room for `n_entries`.
    pub(super) fn with_room_for(n_entries: usize) -> Self {
        debug_assert!(n_entries <= Self::MAX_ENTRIES, "the caller has checked {n_entries}");
        Self { slots: vec![EMPTY; n_entries + n_entries / 2 + 1].into_boxed_slice() }
    }

    /// The number under `hash` that `is_it` accepts.
    pub(super) fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let mut at = self.first_slot(hash);
        for _ in 0..MAX_PROBES {
            let slot = self.slots[at];
            if slot == EMPTY {
                break;
            }
            if slot >> NUMBER_BITS == fingerprint(hash) && is_it(slot & NUMBER_MASK) {
                return Some(slot & NUMBER_MASK);
            }
            at = if at + 1 == self.slots.len() { 0 } else { at + 1 };
        }
        None
    }

    /// Puts `number` under `hash`, unless there is one that `is_same` accepts.
    ///
    /// # Errors
    /// [`NotPut`]; crowded only if a file was made so.
    pub(super) fn insert(
        &mut self,
        hash: u64,
        number: u32,
        mut is_same: impl FnMut(u32) -> bool,
    ) -> Result<(), NotPut> {
        let mut at = self.first_slot(hash);
        for _ in 0..MAX_PROBES {
            let slot = self.slots[at];
            if slot == EMPTY {
                self.slots[at] = number | fingerprint(hash) << NUMBER_BITS;
                return Ok(());
            }
            if slot >> NUMBER_BITS == fingerprint(hash) && is_same(slot & NUMBER_MASK) {
                return Err(NotPut::Same(slot & NUMBER_MASK));
            }
            at = if at + 1 == self.slots.len() { 0 } else { at + 1 };
        }
        Err(NotPut::Crowded)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.slots)
    }

    /// The high half of the hash scaled to the number of slots: no power of two is needed, so the load is always 2/3.
    fn first_slot(&self, hash: u64) -> usize {
        let scaled = ((hash >> 32) * self.slots.len() as u64) >> 32;
        usize::try_from(scaled).unwrap_or(0)
    }
}

/// A hash of a few bytes, as a token has them.
pub(super) fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut hash = bytes.len() as u64;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        hash = mix(hash ^ u64::from_le_bytes(chunk.try_into().unwrap_or_default()));
    }
    let mut last = [0; 8];
    last[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    mix(hash ^ u64::from_le_bytes(last))
}

/// A hash of two numbers.
pub(super) fn hash_pair(left: u32, right: u32) -> u64 {
    mix(u64::from(left) << 32 | u64::from(right))
}

/// Multiplication carries differences up, the shifts bring them down again: all bits of the result are usable.
const fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 32).wrapping_mul(CARRY_UP);
    let x = (x ^ x >> BITS_DOWN).wrapping_mul(CARRY_DOWN);
    x ^ x >> 32
}

/// Eight bits that [`HashIndex::first_slot`] does not use. Never all ones, so that no entry looks [`EMPTY`].
#[allow(clippy::cast_possible_truncation, reason = "the low bits are wanted")]
const fn fingerprint(hash: u64) -> u32 {
    hash as u32 & FINGERPRINT_MASK
}

const CARRY_UP: u64 = 0x9E37_79B9_7F4A_7C15;
const BITS_DOWN: u32 = 29;
const CARRY_DOWN: u64 = 0xBF58_476D_1CE4_E5B9;

const NUMBER_BITS: u32 = 24;
const NUMBER_MASK: u32 = (1 << NUMBER_BITS) - 1;
const FINGERPRINT_MASK: u32 = 0x7F;
const EMPTY: u32 = u32::MAX;

/// Slots that a search looks at. The hash is no secret, and a file made to crowd one place must not make opening quadratic. At a load
/// of 2/3 the longest run of taken slots among 2^24 entries is some 300; one of 1024 is less likely than e^-50.
const MAX_PROBES: u32 = 1024;

#[cfg(test)]
pub(super) mod crowded {
    use super::{BITS_DOWN, CARRY_DOWN, CARRY_UP, mix};

    /// Texts of eight bytes whose hashes all begin with 32 zeros.
    pub(in super::super) fn texts(n: u32) -> Vec<[u8; 8]> {
        let texts = (0..n).map(|i| (unmix(unmix(u64::from(i))) ^ 8).to_le_bytes());
        texts.inspect(|text| assert_eq!(super::hash_bytes(text) >> 32, 0, "{text:?}")).collect()
    }

    fn unmix(x: u64) -> u64 {
        let y = (x ^ x >> 32).wrapping_mul(inverse(CARRY_DOWN));
        let y = (y ^ y >> BITS_DOWN ^ y >> (2 * BITS_DOWN)).wrapping_mul(inverse(CARRY_UP));
        let y = y ^ y >> 32;
        assert_eq!(mix(y), x, "the inverse");
        y
    }

    /// By Newton's method: each round doubles the bits that are right, of which there are three at the start.
    fn inverse(odd: u64) -> u64 {
        (0..5).fold(odd, |x, _| x.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(x))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_put_in_and_nothing_else() {
        let key = |i: u32| (i * 7).to_le_bytes();
        let mut index = HashIndex::with_room_for(1000);
        for i in 0..1000 {
            assert_eq!(index.insert(hash_bytes(&key(i)), i, |j| j == i), Ok(()), "entry {i}");
        }
        for i in 0..2000 {
            let found = index.find(hash_bytes(&key(i)), |j| key(j) == key(i));
            assert_eq!(found, (i < 1000).then_some(i), "entry {i}");
        }
        let again = index.insert(hash_bytes(&key(5)), 9, |j| key(j) == key(5));
        assert_eq!(again, Err(NotPut::Same(5)));
    }

    #[test]
    fn a_place_takes_so_many_and_no_more() {
        let mut index = HashIndex::with_room_for(5000);
        for i in 0..MAX_PROBES {
            assert_eq!(index.insert(u64::from(i), i, |_| false), Ok(()), "entry {i}");
        }
        assert_eq!(index.insert(0, MAX_PROBES, |_| false), Err(NotPut::Crowded));
        assert_eq!(
            index.find(u64::from(MAX_PROBES - 1), |j| j == MAX_PROBES - 1),
            Some(MAX_PROBES - 1)
        );
        assert_eq!(index.find(0, |_| false), None);
    }

    #[test]
    fn an_empty_index_finds_nothing() {
        assert_eq!(HashIndex::default().find(hash_pair(1, 2), |_| true), None);
        assert_eq!(HashIndex::with_room_for(0).find(hash_bytes(b""), |_| true), None);
    }

    #[test]
    fn hashes_see_every_byte_and_the_length() {
        let mut hashes: Vec<u64> = (0..40).map(|n| hash_bytes(&vec![0; n])).collect();
        hashes.extend(
            (0..40).map(|n| hash_bytes(&(0..40).map(|i| u8::from(i == n)).collect::<Vec<_>>())),
        );
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 80);
    }
}
