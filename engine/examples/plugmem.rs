//! PlugMem in one program: a trajectory becomes facts, concepts and procedures; a question whose answer shares no word
//! with it is found over a concept; facts are merged, and a correction keeps its provenance.
//!
//! Every role has a built-in that needs no model; a model fills one by implementing its trait (`holotype::structure`).

use holotype::answer::{Answer, Output};
use holotype::embed::HashingEmbedder;
use holotype::query::{ParamValue, Params};
use holotype::structure::{MergeByWords, Roles, Step, Trajectory};
use holotype::{Durability, Edge, Feedback, Holotype, MergeOptions, Options, Snapshot, Space};

/// These share words with the question and do not answer it.
const NOISE: [&str; 8] = [
    "In which town the founder of Orbal may live, nobody knows.",
    "The founder of a bank must live in the town, says an old law.",
    "A town can live without a founder, but not without a well.",
    "Does the town of Keswin remember its founder? They live in doubt.",
    "Every founder would live in a capital, and no town keeps one.",
    "A founder and a town clerk live next door to each other in the play.",
    "They live in town, the founder said of her seven cats.",
    "Which town does a founder choose to live in? One with a port.",
];

fn trajectory(episode: &str, steps: &[(&str, &str, &str)]) -> Trajectory {
    let step = |(observation, action, subgoal): &(&str, &str, &str)| {
        Step::new(*observation).action(*action).subgoal(*subgoal).reward(1.0)
    };
    let goal = "find out who made it, and where they live".to_owned();
    Trajectory { episode: episode.to_owned(), goal, steps: steps.iter().map(step).collect() }
}

fn ask(snapshot: &Snapshot, statement: &str, question: &str) -> holotype::Result<Answer> {
    let params = Params::from([("q".to_owned(), ParamValue::Text(question.to_owned()))]);
    match snapshot.query(statement, &params)?.pop() {
        Some(Output::Answer(answer)) => Ok(*answer),
        _ => panic!("a recall gives an answer"),
    }
}

fn main() -> holotype::Result<()> {
    let path = std::env::temp_dir().join(format!("plugmem-{}.holo", std::process::id()));
    let embedder = HashingEmbedder::new(256);
    let space = Space::new(embedder.name(), 256);
    let database = Holotype::create(&path, Options::with_space(space))?;

    // Structuring: traces, facts that cite their spans, concepts, procedures with a return score, intents.
    let mut transaction = database.begin()?;
    let studio = [
        ("The studio Velmora Seven was started by Quillan Ro in 1994.", "search Velmora", "find the founder"),
        ("Quillan Ro plays chess. Quillan Ro resides at Pelham Bay.", "open the page of Quillan Ro", "find the town"),
    ];
    let created = transaction.create(&trajectory("web-1", &studio), &Roles::default())?;
    println!(
        "{} facts, {} concepts, {} procedures",
        created.facts.len(),
        created.concepts.len(),
        created.procedures.len()
    );
    for (nth, other) in NOISE.iter().enumerate() {
        transaction
            .create(&trajectory(&format!("noise-{nth}"), &[(other, "read", "read the forum")]), &Roles::default())?;
    }
    transaction.commit(Durability::Sync)?;

    // A hop over the concept `Quillan Ro` finds what the question has no word of.
    let snapshot = database.snapshot();
    let question = "In which town does the founder of velmora seven live?";
    let lives = |answer: &Answer| answer.rows.iter().any(|row| row.text.contains("Pelham Bay"));
    let at_once = ask(&snapshot, "recall $q through facts 5 limit 5", question)?;
    let hops = "recall $q through facts 5 -> (concepts 8 -> facts 5) up to 1 hops limit 5";
    let routed = ask(&snapshot, hops, question)?;
    for row in &routed.rows {
        println!("{:.2}  {}", row.score, row.text);
    }
    assert!(!lives(&at_once) && lives(&routed));
    // A procedure is found by its intent.
    let how = ask(&snapshot, "recall $q through intents 3 -> procedures 2 limit 2", "find the founder")?;
    assert!(how.rows[0].text.contains("search Velmora"), "{:?}", how.rows[0].text);

    // Merging: the same fact from another source becomes one statement with both sources.
    let mut transaction = database.begin()?;
    let again =
        [("The studio Velmora Seven was started by Quillan Ro in the spring of 1994.", "read", "find the founder")];
    let later = transaction.create(&trajectory("web-2", &again), &Roles::default())?;
    let both = [created.facts[0], later.facts[0]];
    let merged = transaction.merge(&both, &MergeByWords, MergeOptions::default())?;
    // Feedback: what turns out to be wrong is superseded, and keeps its evidence.
    let correction = Feedback::Correction("Quillan Ro resides at Pelham Harbour.".to_owned(), Vec::new());
    let wrong = *created.facts.last().expect("the last fact is the address");
    let corrected = transaction.feedback(wrong, &correction)?;
    transaction.commit(Durability::Sync)?;
    let snapshot = database.snapshot();
    assert_eq!(merged.len(), 1);
    assert_eq!(snapshot.linked(merged[0].merged, Edge::Cites)?.len(), 2);
    assert_eq!(snapshot.linked(corrected, Edge::Cites)?, snapshot.linked(wrong, Edge::Cites)?);
    assert!(!snapshot.attributes(wrong)?.active);
    println!("{}", snapshot.item(merged[0].merged)?.content.text());

    database.close()?;
    std::fs::remove_dir_all(&path).ok();
    Ok(())
}
