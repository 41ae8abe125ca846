//! The specification of a vector space: dimension, metric and encoding.
//!
//! A score is a similarity; larger is nearer. A vector has the same score in the tail and in a segment:
//!
//! | metric | score of query q and vector v |
//! |---|---|
//! | cosine | q.v / (abs(q) abs(v)), and 0 if either is the zero vector |
//! | dot | q.v |
//! | l2 | 1 / (1 + abs(q - v)) |
//!
//! Under cosine, vectors are normalised before they are stored, so the score is a dot product.

use crate::error::{Error, Result};

/// The largest dimension: up to it, sums of squared differences of eight-bit codes fit 31 bits.
pub const MAX_DIM: usize = 32_768;

/// Below this squared length, neither a dot product nor a distance can overflow an `f32`.
const MAX_SQUARED_LENGTH: f64 = 1e37;

/// The measure of similarity of two vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Metric {
    /// The cosine of the angle.
    Cosine,
    /// The dot product.
    Dot,
    /// The Euclidean distance.
    L2,
}

impl Metric {
    /// The names of all metrics.
    pub const NAMES: &'static [&'static str] = &[Self::Cosine.name(), Self::Dot.name(), Self::L2.name()];

    /// Its name in text and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cosine => "cosine",
            Self::Dot => "dot",
            Self::L2 => "l2",
        }
    }

    /// The metric of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Cosine, Self::Dot, Self::L2].into_iter().find(|metric| metric.name() == name)
    }

    /// Its number in segment headers.
    pub const fn code(self) -> u8 {
        match self {
            Self::Cosine => 0,
            Self::Dot => 1,
            Self::L2 => 2,
        }
    }
}

/// The encoding of exact vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Four bytes per component.
    F32,
    /// Two bytes per component, IEEE 754 binary16.
    F16,
    /// One byte per component and one `f32` scale per vector.
    I8,
}

impl Encoding {
    /// The names of all encodings.
    pub const NAMES: &'static [&'static str] = &[Self::F32.name(), Self::F16.name(), Self::I8.name()];

    /// Its name in text and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::I8 => "i8",
        }
    }

    /// The encoding of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::F32, Self::F16, Self::I8].into_iter().find(|encoding| encoding.name() == name)
    }

    /// The length of a component in bytes.
    pub const fn component_len(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 => 2,
            Self::I8 => 1,
        }
    }

    /// Its number in segment headers.
    pub const fn code(self) -> u8 {
        match self {
            Self::F32 => 0,
            Self::F16 => 1,
            Self::I8 => 2,
        }
    }
}

/// The specification of a layer's vector space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VectorSpec {
    /// The number of components, 1 to [`MAX_DIM`].
    pub dim: usize,
    /// The metric of vectors.
    pub metric: Metric,
    /// The encoding of exact vectors.
    pub encoding: Encoding,
}

/// A squared length that differs from one by no more than what rounding its components to f32 does.
const ROUNDED_UNIT: f64 = 1e-6;

impl VectorSpec {
    /// The space with that dimension, metric and encoding.
    ///
    /// # Errors
    /// [`Error::Space`] if the dimension is 0 or above [`MAX_DIM`].
    pub fn new(dim: usize, metric: Metric, encoding: Encoding) -> Result<Self> {
        if dim == 0 || dim > MAX_DIM {
            return Err(Error::Space { dim, max: MAX_DIM });
        }
        Ok(Self { dim, metric, encoding })
    }

    /// Checks that `vector` can be stored in this space, and used as a query.
    ///
    /// # Errors
    /// [`Error::Dimension`], [`Error::NotFinite`], or [`Error::TooLarge`] if the metric uses lengths and this one would
    /// overflow.
    pub fn check(&self, vector: &[f32]) -> Result<()> {
        if vector.len() != self.dim {
            return Err(Error::Dimension { expected: self.dim, found: vector.len() });
        }
        // A fold without early exit is faster; the position is searched only if there is one.
        if vector.iter().fold(false, |found, x| found | !x.is_finite()) {
            let position = vector.iter().position(|x| !x.is_finite()).unwrap_or(0);
            return Err(Error::NotFinite { position, value: vector[position] });
        }
        if self.metric == Metric::Cosine {
            return Ok(());
        }
        let squared: f64 = vector.iter().map(|x| f64::from(*x).powi(2)).sum();
        if squared > MAX_SQUARED_LENGTH {
            return Err(Error::TooLarge {
                encoding: self.encoding.name(),
                what: format!("its squared length is {squared:.3e}; the limit is {MAX_SQUARED_LENGTH:.0e}"),
            });
        }
        let max = f32::from(half::f16::MAX);
        match vector.iter().find(|x| x.abs() > max) {
            Some(x) if self.encoding == Encoding::F16 => {
                Err(Error::TooLarge { encoding: self.encoding.name(), what: format!("component {x:e} exceeds {max}") })
            }
            _ => Ok(()),
        }
    }

