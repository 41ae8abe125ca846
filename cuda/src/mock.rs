//! A device in memory: buffers as bytes, kernels by their definition, and faults at any call.
//!
//! Ranks are off by nearly as much as the bounds allow, in the direction that hides the best: what survives them here
//! survives any device within the bounds.

use crate::bound::{Lengths, Precision};
use crate::driver::{Driver, Fault, Scan};
use crate::encode;
use half::f16;
use holotype_index::{Encoding, Metric};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Faults to come, shared with the test that orders them.
#[derive(Debug, Default)]
pub(crate) struct Weather {
    /// Calls so far.
    pub(crate) calls: AtomicU64,
    /// The call that fails; 0 for none.
    pub(crate) fails_at: AtomicU64,
    /// Parts of a thousand of the bounds that ranks are off.
    pub(crate) off: AtomicU64,
}

/// A device in memory.
#[derive(Debug)]
pub(crate) struct Mock {
    weather: Arc<Weather>,
    fault: Fault,
    lost: bool,
    free_len: u64,
    buffers: BTreeMap<u64, Vec<u8>>,
    next: u64,
}

impl Mock {
    /// A device with so much memory, which fails with `fault` when its weather says so.
    pub(crate) fn new(free_len: u64, fault: Fault, weather: &Arc<Weather>) -> Self {
        Self { weather: Arc::clone(weather), fault, lost: false, free_len, buffers: BTreeMap::new(), next: 1 << 20 }
    }

    fn call(&mut self) -> Result<(), Fault> {
        let call = self.weather.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if self.lost || call == self.weather.fails_at.load(Ordering::Relaxed) {
            self.lost = self.fault != Fault::OutOfMemory;
            return Err(self.fault.clone());
        }
        Ok(())
    }

    fn used(&self) -> u64 {
        self.buffers.values().map(|buffer| buffer.len() as u64).sum()
    }

    fn bytes(&self, from: u64, len: usize) -> &[u8] {
        let (base, buffer) = self.buffers.range(..=from).next_back().expect("a buffer");
        let start = (from - base) as usize;
        &buffer[start..start + len]
    }

    fn bytes_mut(&mut self, from: u64, len: usize) -> &mut [u8] {
        let (base, buffer) = self.buffers.range_mut(..=from).next_back().expect("a buffer");
        let start = (from - base) as usize;
        &mut buffer[start..start + len]
    }

    fn f32(&self, at: u64, index: u32) -> f32 {
        f32::from_ne_bytes(self.bytes(at + u64::from(index) * 4, 4).try_into().unwrap())
    }

    fn u32(&self, at: u64, index: u32) -> u32 {
        self.f32(at, index).to_bits()
    }

    fn u64(&self, at: u64, index: usize) -> u64 {
        u64::from_ne_bytes(self.bytes(at + index as u64 * 8, 8).try_into().unwrap())
    }

    fn put_u32(&mut self, at: u64, index: u32, value: u32) {
        self.bytes_mut(at + u64::from(index) * 4, 4).copy_from_slice(&value.to_ne_bytes());
    }

    fn put_u64(&mut self, at: u64, index: usize, value: u64) {
        self.bytes_mut(at + index as u64 * 8, 8).copy_from_slice(&value.to_ne_bytes());
    }

    fn matches(&self, scan: &Scan, position: u32) -> bool {
        scan.filter == 0 || self.u32(scan.filter, position / 32) >> (position % 32) & 1 == 1
    }

    /// A stored vector as it is meant.
    fn row(&self, kernel: &str, scan: &Scan, position: u32) -> Vec<f64> {
        let bytes = self.bytes(scan.rows + u64::from(position) * u64::from(scan.stride), scan.stride as usize);
        if kernel.contains("f32") {
            bytes.as_chunks().0.iter().map(|x| f64::from(f32::from_ne_bytes(*x))).collect()
        } else if kernel.contains("f16") {
            bytes.as_chunks().0.iter().map(|x| f16::from_bits(u16::from_ne_bytes(*x)).to_f64()).collect()
        } else {
            let scale = f64::from(self.f32(scan.scales, position));
            bytes.iter().map(|x| f64::from(*x as i8) * scale).collect()
        }
    }

