//! The destination of output: its width, whether it shows colours, and whether it is a terminal.

use crate::render::text::printable;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal as _};

/// The width of output that goes to no terminal, unless `COLUMNS` says another.
const WIDTH: usize = 100;
/// Narrower than this, nothing can be laid out.
const LEAST_WIDTH: usize = 40;

/// A place for text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    /// Columns.
    pub(crate) width: usize,
    /// True if colours may be used.
    pub(crate) colour: bool,
    /// True if a person is reading: long texts are cut.
    pub(crate) terminal: bool,
}

/// The style of a piece of text.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ink {
    Bold,
    Dim,
    Good,
    Bad,
    Warn,
}

impl Screen {
    /// Stdout.
    pub(crate) fn stdout() -> Screen {
        Self::of(io::stdout().is_terminal())
    }

    /// Stderr.
    pub(crate) fn stderr() -> Screen {
        Self::of(io::stderr().is_terminal())
    }

    fn of(terminal: bool) -> Screen {
        let stated = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let measured = if terminal { comfy_table::Table::new().width().map(usize::from) } else { None };
        let width = measured.or(stated).unwrap_or(WIDTH).max(LEAST_WIDTH);
        Screen { width, colour: terminal && colours_allowed(), terminal }
    }

    /// The text as it may be printed ([`printable`]), in a colour if colours are shown.
    pub(crate) fn paint(&self, ink: Ink, text: &str) -> String {
        let text = printable(text);
        if !self.colour || text.is_empty() {
            return text;
        }
        let code = match ink {
            Ink::Bold => "1",
            Ink::Dim => "2",
            Ink::Good => "32",
            Ink::Bad => "31",
            Ink::Warn => "33",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

fn colours_allowed() -> bool {
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    !no_colour && !dumb
}

/// A progress bar on stderr; nothing is drawn when stderr is no terminal.
pub(crate) fn progress(what: &'static str, total: u64, bytes: bool) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let template = match (bytes, total) {
        (true, 0) => "{msg} {spinner} {bytes}",
        (true, _) => "{msg} {wide_bar} {bytes}/{total_bytes} {eta}",
        (false, _) => "{msg} {wide_bar} {percent}% {eta}",
    };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let style = style.progress_chars("━━ ");
    let bar = if total == 0 { ProgressBar::new_spinner() } else { ProgressBar::new(total) };
    bar.with_style(style).with_message(what)
}
