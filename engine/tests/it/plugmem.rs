//! Structuring, merging and forgetting of knowledge (PlugMem C.1, C.2, C.5), against plain recounts.

use holotype::answer::{Output, Table};
use holotype::embed::HashingEmbedder;
use holotype::query::Params;
use holotype::structure::{
    AsStated, Extracted, ExtractedFact, Extractor, MergeByWords, Procedure, ProcedureWriter, Roles, Step, Trajectory,
    Unit,
};
use holotype::time::FixedClock;
use holotype::{
    Decay, Durability, Edge, Feedback, Holotype, ItemId, Kind, Layer, MergeOptions, NewRecall, NewTrace, Options,
    Pointer, Snapshot, Space, Transaction,
};
use holotype_storage::vfs::SimVfs;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// 2026-01-06T00:00:00Z
const CLOCK: i64 = 1_767_657_600_000_000;
const DAY: i64 = 86_400_000_000;

fn database() -> Holotype {
    let embedder = HashingEmbedder::new(64);
    let space = Space::new(embedder.name(), 64);
    let options = Options { page_size: 4096, clock: Arc::new(FixedClock(CLOCK)), ..Options::with_space(space) };
    Holotype::create_on(Arc::new(SimVfs::new()), "/memory.holo", options).unwrap()
}

fn table(snapshot: &Snapshot, script: &str) -> Table {
    match snapshot.query(script, &Params::new()).unwrap().pop() {
        Some(Output::Table(table)) => table,
        other => panic!("{script}: {other:?}"),
    }
}

fn cells(table: &Table) -> Vec<Vec<String>> {
    let cell = |cell: &Option<holotype::cell::Cell>| cell.as_ref().map_or("-".to_owned(), ToString::to_string);
    table.rows.iter().map(|row| row.iter().map(cell).collect()).collect()
}

fn shopping() -> Trajectory {
    Trajectory {
        episode: "shop-1".to_owned(),
        goal: "buy the cheapest lamp".to_owned(),
        steps: vec![
            Step::new("The shop Lumora sells 40 lamps. The Aurora 7 costs $12.")
                .action("open lamps")
                .subgoal("sort lamps by price")
                .reward(1.0),
            Step::new("At Lumora the list was sorted. Its cheapest lamp is the Aurora 7.")
                .action("sort by price")
                .subgoal("sort lamps by price")
                .reward(0.5),
            Step::new("The cart holds one Aurora 7.").action("pay").subgoal("complete the checkout form").reward(1.0),
        ],
    }
}

#[test]
fn a_trajectory_becomes_traces_facts_procedures_and_their_index() {
    let database = database();
    let mut transaction = database.begin().unwrap();
    let created = transaction.create(&shopping(), &Roles::default()).unwrap();
    transaction.commit(Durability::None).unwrap();
    let snapshot = database.snapshot();
    assert_eq!((created.traces.len(), created.facts.len(), created.segments), (3, 5, 2));
    assert_eq!((created.procedures.len(), created.intents.len()), (2, 2));
    let first = snapshot.item(created.traces[0]).unwrap();
    assert_eq!(first.content.text(), shopping().steps[0].observation);
    let fields = cells(&table(
        &snapshot,
        "find traces in episode 'shop-1' order by step limit 1 return fields.action, fields.subgoal, fields.reward",
    ));
    assert_eq!(fields, [["open lamps", "sort lamps by price", "1"]]);
    let procedure = snapshot.item(created.procedures[0]).unwrap();
    assert_eq!(procedure.content.text(), "To sort lamps by price:\n1. open lamps\n2. sort by price");
    assert_eq!(procedure.attributes.return_score, Some(8));
    // Provenance to every step.
    assert_eq!(snapshot.linked(created.procedures[0], Edge::Cites).unwrap(), created.traces[..2]);
    for fact in &created.facts {
        assert_eq!(snapshot.linked(*fact, Edge::Cites).unwrap().len(), 1);
        assert!(
            cells(&table(&snapshot, &format!("sources of {} return verdict", fact.0))).iter().all(|row| row[0] == "ok")
        );
    }
    // Facts of one unit are siblings, and one concept of a name joins them.
    assert_eq!(snapshot.linked(created.facts[0], Edge::Sibling).unwrap(), [created.facts[1]]);
    let concept = snapshot.get("concept:lumora").unwrap().expect("the shop is a concept");
    let mentions = cells(&table(&snapshot, "find facts where mentions 'concept:lumora' return item"));
    assert_eq!(mentions.len(), 4, "both facts of both units: {mentions:?}");
    assert_eq!(concept.attributes.kind, Kind::Concept);
    assert!(snapshot.get("concept:aurora").unwrap().is_some());
}

