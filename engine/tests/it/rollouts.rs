//! Kept rollouts (HiMPO): read back as written, no memory, their credit beside the utility, and forgotten as any trace.

use holotype::answer::Output;
use holotype::credit::{
    CreditOptions, Rollout, RolloutStep, Run, RunStep, Scoreboard, Scores, Template, WordScorer, Write, credit,
};
use holotype::interchange::export_rollouts;
use holotype::query::Params;
use holotype::{Durability, Holotype, NewRecall, Options, Snapshot};
use holotype_storage::vfs::SimVfs;
use std::sync::Arc;

fn database() -> Holotype {
    let options = Options { page_size: 4096, ..Options::default() };
    Holotype::create_on(Arc::new(SimVfs::new()), "/memory.holo", options).unwrap()
}

/// Four rollouts of one question: those whose second memory holds the answer succeed.
fn rollouts() -> Vec<Rollout> {
    let template = Template::default();
    let board = Scoreboard { scorer: &WordScorer, template: &template };
    let rollout = |nth: usize| {
        let memory = if nth < 2 { "The Velmora was built in Oslo." } else { "The Velmora is a ship." };
        let step = |memory: &str, observation: &str| RunStep {
            memory: memory.to_owned(),
            think: format!("thought {nth}"),
            call: "search".to_owned(),
            observation: observation.to_owned(),
        };
        let run = Run {
            group: "where".to_owned(),
            rollout: nth.to_string(),
            question: "Where was the Velmora built?".to_owned(),
            outcome: "Oslo".to_owned(),
            reward: if nth < 2 { 1.0 } else { 0.0 },
            steps: vec![step("", "The Velmora, built in Oslo, is a ship."), step(memory, "It sails.")],
        };
        let mut rollout = Rollout::of(&run, &board.scores(&run).unwrap());
        rollout.template = Some(template.id());
        rollout.steps[1].item = Some(if nth < 2 { "good" } else { "poor" }.to_owned());
        rollout
    };
    let mut all: Vec<Rollout> = (0..4).map(rollout).collect();
    all.push(Rollout { group: "where".to_owned(), rollout: "idle".to_owned(), ..Rollout::default() });
    all
}

fn keep(database: &Holotype, rollouts: &[Rollout]) {
    let mut transaction = database.begin().unwrap();
    for key in ["good", "poor"] {
        if transaction.find(&holotype::Target::Key(key.to_owned())).is_err() {
            transaction.remember(NewRecall::fact(format!("a {key} memory")).key(key).ungrounded()).unwrap();
        }
    }
    for rollout in rollouts {
        assert!(transaction.keep_rollout(rollout).unwrap());
        assert!(!transaction.keep_rollout(rollout).unwrap(), "it is kept once");
    }
    transaction.credit_rollouts(&CreditOptions::default()).unwrap();
    transaction.commit(Durability::None).unwrap();
}

fn keys(database: &Holotype, statement: &str) -> Vec<String> {
    match database.query(statement, &Params::new()).unwrap().pop() {
        Some(Output::Answer(answer)) => answer.rows.iter().map(|row| row.key.clone()).collect(),
        Some(Output::Table(table)) => {
            let at = table.columns.iter().position(|column| column == "key").unwrap();
            table.rows.iter().map(|row| row[at].as_ref().unwrap().to_string()).collect()
        }
        other => panic!("{statement}: {other:?}"),
    }
}

fn exported(snapshot: &Snapshot) -> Vec<serde_json::Value> {
    let mut out = Vec::new();
    let report = export_rollouts(snapshot, &mut out, &CreditOptions::default()).unwrap();
    let lines: Vec<serde_json::Value> =
        String::from_utf8(out).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(report.lines, lines.len() as u64);
    lines
}

#[test]
fn rollouts_are_read_back_as_written_and_are_no_memory() {
    let database = database();
    let written = rollouts();
    keep(&database, &written);
    assert_eq!(database.snapshot().rollouts().unwrap(), written);
    assert_eq!(keys(&database, "recall 'Where was the Velmora built?' limit 20"), Vec::<String>::new());
    assert_eq!(keys(&database, "find traces where tool = 'himpo.rollout' return key").len(), 9);
    let unfit = Rollout { reward: f64::NAN, ..written[0].clone() };
    let mut transaction = database.begin().unwrap();
    assert!(transaction.keep_rollout(&unfit).is_err());
    let twice = RolloutStep::default();
    let unfit = Rollout { group: "new".to_owned(), steps: vec![twice.clone(), twice], ..Rollout::default() };
    assert!(transaction.keep_rollout(&unfit).is_err());
    assert!(transaction.is_empty());
}

