//! Products of matrices in row-major order, by `gemm`, behind checked bounds.
//!
//! The only unsafe code of the crate: each operand is a slice with a stride between its rows, and every element that
//! the product reads or writes is checked to lie in it.
#![allow(unsafe_code, reason = "gemm takes pointers")]

use gemm::{Parallelism, gemm};

/// A matrix in a slice: row r begins at `r * stride`.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a> {
    pub(crate) numbers: &'a [f32],
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) stride: usize,
}

impl<'a> Matrix<'a> {
    /// A matrix whose rows follow each other.
    pub(crate) fn dense(numbers: &'a [f32], rows: usize, columns: usize) -> Matrix<'a> {
        Matrix { numbers, rows, columns, stride: columns }
    }
}

/// The way in which the right operand stands in its slice.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Right {
    /// As it is: inner x columns.
    Plain,
    /// Transposed: columns x inner, as weights are stored.
    Transposed,
}

/// `out = beta * out + left * right`, with `beta` 1 if `adds`, else 0. Row r of `out` begins at `r * out_stride`.
///
/// # Panics
/// If an operand is shorter than its shape says, or the shapes do not fit.
pub(crate) fn multiply(
    left: Matrix<'_>,
    (right, form): (Matrix<'_>, Right),
    out: &mut [f32],
    out_stride: usize,
    adds: bool,
) {
    let (inner, columns) = match form {
        Right::Plain => (right.rows, right.columns),
        Right::Transposed => (right.columns, right.rows),
    };
    let rows = left.rows;
    if rows == 0 || columns == 0 {
        return;
    }
    assert_eq!(left.columns, inner, "the inner dimensions of a product");
    for matrix in [left, right] {
        assert!(matrix.columns <= matrix.stride && extent(matrix) <= matrix.numbers.len(), "an operand of a product");
    }
    assert!(columns <= out_stride && (rows - 1) * out_stride + columns <= out.len(), "the result of a product");
    let stride = |stride: usize| isize::try_from(stride).unwrap_or(isize::MAX);
    let (right_columns, right_rows) = match form {
        Right::Plain => (1, stride(right.stride)),
        Right::Transposed => (stride(right.stride), 1),
    };
    // SAFETY: the operands are slices of which every element (r, c) that the product touches, at r * stride + c, was
    // checked to be in bounds above; `out` is borrowed mutably, so it overlaps neither of them.
    unsafe {
        gemm(
            rows,
            columns,
            inner,
            out.as_mut_ptr(),
            1,
            stride(out_stride),
            adds,
            left.numbers.as_ptr(),
            1,
            stride(left.stride),
            right.numbers.as_ptr(),
            right_columns,
            right_rows,
            1.0_f32,
            1.0_f32,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

/// The elements up to the last one of a matrix.
fn extent(matrix: Matrix<'_>) -> usize {
    matrix.rows.checked_sub(1).map_or(0, |before| before * matrix.stride + matrix.columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_the_definition() {
        let number = |seed: usize| (seed * 7919 % 13) as f32 - 6.0;
        for (rows, inner, columns) in [(1, 1, 1), (3, 4, 5), (17, 33, 9)] {
            let left: Vec<f32> = (0..rows * (inner + 2)).map(number).collect();
            let right: Vec<f32> = (0..columns * inner).map(|at| number(at + 5)).collect();
            let left = Matrix { numbers: &left, rows, columns: inner, stride: inner + 2 };
            let mut out = vec![1.0; rows * columns];
            multiply(left, (Matrix::dense(&right, columns, inner), Right::Transposed), &mut out, columns, true);
            let mut plain = vec![0.0; rows * columns];
            let turned: Vec<f32> = (0..inner * columns).map(|at| right[at % columns * inner + at / columns]).collect();
            multiply(left, (Matrix::dense(&turned, inner, columns), Right::Plain), &mut plain, columns, false);
            for (at, found) in out.iter().enumerate() {
                let (row, column) = (at / columns, at % columns);
                let product = (0..inner).map(|i| left.numbers[row * left.stride + i] * right[column * inner + i]);
                let product: f32 = product.sum();
                assert_eq!((*found, plain[at]), (product + 1.0, product));
            }
        }
    }

    #[test]
    #[should_panic(expected = "an operand of a product")]
    fn an_operand_that_is_too_short_is_refused() {
        let left = Matrix { numbers: &[1.0; 5], rows: 2, columns: 3, stride: 3 };
        multiply(left, (Matrix::dense(&[1.0; 3], 1, 3), Right::Transposed), &mut [0.0; 2], 1, false);
    }
}
