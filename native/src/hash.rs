//! The hash of documents that index rows have: BLAKE2b of 16 bytes.

use blake2b_simd::Params;
use blake2b_simd::many::{HashManyJob, hash_many};

const HASH_BYTES: usize = 16;

pub type Hash = [u8; HASH_BYTES];

/// Returns the hash of each document; the processor computes several at once.
pub fn hashes<'a>(documents: impl Iterator<Item = &'a [u8]>) -> Vec<Hash> {
    let mut params = Params::new();
    params.hash_length(HASH_BYTES);
    let mut jobs: Vec<_> = documents.map(|document| HashManyJob::new(&params, document)).collect();
    hash_many(jobs.iter_mut());
    jobs.iter()
        .map(|job| job.to_hash().as_bytes().try_into().expect("its length was asked for"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_blake2b_of_16_bytes() {
        let found = hashes([&b""[..], b"abc"].into_iter());
        let text = |hash: Hash| hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(text(found[0]), "cae66941d9efbd404e4d88758ea67670");
        assert_eq!(text(found[1]), "cf4ab791c62b8d2b2109c90275287816");
    }
}
