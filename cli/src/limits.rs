//! Limits of statements, as the command line takes them.

use crate::failure::Problem;
use holotype::Limits;
use holotype::query::Duration;

#[derive(Debug, clap::Args)]
#[group(id = "limits")]
pub(crate) struct Args {
    /// The time limit of a statement, such as 500ms or 2s
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
    /// The greatest number of rows that a statement may examine
    #[arg(long, value_name = "COUNT")]
    max_rows: Option<u64>,
    /// The memory that a statement may hold, in bytes or with K, M or G
    #[arg(long, value_name = "BYTES")]
    max_memory: Option<String>,
}

impl Args {
    /// The limits that are asked for.
    pub(crate) fn limits(&self) -> Result<Limits, Problem> {
        let mut limits = Limits::none();
        if let Some(text) = &self.timeout {
            let wrong = |_| Problem::input("usage", format!("invalid duration {text:?}")).hint("write 500ms, 2s or 1m");
            let time: Duration = text.parse().map_err(wrong)?;
            limits = limits.time(std::time::Duration::from_micros(time.micros()));
        }
        if let Some(rows) = self.max_rows {
            limits = limits.rows_scored(rows);
        }
        if let Some(text) = &self.max_memory {
            let wrong = || Problem::input("usage", format!("{text:?} is not a size")).hint("write 1000000, 64M or 1G");
            limits = limits.memory(bytes(text).ok_or_else(wrong)?);
        }
        Ok(limits)
    }
}

/// A number of bytes, in units of 1024.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match text.get(digits.len()..)?.to_ascii_uppercase().as_str() {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!([bytes("17"), bytes("64M"), bytes("2k")], [Some(17), Some(64 << 20), Some(2048)]);
        assert_eq!([bytes(""), bytes("M"), bytes("3X"), bytes("99999999999G")], [None, None, None, None]);
    }
}
