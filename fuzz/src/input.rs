//! Reads a fuzzer's bytes as choices: any bytes are a sequence of choices, and all choices after their end are zero.

/// The remaining bytes.
#[derive(Debug)]
pub(crate) struct Input<'d> {
    rest: &'d [u8],
}

impl<'d> Input<'d> {
    pub(crate) fn new(data: &'d [u8]) -> Self {
        Self { rest: data }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from(self.u16()) | u32::from(self.u16()) << 16
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.u32() as usize % bound
    }

    /// The next `len` bytes, or all remaining ones if they are fewer.
    pub(crate) fn bytes(&mut self, len: usize) -> &'d [u8] {
        let (bytes, rest) = self.rest.split_at(len.min(self.rest.len()));
        self.rest = rest;
        bytes
    }

    /// A length in two bytes, then as many bytes.
    pub(crate) fn counted(&mut self) -> &'d [u8] {
        let len = self.u16();
        self.bytes(len.into())
    }
}

/// Writes what [`Input::counted`] reads.
pub(crate) fn put_counted(bytes: &[u8], out: &mut Vec<u8>) {
    let len = u16::try_from(bytes.len()).expect("seeds are small");
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(bytes);
}