#[test]
fn the_credit_of_an_item_is_that_over_all_that_was_kept_in_any_order() {
    let written = rollouts();
    let lines: Vec<Write<'_>> = written.iter().flat_map(Rollout::writes).collect();
    let credits = credit(&lines, &CreditOptions::default()).unwrap();
    let smoothed = |rollout: &str| {
        let of = lines
            .iter()
            .zip(&credits.lines)
            .find(|(line, _)| line.rollout == rollout && line.scored.is_some_and(|(step, _)| step == 1));
        of.unwrap().1.write.unwrap().smoothed
    };
    let expected = [("good", smoothed("0"), smoothed("1")), ("poor", smoothed("2"), smoothed("3"))];
    for split in 0..=written.len() {
        let database = database();
        let (later, sooner) = written.split_at(split);
        keep(&database, sooner);
        keep(&database, later);
        let snapshot = database.snapshot();
        for (key, a, b) in expected {
            let attributes = snapshot.get(key).unwrap().unwrap().attributes;
            assert_eq!((attributes.credit, attributes.credit_count), (((a + b) / 2.0) as f32, 2), "{key}");
        }
        // The most useful is found first, and the least useful pruned first.
        let recalled = keys(&database, "recall 'memory' through facts 5 score utility 1 limit 2");
        assert_eq!(recalled, ["good", "poor"]);
        assert_eq!(keys(&database, "prune facts to 1"), ["poor"]);
    }
}

/// Both stood in one column: the credit of later rollouts overwrote what had been reported, and `decay` retired facts
/// of which siblings had more credit.
#[test]
fn rewards_and_credit_stand_apart() {
    let database = database();
    keep(&database, &rollouts()[..2]);
    database.query("mark 'good' reward 0.25; mark 'good' reward 0.75; mark 'poor' reward 0.5", &Params::new()).unwrap();
    keep(&database, &rollouts()[2..]);
    let snapshot = database.snapshot();
    let of = |key: &str| snapshot.get(key).unwrap().unwrap().attributes;
    let good = of("good");
    assert_eq!((good.utility, good.utility_count, good.credit_count), (0.5, 2, 2));
    assert!(good.credit > 0.0 && of("poor").credit < 0.0);
    let rows =
        keys(&database, "find facts where reports > 0 and rollouts = 2 and credit > 0 return key, reports, credit");
    assert_eq!(rows, ["good"]);
    assert!(keys(&database, "decay facts half-life 1d below 0.05").is_empty());
    // They survive an export and an import.
    let mut out = Vec::new();
    holotype::interchange::export(&snapshot, &mut out, None).unwrap();
    let lines = String::from_utf8(out).unwrap();
    assert!(lines.contains(r#"{"mark":{"key":"good","utility":0.5,"reports":2}}"#), "{lines}");
    let mark = format!(r#"{{"mark":{{"key":"poor","credit":{},"rollouts":2}}}}"#, of("poor").credit);
    assert!(lines.contains(&mark), "{lines}");
}

#[test]
fn exported_rollouts_have_credit_and_nothing_that_was_forgotten() {
    let database = database();
    keep(&database, &rollouts());
    let lines = exported(&database.snapshot());
    assert_eq!(lines.len(), 9);
    let idle = lines[8].as_object().unwrap();
    assert_eq!((idle.len(), idle["rollout"].as_str(), idle["reward"].as_f64()), (4, Some("idle"), Some(0.0)));
    assert!(idle.contains_key("group") && idle.contains_key("trajectory_advantage"));
    let good = &lines[1];
    assert_eq!((good["mem"].as_str(), good["item"].as_str()), (Some("The Velmora was built in Oslo."), Some("good")));
    assert!(good["advantage"].as_f64().unwrap() > 0.0 && lines[7]["advantage"].as_f64().unwrap() < 0.0);
    database.query("forget 'good' because 'asked to'", &Params::new()).unwrap();
    let lines = exported(&database.snapshot());
    assert!(lines[1].get("mem").is_none() && lines[1].get("observation").is_none());
    assert!(lines[7].get("mem").is_some());
    database
        .query("forget traces where tool = 'himpo.rollout' and step = 1 because 'asked to'", &Params::new())
        .unwrap();
    let lines = exported(&database.snapshot());
    assert_eq!(lines.len(), 5);
    assert!(lines.iter().all(|line| !line.to_string().contains("built in Oslo.")));
}

#[test]
fn scores_of_two_templates_do_not_mix() {
    let scores = Scores { s_prev: -2.0, s_now: -1.0, log_h: Some(-1.0) };
    let write = |rollout, template| Write { template, ..Write::new("g", rollout, 0, scores).reward(1.0) };
    let mixed = [write("a", Some("himpo-1:1")), write("b", None), write("c", Some("himpo-1:2"))];
    let refused = credit(&mixed, &CreditOptions::default()).unwrap_err();
    assert_eq!(refused.line, Some(3));
    assert!(refused.to_string().contains("those of line 1 with \"himpo-1:1\""), "{refused}");
    assert!(credit(&mixed[..2], &CreditOptions::default()).is_ok());
}
