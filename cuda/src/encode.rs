//! Vectors and queries as the kernels read them.
//!
//! Rows are padded with zeros to a multiple of [`PADDED`] components, which changes no product and no distance.

use half::f16;
use half::slice::HalfFloatSliceExt;
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
    let mut row = vec![0f32; spec.dim];
    let mut most = 0f64;
    for (at, bytes) in encoded.bytes.chunks_exact(width).enumerate() {
        match spec.encoding {
            Encoding::F32 => {
                row.iter_mut().zip(bytes.as_chunks().0).for_each(|(to, from)| *to = f32::from_ne_bytes(*from));
            }
            Encoding::F16 => widen(bytes, &mut row),
            Encoding::I8 => row.iter_mut().zip(bytes).for_each(|(to, from)| *to = f32::from(*from as i8)),
        }
        let scale = encoded.scales.get(at).map_or(1.0, |scale| f64::from(*scale).abs());
        most = most.max(length(&row) * scale);
    }
    most * (1.0 + 1e-9)
}

/// Halves as floats.
fn widen(bytes: &[u8], to: &mut [f32]) {
    let mut halves = [f16::ZERO; 64];
    for (to, from) in to.chunks_mut(halves.len()).zip(bytes.chunks(2 * halves.len())) {
        for (half, bits) in halves.iter_mut().zip(from.as_chunks().0) {
            *half = f16::from_bits(u16::from_ne_bytes(*bits));
        }
        halves[..to.len()].convert_to_f32_slice(to);
    }
}

/// The length of a vector, rounded up.
///
/// Eight sums in single precision, whose relative error is below (n + 8) 2^-24 unless they overflow or underflow;
/// then it is computed in double precision.
pub(crate) fn length(vector: &[f32]) -> f64 {
    let (lines, rest) = vector.as_chunks::<8>();
    let mut sums = [0f32; 8];
    for line in lines {
        for (sum, x) in sums.iter_mut().zip(line) {
            *sum += x * x;
        }
    }
    let squared = sums.iter().sum::<f32>() + rest.iter().map(|x| x * x).sum::<f32>();
    if (1e-20..1e30).contains(&squared) {
        return f64::from(squared).sqrt() * (1.0 + (vector.len() + 16) as f64 * 2f64.powi(-24));
    }
    vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt() * (1.0 + 1e-9)
}

/// The worth of one unit of the halves of a query: a power of two that brings its largest component to [2^13, 2^14).
fn unit_of(query: &[f32]) -> f32 {
    // Eight at a time, so that they do not wait for each other.
    let (lines, rest) = query.as_chunks::<8>();
    let mut most = [0f32; 8];
    for line in lines {
        most.iter_mut().zip(line).for_each(|(most, x)| *most = if x.abs() > *most { x.abs() } else { *most });
    }
    let largest = most.iter().chain(rest).fold(0f32, |largest, x| largest.max(x.abs()));
    // The largest is in [2^(e - 1), 2^e); what follows has a reciprocal.
    let exponent = ((largest.to_bits() >> 23) as i32 - 126 - 14).clamp(-126, 126);
    f32::from_bits(((exponent + 127) as u32) << 23)
}

/// The squared length of a query, and what one unit of its halves is worth.
fn measure(query: &[f32], unit: f32) -> [f32; 2] {
    let (lines, rest) = query.as_chunks::<8>();
    let mut sums = [0f64; 8];
    for line in lines {
        sums.iter_mut().zip(line).for_each(|(sum, x)| *sum += f64::from(*x).powi(2));
    }
    let squared = sums.iter().sum::<f64>() + rest.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
    [squared as f32, unit]
}

/// Queries as rows of halves, padded, and as many rows of zeros behind them as make a multiple of `multiple`. Each is
/// scaled by a power of two that brings its largest component to [2^13, 2^14). Beside them its squared length, and
/// what one unit of its halves is worth.
pub(crate) fn halves(queries: &[&[f32]], dim: usize, multiple: usize) -> (Vec<f16>, Vec<[f32; 2]>) {
    let mut all = vec![f16::ZERO; queries.len().next_multiple_of(multiple) * dim];
    let mut measures = Vec::with_capacity(queries.len());
    let mut scaled = vec![0f32; dim];
    for (to, query) in all.chunks_exact_mut(dim).zip(queries) {
        let unit = unit_of(query);
        // The reciprocal of a power of two.
        let inverse = 1.0 / unit;
        scaled.iter_mut().zip(*query).for_each(|(to, x)| *to = x * inverse);
        to[..query.len()].convert_from_f32_slice(&scaled[..query.len()]);
        measures.push(measure(query, unit));
    }
    (all, measures)
}

/// Bytes of a vector that the lanes of a warp load together, and of a lane.
const SLICE_LEN: usize = 64;
const LANE_LEN: usize = 16;

/// The places of the two halves of a component of a query among those that kernel `few` reads.
///
/// A vector is read by slices, 16 bytes of one by a lane: lane / 4 is its query, lane % 4 tells which bytes. For each
/// slice and each eight components of a lane, there are eight upper halves of each lane and then eight lower ones; a
/// lane has four components of f32, whose upper and lower halves stand together.
pub(crate) fn split_place(encoding: Encoding, query: usize, component: usize) -> [usize; 2] {
    let own = LANE_LEN / encoding.component_len();
    let (slice, within) = (component / (4 * own), component % (4 * own));
    let lane = query * 4 + within / own;
    if encoding == Encoding::F32 {
        return [0, 1].map(|part| (slice * 32 + lane) * 8 + part * 4 + component % 4);
    }
    let piece = slice * (own / 8) + within % own / 8;
    [0, 1].map(|part| ((piece * 2 + part) * 32 + lane) * 8 + component % 8)
}

