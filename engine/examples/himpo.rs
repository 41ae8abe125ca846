//! HiMPO in one program: rollouts with a memory of their own are scored, kept and exported; each written memory gets
//! its credit, and planted faults are found where they were planted.
//!
//! In training, a policy gives the log-probabilities ([`Scorer`](holotype::credit::Scorer)). Here the built-in
//! `WordScorer` does, so that the program runs without a model.

use holotype::credit::{
    ChangeAnswer, CreditOptions, Intervention, Module, Rollout, Run, RunStep, Scoreboard, Template, WordScorer, blame,
    deconfound, intervene,
};
use holotype::interchange::export_rollouts;
use holotype::{Durability, Holotype, NewRecall, Options};

/// A rollout of two steps: it reads where the Velmora was built, and writes down `memory`.
fn run(rollout: &str, memory: &str, reward: f64) -> Run {
    let step = |memory: &str, call: &str, observation: &str| RunStep {
        memory: memory.to_owned(),
        think: String::new(),
        call: call.to_owned(),
        observation: observation.to_owned(),
    };
    Run {
        group: "velmora".to_owned(),
        rollout: rollout.to_owned(),
        question: "Where was the Velmora built?".to_owned(),
        outcome: "Oslo".to_owned(),
        reward,
        steps: vec![
            step("", "search Velmora", "The Velmora was built in Oslo. It carried timber."),
            step(memory, "answer", "The page ends here."),
        ],
    }
}

fn main() -> holotype::Result<()> {
    let path = std::env::temp_dir().join(format!("himpo-{}.holo", std::process::id()));
    let database = Holotype::create(&path, Options::default())?;
    let memories = [
        ("a", "The Velmora was built in Oslo.", 1.0),
        ("b", "Built: Oslo.", 1.0),
        ("c", "The Velmora carried timber.", 0.0),
        ("d", "It is a ship.", 0.0),
    ];
    let runs: Vec<Run> = memories.iter().map(|(name, memory, reward)| run(name, memory, *reward)).collect();

    // Three measurements for each write, under the same pre-write state (eqs. 5, 7, 9).
    let template = Template::default();
    let board = Scoreboard { scorer: &WordScorer, template: &template };
    println!("scored with {}", template.id());

    let options = CreditOptions::default();
    let mut transaction = database.begin()?;
    for (run, (name, memory, _)) in runs.iter().zip(memories) {
        transaction.remember(NewRecall::fact(memory).key(name).ungrounded())?;
        let mut rollout = Rollout::of(run, &board.scores(run)?);
        rollout.template = Some(template.id());
        rollout.steps[1].item = Some(name.to_owned());
        transaction.keep_rollout(&rollout)?;
    }
    // Each item gets the mean credit of the kept rollouts that wrote it. A score reads it beside the utility.
    transaction.credit_rollouts(&options)?;
    transaction.commit(Durability::Sync)?;
    let snapshot = database.snapshot();
    let credit = |key: &str| snapshot.get(key).map(|item| item.map_or(0.0, |item| item.attributes.credit));
    for (name, memory, _) in memories {
        println!("{:+.3}  {memory}", credit(name)?);
    }
    assert!(credit("a")? > 0.0 && credit("d")? < 0.0);

    // Training data: one line for each write, with its advantage.
    let mut lines = Vec::new();
    let report = export_rollouts(&snapshot, &mut lines, &options)?;
    assert_eq!((report.lines, snapshot.rollouts()?.len()), (8, 4));

    // Blame lands on a wrong tool, and not on the memory that believed it; and on a memory that forgets.
    let bad_tool =
        intervene(&runs[0], Intervention::ToolCorruption { step: 0 }, &ChangeAnswer)?.expect("it has a text");
    assert_eq!(blame(&runs[0], &bad_tool.run, &board)?.blamed(), Some((Module::Observation, 0)));
    let forgetful = intervene(&runs[0], Intervention::DelayedDrop { step: 1 }, &ChangeAnswer)?.expect("it added words");
    assert_eq!(blame(&runs[0], &forgetful.run, &board)?.blamed(), Some((Module::Memory, 1)));
    println!("{:#?}", deconfound(&runs, &board, &ChangeAnswer, &options)?);

    database.close()?;
    std::fs::remove_dir_all(&path).ok();
    Ok(())
}