#[test]
fn alike_intents_are_one_and_solve_what_both_solved() {
    let database = database();
    let mut transaction = database.begin().unwrap();
    let first = transaction.create(&shopping(), &Roles::default()).unwrap();
    let mut again = shopping();
    again.episode = "shop-2".to_owned();
    again.steps.truncate(2);
    again.steps.iter_mut().for_each(|step| step.subgoal = Some("sort the lamps by price".to_owned()));
    let second = transaction.create(&again, &Roles::default()).unwrap();
    transaction.commit(Durability::None).unwrap();
    let snapshot = database.snapshot();
    let merged = snapshot.item(second.intents[0]).unwrap();
    assert_eq!(merged.content.text(), "sort lamps by price; sort the lamps by price");
    assert!(snapshot.vector(merged.id).unwrap().is_some(), "it has a vector of its own");
    let known = snapshot.item(first.intents[0]).unwrap();
    assert!(!known.attributes.active, "the merged one supersedes it");
    for procedure in [first.procedures[0], second.procedures[0]] {
        assert!(snapshot.linked(procedure, Edge::Solves).unwrap().contains(&merged.id));
    }
}

#[test]
fn what_breaks_a_limit_is_left_out_and_reported() {
    struct TooMany;
    impl Extractor for TooMany {
        fn facts(&self, unit: &Unit<'_>) -> holotype::Result<Extracted> {
            let fact =
                ExtractedFact { text: "A fact.".to_owned(), span: 0..unit.text.len(), ..ExtractedFact::default() };
            Ok(vec![fact; 11].into())
        }
    }
    struct Boasts;
    impl ProcedureWriter for Boasts {
        fn procedure(&self, _: &str, _: &[Step]) -> holotype::Result<Option<Procedure>> {
            Ok(Some(Procedure { text: "win".to_owned(), return_score: Some(11), intent: None }))
        }
    }
    struct Breaks;
    impl Extractor for Breaks {
        fn facts(&self, _: &Unit<'_>) -> holotype::Result<Extracted> {
            Err(holotype::Error::Invalid("no connection".to_owned()))
        }
    }
    let database = database();
    let mut transaction = database.begin().unwrap();
    let roles = Roles { extractor: &Breaks, ..Roles::default() };
    assert!(transaction.create(&shopping(), &roles).unwrap_err().to_string().contains("no connection"));
    let mut wild = shopping();
    wild.steps[1].reward = Some(f32::NAN);
    assert!(transaction.create(&wild, &Roles::default()).is_err());
    assert!(transaction.create(&Trajectory::default(), &Roles::default()).is_err());
    assert!(transaction.is_empty(), "what was refused left nothing behind");
    let roles = Roles { extractor: &TooMany, standardiser: &AsStated, procedures: &Boasts, ..Roles::default() };
    let created = transaction.create(&shopping(), &roles).unwrap();
    assert_eq!((created.traces.len(), created.facts.len(), created.procedures.len()), (3, 30, 2));
    assert!(created.notes.iter().any(|note| note.contains("at most 10 facts")), "{:?}", created.notes);
    assert!(created.notes.iter().any(|note| note.contains("1 to 10, not 11")), "{:?}", created.notes);
    assert_eq!(transaction.attributes(created.procedures[0]).unwrap().return_score, None);
}