/// Up to eight queries as two halves for each component, whose sum is the component but for 2^-22 of it; scaled as by
/// [`halves`], and with the same beside them. `stride` is that of a vector.
pub(crate) fn split_queries(queries: &[&[f32]], encoding: Encoding, stride: usize) -> (Vec<u16>, Vec<[f32; 2]>) {
    let own = LANE_LEN / encoding.component_len();
    let mut all = vec![0; stride.div_ceil(SLICE_LEN) * 2 * own * 32];
    let mut measures = Vec::with_capacity(queries.len());
    for (at, query) in queries.iter().enumerate() {
        let unit = unit_of(query);
        for (component, x) in query.iter().enumerate() {
            let [upper, lower] = split_place(encoding, at, component);
            let scaled = x / unit;
            let half = f16::from_f32(scaled);
            all[upper] = half.to_bits();
            all[lower] = f16::from_f32(scaled - half.to_f32()).to_bits();
        }
        measures.push(measure(query, unit));
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
        let encoded = EncodedRows { bytes: [1, 2, 3, 4, 5, 252].as_slice().into(), scales: &[0.5, 2.0] };
        let padded = rows(&spec, &encoded, 1, 1);
        assert_eq!((padded.len(), &padded[..4]), (32, &[4, 5, 252, 0][..]));
        assert!((longest(&spec, &encoded) - 2.0 * (16.0 + 25.0 + 16.0f64).sqrt()).abs() < 1e-4);
        let whole = VectorSpec::new(32, Metric::Dot, Encoding::I8).unwrap();
        let bytes: Vec<u8> = (0..64).collect();
        assert_eq!(rows(&whole, &EncodedRows { bytes: (&bytes[..]).into(), scales: &[1.0; 2] }, 1, 1), &bytes[32..]);
    }

    #[test]
    fn halves_keep_their_worth_at_any_length() {
        for length in [1e-40f32, 1e-20, 1.0, 3e18] {
            let query = [length, -length / 3.0, 0.0];
            let (all, measures) = halves(&[&query], 32, 64);
            let [squared, unit] = measures[0];
            let back: Vec<f64> = all[..3].iter().map(|half| half.to_f64() * f64::from(unit)).collect();
            for (x, y) in query.iter().zip(back) {
                assert!((f64::from(*x) - y).abs() <= f64::from(length) / 1024.0, "{x} {y}");
            }
            assert_eq!(all.len(), 64 * 32);
            let exact = f64::from(length).powi(2) * 10.0 / 9.0;
            assert!((f64::from(squared) - exact).abs() <= exact * 1e-5 + 1e-44);
        }
        assert_eq!(halves(&[&[0.0; 4]], 32, 64).0, vec![f16::ZERO; 64 * 32]);
    }

    #[test]
    fn lengths_are_rounded_up_and_hardly_more() {
        for (dim, size) in [(1, 1.0f32), (7, 1e-3), (384, 1.0), (4096, 77.0), (9, 1e-30), (40, 1e25), (5, 0.0)] {
            let vector: Vec<f32> = (0..dim).map(|i| size * ((i * 37 % 101) as f32 - 50.0) / 50.0).collect();
            let exact = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
            let found = length(&vector);
            assert!(found >= exact && found <= exact * (1.0 + 1e-3), "{dim} {size}: {found} {exact}");
            for (encoding, most) in [(Encoding::F32, 0.0), (Encoding::F16, 1e-3)] {
                let spec = VectorSpec::new(dim, Metric::Dot, encoding).unwrap();
                let bytes: Vec<u8> = match encoding {
                    Encoding::F16 => vector.iter().flat_map(|x| f16::from_f32(*x).to_bits().to_ne_bytes()).collect(),
                    _ => vector.iter().flat_map(|x| x.to_ne_bytes()).collect(),
                };
                let longest = longest(&spec, &EncodedRows { bytes: (&bytes[..]).into(), scales: &[] });
                let near = longest >= exact * (1.0 - most) && longest <= exact * 1.01;
                assert!(near || encoding == Encoding::F16 && !(1e-3..1e4).contains(&size), "{longest} {exact}");
            }
        }
    }

    #[test]
    fn two_halves_have_the_worth_of_a_component() {
        for (encoding, dim) in [(Encoding::F16, 40), (Encoding::I8, 70), (Encoding::F32, 33)] {
            let stride = padded(dim) * encoding.component_len();
            let query: Vec<f32> = (0..dim).map(|i| (i as f32 + 0.123_456_7) * 10f32.powi(i as i32 % 9 - 6)).collect();
            let queries = vec![query.as_slice(); 8];
            let (all, measures) = split_queries(&queries, encoding, stride);
            let largest = query.iter().fold(0f32, |a, b| a.max(*b));
            for (at, [_, unit]) in measures.iter().enumerate() {
                for (component, x) in query.iter().enumerate() {
                    let both = split_place(encoding, at, component).map(|place| f16::from_bits(all[place]).to_f64());
                    let worth = (both[0] + both[1]) * f64::from(*unit);
                    let most = f64::from(*x) * 2f64.powi(-22) + f64::from(largest) * 2f64.powi(-38);
                    assert!((worth - f64::from(*x)).abs() <= most, "{encoding:?} {component}: {worth} {x}");
                }
            }
            let used = all.iter().filter(|half| **half != 0).count();
            assert!(used > 8 * dim && used <= 2 * 8 * dim);
        }
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