    /// `vector` as the metric compares it: of length one under cosine (zero stays zero), as given otherwise. A vector
    /// that has length one but for rounding stays as it is given: what is stored of it need not be stored again.
    pub fn prepare(&self, vector: &[f32]) -> Vec<f32> {
        if self.metric != Metric::Cosine {
            return vector.to_vec();
        }
        // Several sums, so that additions do not wait for each other.
        let (eights, rest) = vector.as_chunks::<8>();
        let mut sums = [0f64; 8];
        for eight in eights {
            sums.iter_mut().zip(eight).for_each(|(sum, x)| *sum += f64::from(*x).powi(2));
        }
        let squared: f64 = sums.iter().sum::<f64>() + rest.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
        if squared == 0.0 {
            return vec![0.0; vector.len()];
        }
        if (squared - 1.0).abs() <= ROUNDED_UNIT {
            return vector.to_vec();
        }
        let inverse = 1.0 / squared.sqrt();
        vector.iter().map(|x| (f64::from(*x) * inverse) as f32).collect()
    }

    /// Converts a kernel's result to a score: a dot product under cosine and dot, a squared distance under l2.
    #[inline]
    pub fn score(&self, raw: f32) -> f32 {
        match self.metric {
            Metric::Cosine => raw.clamp(-1.0, 1.0),
            Metric::Dot => raw,
            Metric::L2 => 1.0 / (1.0 + raw.max(0.0).sqrt()),
        }
    }
}

impl std::fmt::Display for VectorSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { dim, metric, encoding } = self;
        write!(f, "{dim} dimensions, {}, {}", metric.name(), encoding.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(metric: Metric, encoding: Encoding) -> VectorSpec {
        VectorSpec::new(3, metric, encoding).unwrap()
    }

    #[test]
    fn refuses_what_it_cannot_compare() {
        let s = spec(Metric::L2, Encoding::F16);
        assert!(matches!(s.check(&[1.0]), Err(Error::Dimension { expected: 3, found: 1 })));
        assert!(matches!(s.check(&[0.0, f32::NAN, 0.0]), Err(Error::NotFinite { position: 1, .. })));
        assert!(matches!(s.check(&[0.0, 70_000.0, 0.0]), Err(Error::TooLarge { .. })));
        assert!(spec(Metric::L2, Encoding::F32).check(&[0.0, 70_000.0, 0.0]).is_ok());
        assert!(matches!(spec(Metric::Dot, Encoding::F32).check(&[3e19, 0.0, 0.0]), Err(Error::TooLarge { .. })));
        assert!(spec(Metric::Cosine, Encoding::F16).check(&[3e38, 3e38, 3e38]).is_ok());
        assert!(VectorSpec::new(0, Metric::Dot, Encoding::F32).is_err());
        assert!(VectorSpec::new(MAX_DIM + 1, Metric::Dot, Encoding::F32).is_err());
    }

    #[test]
    fn cosine_normalises_extremes_and_keeps_zero() {
        let s = spec(Metric::Cosine, Encoding::F32);
        for scale in [1e-38, 1.0, 1e38] {
            let v = s.prepare(&[0.0, 3.0 * scale, 1.0 * scale]);
            let length: f32 = v.iter().map(|x| x * x).sum();
            assert!((length - 1.0).abs() < 1e-5, "{scale}: {length}");
        }
        assert_eq!(s.prepare(&[0.0; 3]), vec![0.0; 3]);
    }

    #[test]
    fn what_was_normalised_is_not_changed_again() {
        let s = spec(Metric::Cosine, Encoding::F32);
        for i in 0..1000 {
            let once = s.prepare(&[(i as f32 * 0.7).sin(), (i as f32 * 1.3).cos(), i as f32 / 300.0]);
            assert_eq!(s.prepare(&once), once);
        }
        assert_ne!(s.prepare(&[0.6, 0.801, 0.0]), [0.6, 0.801, 0.0]);
    }

    #[test]
    fn names_and_codes_are_distinct_and_read_back() {
        for metric in [Metric::Cosine, Metric::Dot, Metric::L2] {
            assert_eq!(Metric::from_name(metric.name()), Some(metric));
        }
        for encoding in [Encoding::F32, Encoding::F16, Encoding::I8] {
            assert_eq!(Encoding::from_name(encoding.name()), Some(encoding));
        }
        assert_eq!(Metric::from_name("hamming"), None);
    }
}
