//! `holotype init`: makes a project's memory, and has an agent harness use it.
//!
//! Entries are merged into the harness's settings: what others wrote there stays, with comments and order, and a second
//! run changes nothing. Each file's bytes of before are kept in `.holotype/init/`, and `--undo` puts them back.
//!
//! 1. Nothing is written before every file could be read and merged.
//! 2. A file that was changed since is not restored: its bytes of before would take the change with them.

mod merge;
mod settings;

pub(crate) use settings::hook_files;

use crate::failure::{Failure, Problem, Status};
use crate::hook::Harness;
use crate::place;
use crate::render::{self, Format};
use serde_json::{Value, json};
use settings::{Setting, Wanted};
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The folder of a memory that keeps the bytes of before.
const KEPT: &str = "init";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The harness: claude-code, codex, gemini, cursor or generic
    #[arg(long = "for", value_name = "HARNESS")]
    harness: Harness,
    /// Have it start the MCP server; both this and --hooks if neither is given
    #[arg(long)]
    mcp: bool,
    /// Have it call the hooks
    #[arg(long)]
    hooks: bool,
    /// Change the user's settings instead of the project's, which is the working folder
    #[arg(long)]
    user: bool,
    /// Show what would change, and change nothing
    #[arg(long, conflicts_with = "undo")]
    dry_run: bool,
    /// Put back what was there before
    #[arg(long, conflicts_with_all = ["mcp", "hooks"])]
    undo: bool,
}

/// A file before and after.
struct Change {
    path: PathBuf,
    /// `None` if there was no file.
    before: Option<String>,
    after: String,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let current = env::current_dir().map_err(|error| Problem::io(Path::new("."), "find", &error))?;
    let root = match args.user {
        true => place::home().ok_or_else(|| Problem::input("usage", "--user: the user has no home directory"))?,
        false => current,
    };
    let memory = match args.user {
        true => place::user_memory().ok_or_else(|| Problem::input("usage", "--user: there is no data directory"))?,
        false => root.join(place::FOLDER),
    };
    if args.undo {
        return undo(args.harness, &memory, format);
    }
    let neither = !args.mcp && !args.hooks;
    let wanted = Wanted { mcp: args.mcp || neither, hooks: args.hooks || neither };
    let settings = settings::of(args.harness, args.user, wanted, &program());
    let mut changes = Vec::new();
    for setting in &settings {
        changes.extend(change(&root, setting)?);
    }
    let mut lines: Vec<String> = changes.iter().map(|change| shown(change, args.dry_run)).collect();
    if settings.is_empty() {
        lines.push(settings::generic(&program()));
    } else if changes.is_empty() {
        lines.push(format!("nothing to change: {} has it already", args.harness));
    }
    if !args.dry_run {
        make_memory(&memory, !args.user)?;
        write(args.harness, &memory, &changes)?;
        lines.extend(settings::next_step(args.harness, wanted).map(str::to_owned));
    }
    let paths: Vec<String> = changes.iter().map(|change| change.path.display().to_string()).collect();
    let json = json!({"for": args.harness.as_str(), "changed": paths, "dry_run": args.dry_run});
    render::write_fact(&mut io::stdout().lock(), &json, &lines.join("\n"), format)?;
    Ok(Status::Done)
}

/// The program as the harness calls it: by its name if that leads here, so that the settings fit other machines.
fn program() -> String {
    const NAME: &str = "holotype";
    let Ok(own) = env::current_exe().and_then(fs::canonicalize) else { return NAME.to_owned() };
    let file = format!("{NAME}{}", env::consts::EXE_SUFFIX);
    let found = env::var_os("PATH").and_then(|path| {
        env::split_paths(&path).map(|folder| folder.join(&file)).find(|candidate| candidate.is_file())
    });
    match found.and_then(|found| fs::canonicalize(found).ok()) {
        Some(found) if found == own => NAME.to_owned(),
        _ => own.display().to_string(),
    }
}

/// The change of a file, if its settings lack anything.
fn change(root: &Path, setting: &Setting) -> Result<Option<Change>, Failure> {
    let path = root.join(&setting.path);
    let before = read(&path)?;
    let merged = merge::into(before.as_deref().unwrap_or_default(), setting);
    let after = merged.map_err(|why| Problem::input("settings", why).file(path.display().to_string()))?;
    Ok((before.as_deref() != Some(after.as_str())).then_some(Change { path, before, after }))
}

fn read(path: &Path) -> Result<Option<String>, Failure> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Problem::io(path, "read", &error).into()),
        Ok(bytes) => String::from_utf8(bytes)
            .map(Some)
            .map_err(|_| Problem::input("utf-8", "the settings are not UTF-8").file(path.display().to_string()).into()),
    }
}