/// A session of LongMemEval: what the assistant said is known afterwards, when and by whom, and nothing poses as a
/// procedure.
#[test]
fn a_conversation_keeps_dates_and_speakers_and_what_the_assistant_said() {
    let database = database();
    let step = Step { source: Some("user".to_owned()), ..Step::new("I was at a wedding in Oslo. Where shall I eat?") };
    let step = step.speaker("Ann").time(CLOCK - DAY).action("Try the restaurant Maaemo. It opens at 18:00.");
    let trajectory = Trajectory { episode: "chat".to_owned(), goal: String::new(), steps: vec![step] };
    let created = database.structure(&trajectory, &Roles::default(), Durability::None).unwrap();
    assert_eq!((created.facts.len(), created.procedures.len(), created.intents.len()), (4, 0, 0));
    let snapshot = database.snapshot();
    let trace = snapshot.item(created.traces[0]).unwrap().attributes;
    assert_eq!((trace.speaker.as_deref(), trace.time), (Some("Ann"), Some(CLOCK - DAY)));
    let said = snapshot.item(created.facts[2]).unwrap();
    assert_eq!(said.content.text(), "Try the restaurant Maaemo.");
    assert_eq!(said.attributes.source, Some(holotype::Source::Assistant));
    assert_eq!(snapshot.item(created.facts[0]).unwrap().attributes.source, Some(holotype::Source::User));
    assert_eq!(snapshot.citations(created.facts[2]).unwrap()[0].field, "action");
    assert_eq!(said.attributes.time, Some(CLOCK - DAY), "inherited");
    // With a goal, an action is an action.
    let mut shop = shopping();
    shop.episode = "shop-9".to_owned();
    assert_eq!(database.structure(&shop, &Roles::default(), Durability::None).unwrap().facts.len(), 5);
}

#[test]
fn ids_of_page_elements_are_no_concepts() {
    let database = database();
    let step = Step::new("[1490] button Sort. [1913] textbox. In 1913 Lumora was founded.").action("click [1490]");
    let trajectory = Trajectory { episode: "web".to_owned(), goal: "sort".to_owned(), steps: vec![step] };
    let created = database.structure(&trajectory, &Roles::default(), Durability::None).unwrap();
    let snapshot = database.snapshot();
    let names: Vec<String> =
        created.concepts.iter().map(|id| snapshot.item(*id).unwrap().content.text().to_owned()).collect();
    assert!(!names.iter().any(|name| name.contains("1490")), "{names:?}");
    assert!(names.iter().any(|name| name == "1913"), "the year is one: {names:?}");
}

#[test]
fn only_procedures_have_a_return_score() {
    let database = database();
    let mut transaction = database.begin().unwrap();
    let refused = |error: holotype::Error, told: &str| assert!(error.to_string().contains(told), "{error}");
    let procedure = |score| NewRecall::new(Kind::Procedure, "Sort first.").ungrounded().return_score(score);
    for score in [0, 11] {
        refused(transaction.remember(procedure(score)).unwrap_err(), "return_score must be from 1 to 10");
    }
    for kind in [Kind::Fact, Kind::Summary, Kind::Intent, Kind::Concept] {
        let scored = NewRecall::new(kind, "It is said.").ungrounded().return_score(5);
        refused(transaction.remember(scored).unwrap_err(), "return_score belongs to procedures");
    }
    let known = transaction.remember(NewRecall::fact("It is said.").ungrounded().key("f")).unwrap();
    let scored = NewRecall::fact("It was said.").ungrounded().return_score(5);
    refused(transaction.update("f", scored).unwrap_err(), "return_score belongs to procedures");
    assert!(transaction.attributes(known).unwrap().active, "what was refused left nothing behind");
    for score in [1, 10] {
        let written = transaction.remember(procedure(score)).unwrap();
        assert_eq!(transaction.attributes(written).unwrap().return_score, Some(score));
    }
}