    /// A query as it was given; of halves nearly.
    fn query(&self, kernel: &str, scan: &Scan, query: u32) -> Vec<f64> {
        let at = |component: u32| query * scan.dim + component;
        let unit = f64::from(self.f32(scan.query_measures, 2 * query + 1));
        let half = |place: usize| {
            let bytes = self.bytes(scan.halves + place as u64 * 2, 2).try_into().unwrap();
            f16::from_bits(u16::from_ne_bytes(bytes)).to_f64()
        };
        if kernel.starts_with("few") {
            let all = [("f32", Encoding::F32), ("f16", Encoding::F16), ("i8", Encoding::I8)];
            let encoding = all.into_iter().find(|(name, _)| kernel.contains(name)).expect("an encoding").1;
            let both = |i| encode::split_place(encoding, query as usize, i).map(half).iter().sum::<f64>();
            return (0..scan.dim as usize).map(|i| both(i) * unit).collect();
        }
        (0..scan.dim).map(|i| half(at(i) as usize) * unit).collect()
    }

    /// The rank of a vector, wrong by a part of the bound.
    fn rank(&self, kernel: &str, scan: &Scan, query: &[f64], position: u32) -> f32 {
        let row = self.row(kernel, scan, position);
        let pairs = || query.iter().zip(&row);
        let (metric, exact) = match kernel.ends_with("l2") {
            true => (Metric::L2, -pairs().map(|(a, b)| (a - b).powi(2)).sum::<f64>()),
            false => (Metric::Dot, pairs().map(|(a, b)| a * b).sum::<f64>()),
        };
        let length = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
        let lengths = Lengths { dim: scan.dim as usize, query: length(query), longest: length(&row) };
        let precision = if kernel.starts_with("few") { Precision::Split } else { Precision::Half };
        // Halves of the query are part of the error already.
        let most = 0.45 * self.weather.off.load(Ordering::Relaxed) as f64 / 1000.0;
        let off = most * lengths.kernel_error(metric, precision);
        // Larger ids, which win ties, are ranked lower.
        (if position.is_multiple_of(2) { exact + off } else { exact - off }) as f32
    }

    fn key(rank: f32, position: u32) -> u64 {
        let bits = rank.to_bits();
        let ascending = if bits >> 31 == 1 { !bits } else { bits | 0x8000_0000 };
        u64::from(ascending) << 32 | u64::from(position)
    }

    fn few(&mut self, kernel: &str, scan: &Scan) {
        for query in 0..scan.query_count {
            let components = self.query(kernel, scan, query);
            let limit = self.u64(scan.limits, query as usize);
            let matching = (scan.first..scan.first + scan.count).filter(|at| self.matches(scan, *at));
            let keys = matching.map(|at| Self::key(self.rank(kernel, scan, &components, at), at));
            let mut keys: Vec<u64> = keys.filter(|key| *key < limit).collect();
            keys.sort_unstable_by(|a, b| b.cmp(a));
            keys.resize(scan.k as usize, 0);
            for block in 0..scan.blocks {
                let at = (block * scan.query_count + query) as usize * scan.k as usize;
                for (i, key) in keys.iter().enumerate() {
                    self.put_u64(scan.lists, at + i, if block == 0 { *key } else { 0 });
                }
            }
        }
    }

    fn merge(&mut self, scan: &Scan) {
        let k = scan.k as usize;
        for query in 0..scan.query_count as usize {
            let at = |i: usize| ((i / k) * scan.query_count as usize + query) * k + i % k;
            let mut keys: Vec<u64> = (0..scan.blocks as usize * k).map(|i| self.u64(scan.lists, at(i))).collect();
            keys.sort_unstable_by(|a, b| b.cmp(a));
            for (i, key) in keys[..k].iter().enumerate() {
                self.put_u64(scan.answers, query * k + i, *key);
            }
        }
    }

