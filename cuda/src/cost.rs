//! When a GPU pays: an estimate of both times, in seconds.
//!
//! | part | cost |
//! |---|---|
//! | each launch with its arguments and answers | [`LAUNCH`] |
//! | a component of a query of `many`, prepared and compared with candidates | [`QUERY`] |
//! | bytes that are not on the device yet | at [`COPY`] |
//! | bytes of vectors, once a pass of `few` or of `many` | at [`BANDWIDTH`] |
//! | products of `many` | at [`TENSOR_PRODUCTS`] |
//! | the same comparisons on the CPU | at [`CPU_PRODUCTS`] on one core, or at [`CPU_BANDWIDTH`] once a batch |
//!
//! Launches (a third more), queries and copies are as measured on an H200 (docs/gpu.md); a copy includes the CPU's
//! checks of what it copies. The bandwidth and the products are those of a small device, a tenth of an H200's, so that
//! `auto` errs towards the CPU.

/// Queries of one pass of `few`.
pub(crate) const FEW: usize = 8;

/// Queries of one run of `many`.
pub(crate) const MANY: usize = 1024;

/// Comparisons that a walk spares beside exact neighbours, in the build of a graph.
const WALKED: f64 = 4_800.0;

const LAUNCH: f64 = 40e-6;
const QUERY: f64 = 8e-9;
const COPY: f64 = 1e9;
const BANDWIDTH: f64 = 250e9;
const TENSOR_PRODUCTS: f64 = 10e12;
const CPU_PRODUCTS: f64 = 60e9;
const CPU_BANDWIDTH: f64 = 12e9;

/// A batch as the estimate sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// Vectors, and how many of them match.
    pub(crate) count: usize,
    pub(crate) matching: usize,
    pub(crate) dim: usize,
    /// Bytes of a vector on the device.
    pub(crate) stride: usize,
    pub(crate) queries: usize,
    pub(crate) k: usize,
    /// The vectors are on the device.
    pub(crate) resident: bool,
}

impl Work {
    /// The time of the device.
    pub(crate) fn device_s(&self) -> f64 {
        let bytes = (self.count * self.stride) as f64;
        let copied = if self.resident { 0.0 } else { bytes / COPY };
        let read = bytes * self.matching as f64 / self.count.max(1) as f64;
        if self.queries <= FEW {
            let passes = (self.k as f64 / 112.0).ceil();
            return copied + passes * (2.0 * LAUNCH + read / BANDWIDTH);
        }
        let runs = self.queries.div_ceil(MANY) as f64;
        // The first stretch has 1,024 vectors, and each other three times as many as all before.
        let stretches = (self.count as f64 / 1024.0).max(1.0).log(4.0).ceil() + 1.0;
        let products = self.queries as f64 * self.matching as f64 * self.dim as f64;
        let launches = runs * (2.0 * stretches + 4.0) * LAUNCH + (self.queries * self.dim) as f64 * QUERY;
        copied + launches + runs * read / BANDWIDTH + products / TENSOR_PRODUCTS
    }

    /// The time of the CPU.
    pub(crate) fn cpu_s(&self) -> f64 {
        let products = self.queries as f64 * self.matching as f64 * self.dim as f64;
        let bytes = self.matching as f64 * self.stride as f64;
        products / CPU_PRODUCTS + bytes / CPU_BANDWIDTH
    }

    /// True if the device is expected to find exact neighbours of the queries in less time than walks on the CPU.
    pub(crate) fn favours_lists(&self) -> bool {
        self.device_s() < self.queries as f64 * WALKED * self.dim as f64 / CPU_PRODUCTS
    }

    /// True if the device is expected to take less time.
    pub(crate) fn favours_device(&self) -> bool {
        self.queries > 0 && self.device_s() < self.cpu_s()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORK: Work =
        Work { count: 1_000_000, matching: 1_000_000, dim: 384, stride: 768, queries: 1, k: 10, resident: true };

    #[test]
    fn what_is_copied_for_one_query_stays_on_the_cpu() {
        assert!(WORK.favours_device());
        assert!(!Work { resident: false, ..WORK }.favours_device());
        assert!(!Work { count: 1000, matching: 1000, ..WORK }.favours_device());
        assert!(!Work { matching: 100, queries: 1000, ..WORK }.favours_device());
    }

    #[test]
    fn neighbour_lists_pay_until_a_walk_sees_much_less_than_all() {
        let lists = Work { queries: 512, k: 65, ..WORK };
        assert!(Work { count: 100_000, matching: 100_000, ..lists }.favours_lists());
        assert!(!Work { count: 10_000_000, matching: 10_000_000, ..lists }.favours_lists());
    }

    #[test]
    fn many_queries_pay_for_the_copy() {
        assert!(Work { queries: 1000, resident: false, ..WORK }.favours_device());
        assert!(!Work { queries: 0, ..WORK }.favours_device());
        assert!(!Work { count: 0, matching: 0, ..WORK }.favours_device());
    }
}