/// Every unit is one fact with the concepts that it names after colons.
struct Tagged;
impl Extractor for Tagged {
    fn facts(&self, unit: &Unit<'_>) -> holotype::Result<Extracted> {
        let unit = unit.text;
        let concepts = unit.split(':').skip(1).map(|name| name.trim().to_owned()).collect();
        Ok(vec![ExtractedFact { text: unit.to_owned(), span: 0..unit.len(), concepts, vector: None }].into())
    }
}

fn induced(transaction: &mut Transaction<'_>, text: &str) -> (ItemId, Vec<ItemId>) {
    let roles = Roles { extractor: &Tagged, ..Roles::default() };
    let trace = transaction.record(NewTrace::turn("names", text)).unwrap();
    let created = transaction.induce(trace, &roles).unwrap();
    (created.facts[0], created.concepts)
}

#[test]
fn a_concept_and_its_aliases_are_one() {
    let database = database();
    let mut transaction = database.begin().unwrap();
    let (first, concept) = induced(&mut transaction, "It was built: Velmora Seven");
    let (second, same) = induced(&mut transaction, "It sank: the Old Barge");
    assert_ne!(concept, same);
    // An alias joins the name it is stated with; marks, case and plurals make no other name.
    let (third, joined) = induced(&mut transaction, "It had a crew: velmora sevens|V7");
    assert_eq!(joined.len(), 1);
    let (fourth, known) = induced(&mut transaction, "It was painted: v7");
    assert_eq!(known, joined);
    assert_eq!(induced(&mut transaction, "It is red: V7|VELMORA SEVEN").1, joined, "all of it is known");
    // A name that joins two concepts makes them one.
    let (fifth, united) = induced(&mut transaction, "It is a ship: The Old Barge|V-7");
    assert_eq!(united.len(), 1);
    transaction.commit(Durability::Sync).unwrap();
    let snapshot = database.snapshot();
    let item = snapshot.item(united[0]).unwrap();
    assert_eq!(item.content.text(), "the Old Barge|Velmora Seven|V7");
    for old in [concept[0], same[0], joined[0]] {
        assert!(!snapshot.attributes(old).unwrap().active, "{old} was superseded");
    }
    for name in ["Velmora Seven", "V7", "the old barge"] {
        let found = cells(&table(&snapshot, &format!("find facts where mentions '{name}' return item order by item")));
        let all: Vec<ItemId> = found.iter().map(|row| ItemId(row[0].parse().unwrap())).collect();
        assert_eq!(all.len(), 6, "{name}");
        assert!([first, second, third, fourth, fifth].iter().all(|fact| all.contains(fact)), "{name}: {all:?}");
    }
    assert_eq!(shown(&snapshot), recount(&snapshot));
    // The next transaction finds it by every name, and a name of no words is refused.
    let mut transaction = database.begin().unwrap();
    for name in ["V7", "the OLD  barge", "Velmora Seven"] {
        assert_eq!(induced(&mut transaction, &format!("Again: {name}")).1, united, "{name}");
    }
    let roles = Roles { extractor: &Tagged, ..Roles::default() };
    let trace = transaction.record(NewTrace::turn("names", "Nothing: …")).unwrap();
    assert!(transaction.induce(trace, &roles).unwrap_err().to_string().contains("a concept needs a name"));
}

