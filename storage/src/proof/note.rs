//! Signed notes: a few lines of text with Ed25519 signatures, the format that transparency logs exchange.
//!
//! The format is C2SP's `signed-note`: the text, each line ended by a line feed; an empty line; then one line for each
//! signature:
//!
//! ```text
//! — NAME BASE64(key id, signature)
//! ```
//!
//! A *verifier key* is `NAME+ID+BASE64(01, public key)`, with the key id in eight hexadecimal digits: the first four
//! bytes of SHA-256 over name, line feed, `01` and public key. A *signer key* is `PRIVATE+KEY+NAME+ID+BASE64(01,
//! seed)`.
//!
//! 1. A signature covers the text with its last line feed, and nothing else.
//! 2. Signatures of other keys are ignored: witnesses may countersign a note.
//! 3. Verification is strict: it refuses malleable signatures and weak keys.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::str::FromStr;

/// The greatest length of a note that is read.
const MAX_NOTE_LEN: usize = 64 << 10;
/// The signature type Ed25519.
const ED25519: u8 = 1;
const SIGNATURE_START: &str = "\u{2014} ";

/// The reason why a key or a note is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    /// A malformed key.
    #[error("invalid {what}: {why}")]
    Key {
        /// The expected kind of key.
        what: &'static str,
        /// The fault.
        why: &'static str,
    },
    /// A malformed note.
    #[error("invalid signed note: {0}")]
    Form(&'static str),
    /// The note has no signature by the key.
    #[error("the note is not signed by {0}")]
    NotSigned(String),
    /// The signature does not match the text and the key.
    #[error("the signature of {0} does not match: the text was changed, or another key signed it")]
    WrongSignature(String),
}

/// The public key, which verifies signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifierKey {
    name: String,
    id: [u8; 4],
    key: VerifyingKey,
}

/// The private key. Keep it outside the database: a person with both can rewrite history and sign it.
#[derive(Clone)]
pub struct SignerKey {
    verifier: VerifierKey,
    key: SigningKey,
}

impl VerifierKey {
    /// The signer's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Verifies a note and returns its text.
    ///
    /// # Errors
    /// [`NoteError`].
    pub fn open<'a>(&self, note: &'a str) -> Result<&'a str, NoteError> {
        let (text, signatures) = split(note)?;
        let mut found = None;
        for line in signatures.lines() {
            let (name, id, signature) = signature_of(line)?;
            if name == self.name && id == self.id {
                found = Some(signature);
                break;
            }
        }
        let signature = found.ok_or_else(|| NoteError::NotSigned(self.name.clone()))?;
        let wrong = || NoteError::WrongSignature(self.name.clone());
        let signature = Signature::from_slice(&signature).map_err(|_| wrong())?;
        self.key.verify_strict(text.as_bytes(), &signature).map_err(|_| wrong())?;
        Ok(text)
    }

    fn new(name: &str, key: VerifyingKey) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(name.as_bytes());
        hasher.update([b'\n', ED25519]);
        hasher.update(key.as_bytes());
        let hash = hasher.finalize();
        Self { name: name.to_owned(), id: [hash[0], hash[1], hash[2], hash[3]], key }
    }
}

impl fmt::Display for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut key = vec![ED25519];
        key.extend_from_slice(self.key.as_bytes());
        write!(f, "{}+{}+{}", self.name, hex(&self.id), STANDARD.encode(key))
    }
}

impl FromStr for VerifierKey {
    type Err = NoteError;

    fn from_str(text: &str) -> Result<Self, NoteError> {
        let refuse = |why| NoteError::Key { what: "verifier key, NAME+ID+BASE64", why };
        let (name, id, bytes) = parts(text.trim(), &refuse)?;
        let key = VerifyingKey::from_bytes(&bytes).map_err(|_| refuse("its bytes are not an Ed25519 public key"))?;
        let key = Self::new(name, key);
        if hex(&key.id) != id {
            return Err(refuse("its id does not match its name and bytes"));
        }
        Ok(key)
    }
}

