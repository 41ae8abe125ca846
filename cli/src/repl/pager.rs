//! Long output on a terminal is handed to a pager: `$PAGER`, else `less`, which leaves what fits on the screen alone.

use std::io::{self, Write as _};
use std::process::{Command, Stdio};

/// Shows a text of more lines than the terminal has through the pager; other texts, and all where there is none, as
/// they are.
pub(super) fn show(text: &[u8], screen_lines: Option<usize>) -> io::Result<()> {
    let lines = text.iter().filter(|byte| **byte == b'\n').count();
    let is_long = screen_lines.is_some_and(|screen| lines >= screen);
    if !is_long || !paged(text, std::env::var("PAGER").ok().filter(|pager| !pager.is_empty())) {
        let mut out = io::stdout().lock();
        out.write_all(text)?;
        out.flush()?;
    }
    Ok(())
}

/// True if the pager took it.
fn paged(text: &[u8], pager: Option<String>) -> bool {
    let mut command = match &pager {
        Some(pager) => {
            let mut words = pager.split_whitespace();
            let mut command = Command::new(words.next().unwrap_or("less"));
            command.args(words);
            command
        }
        None => Command::new("less"),
    };
    // Colours pass, and a text that fits ends at once.
    command.env("LESS", std::env::var("LESS").unwrap_or_else(|_| "FRX".to_owned())).stdin(Stdio::piped());
    let Ok(mut child) = command.spawn() else { return false };
    if let Some(mut stdin) = child.stdin.take() {
        // The user may leave the pager before the end.
        let _ = stdin.write_all(text);
    }
    child.wait().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pager_that_is_not_there_takes_nothing() {
        assert!(!paged(b"x\n", Some("no-such-pager-anywhere --now".to_owned())));
    }

    #[test]
    fn a_pager_takes_the_text_whether_it_reads_it_or_not() {
        assert!(paged(&b"x\n".repeat(100_000), Some("true".to_owned())));
    }
}
