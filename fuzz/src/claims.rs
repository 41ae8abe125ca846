//! The extractor of claims: any text of any fields, with or without a tool, gives claims that hold what they promise.

use holotype::extract::{ExtractOptions, ExtractedClaim, Field, extract};

/// Most claims that a run asks for.
const MOST: usize = 16;

/// Extracts the claims of the fields that the input holds: `tool NUL name NUL text NUL name NUL text …`; an input
/// without a NUL is the text of one field.
///
/// # Panics
/// When the claims of one input differ from run to run, there are more than asked for, one is made twice or is empty,
/// or a span is not within its field, on character boundaries and around something.
pub fn target(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let parts: Vec<&str> = text.split('\0').collect();
    let (tool, fields): (Option<&str>, Vec<Field<'_>>) = match parts.as_slice() {
        [tool, rest @ ..] if !rest.is_empty() => {
            let fields =
                rest.chunks(2).map(|pair| Field { name: pair[0], text: pair.get(1).copied().unwrap_or_default() });
            (Some(*tool).filter(|tool| !tool.is_empty()), fields.collect())
        }
        _ => (None, vec![Field { name: "text", text }]),
    };
    let options = ExtractOptions { max_claims: MOST, ..ExtractOptions::default() };
    let claims = extract(tool, &fields, &options);
    assert_eq!(extract(tool, &fields, &options), claims, "the same claims at every run");
    assert!(claims.len() <= MOST);
    for (nth, claim) in claims.iter().enumerate() {
        assert!(!claim.subject.is_empty() && !claim.attribute.is_empty() && !claim.value.is_empty(), "{claim:?}");
        let field = fields.get(claim.field).expect("a claim is of one of the fields");
        let written = field.text.get(claim.span.clone()).expect("a span is on character boundaries of its field");
        assert!(!written.trim().is_empty(), "{claim:?}");
        let is_same = |other: &&ExtractedClaim| (other.name(), &other.value) == (claim.name(), &claim.value);
        assert_eq!(claims[..nth].iter().find(is_same), None, "no claim is made twice");
        let ignoring = ExtractOptions { ignore: vec![claim.attribute.clone()], ..options.clone() };
        assert!(extract(tool, &fields, &ignoring).iter().all(|other| other.attribute != claim.attribute), "{claim:?}");
    }
}