impl SignerKey {
    /// Generates a key from the system's random numbers.
    ///
    /// # Errors
    /// [`NoteError::Key`] for a name that is empty or contains blanks or `+`, or if the system provides no random
    /// numbers.
    pub fn generate(name: &str) -> Result<Self, NoteError> {
        let refuse = |why| NoteError::Key { what: "name of a key", why };
        check_name(name, &refuse)?;
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|_| refuse("the system provides no random numbers"))?;
        Ok(Self::from_seed(name, &seed))
    }

    /// The public key.
    #[must_use]
    pub fn verifier(&self) -> &VerifierKey {
        &self.verifier
    }

    /// Signs a text, which must end in a line feed and have no empty line.
    ///
    /// # Errors
    /// [`NoteError::Form`] for another text.
    pub fn sign(&self, text: &str) -> Result<String, NoteError> {
        check_text(text)?;
        let signature = self.key.sign(text.as_bytes());
        let mut bytes = self.verifier.id.to_vec();
        bytes.extend_from_slice(&signature.to_bytes());
        Ok(format!("{text}\n{SIGNATURE_START}{} {}\n", self.verifier.name, STANDARD.encode(bytes)))
    }

    /// The key as text. Keep it secret.
    #[must_use]
    pub fn to_secret(&self) -> String {
        let mut key = vec![ED25519];
        key.extend_from_slice(self.key.as_bytes());
        format!("PRIVATE+KEY+{}+{}+{}", self.verifier.name, hex(&self.verifier.id), STANDARD.encode(key))
    }

    fn from_seed(name: &str, seed: &[u8; 32]) -> Self {
        let key = SigningKey::from_bytes(seed);
        Self { verifier: VerifierKey::new(name, key.verifying_key()), key }
    }
}

impl FromStr for SignerKey {
    type Err = NoteError;

    fn from_str(text: &str) -> Result<Self, NoteError> {
        let refuse = |why| NoteError::Key { what: "signer key, PRIVATE+KEY+NAME+ID+BASE64", why };
        let rest = text.trim().strip_prefix("PRIVATE+KEY+").ok_or_else(|| refuse("it begins with something else"))?;
        let (name, id, seed) = parts(rest, &refuse)?;
        let key = Self::from_seed(name, &seed);
        if hex(&key.verifier.id) != id {
            return Err(refuse("its id does not match its name and bytes"));
        }
        Ok(key)
    }
}

impl fmt::Debug for SignerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignerKey").field("verifier", &self.verifier).finish_non_exhaustive()
    }
}

/// Name, id and 32 bytes of a key.
fn parts<'a>(
    text: &'a str,
    refuse: &dyn Fn(&'static str) -> NoteError,
) -> Result<(&'a str, &'a str, [u8; 32]), NoteError> {
    let mut parts = text.splitn(3, '+');
    let (Some(name), Some(id), Some(bytes)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(refuse("it does not have three parts"));
    };
    check_name(name, refuse)?;
    let bytes = STANDARD.decode(bytes).map_err(|_| refuse("its last part is not base64"))?;
    match bytes.split_first() {
        Some((&ED25519, key)) => {
            key.try_into().map(|key| (name, id, key)).map_err(|_| refuse("it does not have 32 bytes"))
        }
        _ => Err(refuse("its type is not Ed25519")),
    }
}

