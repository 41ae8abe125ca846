//! `holotype embedder`: what the embedding model of a folder is, and how fast it is here. Also the door through which
//! every command opens such a folder (`--embedder DIR`).

use crate::failure::{Failure, Status};
use crate::render::{self, Format};
use crate::screen::Screen;
use holotype::answer::{Output, Table};
use holotype::cell::Cell;
use holotype::embed::Embedder;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The least time that a measurement takes.
const MEASURED: Duration = Duration::from_millis(500);
/// Texts of one call of the embedder.
const BATCH: usize = 32;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder of the model: a transformer as sentence-transformers saves it, or a static one as model2vec does
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// A model with what it says of itself.
pub(crate) struct Opened {
    pub(crate) embedder: Arc<dyn Embedder>,
    described: Vec<(&'static str, String)>,
}

/// Reads the model of a folder.
#[cfg(feature = "embed")]
pub(crate) fn open(folder: &Path) -> Result<Opened, Failure> {
    let model = holotype_embed::open(folder)?;
    Ok(Opened { embedder: model.embedder(), described: model.describe() })
}

/// Reads the model of a folder: a static one, since this program was built without transformers.
#[cfg(not(feature = "embed"))]
pub(crate) fn open(folder: &Path) -> Result<Opened, Failure> {
    if let Ok(bytes) = std::fs::read(folder.join("config.json"))
        && let Ok(config) = serde_json::from_slice::<serde_json::Value>(&bytes)
        && let Some(kind) = config["model_type"].as_str().filter(|kind| !kind.eq_ignore_ascii_case("model2vec"))
    {
        let message =
            format!("{} holds a transformer ({kind}), and this program was built without them", folder.display());
        let hint = "build it with `--features embed` of holotype-cli, or give the folder of a model2vec model";
        return Err(crate::failure::Problem::input("embedder", message).hint(hint).into());
    }
    let model = Arc::new(holotype::embed::StaticEmbedder::open(folder)?);
    let described = model.describe();
    Ok(Opened { embedder: model, described })
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let began = Instant::now();
    let Opened { embedder, mut described } = open(&args.folder)?;
    let opened = began.elapsed();
    described.insert(0, ("name", embedder.name()));
    described.push(("fingerprint", embedder.fingerprint()));
    described.push(("opened in", format!("{} ms", opened.as_millis())));
    for (name, words) in [("texts a second, 12 words", 12), ("texts a second, 50 words", 50)] {
        described.push((name, format!("{:.0}", speed(embedder.as_ref(), words)?)));
    }
    let rows = described.into_iter().map(|(name, value)| vec![Some(Cell::text(name)), Some(Cell::Text(value))]);
    let columns = ["what", "found"].map(str::to_owned).to_vec();
    let table = Table { verb: "embedder", columns, rows: rows.collect(), ..Table::default() };
    render::write(&mut io::stdout().lock(), &[Output::Table(table)], format, &Screen::stdout())?;
    Ok(Status::Done)
}

/// Texts of so many words that all processors embed in a second.
fn speed(embedder: &dyn Embedder, words: usize) -> Result<f64, Failure> {
    const WORDS: [&str; 7] = ["the", "night", "train", "to", "Lisbon", "leaves", "late"];
    let text = |at: usize| (0..words).map(|word| WORDS[(at + word * 3) % WORDS.len()]).collect::<Vec<_>>().join(" ");
    let texts: Vec<String> = (0..BATCH).map(text).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let (began, mut made) = (Instant::now(), 0);
    while began.elapsed() < MEASURED {
        made += embedder.embed_passages(&texts).map_err(holotype::Error::from)?.len();
    }
    Ok(made as f64 / began.elapsed().as_secs_f64())
}
