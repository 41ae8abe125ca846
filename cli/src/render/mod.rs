//! The forms of answers: for a person ([`cards`], [`grid`]), for a document ([`markdown`]), for a program
//! ([`envelope`]).
//!
//! Texts come from anywhere, so none reaches a terminal with its control characters ([`text::printable`]).

mod cards;
pub(crate) mod envelope;
mod grid;
mod markdown;
pub(crate) mod text;

pub(crate) use cards::{branch, write_named};

use crate::screen::Screen;
use holotype::answer::Output;
use serde_json::Value;
use std::io::{self, Write};

/// The form of answers and errors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Text: rows with their evidence as a tree
    #[default]
    Table,
    /// One JSON document: the answer, or an array of answers
    Json,
    /// One answer a line, as JSON
    Jsonl,
    /// Markdown: lists and tables
    Markdown,
}

/// The form of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drawing {
    /// SVG.
    Svg,
    /// The language of Graphviz.
    Dot,
    /// The language of Mermaid.
    Mermaid,
}

/// A value of `--format`: a format of answers, or a drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum AnyFormat {
    /// Text: rows with their evidence as a tree
    Table,
    /// One JSON document: the answer, or an array of answers
    Json,
    /// One answer a line, as JSON
    Jsonl,
    /// Markdown: lists and tables
    Markdown,
    /// A picture; of `graph` only
    Svg,
    /// Graphviz; of `graph` only
    Dot,
    /// Mermaid; of `graph` only
    Mermaid,
}

impl AnyFormat {
    /// The format of answers; `None` for a drawing.
    pub(crate) fn of_answers(self) -> Option<Format> {
        Some(match self {
            AnyFormat::Table => Format::Table,
            AnyFormat::Json => Format::Json,
            AnyFormat::Jsonl => Format::Jsonl,
            AnyFormat::Markdown => Format::Markdown,
            AnyFormat::Svg | AnyFormat::Dot | AnyFormat::Mermaid => return None,
        })
    }

    /// The drawing; `None` for a format of answers.
    pub(crate) fn drawing(self) -> Option<Drawing> {
        Some(match self {
            AnyFormat::Svg => Drawing::Svg,
            AnyFormat::Dot => Drawing::Dot,
            AnyFormat::Mermaid => Drawing::Mermaid,
            AnyFormat::Table | AnyFormat::Json | AnyFormat::Jsonl | AnyFormat::Markdown => return None,
        })
    }
}

/// Writes what the statements of a script gave.
pub(crate) fn write(out: &mut impl Write, outputs: &[Output], format: Format, screen: &Screen) -> io::Result<()> {
    match format {
        Format::Table => {
            for (index, output) in outputs.iter().enumerate() {
                if index > 0 {
                    writeln!(out)?;
                }
                match output {
                    Output::Answer(answer) => cards::write(out, answer, screen)?,
                    Output::Table(table) => grid::write(out, table, screen)?,
                    other => writeln!(out, "{other:?}")?,
                }
            }
        }
        Format::Markdown => {
            for (index, output) in outputs.iter().enumerate() {
                if index > 0 {
                    writeln!(out)?;
                }
                markdown::write(out, output)?;
            }
        }
        Format::Json => match outputs {
            [one] => write_pretty(out, &envelope::of(one, None))?,
            several => write_pretty(out, &several.iter().map(|output| envelope::of(output, None)).collect())?,
        },
        Format::Jsonl => {
            for output in outputs {
                writeln!(out, "{}", envelope::of(output, None))?;
            }
        }
    }
    Ok(())
}

/// Writes one thing that is no answer: as text for a person, as JSON for a program.
pub(crate) fn write_fact(out: &mut impl Write, json: &Value, text: &str, format: Format) -> io::Result<()> {
    write_painted(out, json, &text::printable(text), format)
}

/// As [`write_fact`], of a text that is printable already and may be coloured ([`Screen::paint`]).
pub(crate) fn write_painted(out: &mut impl Write, json: &Value, text: &str, format: Format) -> io::Result<()> {
    match format {
        Format::Table | Format::Markdown => writeln!(out, "{text}"),
        Format::Json => write_pretty(out, json),
        Format::Jsonl => writeln!(out, "{json}"),
    }
}

fn write_pretty(out: &mut impl Write, value: &Value) -> io::Result<()> {
    writeln!(out, "{value:#}")
}

/// True if a check that was run found something.
pub(crate) fn found_something(outputs: &[Output]) -> bool {
    outputs.iter().any(|output| matches!(output, Output::Table(table) if table.failed))
}
