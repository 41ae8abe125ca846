//! The weights of a model: the bytes of `model.safetensors`, read once, and where each tensor is in them.
//!
//! Numbers stay as the file has them: f32, f16 or bf16. A matrix of halves is widened where it is used.

use half::{bf16, f16};
use safetensors::{Dtype, SafeTensors};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The form of a tensor's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    F32,
    F16,
    Bf16,
}

/// A tensor in the file.
#[derive(Debug, Clone)]
struct Tensor {
    form: Form,
    shape: Vec<usize>,
    /// The first byte, and the one behind the last.
    from: usize,
    to: usize,
}

/// The tensors of a file.
pub(crate) struct Weights {
    /// The file in words of four bytes, so that its numbers are aligned, and its length in bytes.
    words: Vec<u32>,
    len: usize,
    tensors: HashMap<String, Tensor>,
}

impl Weights {
    /// Reads a file without looking into it.
    pub(crate) fn read(path: &Path) -> io::Result<Weights> {
        let mut file = File::open(path)?;
        let len = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        let mut words = vec![0_u32; len.div_ceil(4)];
        file.read_exact(&mut bytemuck::cast_slice_mut(&mut words)[..len])?;
        Ok(Weights { words, len, tensors: HashMap::new() })
    }

    /// The bytes of the file.
    pub(crate) fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len]
    }

    /// Finds the tensors of numbers.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub(crate) fn find(&mut self) -> Result<(), String> {
        let bytes = self.bytes();
        let file = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
        let mut tensors = HashMap::new();
        for (name, view) in file.iter() {
            let form = match view.dtype() {
                Dtype::F32 => Form::F32,
                Dtype::F16 => Form::F16,
                Dtype::BF16 => Form::Bf16,
                _ => continue,
            };
            let from = view.data().as_ptr().addr() - bytes.as_ptr().addr();
            let (shape, to) = (view.shape().to_vec(), from + view.data().len());
            tensors.insert(name.to_owned(), Tensor { form, shape, from, to });
        }
        self.tensors = tensors;
        // Files of old programs may begin their numbers anywhere: those are moved to where they are aligned.
        if self.tensors.values().any(|tensor| tensor.from % width(tensor.form) != 0) {
            self.align();
        }
        Ok(())
    }

    /// Moves the numbers up to the next multiple of four bytes.
    fn align(&mut self) {
        let first = self.tensors.values().map(|tensor| tensor.from).min().unwrap_or_default();
        let shift = first.next_multiple_of(4) - first;
        let len = self.len + shift;
        self.words.resize(len.div_ceil(4), 0);
        bytemuck::cast_slice_mut::<u32, u8>(&mut self.words).copy_within(first..self.len, first + shift);
        self.len = len;
        for tensor in self.tensors.values_mut() {
            (tensor.from, tensor.to) = (tensor.from + shift, tensor.to + shift);
        }
    }

    /// True if there is a tensor of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// The numbers of a tensor, which must have this shape.
    ///
    /// # Errors
    /// What is missing or does not fit.
    pub(crate) fn check(&self, name: &str, shape: &[usize]) -> Result<(), String> {
        match self.tensors.get(name) {
            None => Err(format!("it has no tensor `{name}` of f32, f16 or bf16")),
            Some(tensor) if tensor.shape != shape => {
                Err(format!("`{name}` has the shape {:?}; the configuration says {shape:?}", tensor.shape))
            }
            Some(tensor) if tensor.from % width(tensor.form) != 0 => Err(format!("`{name}` is not aligned")),
            Some(_) => Ok(()),
        }
    }

    /// The shape of a tensor; empty without one.
    pub(crate) fn shape(&self, name: &str) -> &[usize] {
        self.tensors.get(name).map_or(&[], |tensor| &tensor.shape)
    }

    /// All numbers of a tensor; none without one.
    pub(crate) fn numbers(&self, name: &str) -> Cow<'_, [f32]> {
        match self.tensors.get(name) {
            Some(tensor) => self.range(tensor, 0, usize::MAX),
            None => Cow::Borrowed(&[]),
        }
    }

    /// Adds one row of a matrix to `out`.
    pub(crate) fn add_row(&self, name: &str, row: usize, out: &mut [f32]) {
        let Some(tensor) = self.tensors.get(name) else { return };
        let numbers = self.range(tensor, row * out.len(), out.len());
        out.iter_mut().zip(numbers.iter()).for_each(|(sum, number)| *sum += number);
    }

    fn range(&self, tensor: &Tensor, from: usize, count: usize) -> Cow<'_, [f32]> {
        let bytes = &self.bytes()[tensor.from..tensor.to];
        let width = width(tensor.form);
        let from = from.saturating_mul(width).min(bytes.len());
        let to = from.saturating_add(count.saturating_mul(width)).min(bytes.len());
        let bytes = &bytes[from..to];
        let halves = |widen: fn([u8; 2]) -> f32| {
            Cow::Owned(bytes.as_chunks().0.iter().map(|two| widen(*two)).collect::<Vec<f32>>())
        };
        match tensor.form {
            // Every tensor that is used was checked to be aligned.
            Form::F32 => bytemuck::try_cast_slice(bytes).map_or(Cow::Borrowed(&[]), Cow::Borrowed),
            Form::F16 => halves(|two| f16::from_le_bytes(two).to_f32()),
            Form::Bf16 => halves(|two| bf16::from_le_bytes(two).to_f32()),
        }
    }

    /// The form of the numbers, for people.
    pub(crate) fn form_of(&self, name: &str) -> &'static str {
        match self.tensors.get(name).map(|tensor| tensor.form) {
            Some(Form::F32) => "f32",
            Some(Form::F16) => "f16",
            Some(Form::Bf16) => "bf16",
            None => "none",
        }
    }
}

fn width(form: Form) -> usize {
    if form == Form::F32 { 4 } else { 2 }
}
