//! Answers: is the newest value first, is nothing true hidden, and what does it cost? The goals of the default recall
//! in one table.
//!
//! | set | memory | data |
//! |---|---|---|
//! | `babi` | stories of persons who move | `public` |
//! | `airline` | a tool log with values that change | `public` |
//! | `worlds` | runs in which tools fail and the assistant guesses, at three speeds | `epistemic-dev`, generated |
//! | `agent` | prices that change from call to call | generated |
//! | `languages` | updates in twelve languages | `benches/data/answers` |
//! | `conversations` | LoCoMo | `locomo-dev` |
//! | `documents` | XQuAD in three languages | `public` |
//! | `preferences` | a user's wishes, told and changed in different sessions | generated |
//! | `alike` | statements of one form that must not hide each other | generated |
//!
//! Lines of figures are printed as each set is measured, and at the end the table to standard error: a row for each
//! goal, `+` if it is met, `-` if not. Sets whose data is not named are left out.

mod agent;
mod airline;
mod alike;
mod checks;
mod conversations;
mod documents;
mod languages;
mod log;
mod preferences;
mod quality;
mod report;
mod samples;
mod set;
mod shown;
mod stories;
mod worlds;

use crate::Result;
use report::Report;
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder with `public`, `epistemic-dev` and `locomo-dev`; without it, generated sets alone.
    #[arg(long)]
    data: Option<PathBuf>,
    /// The sets to measure; by default all.
    #[arg(long, value_delimiter = ',')]
    only: Vec<Name>,
    /// A setting of every database, as `frame.near=0.1`; repeatable.
    #[arg(long = "set", value_parser = setting)]
    settings: Vec<(String, String)>,
    /// Small samples made on the spot, and generated sets cut short.
    #[arg(long, conflicts_with = "data")]
    smoke: bool,
}

/// The name of a set.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Name {
    Babi,
    Airline,
    Worlds,
    Agent,
    Languages,
    Conversations,
    Documents,
    Preferences,
    Alike,
}

/// A measurement of a set.
type Run = fn(&Context, &mut Report) -> Result<()>;

const SETS: [(Name, Run); 9] = [
    (Name::Babi, stories::run),
    (Name::Airline, airline::run),
    (Name::Worlds, worlds::run),
    (Name::Agent, agent::run),
    (Name::Languages, languages::run),
    (Name::Conversations, conversations::run),
    (Name::Documents, documents::run),
    (Name::Preferences, preferences::run),
    (Name::Alike, alike::run),
];

/// The circumstances of a run.
struct Context {
    data: Option<PathBuf>,
    settings: Vec<(String, String)>,
    smoke: bool,
}

impl Context {
    /// A folder of the data, if data was named.
    fn folder(&self, name: &str) -> Option<PathBuf> {
        self.data.as_ref().map(|data| data.join(name))
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let samples = tempfile::tempdir()?;
    let mut data = arguments.data.clone();
    if arguments.smoke {
        samples::write(samples.path())?;
        data = Some(samples.path().to_owned());
    }
    let context = Context { data, settings: arguments.settings.clone(), smoke: arguments.smoke };
    let mut report = Report::default();
    for (name, run) in SETS {
        if arguments.only.is_empty() || arguments.only.contains(&name) {
            run(&context, &mut report)?;
        }
    }
    report.finish();
    Ok(())
}

/// A setting with its value.
fn setting(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').ok_or_else(|| format!("`{text}` is not NAME=VALUE"))?;
    Ok((parts.0.trim().to_owned(), parts.1.trim().to_owned()))
}
