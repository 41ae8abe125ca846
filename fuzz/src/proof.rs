//! Texts as proofs of an item and of growth, as signed notes and as keys: each is refused or verified, without a panic.
//!
//! A mutation almost never verifies, because of the signature and the hashes. So the target also signs the content with
//! its own key, over a tree of the first record only, so that the code after the hashes is reached.

use std::sync::OnceLock;

use holotype::proof::{Growth, Proof, ProvenContent, SignerKey, TreeHead, check, check_growth};
use holotype::query::Params;
use holotype_storage::proof::leaf_hash;

use crate::story;

/// A fixed key, so that seeds and findings stay valid.
const SECRET: &str = "PRIVATE+KEY+fuzz+68d52c86+AQcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH";

fn key() -> &'static SignerKey {
    static KEY: OnceLock<SignerKey> = OnceLock::new();
    KEY.get_or_init(|| SECRET.parse().expect("the key reads"))
}

/// Reads the text as everything it could be.
///
/// # Panics
/// When what was read is written and read again as something else, or another text holds than one that was made.
pub fn target(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = key().verifier().open(text);
    let _ = text.parse::<SignerKey>();
    if let Ok(growth) = Growth::from_json(text) {
        assert_eq!(Growth::from_json(&growth.to_json()).as_ref(), Ok(&growth));
        let _ = check_growth(&growth, key().verifier());
    }
    let Ok(mut proof) = Proof::from_json(text) else { return };
    assert_eq!(Proof::from_json(&proof.to_json()).as_ref(), Ok(&proof));
    let _ = check(&proof, key().verifier());
    proof.records.truncate(1);
    for record in &mut proof.records {
        let leaf = match &mut record.content {
            ProvenContent::Redacted { hash, .. } => *hash,
            ProvenContent::Stored { header, salt, payload } => {
                header[..4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
                leaf_hash(header, salt, payload)
            }
        };
        (record.index, record.path) = (0, Vec::new());
        let head = TreeHead { origin: "fuzz".into(), size: 1, root: leaf };
        proof.checkpoint = head.sign(key()).expect("the names are the same");
    }
    let _ = check(&proof, key().verifier());
}

/// Proofs of the story's items, and of its growth.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let database = story::open(&story::disk()).expect("the story opens");
    let old = database.snapshot().signed_checkpoint(key()).expect("the story is sound");
    database.query("record turn 'one more' in episode 'trip-42'", &Params::new()).expect("it can be written to");
    let snapshot = database.snapshot();
    let items = (0..snapshot.len()).map(holotype::ItemId);
    let mut seeds: Vec<String> =
        items.map(|item| snapshot.prove(item, key()).expect("every item is provable").to_json()).collect();
    seeds.push(snapshot.prove_growth(&old, key()).expect("it grew").to_json());
    seeds.push(old);
    seeds.push(key().verifier().to_string());
    seeds.into_iter().map(String::into_bytes).collect()
}
