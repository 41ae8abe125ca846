//! Resolves pointers: from a caller's description of a span to a byte range and its hash.

use crate::model::item::ItemId;
use crate::model::pointer::{NO_HASH, Pointer, Span, hex, span_in};
use crate::records::record::{PointerRecord, PointerTarget};
use crate::state::content::Content;
use crate::{Error, Result};

/// Resolves a caller's pointer to an item against the item's content.
pub(crate) fn resolve(pointer: &Pointer, target: ItemId, content: &Content) -> Result<PointerRecord> {
    let name = pointer.field.as_deref().unwrap_or("text");
    let unresolved = |reason: String| Error::UnresolvedPointer { target: pointer.target.to_string(), reason };
    let field = content.field(name).ok_or_else(|| {
        let known: Vec<&str> = content.record.fields.iter().map(|field| field.name.as_str()).collect();
        unresolved(format!("it has no field {name:?}; its fields are {}", known.join(", ")))
    })?;
    let bytes = field.value.bytes();
    let (start, end) =
        span_in(bytes, &pointer.span).map_err(|reason| unresolved(format!("field {name:?}: {reason}")))?;
    let hash = *blake3::hash(&bytes[start..end]).as_bytes();
    check_hash(pointer, &hash)?;
    Ok(PointerRecord {
        target: PointerTarget::Item(target.0),
        field: name.to_owned(),
        start: start as u64,
        end: end as u64,
        hash,
    })
}

/// Resolves a pointer into an item whose text was erased, as an import restores it. There are no bytes to check
/// against.
pub(crate) fn resolve_forgotten(pointer: &Pointer, target: ItemId) -> Result<PointerRecord> {
    let (start, end) = match pointer.span {
        Span::Whole => (0, 0),
        Span::Bytes(start, end) if start <= end && pointer.hash.is_none() => (start, end),
        _ => {
            let reason = "its text was erased".to_owned();
            return Err(Error::UnresolvedPointer { target: pointer.target.to_string(), reason });
        }
    };
    let field = pointer.field.clone().unwrap_or_else(|| "text".to_owned());
    let hash = NO_HASH;
    Ok(PointerRecord { target: PointerTarget::Item(target.0), field, start, end, hash })
}

/// Fails if the pointer's given hash differs from that of the bytes. A prefix of at least 16 hex digits suffices.
pub(crate) fn check_hash(pointer: &Pointer, found: &[u8; 32]) -> Result<()> {
    let Some(given) = &pointer.hash else { return Ok(()) };
    let found = hex(found);
    if given.len() >= 16 && found.starts_with(&given.to_ascii_lowercase()) {
        return Ok(());
    }
    Err(Error::HashMismatch { target: pointer.target.to_string(), given: given.clone(), found })
}