/// Facts about a few things, with the concepts as bits.
fn write_facts(database: &Holotype, facts: &[(u8, u8)]) -> Vec<ItemId> {
    let mut transaction = database.begin().unwrap();
    let embedder = HashingEmbedder::new(64);
    let subjects = ["the lamp", "the old lamp", "the rope", "a long rope"];
    let states = ["is sold in Oslo", "is sold in Oslo today", "was lost at sea", "hangs by the door"];
    let concepts: Vec<ItemId> = (0..4)
        .map(|nth| transaction.remember(NewRecall::new(Kind::Concept, format!("c{nth}")).ungrounded()).unwrap())
        .collect();
    let mut written = Vec::new();
    for (nth, (what, bits)) in facts.iter().enumerate() {
        let text = format!("{} {}", subjects[usize::from(what % 4)], states[usize::from(what / 4 % 4)]);
        let trace = transaction.record(NewTrace::turn("facts", format!("{nth}: {text}"))).unwrap();
        let vector = embedder.embed(&text).unwrap();
        let fact = transaction.remember(NewRecall::fact(text).from(Pointer::to_item(trace)).vector(vector)).unwrap();
        for (bit, concept) in concepts.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1) {
            let _ = bit;
            transaction.link(fact, Edge::Mentions, *concept).unwrap();
        }
        written.push(fact);
    }
    transaction.commit(Durability::None).unwrap();
    written
}

/// `show graph`, counted anew from what `find` lists.
fn recount(snapshot: &Snapshot) -> [u64; 4] {
    let mut of_tag: BTreeMap<ItemId, BTreeSet<ItemId>> = BTreeMap::new();
    let mut nodes = 0;
    for id in (0..snapshot.len()).map(ItemId) {
        let attributes = snapshot.attributes(id).unwrap();
        if attributes.kind != Kind::Fact || !attributes.active {
            continue;
        }
        nodes += 1;
        for tag in snapshot.linked(id, Edge::Mentions).unwrap() {
            if snapshot.attributes(tag).unwrap().active {
                of_tag.entry(tag).or_default().insert(id);
            }
        }
    }
    let degrees = of_tag.values().map(|items| items.len() as u64);
    let edges = degrees.clone().sum();
    [nodes, of_tag.len() as u64, edges, degrees.map(|degree| degree * (degree - 1) / 2).sum()]
}