/// The lines that a change takes away and adds.
fn shown(change: &Change, dry_run: bool) -> String {
    let path = change.path.display();
    if !dry_run {
        return format!("{} {path}", if change.before.is_some() { "changed" } else { "created" });
    }
    let before: Vec<&str> = change.before.as_deref().unwrap_or_default().lines().collect();
    let after: Vec<&str> = change.after.lines().collect();
    let same = |(a, b): &(&&str, &&str)| a == b;
    let start = before.iter().zip(&after).take_while(same).count();
    let (rest_before, rest_after) = (&before[start..], &after[start..]);
    let end = rest_before.iter().rev().zip(rest_after.iter().rev()).take_while(same).count();
    let mut text = format!("would {} {path}", if change.before.is_some() { "change" } else { "create" });
    for line in &rest_before[..rest_before.len() - end] {
        text += &format!("\n- {line}");
    }
    for line in &rest_after[..rest_after.len() - end] {
        text += &format!("\n+ {line}");
    }
    text
}

/// Makes the folder of a memory. That of a project is kept out of its version control.
fn make_memory(memory: &Path, of_project: bool) -> Result<(), Failure> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error: io::Error| Failure::from(Problem::io(&path, "write", &error))
    };
    fs::create_dir_all(memory).map_err(failed(memory))?;
    let ignore = memory.join(".gitignore");
    if of_project && !ignore.exists() {
        fs::write(&ignore, "*\n").map_err(failed(&ignore))?;
    }
    Ok(())
}

fn write(harness: Harness, memory: &Path, changes: &[Change]) -> Result<(), Failure> {
    let path = kept_path(harness, memory);
    let mut kept = read_kept(&path)?;
    for change in changes {
        let name = change.path.display().to_string();
        // --undo puts back the bytes from before the first run.
        let before = kept.get(&name).and_then(|first| first.get("before")).cloned();
        let before = before.unwrap_or_else(|| json!(change.before));
        kept.insert(name, json!({"before": before, "after": hash(&change.after)}));
    }
    if changes.is_empty() {
        return Ok(());
    }
    replace(&path, &Value::Object(kept).to_string())?;
    changes.iter().try_for_each(|change| replace(&change.path, &change.after))
}

fn undo(harness: Harness, memory: &Path, format: Format) -> Result<Status, Failure> {
    let path = kept_path(harness, memory);
    let mut kept = read_kept(&path)?;
    let (mut lines, mut restored, mut status) = (Vec::new(), Vec::new(), Status::Done);
    for (name, state) in kept.clone() {
        let file = PathBuf::from(&name);
        let now = read(&file)?;
        let is_as_left = now.as_deref().map(hash) == state.get("after").and_then(Value::as_str).map(str::to_owned);
        let before = state.get("before").and_then(Value::as_str);
        if now.as_deref() == before {
            lines.push(format!("{name} is as it was"));
        } else if !is_as_left {
            lines
                .push(format!("{name} was changed since and stays; take the entries that call `holotype` out by hand"));
            status = Status::Found;
            continue;
        } else {
            match before {
                Some(before) => replace(&file, before)?,
                None => fs::remove_file(&file).map_err(|error| Problem::io(&file, "remove", &error))?,
            }
            lines.push(format!("{name} restored"));
        }
        kept.shift_remove(&name);
        restored.push(name);
    }
    if restored.is_empty() && lines.is_empty() {
        lines.push(format!("nothing to undo: `init --for {harness}` changed nothing here"));
    }
    match kept.is_empty() {
        true if path.exists() => fs::remove_file(&path).map_err(|error| Problem::io(&path, "remove", &error))?,
        true => {}
        false => replace(&path, &Value::Object(kept).to_string())?,
    }
    let json = json!({"for": harness.as_str(), "restored": restored});
    render::write_fact(&mut io::stdout().lock(), &json, &lines.join("\n"), format)?;
    Ok(status)
}

fn kept_path(harness: Harness, memory: &Path) -> PathBuf {
    memory.join(KEPT).join(format!("{harness}.json"))
}

/// The files that `init` changed, with their bytes of before.
fn read_kept(path: &Path) -> Result<serde_json::Map<String, Value>, Failure> {
    let Some(text) = read(path)? else { return Ok(serde_json::Map::new()) };
    match serde_json::from_str(&text) {
        Ok(Value::Object(kept)) => Ok(kept),
        _ => {
            let message = "what `init` kept of the settings of before cannot be read; restore them by hand";
            Err(Problem::input("settings", message).file(path.display().to_string()).into())
        }
    }
}

/// Writes a file whole or not at all, with the permissions that it had.
fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::from(Problem::io(path, "write", &error));
    // A settings file that is a link stays one.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let unfinished = target.with_extension(format!("holotype-{}.tmp", std::process::id()));
    fs::write(&unfinished, text).map_err(failed)?;
    if let Ok(found) = fs::metadata(&target) {
        fs::set_permissions(&unfinished, found.permissions()).map_err(failed)?;
    }
    fs::rename(&unfinished, &target).map_err(failed)
}

fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}
