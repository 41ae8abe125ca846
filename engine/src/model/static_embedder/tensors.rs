//! Tensors of a safetensors file: eight bytes with the length of a JSON header, the header, then the numbers.

use std::ops::Range;

/// A header longer than this is no header, as in the reference implementation.
const MOST_HEADER: u64 = 100_000_000;

/// One tensor as single-precision numbers.
#[derive(Debug)]
pub(super) struct Tensor {
    pub(super) shape: Vec<usize>,
    pub(super) numbers: Vec<f32>,
}

/// The tensors of a file.
pub(super) struct Tensors<'f> {
    header: serde_json::Map<String, serde_json::Value>,
    data: &'f [u8],
}

impl<'f> Tensors<'f> {
    /// Reads the header.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub(super) fn read(file: &'f [u8]) -> Result<Tensors<'f>, String> {
        let cut = |len: usize| format!("it ends after {len} bytes, before its header does; copy the file again");
        let (length, rest) = file.split_first_chunk::<8>().ok_or_else(|| cut(file.len()))?;
        let length = u64::from_le_bytes(*length);
        if length > MOST_HEADER {
            return Err(format!("its header claims {length} bytes; this is no safetensors file"));
        }
        let (header, data) = rest.split_at_checked(length as usize).ok_or_else(|| cut(file.len()))?;
        let header =
            serde_json::from_slice(header).map_err(|error| format!("its header is no JSON object: {error}"))?;
        Ok(Tensors { header, data })
    }

    /// The names of all tensors.
    pub(super) fn names(&self) -> Vec<&str> {
        self.header.keys().map(String::as_str).filter(|name| *name != "__metadata__").collect()
    }

    /// The tensor of a name; `None` if the file has none.
    ///
    /// # Errors
    /// What is wrong with the tensor.
    pub(super) fn get(&self, name: &str) -> Result<Option<Tensor>, String> {
        let Some(entry) = self.header.get(name) else { return Ok(None) };
        let fault = |what: &str| format!("tensor {name}: {what}");
        let list = |member: &str| -> Option<Vec<usize>> {
            let numbers = entry.get(member)?.as_array()?.iter();
            numbers.map(|number| number.as_u64().and_then(|number| usize::try_from(number).ok())).collect()
        };
        let form = entry.get("dtype").and_then(|form| form.as_str()).ok_or_else(|| fault("it has no `dtype`"))?;
        let shape = list("shape").ok_or_else(|| fault("it has no `shape`"))?;
        let offsets = list("data_offsets").filter(|offsets| offsets.len() == 2);
        let Range { start, end } =
            offsets.map(|two| two[0]..two[1]).ok_or_else(|| fault("it has no `data_offsets`"))?;
        let bytes = self.data.get(start..end).ok_or_else(|| {
            fault(&format!("bytes {start} to {end} are outside of the {} that follow the header", self.data.len()))
        })?;
        let numbers = decode(form, bytes).ok_or_else(|| {
            fault(&format!(
                "numbers of type {form} in {} bytes; F32, F16, F64, I8, I32 or I64 is expected",
                bytes.len()
            ))
        })?;
        let count = shape.iter().try_fold(1_usize, |product, side| product.checked_mul(*side));
        if count != Some(numbers.len()) {
            return Err(fault(&format!("its shape {shape:?} does not fit its {} numbers", numbers.len())));
        }
        Ok(Some(Tensor { shape, numbers }))
    }
}

/// Little-endian numbers of a type; `None` for another type, or bytes that are no whole number of them.
fn decode(form: &str, bytes: &[u8]) -> Option<Vec<f32>> {
    fn each<const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> f32) -> Option<Vec<f32>> {
        let (whole, rest) = bytes.as_chunks::<N>();
        rest.is_empty().then(|| whole.iter().map(|bytes| number(*bytes)).collect())
    }
    match form {
        "F32" => each(bytes, f32::from_le_bytes),
        "F16" => each(bytes, |two| half::f16::from_le_bytes(two).to_f32()),
        "BF16" => each(bytes, |two| half::bf16::from_le_bytes(two).to_f32()),
        "F64" => each(bytes, |eight| f64::from_le_bytes(eight) as f32),
        "I8" => each(bytes, |one: [u8; 1]| f32::from(one[0] as i8)),
        "I32" => each(bytes, |four| i32::from_le_bytes(four) as f32),
        "I64" => each(bytes, |eight| i64::from_le_bytes(eight) as f32),
        _ => None,
    }
}
