//! The hash of documents that index rows have: BLAKE2b of 16 bytes.

use blake2b_simd::Params;
use blake2b_simd::many::{HashManyJob, hash_many};

pub const HASH_BYTES: usize = 16;
/// The states of so many hashes stay in the processor's cache.
const AT_ONCE: usize = 64;

pub type Hash = [u8; HASH_BYTES];

/// Returns the hash of each document; the processor computes several at once.
pub fn hashes<'a>(documents: impl Iterator<Item = &'a [u8]>) -> Vec<Hash> {
    let mut params = Params::new();
    params.hash_length(HASH_BYTES);
    let documents: Vec<_> = documents.collect();
    let mut found = Vec::with_capacity(documents.len());
    for some in documents.chunks(AT_ONCE) {
        let mut jobs: Vec<_> = some.iter().map(|one| HashManyJob::new(&params, one)).collect();
        hash_many(jobs.iter_mut());
        found.extend(jobs.iter().map(|job| -> Hash {
            job.to_hash().as_bytes().try_into().expect("its length was asked for")
        }));
    }
    found
}

/// Returns the hash of each document as index rows have it, in hexadecimal.
pub fn texts<'a>(documents: impl Iterator<Item = &'a [u8]>) -> Vec<String> {
    hashes(documents).iter().map(text).collect()
}

/// Returns a hash as index rows have it.
pub fn text(hash: &Hash) -> String {
    digits(hash).iter().map(|digit| char::from(*digit)).collect()
}

/// Returns the same as bytes.
pub fn digits(hash: &Hash) -> [u8; 2 * HASH_BYTES] {
    let mut made = [0; 2 * HASH_BYTES];
    for (two, byte) in made.chunks_mut(2).zip(hash) {
        two.copy_from_slice(&[byte >> 4, byte & 15].map(|it| b"0123456789abcdef"[usize::from(it)]));
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_blake2b_of_16_bytes() {
        let found = texts([&b""[..], b"abc"].into_iter());
        assert_eq!(found[0], "cae66941d9efbd404e4d88758ea67670");
        assert_eq!(found[1], "cf4ab791c62b8d2b2109c90275287816");
    }
}
