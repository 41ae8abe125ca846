//! Tokens that stand for something a person saw before it cannot be undone.
//!
//! A token is the second at which it ends and a keyed hash, with a key of this process, of that second and of all that
//! would be done. What would be done is computed again before it is done, so that a token is worth nothing once an item
//! more or less would go, and it must have been made at a head that the log still has.

use std::time::{SystemTime, UNIX_EPOCH};

/// The time for which a token is valid.
pub(crate) const VALID_SECONDS: u64 = 600;

/// Makes and checks tokens.
pub(crate) struct Consent {
    key: [u8; 32],
}

impl std::fmt::Debug for Consent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Consent")
    }
}

/// The reason why a token is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It is over.
    Expired,
    /// It is of something else, of another process, or no token.
    Other,
}

impl Consent {
    /// # Errors
    /// The system has no random numbers.
    pub(crate) fn new() -> std::io::Result<Consent> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(std::io::Error::other)?;
        Ok(Consent { key })
    }

    /// A token for what `act` says.
    pub(crate) fn token(&self, act: &str) -> String {
        self.token_until(act, now().saturating_add(VALID_SECONDS))
    }

    fn token_until(&self, act: &str, end: u64) -> String {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&end.to_le_bytes());
        hasher.update(act.as_bytes());
        let hash = hasher.finalize().to_hex();
        format!("{end:x}-{}", hash.get(..24).unwrap_or_default())
    }

    /// Checks a token for what `act` says.
    pub(crate) fn check(&self, token: &str, act: &str) -> Result<(), Refused> {
        let end = token.split_once('-').and_then(|(end, _)| u64::from_str_radix(end, 16).ok()).ok_or(Refused::Other)?;
        // Hashes of the two are compared, which tells nothing by its time.
        if blake3::hash(token.as_bytes()) != blake3::hash(self.token_until(act, end).as_bytes()) {
            return Err(Refused::Other);
        }
        if now() > end { Err(Refused::Expired) } else { Ok(()) }
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_of_one_act_one_process_and_ten_minutes() {
        let consent = Consent::new().unwrap();
        let token = consent.token("t1");
        assert_eq!(consent.check(&token, "t1"), Ok(()));
        assert_eq!(consent.check(&token, "t1 t2"), Err(Refused::Other));
        assert_eq!(Consent::new().unwrap().check(&token, "t1"), Err(Refused::Other));
        assert_eq!(consent.check(&consent.token_until("t1", now() - 1), "t1"), Err(Refused::Expired));
        let later = token.replacen(&token[..8], "ffffffff", 1);
        assert_eq!(consent.check(&later, "t1"), Err(Refused::Other));
        for wrong in ["", "-", "zz-00", "yes", "5"] {
            assert_eq!(consent.check(wrong, "t1"), Err(Refused::Other));
        }
    }
}
