//! Proofs as JSON: hashes, headers and salts in hexadecimal, payloads in base64, checkpoints as text.
//!
//! A proof has exactly one text. Any other form is refused, since two checkers might read it differently: duplicate or
//! unknown members, another order, number format, escape or blank.

use super::check::Rejected;
use super::{Growth, Proof, ProvenContent, ProvenRecord};
use crate::model::pointer::hex;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holotype_storage::Hash;
use serde_json::{Map, Value, json};

/// The version of the format.
const VERSION: u64 = 1;

impl Proof {
    /// The proof as text.
    #[must_use]
    pub fn to_json(&self) -> String {
        let records: Vec<Value> = self.records.iter().map(record_to_json).collect();
        let value = json!({
            "holotype_proof": VERSION,
            "checkpoint": self.checkpoint,
            "item": self.item,
            "records": records,
        });
        format!("{value:#}\n")
    }

    /// Parses a proof without checking it; see [`super::check`] to say.
    ///
    /// # Errors
    /// [`Rejected`] for a malformed text.
    pub fn from_json(text: &str) -> Result<Proof, Rejected> {
        let value = object(text, "holotype_proof")?;
        let records = array(&value, "records")?.iter().map(record_from_json).collect::<Result<_, _>>()?;
        let proof = Proof { checkpoint: string(&value, "checkpoint")?.to_owned(), item: item(&value)?, records };
        canonical(text, &proof.to_json())?;
        Ok(proof)
    }
}

impl Growth {
    /// The proof as text.
    #[must_use]
    pub fn to_json(&self) -> String {
        let path: Vec<String> = self.path.iter().map(|hash| hex(hash)).collect();
        format!("{:#}\n", json!({"holotype_growth": VERSION, "old": self.old, "new": self.new, "path": path}))
    }

    /// Parses a proof without checking it; see [`super::check_growth`] to say.
    ///
    /// # Errors
    /// [`Rejected`] for a malformed text.
    pub fn from_json(text: &str) -> Result<Growth, Rejected> {
        let value = object(text, "holotype_growth")?;
        let (old, new) = (string(&value, "old")?.to_owned(), string(&value, "new")?.to_owned());
        let growth = Growth { old, new, path: path(&value)? };
        canonical(text, &growth.to_json())?;
        Ok(growth)
    }
}

/// Refuses a text that is not the canonical form of its proof. The final line feed may be missing.
fn canonical(text: &str, written: &str) -> Result<(), Rejected> {
    let end = |text: &str| text.strip_suffix('\n').map_or(text.len(), str::len);
    if text[..end(text)] == written[..end(written)] {
        return Ok(());
    }
    let at = text.bytes().zip(written.bytes()).take_while(|(given, expected)| given == expected).count();
    let line = 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
    Err(malformed(&format!(
        "line {line} is not written as a proof is: in canonical JSON, each member once and in order"
    )))
}

fn record_to_json(record: &ProvenRecord) -> Value {
    let path: Vec<String> = record.path.iter().map(|hash| hex(hash)).collect();
    match &record.content {
        ProvenContent::Stored { header, salt, payload } => json!({
            "index": record.index,
            "header": hex(header),
            "salt": hex(salt),
            "payload": STANDARD.encode(payload),
            "path": path,
        }),
        ProvenContent::Redacted { hash, item } => {
            json!({"index": record.index, "redacted": hex(hash), "item": item, "path": path})
        }
    }
}

fn record_from_json(value: &Value) -> Result<ProvenRecord, Rejected> {
    let value = value.as_object().ok_or_else(|| malformed("a record is no object"))?;
    let content = match value.get("redacted") {
        Some(_) => ProvenContent::Redacted { hash: bytes(string(value, "redacted")?)?, item: item(value)? },
        None => ProvenContent::Stored {
            header: bytes(string(value, "header")?)?,
            salt: bytes(string(value, "salt")?)?,
            payload: STANDARD
                .decode(string(value, "payload")?)
                .map_err(|_| malformed("the payload of a record is not base64"))?,
        },
    };
    Ok(ProvenRecord { index: number(value, "index")?, content, path: path(value)? })
}

fn object(text: &str, version: &str) -> Result<Map<String, Value>, Rejected> {
    let value: Value = serde_json::from_str(text).map_err(|error| malformed(&error.to_string()))?;
    let Value::Object(value) = value else { return Err(malformed("it is no JSON object")) };
    match value.get(version).and_then(Value::as_u64) {
        Some(VERSION) => Ok(value),
        Some(other) => Err(malformed(&format!("it is of version {other}; this program knows {VERSION}"))),
        None => Err(malformed(&format!("it has no number {version:?}"))),
    }
}

fn array<'a>(value: &'a Map<String, Value>, name: &str) -> Result<&'a Vec<Value>, Rejected> {
    value.get(name).and_then(Value::as_array).ok_or_else(|| malformed(&format!("{name:?} is no array")))
}

fn string<'a>(value: &'a Map<String, Value>, name: &str) -> Result<&'a str, Rejected> {
    value.get(name).and_then(Value::as_str).ok_or_else(|| malformed(&format!("{name:?} is no string")))
}

fn number(value: &Map<String, Value>, name: &str) -> Result<u64, Rejected> {
    value.get(name).and_then(Value::as_u64).ok_or_else(|| malformed(&format!("{name:?} is no whole number")))
}

fn item(value: &Map<String, Value>) -> Result<u32, Rejected> {
    u32::try_from(number(value, "item")?).map_err(|_| malformed("\"item\" is no number of an item"))
}

fn path(value: &Map<String, Value>) -> Result<Vec<Hash>, Rejected> {
    let hash = |hash: &Value| bytes(hash.as_str().ok_or_else(|| malformed("a path has something that is no string"))?);
    array(value, "path")?.iter().map(hash).collect()
}

/// Decodes lower-case hexadecimal digits.
fn bytes<const N: usize>(text: &str) -> Result<[u8; N], Rejected> {
    let refuse = || malformed(&format!("{N} bytes in lower-case hexadecimal digits are expected"));
    let digits: &[u8] = text.as_bytes();
    if digits.len() != 2 * N {
        return Err(refuse());
    }
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let high = pair.first().copied().and_then(value).ok_or_else(refuse)?;
        let low = pair.get(1).copied().and_then(value).ok_or_else(refuse)?;
        *byte = high << 4 | low;
    }
    Ok(bytes)
}

fn malformed(why: &str) -> Rejected {
    Rejected(why.to_owned())
}
