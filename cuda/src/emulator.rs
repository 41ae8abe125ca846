//! The emulator of `emulate/` as a device: the real kernels, compiled for the host, in a process of their own.
//!
//! Its program is named by the variable `HOLOTYPE_EMULATOR`; `.ci/full` builds it. The protocol is at the top of
//! `emulate/device.cpp`.

use crate::driver::{Driver, Fault, Scan};
use std::io::{BufReader, BufWriter, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A running emulator.
#[derive(Debug)]
pub(crate) struct Emulator {
    process: Child,
    requests: Option<BufWriter<ChildStdin>>,
    answers: BufReader<ChildStdout>,
    free_len: u64,
}

impl Emulator {
    /// The emulator that the environment names, with so much memory.
    pub(crate) fn start(free_len: u64) -> Option<Self> {
        let program = std::env::var_os("HOLOTYPE_EMULATOR")?;
        let mut process = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let requests = process.stdin.take().map(BufWriter::new);
        let answers = BufReader::new(process.stdout.take().unwrap());
        Some(Self { process, requests, answers, free_len })
    }

    fn ask(&mut self, parts: &[&[u8]]) {
        let requests = self.requests.as_mut().unwrap();
        parts.iter().for_each(|part| requests.write_all(part).unwrap());
    }

    fn answer(&mut self, bytes: &mut [u8]) {
        self.requests.as_mut().unwrap().flush().unwrap();
        self.answers.read_exact(bytes).unwrap();
    }
}

impl Driver for Emulator {
    fn device(&self) -> &str {
        "emulator"
    }

    fn multiprocessors(&self) -> u32 {
        1
    }

    fn free_len(&mut self) -> Result<u64, Fault> {
        Ok(self.free_len)
    }

    fn allocate(&mut self, len: usize) -> Result<u64, Fault> {
        let mut address = [0; 8];
        self.ask(&[b"A", &(len as u64).to_le_bytes()]);
        self.answer(&mut address);
        Ok(u64::from_le_bytes(address))
    }

    fn free(&mut self, address: u64) -> Result<(), Fault> {
        self.ask(&[b"F", &address.to_le_bytes()]);
        Ok(())
    }

    fn write(&mut self, to: u64, bytes: &[u8]) -> Result<(), Fault> {
        self.ask(&[b"W", &to.to_le_bytes(), &(bytes.len() as u64).to_le_bytes(), bytes]);
        Ok(())
    }

    fn launch(&mut self, kernel: &str, grid: (u32, u32), scan: &Scan) -> Result<(), Fault> {
        let numbers = [
            scan.base,
            scan.first,
            scan.count,
            scan.stride,
            scan.dim,
            scan.query_count,
            scan.k,
            scan.capacity,
            scan.room,
            scan.blocks,
        ];
        let mut arguments: Vec<u8> = scan.addresses().into_iter().flat_map(u64::to_le_bytes).collect();
        arguments.extend(numbers.into_iter().flat_map(u32::to_le_bytes));
        let head = [grid.0, grid.1, kernel.len() as u32, arguments.len() as u32].map(u32::to_le_bytes).concat();
        let mut ran = [0];
        self.ask(&[b"L", &head, kernel.as_bytes(), &arguments]);
        self.answer(&mut ran);
        assert_eq!(ran, [1], "no kernel {kernel}");
        Ok(())
    }

    fn read(&mut self, from: u64, bytes: &mut [u8]) -> Result<(), Fault> {
        self.ask(&[b"R", &from.to_le_bytes(), &(bytes.len() as u64).to_le_bytes()]);
        self.answer(bytes);
        Ok(())
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        // The end of its requests ends it.
        drop(self.requests.take());
        let _ = self.process.wait();
    }
}
