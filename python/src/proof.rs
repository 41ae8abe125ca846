//! Signing keys and proofs of items, as text: the engine's own forms.

use crate::errors;
use crate::texts::Text;
use crate::values::Micros;
use holotype::proof::{Proof, SignerKey, VerifierKey, check};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The signing key that a text holds.
pub(crate) fn signer(py: Python<'_>, secret: &str) -> PyResult<SignerKey> {
    secret.parse().map_err(|error| wrong_key(py, &error))
}

fn wrong_key(py: Python<'_>, error: &dyn std::fmt::Display) -> PyErr {
    errors::invalid(py, "key", &error.to_string(), "holotype.SigningKey.generate makes a key")
}

/// A new secret key under a name.
#[pyfunction]
pub(crate) fn generate_key(py: Python<'_>, name: Text) -> PyResult<String> {
    SignerKey::generate(&name.0).map(|key| key.to_secret()).map_err(|error| wrong_key(py, &error))
}

/// The public half of a secret key.
#[pyfunction]
pub(crate) fn verifier_key(py: Python<'_>, secret: Text) -> PyResult<String> {
    Ok(signer(py, &secret.0)?.verifier().to_string())
}

/// Checks a proof against a public key, without the database. Returns what it proves.
#[pyfunction]
pub(crate) fn check_proof<'py>(py: Python<'py>, proof: Text, key: Text) -> PyResult<Bound<'py, PyDict>> {
    let key: VerifierKey = key.0.parse().map_err(|error| wrong_key(py, &error))?;
    let checked = py.detach(|| Proof::from_json(&proof.0).and_then(|proof| check(&proof, &key)));
    let checked = checked.map_err(|why| {
        errors::invalid(py, "proof", &format!("the proof does not hold: {}", why.0), "ask its sender for another one")
    })?;
    let dict = PyDict::new(py);
    dict.set_item("origin", checked.tree.origin)?;
    dict.set_item("records", checked.tree.size)?;
    dict.set_item("item", checked.item.0)?;
    if let Some(content) = checked.content {
        dict.set_item("key", content.key)?;
        dict.set_item("kind", content.kind.as_str())?;
        dict.set_item("time", content.time.map(Micros))?;
        dict.set_item("tool", content.tool)?;
        let fields = PyDict::new(py);
        for (name, text) in content.fields {
            fields.set_item(name, text)?;
        }
        dict.set_item("fields", fields)?;
        dict.set_item("redacted", content.redacted)?;
    }
    let citations = checked.citations.into_iter().map(|citation| {
        let dict = PyDict::new(py);
        dict.set_item("target", citation.target)?;
        dict.set_item("field", citation.field)?;
        dict.set_item("start", citation.start)?;
        dict.set_item("end", citation.end)?;
        dict.set_item("text", citation.text)?;
        dict.set_item("verdict", citation.verdict.as_str())?;
        Ok(dict)
    });
    dict.set_item("citations", citations.collect::<PyResult<Vec<_>>>()?)?;
    Ok(dict)
}
