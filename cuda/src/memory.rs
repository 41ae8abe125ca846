//! The memory of the device: parts that stay, least recently used first out, and a workspace that grows.
//!
//! Invariants:
//! 1. Parts that stay and the workspace together are within the budget, as far as this process allocates.
//! 2. A buffer is freed once. After [`Fault::OutOfMemory`] the books are as before the call.

use crate::driver::{Driver, Fault};
use holotype_index::scorer::PartId;
use std::collections::HashMap;

/// A part on the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DeviceRows {
    pub(crate) rows: u64,
    /// 0 where the encoding has no scales.
    pub(crate) scales: u64,
    pub(crate) measures: u64,
    /// The measures are computed.
    pub(crate) measured: bool,
    pub(crate) count: u32,
    /// The length of the longest vector.
    pub(crate) longest: f64,
    /// Bytes of the three buffers.
    pub(crate) len: u64,
}

#[derive(Debug)]
struct Resident {
    rows: DeviceRows,
    last_used: u64,
}

/// The uses of workspace buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    Filter,
    Halves,
    QueryMeasures,
    Limits,
    Margins,
    Lists,
    Counts,
    Overflowed,
    Answers,
    /// Two sets of rows that pass through, so that one is copied while the other is compared.
    Rows(u8),
    Scales(u8),
    Measures(u8),
}

/// The buffers of this process.
#[derive(Debug)]
pub(crate) struct DeviceMemory {
    budget: u64,
    used: u64,
    clock: u64,
    resident: HashMap<PartId, Resident>,
    /// The part that is being compared, which stays.
    pinned: Option<PartId>,
    workspace: HashMap<Role, (u64, usize)>,
}

impl DeviceMemory {
    pub(crate) fn new(budget: u64) -> Self {
        Self { budget, used: 0, clock: 0, resident: HashMap::new(), pinned: None, workspace: HashMap::new() }
    }

    /// Bytes that may be allocated in all.
    pub(crate) fn budget(&self) -> u64 {
        self.budget
    }

    /// Bytes of the parts that stay.
    pub(crate) fn resident_len(&self) -> u64 {
        self.resident.values().map(|resident| resident.rows.len).sum()
    }

    /// True if the part is on the device.
    pub(crate) fn holds(&self, part: PartId) -> bool {
        self.resident.contains_key(&part)
    }

    /// Makes a part stay, or none in particular.
    pub(crate) fn pin(&mut self, part: Option<PartId>) {
        self.pinned = part;
    }

    /// The part, if it is on the device, and used from now on.
    pub(crate) fn resident(&mut self, part: PartId) -> Option<&mut DeviceRows> {
        self.clock += 1;
        let resident = self.resident.get_mut(&part)?;
        resident.last_used = self.clock;
        Some(&mut resident.rows)
    }

    /// Keeps a part whose buffers were allocated here.
    pub(crate) fn keep(&mut self, part: PartId, rows: DeviceRows) {
        self.clock += 1;
        self.resident.insert(part, Resident { rows, last_used: self.clock });
    }

    /// A new buffer. Parts that stay make room for it.
    pub(crate) fn allocate(&mut self, driver: &mut dyn Driver, len: usize) -> Result<u64, Fault> {
        let wanted = len as u64;
        if wanted > self.budget {
            return Err(Fault::OutOfMemory);
        }
        while self.used.saturating_add(wanted) > self.budget {
            if !self.evict(driver)? {
                return Err(Fault::OutOfMemory);
            }
        }
        loop {
            match driver.allocate(len.max(1)) {
                Ok(address) => {
                    self.used += wanted;
                    return Ok(address);
                }
                // Others use the device too.
                Err(Fault::OutOfMemory) if self.evict(driver)? => {}
                Err(fault) => return Err(fault),
            }
        }
    }

    /// Gives a buffer of `len` bytes back.
    pub(crate) fn free(&mut self, driver: &mut dyn Driver, address: u64, len: usize) -> Result<(), Fault> {
        self.used = self.used.saturating_sub(len as u64);
        driver.free(address)
    }

    /// A workspace buffer of `len` bytes or more, with any content.
    pub(crate) fn scratch(&mut self, driver: &mut dyn Driver, role: Role, len: usize) -> Result<u64, Fault> {
        if let Some((address, held)) = self.workspace.get(&role).copied() {
            if held >= len {
                return Ok(address);
            }
            self.workspace.remove(&role);
            self.free(driver, address, held)?;
        }
        let len = len.max(1).next_power_of_two();
        let address = self.allocate(driver, len)?;
        self.workspace.insert(role, (address, len));
        Ok(address)
    }

    /// Frees the part that was not used for longest; false if none stays.
    fn evict(&mut self, driver: &mut dyn Driver) -> Result<bool, Fault> {
        let loose = self.resident.iter().filter(|(part, _)| self.pinned != Some(**part));
        let oldest = loose.min_by_key(|(_, resident)| resident.last_used).map(|(part, _)| *part);
        let Some(Resident { rows, .. }) = oldest.and_then(|part| self.resident.remove(&part)) else { return Ok(false) };
        self.used = self.used.saturating_sub(rows.len);
        for address in [rows.rows, rows.scales, rows.measures].into_iter().filter(|address| *address != 0) {
            driver.free(address)?;
        }
        Ok(true)
    }
}
