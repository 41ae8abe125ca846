//! Vectors and queries as the kernels read them.
//!
//! Rows are padded with zeros to a multiple of [`PADDED`] components, which changes no product and no distance.

use half::f16;
use holotype_index::rows::EncodedRows;
use holotype_index::{Encoding, VectorSpec};

/// Rows on the device are a multiple of so many components.
const PADDED: usize = 32;

/// The dimension of a row on the device.
pub(crate) fn padded(dim: usize) -> usize {
    dim.next_multiple_of(PADDED)
}

/// Bytes of a row on the device.
pub(crate) fn stride(spec: &VectorSpec) -> usize {
    padded(spec.dim) * spec.encoding.component_len()
}

/// The bytes of rows `first` to `first + count`, padded.
pub(crate) fn rows(spec: &VectorSpec, encoded: &EncodedRows<'_>, first: usize, count: usize) -> Vec<u8> {
    let width = spec.dim * spec.encoding.component_len();
    let bytes = &encoded.bytes[first * width..(first + count) * width];
    let stride = stride(spec);
    if stride == width {
        return bytes.to_vec();
    }
    let mut padded = vec![0; count * stride];
    for (to, from) in padded.chunks_exact_mut(stride).zip(bytes.chunks_exact(width)) {
        to[..width].copy_from_slice(from);
    }
    padded
}

/// The length of the longest of all rows, rounded up.
pub(crate) fn longest(spec: &VectorSpec, encoded: &EncodedRows<'_>) -> f64 {
    let width = spec.dim * spec.encoding.component_len();
    let squared = |row: &[u8]| -> f64 {
        match spec.encoding {
            Encoding::F32 => row.as_chunks().0.iter().map(|x| f64::from(f32::from_ne_bytes(*x)).powi(2)).sum(),
            Encoding::F16 => {
                row.as_chunks().0.iter().map(|x| f16::from_bits(u16::from_ne_bytes(*x)).to_f64().powi(2)).sum()
            }
            Encoding::I8 => row.iter().map(|x| f64::from(*x as i8).powi(2)).sum(),
        }
    };
    let scale = |row: usize| encoded.scales.get(row).map_or(1.0, |scale| f64::from(*scale).powi(2));
    let squares = encoded.bytes.chunks_exact(width).enumerate().map(|(at, row)| squared(row) * scale(at));
    squares.fold(0.0, f64::max).sqrt() * (1.0 + 1e-9)
}

/// The length of a query, rounded up.
pub(crate) fn length(query: &[f32]) -> f64 {
    query.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt() * (1.0 + 1e-9)
}

/// Queries as rows of floats, padded, and as many rows of zeros behind them as make a multiple of `multiple`.
pub(crate) fn queries(queries: &[&[f32]], dim: usize, multiple: usize) -> Vec<f32> {
    let mut all = vec![0.0; queries.len().next_multiple_of(multiple) * dim];
    for (to, query) in all.chunks_exact_mut(dim).zip(queries) {
        to[..query.len()].copy_from_slice(query);
    }
    all
}

/// Queries as rows of halves, likewise. Each is scaled by a power of two that brings its largest component to
/// [2^13, 2^14). Beside them its squared length, and what one unit of its halves is worth.
pub(crate) fn halves(queries: &[&[f32]], dim: usize, multiple: usize) -> (Vec<u16>, Vec<[f32; 2]>) {
    let mut all = vec![0; queries.len().next_multiple_of(multiple) * dim];
    let mut measures = Vec::with_capacity(queries.len());
    for (to, query) in all.chunks_exact_mut(dim).zip(queries) {
        let largest = query.iter().fold(0f32, |largest, x| largest.max(x.abs()));
        // The largest is in [2^(e - 1), 2^e); what follows has a reciprocal.
        let exponent = ((largest.to_bits() >> 23) as i32 - 126 - 14).clamp(-126, 126);
        let unit = f32::from_bits(((exponent + 127) as u32) << 23);
        for (half, x) in to.iter_mut().zip(*query) {
            *half = f16::from_f32(x / unit).to_bits();
        }
        let squared: f64 = query.iter().map(|x| f64::from(*x).powi(2)).sum();
        measures.push([squared as f32, unit]);
    }
    (all, measures)
}

/// A key of a kernel: the rank in ascending bits above the position.
pub(crate) fn rank_of(key: u64) -> f32 {
    let bits = (key >> 32) as u32;
    f32::from_bits(if bits >> 31 == 1 { bits & 0x7fff_ffff } else { !bits })
}

/// The position of a key.
pub(crate) fn position_of(key: u64) -> usize {
    (key & 0xffff_ffff) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use holotype_index::Metric;

    #[test]
    fn rows_are_padded_with_zeros() {
        let spec = VectorSpec::new(3, Metric::Dot, Encoding::I8).unwrap();
        let encoded = EncodedRows { bytes: &[1, 2, 3, 4, 5, 252], scales: &[0.5, 2.0] };
        let padded = rows(&spec, &encoded, 1, 1);
        assert_eq!((padded.len(), &padded[..4]), (32, &[4, 5, 252, 0][..]));
        assert!((longest(&spec, &encoded) - 2.0 * (16.0 + 25.0 + 16.0f64).sqrt()).abs() < 1e-6);
        let whole = VectorSpec::new(32, Metric::Dot, Encoding::I8).unwrap();
        let bytes: Vec<u8> = (0..64).collect();
        assert_eq!(rows(&whole, &EncodedRows { bytes: &bytes, scales: &[1.0; 2] }, 1, 1), &bytes[32..]);
    }

    #[test]
    fn halves_keep_their_worth_at_any_length() {
        for length in [1e-40f32, 1e-20, 1.0, 3e18] {
            let query = [length, -length / 3.0, 0.0];
            let (all, measures) = halves(&[&query], 32, 64);
            let [squared, unit] = measures[0];
            let back: Vec<f64> = all[..3].iter().map(|bits| f16::from_bits(*bits).to_f64() * f64::from(unit)).collect();
            for (x, y) in query.iter().zip(back) {
                assert!((f64::from(*x) - y).abs() <= f64::from(length) / 1024.0, "{x} {y}");
            }
            assert_eq!(all.len(), 64 * 32);
            let exact = f64::from(length).powi(2) * 10.0 / 9.0;
            assert!((f64::from(squared) - exact).abs() <= exact * 1e-5 + 1e-44);
        }
        assert_eq!(halves(&[&[0.0; 4]], 32, 64).0, vec![0; 64 * 32]);
    }

    #[test]
    fn keys_are_read_as_they_are_made() {
        for rank in [0.0f32, -0.0, 1.5, -7.25, f32::MIN_POSITIVE] {
            let bits = rank.to_bits();
            let ascending = if bits >> 31 == 1 { !bits } else { bits | 0x8000_0000 };
            let key = u64::from(ascending) << 32 | 77;
            assert_eq!((rank_of(key).to_bits(), position_of(key)), (bits, 77));
        }
    }
}
