//! Recalls and scripts that run together: each answers as it does alone.

use crate::random::Random;
use holotype::answer::{Answer, Output};
use holotype::query::{ParamValue, Params};
use holotype::{
    Accelerator, Durability, Error, Holotype, Limits, Mark, NewRecall, NewTrace, Options, Pointer, Space, Status,
};
use proptest::prelude::*;
use std::time::Duration;

const DIM: usize = 4;

/// A vector of small numbers.
fn vector(random: &mut Random) -> Vec<f32> {
    (0..DIM).map(|_| random.below(9) as f32 - 3.5).collect()
}

/// A database of 700 traces in three episodes, some failed, with recalls of some of them.
fn made(seed: u64, accelerator: Accelerator) -> (tempfile::TempDir, Holotype) {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { accelerator, ..Options::with_space(Space::new("test", DIM)) };
    let database = Holotype::create(dir.path().join("memory.holo"), options).unwrap();
    let mut random = Random(seed);
    let mut transaction = database.begin().unwrap();
    for i in 0..700 {
        let trace = NewTrace::turn(format!("e{}", i % 3), format!("word{} and more", i % 40)).key(format!("t{i}"));
        let id = transaction.record(trace.vector(vector(&mut random))).unwrap();
        if random.below(5) == 0 {
            transaction.mark(id, Mark::Status(Status::Failed), None).unwrap();
        }
        if i % 3 == 0 {
            let fact = NewRecall::fact(format!("fact word{}", i % 7)).vector(vector(&mut random));
            transaction.remember(fact.from(Pointer::to_key(format!("t{i}")).quoting("and more"))).unwrap();
        }
    }
    transaction.commit(Durability::None).unwrap();
    (dir, database)
}

/// Some recalls with their parameters; most share filters, one is wrong, one looks back.
fn scripts(random: &mut Random, count: usize) -> Vec<(String, Params)> {
    let mut scripts = Vec::new();
    for at in 0..count {
        let text = format!("word{}", random.below(40));
        let passage = ParamValue::TextVector { text, vector: vector(random) };
        let source = match at % 9 {
            0..=2 => "recall $q in episode 'e1' limit 7",
            3 => "recall $q where status is failed limit 4",
            4 => "recall near $q through traces 9 by near pool 30 limit 9",
            5 => "recall $q as of commit 1 limit 3",
            6 => "recall $q in episode 'nowhere'",
            7 => "recall $q; count traces",
            _ => "recall $q where nonsense = 3",
        };
        let value = match at % 9 {
            4 => ParamValue::Vector(vector(random)),
            _ => passage,
        };
        scripts.push((source.to_owned(), Params::from([("q".to_owned(), value)])));
    }
    scripts
}

/// An answer without the time it took.
fn timeless(answer: &Answer) -> String {
    format!("{:?}", Answer { micros: 0, ..answer.clone() })
}

fn told(outcome: &Result<Vec<Output>, Error>) -> Vec<String> {
    let of = |output: &Output| match output {
        Output::Answer(answer) => timeless(answer),
        other => format!("{other:?}"),
    };
    match outcome {
        Ok(outputs) => outputs.iter().map(of).collect(),
        Err(error) => vec![error.to_string()],
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn scripts_that_run_together_answer_as_alone(
        seed in 1u64..10_000, checkpoint in any::<bool>(), count in 0usize..60,
    ) {
        let (_dir, database) = made(seed, Accelerator::Auto);
        if checkpoint {
            database.checkpoint().unwrap();
        }
        let scripts = scripts(&mut Random(seed + 1), count);
        let asked: Vec<(&str, &Params)> = scripts.iter().map(|(source, params)| (source.as_str(), params)).collect();
        let together = database.query_batch(&asked, &Limits::none());
        prop_assert_eq!(together.len(), count);
        for ((source, params), outcome) in asked.iter().zip(&together) {
            prop_assert_eq!(told(outcome), told(&database.query(source, params)), "{}", source);
        }
    }
}

#[test]
fn recalls_that_run_together_share_a_pass() {
    let (_dir, database) = made(5, Accelerator::Cuda);
    let snapshot = database.snapshot();
    let mut random = Random(6);
    let vectors: Vec<Vec<f32>> = (0..300).map(|_| vector(&mut random)).collect();
    let recall = |vector: &Vec<f32>| snapshot.recall("word7").near(vector.clone()).in_episode("e2").limit(5);
    let before = database.stats().unwrap().parts_on_cpu;
    let together = snapshot.recall_batch(&vectors.iter().map(recall).collect::<Vec<_>>());
    let stats = database.stats().unwrap();
    assert!(stats.parts_on_cpu + stats.parts_on_accelerator > before);
    // Without a GPU the reason is told, once for all.
    assert_eq!(database.accelerator_fault().is_none(), stats.parts_on_accelerator > 0);
    assert!(stats.accelerator.contains("cpu ("), "{}", stats.accelerator);
    for (vector, answer) in vectors.iter().zip(together) {
        assert_eq!(timeless(&answer.unwrap()), timeless(&recall(vector).run().unwrap()));
    }
}

#[test]
fn limits_hold_for_each_statement_of_a_batch() {
    let (_dir, database) = made(9, Accelerator::Cpu);
    let mut random = Random(3);
    let params: Vec<Params> =
        (0..5).map(|_| Params::from([("q".to_owned(), ParamValue::Vector(vector(&mut random)))])).collect();
    let asked: Vec<(&str, &Params)> = params.iter().map(|params| ("recall near $q", params)).collect();
    for limits in [Limits::none().rows_scored(300), Limits::none().time(Duration::ZERO)] {
        for outcome in database.query_batch(&asked, &limits) {
            assert!(matches!(outcome, Err(Error::Limit { .. })), "{outcome:?}");
        }
    }
    let enough = Limits::none().rows_scored(100_000);
    assert!(database.query_batch(&asked, &enough).iter().all(Result::is_ok));
}

#[test]
fn a_script_that_writes_divides_a_batch() {
    let (_dir, database) = made(11, Accelerator::Auto);
    let none = Params::new();
    let asked = [
        ("count traces", &none),
        ("count traces", &none),
        ("record turn 'new' in episode 'e9'", &none),
        ("count traces", &none),
        ("recall 'word1' limit 2", &none),
    ];
    let outcomes = database.query_batch(&asked, &Limits::none());
    let count = |at: usize| told(&outcomes[at]);
    assert_eq!(count(0), count(1));
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    assert_ne!(count(0), count(3));
}

#[test]
fn explain_analyze_says_where_vectors_are_compared() {
    let (_dir, database) = made(13, Accelerator::Cpu);
    let params = Params::from([("q".to_owned(), ParamValue::Vector(vec![1.0; DIM]))]);
    let outputs = database.query("explain analyze recall near $q", &params).unwrap();
    let Some(Output::Table(table)) = outputs.first() else { panic!("no table") };
    let steps: Vec<(String, String)> = table.typed().unwrap();
    assert!(steps.iter().any(|(step, detail)| step == "accelerator" && detail.starts_with("cpu (")), "{steps:?}");
    assert!("tpu".parse::<Accelerator>().unwrap_err().to_string().contains("auto, cpu or cuda is expected"));
}