fn shown(snapshot: &Snapshot) -> [u64; 4] {
    let rows = cells(&table(snapshot, "show graph"));
    assert_eq!(rows[0][0], "semantic");
    [1, 2, 3, 4].map(|at| rows[0][at].parse().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn merges_keep_provenance_and_leave_the_past(facts in prop::collection::vec((0u8..16, 1u8..16), 2..14)) {
        let database = database();
        let written = write_facts(&database, &facts);
        let before = database.snapshot();
        prop_assert_eq!(shown(&before), recount(&before));
        let mut transaction = database.begin().unwrap();
        let merged = transaction.merge(&written, &MergeByWords, MergeOptions { tau: 0.6, top: 1 }).unwrap();
        transaction.commit(Durability::None).unwrap();
        let after = database.snapshot();
        prop_assert_eq!(shown(&after), recount(&after));
        let past = table(&after, &format!("show graph as of commit {}", before.commit()));
        prop_assert_eq!(cells(&past), cells(&table(&before, "show graph")), "the past shows the graph as it was");
        for merge in &merged {
            let ends = |snapshot: &Snapshot, id, edge| -> HashSet<ItemId> {
                snapshot.linked(id, edge).unwrap().into_iter().collect()
            };
            for of in &merge.of {
                for edge in [Edge::Cites, Edge::Mentions] {
                    let inherited = ends(&before, *of, edge);
                    prop_assert!(ends(&after, merge.merged, edge).is_superset(&inherited), "{} is inherited", edge);
                }
                prop_assert_eq!(after.attributes(*of).unwrap().active, !merge.relation.retires());
                let past = after.as_of(before.commit()).unwrap();
                prop_assert!(past.attributes(*of).unwrap().active, "the past shows originals");
            }
        }
        // Edges agree both ways, and nothing retired is a row.
        for id in &written {
            for concept in after.linked(*id, Edge::Mentions).unwrap() {
                let key = after.item(concept).unwrap().key;
                let found = cells(&table(&after, &format!("find facts where mentions '{key}' return item")));
                prop_assert!(found.contains(&vec![id.0.to_string()]));
            }
        }
        let retiring = merged.iter().filter(|merge| merge.relation.retires());
        let retired: HashSet<ItemId> = retiring.flat_map(|merge| merge.of.clone()).collect();
        let path = "facts 50 -> (concepts 8 -> facts 50) up to 2 hops";
        let statement = format!("recall 'lamp rope sold lost door' through {path} limit 50");
        let output = after.query(&statement, &Params::new()).unwrap().pop();
        let Some(Output::Answer(answer)) = output else { panic!("no answer") };
        prop_assert!(answer.rows.iter().all(|row| !retired.contains(&row.item)));
        // A second merge finds nothing, also with the statements that it made.
        let all: Vec<ItemId> = written.iter().copied().chain(merged.iter().map(|merge| merge.merged)).collect();
        let mut transaction = database.begin().unwrap();
        let again = transaction.merge(&all, &MergeByWords, MergeOptions { tau: 0.6, top: 1 }).unwrap();
        prop_assert!(again.is_empty(), "{:?}", again);
    }
}

#[test]
fn passes_come_to_an_end() {
    let database = database();
    write_facts(&database, &[(0, 1), (1, 1), (4, 1), (5, 3), (2, 3), (3, 2), (14, 7)]);
    let mut counts = Vec::new();
    loop {
        let all: Vec<ItemId> = (0..database.snapshot().len())
            .map(ItemId)
            .filter(|id| database.snapshot().attributes(*id).unwrap().kind == Kind::Fact)
            .collect();
        let mut transaction = database.begin().unwrap();
        let merged = transaction.merge(&all, &MergeByWords, MergeOptions { tau: 0.5, top: 2 }).unwrap();
        transaction.commit(Durability::None).unwrap();
        counts.push(merged.len());
        if merged.is_empty() {
            break;
        }
        assert!(counts.len() < 2, "a second pass over an unchanged memory goes on: {counts:?}");
    }
    assert!(counts[0] > 0);
}

#[test]
fn what_is_restated_several_times_is_one_and_new_facts_join_it() {
    let database = database();
    // Three times the same, once in other words, and something else.
    let facts = write_facts(&database, &[(0, 1), (0, 1), (4, 1), (0, 1), (14, 1)]);
    let query = |script: &str| {
        let Some(Output::Table(table)) = database.query(script, &Params::new()).unwrap().pop() else { panic!() };
        cells(&table)
    };
    let made = query("merge facts");
    assert_eq!(
        made.iter().map(|row| row[1].as_str()).collect::<Vec<_>>(),
        ["made", "retired", "retired", "retired", "retired"]
    );
    let snapshot = database.snapshot();
    let active = |id: &ItemId| snapshot.attributes(*id).unwrap().active;
    assert_eq!(facts.iter().map(active).collect::<Vec<_>>(), [false, false, false, false, true]);
    assert_eq!(query("merge facts"), [[""; 0]; 0], "a second merge changes nothing");
    let again = write_facts(&database, &[(0, 1)]);
    let mut transaction = database.begin().unwrap();
    let concept = database.snapshot().linked(facts[0], Edge::Mentions).unwrap()[0];
    transaction.link(again[0], Edge::Mentions, concept).unwrap();
    transaction.commit(Durability::None).unwrap();
    assert_eq!(query("merge facts").len(), 3, "what is written later joins the statement that was made");
    assert_eq!(query("merge facts"), [[""; 0]; 0]);
}

#[test]
fn merge_is_a_statement_with_a_dry_run() {
    let database = database();
    let written = write_facts(&database, &[(0, 1), (4, 1), (14, 1)]);
    let script = "merge facts tau 0.6 top 1";
    let before = database.snapshot().len();
    let Some(Output::Table(dry)) = database.query(&format!("explain {script}"), &Params::new()).unwrap().pop() else {
        panic!()
    };
    assert_eq!(database.snapshot().len(), before);
    let Some(Output::Table(done)) = database.query(script, &Params::new()).unwrap().pop() else { panic!() };
    assert_eq!(cells(&dry), cells(&done));
    assert_eq!(cells(&done).len(), 3, "one made, two retired: {:?}", cells(&done));
    let named = format!("merge {}, {} into 'a lamp by the door' as stitch", written[0].0, written[2].0);
    let Some(Output::Table(stitched)) = database.query(&named, &Params::new()).unwrap().pop() else { panic!() };
    assert_eq!(cells(&stitched).len(), 1);
    assert!(database.snapshot().attributes(written[2]).unwrap().active);
    assert!(
        database.query(&format!("merge {}, {} into 'x' as topic", written[0].0, written[0].0), &Params::new()).is_err()
    );
}

#[test]
fn feedback_teaches_and_decay_retires() {
    let database = database();
    let mut transaction = database.begin().unwrap();
    let at = |days: i64| CLOCK - days * DAY;
    let old = transaction.record(NewTrace::turn("e", "An old event without use.").time(at(30))).unwrap();
    let used = transaction.record(NewTrace::turn("e", "An old event with use.").time(at(30))).unwrap();
    let news = transaction.record(NewTrace::turn("e", "News.").time(at(0))).unwrap();
    let fresh = transaction.remember(NewRecall::fact("There is news.").from(Pointer::to_item(news))).unwrap();
    let fact = transaction.remember(NewRecall::fact("It was of use.").key("f").from(Pointer::to_item(used))).unwrap();
    let dull = transaction.remember(NewRecall::fact("It was dull.").from(Pointer::to_item(used))).unwrap();
    for reward in [1.0, 1.0, 0.25] {
        transaction.feedback(fact, &Feedback::Reward(reward)).unwrap();
    }
    assert!(transaction.feedback(fact, &Feedback::Reward(1.5)).is_err());
    assert!(transaction.feedback(old, &Feedback::Reward(1.0)).is_err());
    let utility = transaction.attributes(fact).unwrap();
    assert_eq!((utility.utility, utility.utility_count), (0.75, 3));
    let better = transaction.feedback(fact, &Feedback::Correction("It is of use.".to_owned(), vec![])).unwrap();
    let close = "close episode 'e'";
    transaction.commit(Durability::None).unwrap();
    database.query(close, &Params::new()).unwrap();
    let snapshot = database.snapshot();
    assert_eq!(snapshot.get("f").unwrap().unwrap().id, better);
    assert_eq!(snapshot.linked(better, Edge::Cites).unwrap(), [used], "a correction keeps the provenance");
    let pages = cells(&table(&snapshot, "find pages return key"));
    for page in pages {
        database.query(&format!("mark page '{}' summarised", page[0]), &Params::new()).unwrap();
    }
    let mut transaction = database.begin().unwrap();
    transaction.feedback(better, &Feedback::Reward(1.0)).unwrap();
    let decay = Decay { half_life: 30 * DAY, below: 0.4, compress_after: Some(7 * DAY) };
    let mut retired = transaction.decay(decay).unwrap();
    retired.sort_unstable();
    assert_eq!(retired, [old, dull], "half of 1 is above the bound, and what is cited stays");
    assert!(transaction.attributes(fresh).unwrap().active, "what is new has had no time to be of use");
    assert!(transaction.decay(decay).unwrap().is_empty(), "again it changes nothing");
    transaction.feedback(fresh, &Feedback::Reward(0.0)).unwrap();
    assert_eq!(transaction.decay(decay).unwrap(), [fresh], "what was of no use when judged goes at once");
    assert!(transaction.decay(Decay { half_life: 0, ..decay }).is_err());
    assert_eq!(transaction.attributes(old).unwrap().layer(), Layer::Trace);
}