fn check_name(name: &str, refuse: &dyn Fn(&'static str) -> NoteError) -> Result<(), NoteError> {
    if name.is_empty() || name.chars().any(|letter| letter.is_whitespace() || letter.is_control() || letter == '+') {
        return Err(refuse("its name is empty, or contains blanks or +"));
    }
    Ok(())
}

fn check_text(text: &str) -> Result<(), NoteError> {
    if text.chars().any(|letter| letter.is_control() && letter != '\n') {
        return Err(NoteError::Form("it contains control characters"));
    }
    if !text.ends_with('\n') || text.starts_with('\n') || text.contains("\n\n") {
        return Err(NoteError::Form("its text has an empty line, or does not end in a line feed"));
    }
    Ok(())
}

/// Text and signatures.
fn split(note: &str) -> Result<(&str, &str), NoteError> {
    if note.len() > MAX_NOTE_LEN {
        return Err(NoteError::Form("it is longer than 64 KiB"));
    }
    let at = note.rfind("\n\n").ok_or(NoteError::Form("no empty line precedes its signatures"))?;
    let (text, signatures) = (note.get(..=at), note.get(at + 2..));
    let (Some(text), Some(signatures)) = (text, signatures) else {
        return Err(NoteError::Form("no empty line precedes its signatures"));
    };
    check_text(text)?;
    if !signatures.ends_with('\n') {
        return Err(NoteError::Form("it does not end with a signature and a line feed"));
    }
    Ok((text, signatures))
}

fn signature_of(line: &str) -> Result<(&str, [u8; 4], Vec<u8>), NoteError> {
    let form = NoteError::Form("a signature is not an em dash, a name and base64");
    let parts = line.strip_prefix(SIGNATURE_START).and_then(|rest| rest.split_once(' '));
    let Some((name, encoded)) = parts else { return Err(form) };
    let Ok(bytes) = STANDARD.decode(encoded) else { return Err(form) };
    match bytes.split_first_chunk::<4>() {
        Some((id, signature)) if !signature.is_empty() => Ok((name, *id, signature.to_vec())),
        _ => Err(form),
    }
}

fn hex(id: &[u8; 4]) -> String {
    format!("{:08x}", u32::from_be_bytes(*id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The example of the specification's reference implementation (Go's `sumdb/note`).
    const VERIFIER: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
    const NOTE: &str = "If you think cryptography is the answer to your problem,\n\
        then you don't know what your problem is.\n\n\
        \u{2014} PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";

    #[test]
    fn a_note_of_another_program_is_read() {
        let key: VerifierKey = VERIFIER.parse().unwrap();
        assert_eq!(key.to_string(), VERIFIER);
        let text = key.open(NOTE).unwrap();
        assert!(text.starts_with("If you think") && text.ends_with("problem is.\n"));
    }

    #[test]
    fn every_change_of_a_note_is_noticed() {
        let key: VerifierKey = VERIFIER.parse().unwrap();
        for at in 0..NOTE.len() {
            for mask in [1, 2, 16] {
                let mut bytes = NOTE.as_bytes().to_vec();
                bytes[at] ^= mask;
                if let Ok(changed) = String::from_utf8(bytes) {
                    assert!(key.open(&changed).is_err(), "byte {at}");
                }
            }
        }
    }

    #[test]
    fn keys_sign_and_survive_as_text() {
        let signer = SignerKey::generate("holotype/test").unwrap();
        let again: SignerKey = signer.to_secret().parse().unwrap();
        let verifier: VerifierKey = signer.verifier().to_string().parse().unwrap();
        let note = again.sign("one\ntwo\n").unwrap();
        assert_eq!(verifier.open(&note).unwrap(), "one\ntwo\n");
        let other = SignerKey::generate("holotype/test").unwrap();
        assert_eq!(other.verifier().open(&note), Err(NoteError::NotSigned("holotype/test".into())));
        assert!(!format!("{signer:?}").contains(&signer.to_secret()[signer.to_secret().len() - 20..]));
        let witnessed = format!("{note}\u{2014} witness AAAAAAECAwQ=\n");
        assert_eq!(verifier.open(&witnessed).unwrap(), "one\ntwo\n");
    }

    #[test]
    fn a_note_may_be_as_long_as_is_said() {
        let signer = SignerKey::generate("a").unwrap();
        let rest = signer.sign("1\n").unwrap().len() - 2;
        for (more, whole) in [(0, true), (1, false)] {
            let text = "1".repeat(MAX_NOTE_LEN - rest - 1 + more) + "\n";
            let note = signer.sign(&text).unwrap();
            assert_eq!(note.len(), MAX_NOTE_LEN + more);
            assert_eq!(signer.verifier().open(&note).is_ok(), whole, "{} bytes", note.len());
        }
    }

    #[test]
    fn a_signature_is_more_than_the_id_of_its_key() {
        let key: VerifierKey = VERIFIER.parse().unwrap();
        assert!(key.open(NOTE).is_ok());
        let (text, own) = NOTE.split_once("\n\n").unwrap();
        let with = |line: &str| key.open(&format!("{text}\n\n\u{2014} witness {line}\n{own}")).is_ok();
        assert!(with("AAAAAAE=") && !with("AAAAAA==") && !with("AAAA"));
    }

    #[test]
    fn what_is_no_key_and_no_text_is_refused() {
        for text in
            ["", "a+b", "a b+00000000+AQ==", "PeterNeumann+c74f20a4+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"]
        {
            assert!(text.parse::<VerifierKey>().is_err(), "{text}");
            assert!(format!("PRIVATE+KEY+{text}").parse::<SignerKey>().is_err(), "{text}");
        }
        for name in ["", "a b", "a+b", "a\n"] {
            assert!(SignerKey::generate(name).is_err());
        }
        let signer = SignerKey::generate("a").unwrap();
        for text in ["", "a", "\n", "a\n\nb\n", "a\u{7}\n", "\na\n"] {
            assert!(signer.sign(text).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_checked_without_a_panic(text in ".{0,200}", key in ".{0,80}") {
            let verifier: VerifierKey = VERIFIER.parse().unwrap();
            prop_assert!(verifier.open(&text).is_err());
            let _ = key.parse::<VerifierKey>();
            let _ = key.parse::<SignerKey>();
        }
    }
}
