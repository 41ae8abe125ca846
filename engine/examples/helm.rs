//! HELM's loop over a scripted environment, with both traps of the paper's Figure 5.
//!
//! An agent may book flight UA123 below $300, and reports what a script printed. The memory holds an old price ($280)
//! and a failed run (`FileNotFoundError`). Plain similarity walks into both traps. The loop does not: the stale price
//! comes with the tool to call again, the failed run is no evidence, and each sentence of a memory cites its bytes.
//!
//! No model and no network: the reasoner is a script, and the memory generator a few lines that forget to cite until
//! the diagnostic tells them. With `HELM_DB=PATH` the database is kept there, for `holotype audit PATH`.

use holotype::answer::Output;
use holotype::query::Params;
use holotype::{HeuristicController, Holotype, MemoryLoop, NewTrace, Options, Result, Status, Step, StepOutcome};

const EPISODE: &str = "trip";
/// The first of January 2026, in microseconds; a step takes ten minutes.
const BEGINNING: i64 = 1_767_225_600_000_000;
const MINUTE: i64 = 60_000_000;

/// The world at a step: the price of the flight, and what the script prints.
fn call(tool: &str, step: u64) -> (String, Status) {
    match tool {
        "search_flights" if step < 200 => ("search_flights(flight UA123): price = $280".to_owned(), Status::Success),
        "search_flights" => ("search_flights(flight UA123): price = $450".to_owned(), Status::Success),
        "run_script" if step < 101 => ("process.py: Traceback, FileNotFoundError: data.csv".to_owned(), Status::Failed),
        "run_script" => ("process.py: Processed 1000 records".to_owned(), Status::Success),
        _ => (format!("page {step} of a travel guide"), Status::Unknown),
    }
}

pub(crate) fn main() -> Result<()> {
    let kept = std::env::var_os("HELM_DB").map(std::path::PathBuf::from);
    let path = kept.clone().unwrap_or_else(|| std::env::temp_dir().join(format!("helm-{}.holo", std::process::id())));
    let database = Holotype::create(&path, Options::default())?;
    play(&database)?;
    audit(&database)?;
    database.close()?;
    if kept.is_none() {
        std::fs::remove_dir_all(&path).ok();
    }
    Ok(())
}

fn play(database: &Holotype) -> Result<()> {
    let mut memory = MemoryLoop::new(database, EPISODE, HeuristicController::default());

    // The past: a price, a script that fails and then succeeds, and a long time of other things.
    memory.step(observe("search_flights", 1), None)?;
    memory.step(observe("run_script", 100), None)?;
    memory.step(observe("run_script", 102), None)?;
    for step in 103..220 {
        memory.step(observe("browse", step), None)?;
    }

    // Trap 1: the old price is the best match. It comes with the tool to call again.
    let stale = memory.step(ask("price of flight UA123"), None)?;
    let answer = &stale.memory.as_ref().expect("a request is read").evidence;
    let refresh = answer.refresh.as_ref().expect("so old a price is stale");
    println!("stale: {:?}, so {} is called again", answer.rows[0].text, refresh.tool);
    assert!(answer.rows[0].text.contains("$280") && refresh.last_step == Some(1));
    memory.step(observe(&refresh.tool.clone(), 220), None)?;

    // The new price contradicts the old one, which is no longer an answer.
    let mut generator = forgetful;
    let fresh = memory.step(ask("price of flight UA123"), Some(&mut generator))?;
    let text = memory_of(&fresh);
    println!("fresh: {text}");
    assert!(text.contains("$450") && !text.contains("$280") && text.contains("[[CITE tool=search_flights"));
    let attempts = &fresh.memory.as_ref().expect("it was read").attempts;
    assert_eq!(attempts.len(), 2, "the first block had no citation, and the diagnostic helped");
    println!("above $300: the agent asks the user instead of booking");

    // Trap 2: the failed run matches the question as well as the one that succeeded.
    let output = memory.step(ask("output of process.py"), Some(&mut generator))?;
    println!("script: {}", memory_of(&output));
    assert!(memory_of(&output).contains("Processed 1000 records") && !memory_of(&output).contains("Traceback"));

    // Plain similarity sees neither age nor failure.
    let plain = "recall 'output of process.py' include failed, conflicted score words 1 limit 2";
    let Some(Output::Answer(plain)) = database.query(plain, &Params::new())?.pop() else { unreachable!() };
    assert!(plain.rows.iter().any(|row| row.text.contains("Traceback")));
    Ok(())
}

/// The measures that the log gives of what was just played.
fn audit(database: &Holotype) -> Result<()> {
    let report = database.snapshot().audit(&[EPISODE], &[])?;
    for name in ["epierr_recalls", "coverage", "validity", "r_per_step", "w_per_step", "c_per_episode"] {
        println!("{name:>14} {}", report.get(name).map_or("-".to_owned(), |value| format!("{value:.3}")));
    }
    assert_eq!(report.get("epierr_recalls"), Some(1.0 / 3.0), "the stale price; the plain question left no receipt");
    assert_eq!(report.get("validity").unwrap_or(1.0), 1.0);
    Ok(())
}

fn observe(tool: &str, step: u64) -> Step {
    let (text, status) = call(tool, step);
    let time = BEGINNING + step as i64 * 10 * MINUTE;
    let trace = NewTrace::call(EPISODE, tool, text).step(step).time(time).status(status);
    Step { observation: Some(trace), request: None }
}

fn ask(request: &str) -> Step {
    Step { observation: None, request: Some(request.to_owned()) }
}

fn memory_of(outcome: &StepOutcome) -> &str {
    outcome.memory.as_ref().map(|memory| memory.text.as_str()).unwrap_or_default()
}

/// In place of a model: says the first piece of evidence, and cites it only when it was told to.
fn forgetful(prompt: &str) -> std::result::Result<String, String> {
    let evidence = prompt.lines().find_map(|line| line.strip_prefix("- ")).ok_or("there is no evidence")?;
    let (said, cite) = evidence.split_once(" [[").ok_or("the evidence has no citation")?;
    let said = said.trim_matches('"');
    Ok(match prompt.contains("missing cite") {
        false => format!("<memory>{said}</memory>"),
        true => format!("<memory>{said} [[{cite}</memory>"),
    })
}
