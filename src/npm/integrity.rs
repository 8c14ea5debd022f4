//! Hashes of archives, in the form of npm: `sha512-<base64>`, several of them separated by
//! spaces, or the older hexadecimal SHA-1.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512};

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntegrityError {
    #[error("its hash is {actual}, expected was {expected}")]
    Mismatch { expected: String, actual: String },
    #[error("the hash {0:?} has no known form (sha512-…, sha384-…, sha256-…, sha1-…)")]
    Unknown(String),
}

/// Algorithms, weakest first.
const ALGORITHMS: [&str; 4] = ["sha1", "sha256", "sha384", "sha512"];

/// Returns the SHA-512 of the bytes.
pub(crate) fn of(bytes: &[u8]) -> String {
    hash("sha512", bytes)
}

/// Compares the bytes with the strongest hash of `expected`.
pub(crate) fn check(bytes: &[u8], expected: &str) -> Result<(), IntegrityError> {
    let is_old = expected.len() == 40 && expected.bytes().all(|byte| byte.is_ascii_hexdigit());
    let expected = match is_old {
        true => from_hex(expected),
        false => expected.to_owned(),
    };
    let known = expected.split_whitespace().filter_map(|hash| {
        let algorithm = hash.split_once('-')?.0;
        let rank = ALGORITHMS.iter().position(|known| *known == algorithm)?;
        // Options may follow a question mark.
        Some((rank, hash.split('?').next().unwrap_or(hash)))
    });
    let known: Vec<(usize, &str)> = known.collect();
    let Some(rank) = known.iter().map(|(rank, _)| *rank).max() else {
        return Err(IntegrityError::Unknown(expected));
    };
    let actual = hash(ALGORITHMS[rank], bytes);
    let matches = |(of, hash): &(usize, &str)| *of == rank && *hash == actual;
    match known.iter().any(matches) {
        true => Ok(()),
        false => Err(IntegrityError::Mismatch { expected, actual }),
    }
}

fn hash(algorithm: &str, bytes: &[u8]) -> String {
    let digest = match algorithm {
        "sha1" => Sha1::digest(bytes).to_vec(),
        "sha256" => Sha256::digest(bytes).to_vec(),
        "sha384" => Sha384::digest(bytes).to_vec(),
        _ => Sha512::digest(bytes).to_vec(),
    };
    format!("{algorithm}-{}", BASE64_STANDARD.encode(digest))
}

fn from_hex(hex: &str) -> String {
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or_default() as u8;
    let pairs = hex.as_bytes().chunks(2);
    let bytes: Vec<u8> = pairs
        .map(|pair| pair.iter().fold(0, |sum, byte| sum * 16 + digit(*byte)))
        .collect();
    format!("sha1-{}", BASE64_STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_hash_counts() {
        let good = of(b"x");
        check(b"x", &good).unwrap();
        check(b"x", &format!("sha1-AAAA {good}")).unwrap();
        check(b"x", "11f6ad8ec52a2984abaafd7c3b516503785c2072").unwrap();
        check(b"x", "sha1-EfatjsUqKYSrqv18O1FlA3hcIHI=").unwrap();
        check(b"x", &format!("{good}?option")).unwrap();
        let wrong = format!("sha512-AAAA sha1-{}", &hash("sha1", b"x")[5..]);
        let error = check(b"x", &wrong).unwrap_err();
        assert!(matches!(error, IntegrityError::Mismatch { .. }), "{error}");
        for unknown in ["", "md5-AAAA", "none"] {
            let error = check(b"x", unknown).unwrap_err();
            assert!(matches!(error, IntegrityError::Unknown(_)), "{unknown}");
        }
    }
}