    fn many(&mut self, kernel: &str, scan: &Scan) {
        for query in 0..scan.query_count {
            let components = self.query(kernel, scan, query);
            let limit = self.f32(scan.limits, query);
            for at in scan.first..scan.first + scan.count {
                let rank = self.rank(kernel, scan, &components, at);
                if !self.matches(scan, at) || rank < limit {
                    continue;
                }
                let slot = self.u32(scan.counts, query);
                self.put_u32(scan.counts, query, slot + 1);
                if slot < scan.capacity {
                    self.put_u64(scan.lists, (query * scan.capacity + slot) as usize, Self::key(rank, at));
                }
            }
        }
    }

    fn keep(&mut self, scan: &Scan) {
        for query in 0..scan.query_count {
            let found = self.u32(scan.counts, query);
            if found > scan.capacity {
                self.put_u32(scan.overflowed, query, 1);
                self.put_u32(scan.counts, query, 0);
                self.put_u32(scan.limits, query, f32::INFINITY.to_bits());
                continue;
            }
            let list = |i: u32| (query * scan.capacity + i) as usize;
            let mut keys: Vec<u64> = (0..found).map(|i| self.u64(scan.lists, list(i))).collect();
            keys.sort_unstable_by(|a, b| b.cmp(a));
            if found >= scan.k {
                let kth = encode::rank_of(keys[scan.k as usize - 1]);
                let (margin, ceiling) = (self.f32(scan.margins, 2 * query), self.f32(scan.margins, 2 * query + 1));
                let least = if kth - margin < -ceiling { f32::NEG_INFINITY } else { kth.min(ceiling) - margin };
                keys.retain(|key| encode::rank_of(*key) >= least);
                self.put_u32(scan.limits, query, least.to_bits());
                self.put_u32(scan.counts, query, keys.len() as u32);
            }
            for (i, key) in (0..).zip(&keys) {
                self.put_u64(scan.lists, list(i), *key);
                if i < scan.room {
                    self.put_u64(scan.answers, (query * scan.room + i) as usize, *key);
                }
            }
            if scan.room > 0 && keys.len() > scan.room as usize {
                self.put_u32(scan.overflowed, query, 1);
            }
        }
    }
}

impl Driver for Mock {
    fn device(&self) -> &str {
        "device in memory"
    }

    fn multiprocessors(&self) -> u32 {
        2
    }

    fn free_len(&mut self) -> Result<u64, Fault> {
        self.call()?;
        Ok(self.free_len - self.used())
    }

    fn allocate(&mut self, len: usize) -> Result<u64, Fault> {
        self.call()?;
        assert!(len > 0, "a buffer of nothing");
        if self.used() + len as u64 > self.free_len {
            return Err(Fault::OutOfMemory);
        }
        let address = self.next;
        self.next += (len as u64).next_multiple_of(256) + 256;
        self.buffers.insert(address, vec![0xff; len]);
        Ok(address)
    }

    fn free(&mut self, address: u64) -> Result<(), Fault> {
        self.call()?;
        assert!(self.buffers.remove(&address).is_some(), "freed twice");
        Ok(())
    }

    fn write(&mut self, to: u64, bytes: &[u8]) -> Result<(), Fault> {
        self.call()?;
        self.bytes_mut(to, bytes.len()).copy_from_slice(bytes);
        Ok(())
    }

    fn launch(&mut self, kernel: &str, grid: (u32, u32), scan: &Scan) -> Result<(), Fault> {
        self.call()?;
        assert!(grid.0 > 0 && grid.1 > 0, "{kernel} on an empty grid");
        for address in scan.addresses().into_iter().filter(|address| *address != 0) {
            assert!(self.buffers.contains_key(&address), "{kernel} uses a buffer that was freed");
        }
        match kernel {
            "merge" => self.merge(scan),
            "keep" => self.keep(scan),
            kernel if kernel.starts_with("few") => self.few(kernel, scan),
            kernel if kernel.starts_with("many") => self.many(kernel, scan),
            kernel => assert!(kernel.starts_with("measure"), "no kernel {kernel}"),
        }
        Ok(())
    }

    fn read(&mut self, from: u64, bytes: &mut [u8]) -> Result<(), Fault> {
        self.call()?;
        bytes.copy_from_slice(self.bytes(from, bytes.len()));
        Ok(())
    }
}
