//! Answers of the default recall: one row for one frame, led by what holds now, the other statements below it.

use holotype::answer::{Answer, Order, Output, Row};
use holotype::query::Params;
use holotype::time::FixedClock;
use holotype::{Durability, Holotype, NewTrace, Options, Source, Space, Status, tokens};
use holotype_storage::vfs::SimVfs;
use std::sync::Arc;

/// 2026-01-06T00:00:00Z
const CLOCK: i64 = 1_767_657_600_000_000;
const SECOND: i64 = 1_000_000;
const DAY: i64 = 24 * 3_600 * SECOND;

fn database(space: Option<Space>) -> Holotype {
    let options = Options { clock: Arc::new(FixedClock(CLOCK)), page_size: 4096, space, ..Options::default() };
    Holotype::create_on(Arc::new(SimVfs::new()), "/memory.holo", options).unwrap()
}

fn hashing() -> Option<Space> {
    Some(Space::new("hashing-v1-256", 256))
}

/// Statements of a user, a day apart, with the keys `s0`, `s1`, …
fn told(statements: &[&str]) -> Holotype {
    let database = database(None);
    let mut transaction = database.begin().unwrap();
    for (nth, text) in statements.iter().enumerate() {
        let time = CLOCK - (statements.len() - nth) as i64 * DAY;
        let trace = NewTrace::turn("home", *text).key(format!("s{nth}")).source(Source::User);
        transaction.record(trace.time(time)).unwrap();
    }
    transaction.commit(Durability::None).unwrap();
    database
}

fn ask(database: &Holotype, script: &str) -> Answer {
    match database.query(script, &Params::new()).unwrap_or_else(|error| panic!("{script}: {error}")).pop() {
        Some(Output::Answer(answer)) => *answer,
        other => panic!("{script}: {other:?}"),
    }
}

fn keys(answer: &Answer) -> Vec<&str> {
    answer.rows.iter().map(|row| row.key.as_str()).collect()
}

fn lines(row: &Row) -> Vec<(Order, &str, &str)> {
    row.lines.iter().map(|line| (line.order, line.key.as_str(), line.text.as_str())).collect()
}

#[test]
fn the_newest_value_leads_and_the_earlier_one_is_a_line() {
    let database = told(&["The rent is $850.", "Ann likes green tea.", "The rent is $900."]);
    let answer = ask(&database, "recall 'What is the rent?' limit 2");
    assert_eq!(answer.rows[0].text, "The rent is $900.");
    assert_eq!(lines(&answer.rows[0]), [(Order::Earlier, "s0", "is $850.")]);
    assert_eq!(answer.rows[0].lines[0].label, "earlier (2026-01-03T00:00:00Z)");
    assert_eq!(answer.rows[0].lines[0].citations[0].text.as_deref(), Some("The rent is $850."));
    assert_eq!(answer.rows[0].path, ["words"]);
    let alone = ask(&database, "recall 'What is the rent?' limit 2 lines none");
    assert_eq!((keys(&alone), alone.rows[0].lines.len()), (vec!["s2", "s0"], 0));
}

#[test]
fn what_is_said_with_more_words_never_leads() {
    for qualified in [
        "Suppose the rent is $700.",
        "The rent is $900 for guests.",
        "The rent is not $900.",
        "Until 2020 the rent is $900.",
        "If we move, the rent is $900.",
    ] {
        let database = told(&["The rent is $900.", qualified, "Ann likes green tea."]);
        let answer = ask(&database, "recall 'What is the rent?' limit 1");
        let row = &answer.rows[0];
        assert_eq!(row.text, "The rent is $900.", "{qualified}");
        assert_eq!((row.lines.len(), row.lines[0].order), (1, Order::Later), "{qualified}");
    }
}

/// Six tickets differ in their numbers alone. Folding by cosine once left one of them.
#[test]
fn subjects_that_the_question_names_are_rows_of_their_own() {
    let texts: Vec<String> =
        (101..107).map(|nth| format!("Ticket T-{nth} was moved to the review column by Mara.")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let database = told(&texts);
    let one = ask(&database, "recall 'Where is ticket T-103?' limit 6");
    assert_eq!(one.rows[0].text, texts[2]);
    assert!(one.rows[0].lines.is_empty());
    // Asked about all of them, each is told, as a row, a line, or the key of a row with its words.
    let all = ask(&database, "recall 'Which tickets were moved to review?' limit 6");
    assert_eq!(shown(&all).len(), 6);
}

fn shown(answer: &Answer) -> Vec<String> {
    let of_row = |row: &Row| {
        let lines = row.lines.iter().map(|line| line.key.clone());
        [row.key.clone()].into_iter().chain(row.folded.iter().cloned()).chain(lines).collect::<Vec<_>>()
    };
    let mut shown: Vec<String> = answer.rows.iter().flat_map(of_row).collect();
    shown.sort();
    shown.dedup();
    shown
}

/// "Was not moved" is no restatement of "was moved", however near their vectors are.
#[test]
fn a_denial_is_told() {
    let database = told(&["The meeting was moved to Friday.", "The meeting was not moved to Friday."]);
    let answer = ask(&database, "recall 'Was the meeting moved to Friday?' limit 1");
    assert_eq!(lines(&answer.rows[0]).len(), 1);
    assert_eq!(shown(&answer), ["s0", "s1"]);
}

#[test]
fn equal_words_are_folded_by_name() {
    let database = told(&["Call me Al.", "The sky is blue.", "call me al"]);
    let answer = ask(&database, "recall 'What should I call you?' limit 2");
    assert_eq!((answer.rows[0].key.as_str(), answer.rows[0].folded.as_slice()), ("s2", ["s0".to_owned()].as_slice()));
}

/// A fact in other words once lost against the trace that it cites, and vanished.
#[test]
fn a_fact_stands_beside_the_trace_it_cites() {
    let database = database(hashing());
    let script = "record call 'UA123 price=$450 in economy' in episode 'e' with key = 't', tool = 'search';
        remember fact 'UA123 costs $450' from 't' quoting 'price=$450' with key = 'r'";
    database.query(script, &Params::new()).unwrap();
    let mut found = keys(&ask(&database, "recall 'What does UA123 cost?' limit 5")).join(" ");
    assert!(found == "t r" || found == "r t", "{found}");
    found.clear();
}

/// Two calls in a row are less than a minute apart. Their contest was once open, and the first price won.
#[test]
fn the_later_of_two_calls_in_a_row_answers() {
    let database = database(hashing());
    for price in [450, 480] {
        let script =
            format!("record call 'search(flight UA123): price = ${price}' in episode 'e' with tool = 'search'");
        database.query(&script, &Params::new()).unwrap();
    }
    let answer = ask(&database, "recall 'What is the price of flight UA123?' in episode 'e' limit 1");
    assert!(answer.rows[0].text.ends_with("$480"), "{answer:?}");
    assert_eq!(answer.rows[0].lines[0].order, Order::Earlier);
}

/// A value that was read two thousand times fills the candidates; its change is found by its words.
#[test]
fn a_change_is_found_behind_two_thousand_equal_readings() {
    let database = database(None);
    let mut transaction = database.begin().unwrap();
    for nth in 0..2_000 {
        let trace = NewTrace::call("e", "look", "The gate of flight UA123 is B12.").status(Status::Success);
        transaction.record(trace.time(CLOCK - (3_000 - nth) * SECOND)).unwrap();
    }
    let changed = NewTrace::call("e", "look", "The gate of flight UA123 is C7.").status(Status::Success);
    transaction.record(changed.time(CLOCK - SECOND)).unwrap();
    transaction.commit(Durability::None).unwrap();
    let answer = ask(&database, "recall 'What is the gate of flight UA123?' limit 1");
    assert_eq!(answer.rows[0].text, "The gate of flight UA123 is C7.");
}

#[test]
fn a_guess_of_the_assistant_is_a_line_of_the_reading() {
    let database = database(None);
    let script = "record call 'Flight UA123 to Lisbon: the price is $480 now' in episode 'e'
          with key = 't', tool = 's', status = success, source = tool;
        record turn 'I think flight UA123 has a price near $300, maybe' in episode 'e'
          with key = 'g', source = assistant";
    database.query(script, &Params::new()).unwrap();
    let answer = ask(&database, "recall 'What is the price of flight UA123?' limit 2");
    assert_eq!(keys(&answer), ["t"]);
    assert_eq!(lines(&answer.rows[0])[0].1, "g");
}

#[test]
fn a_code_of_the_question_comes_before_nearer_words() {
    let database = told(&[
        "What bags may I take on my reservation, and how many bags in all?",
        "Reservation 4WQ150 is for two.",
        "Bags on a reservation cost extra.",
    ]);
    assert_eq!(keys(&ask(&database, "recall 'How many bags are on reservation 4WQ150?' limit 1")), ["s1"]);
}

// ---- the reader ----

/// One late line of an old version once made all else foreign.
#[test]
fn a_late_line_of_an_old_version_hides_nothing() {
    let database = database(None);
    let mut transaction = database.begin().unwrap();
    for nth in 0..20 {
        let version = if nth == 19 { "v1" } else { "v2" };
        transaction.record(NewTrace::turn("e", format!("Note {nth} about the garden.")).version(version)).unwrap();
    }
    transaction.commit(Durability::None).unwrap();
    let answer = ask(&database, "recall 'garden' in episode 'e' limit 30 lines none");
    assert_eq!((answer.at.version.as_deref(), answer.rows.len()), (Some("v2"), 19));
    assert_eq!(answer.excluded, [("version", 1)]);
}

/// An item dated 2031 once made everything else stale.
#[test]
fn an_item_dated_after_the_last_commit_moves_no_reader_and_is_counted() {
    let database = database(None);
    let mut transaction = database.begin().unwrap();
    transaction.record(NewTrace::turn("e", "The garden is dry.").key("now").time(CLOCK - DAY)).unwrap();
    transaction.record(NewTrace::turn("f", "The garden is wet.").key("later").time(CLOCK + 2_000 * DAY)).unwrap();
    transaction.commit(Durability::None).unwrap();
    let answer = ask(&database, "recall 'Is the garden dry?' limit 5");
    assert_eq!((keys(&answer), answer.at.time), (vec!["now"], Some(CLOCK - DAY)));
    assert!(!answer.rows[0].stale);
    assert_eq!(answer.excluded, [("later", 1)]);
    let then = ask(&database, "recall 'Is the garden dry?' at time '2035-01-01T00:00:00Z' limit 5 lines none");
    assert_eq!(then.rows.len(), 2);
}

#[test]
fn nothing_later_than_a_stated_time_is_an_answer_in_any_scope() {
    let database = told(&["The rent is $850.", "Ann likes tea.", "The rent is $900."]);
    for scope in ["", "in all", "in episode 'home'"] {
        let answer =
            ask(&database, &format!("recall 'What is the rent?' {scope} at time '2026-01-04T12:00:00Z' limit 5"));
        assert!(!shown(&answer).contains(&"s2".to_owned()), "{scope}: {answer:?}");
    }
}

// ---- nothing found ----

#[test]
fn rows_come_with_an_answer_that_is_not_answerable_unless_it_abstains() {
    let database = told(&["The flat does cost $850.", "Ann likes green tea."]);
    let answer = ask(&database, "recall 'What does flight QQ7XZ1 cost?' limit 2");
    assert!(!answer.answerable && !answer.rows.is_empty(), "{answer:?}");
    assert_eq!(answer.notes, ["Nothing in scope names QQ7XZ1."]);
    let none = ask(&database, "recall 'What does flight QQ7XZ1 cost?' limit 2 abstain");
    assert!(!none.answerable && none.rows.is_empty());
    let found = ask(&database, "recall 'What does Ann like?' limit 2 abstain");
    assert!(found.answerable && found.rows[0].key == "s1");
}

#[test]
fn a_row_that_is_longer_than_its_best_candidate_counts_whole_against_the_budget() {
    let database = database(None);
    // Enough of them that the newest is found by its words alone, and it is longer than the others.
    let mut script = String::new();
    for nth in 0..300 {
        script += &format!("record turn 'locker L7 opens with code {nth}' in episode 'e' with key = 'k{nth}';");
    }
    script += "record turn 'locker L7 opens with code one million two hundred and thirty thousand' in episode 'e'
        with key = 'last'";
    database.query(&script, &Params::new()).unwrap();
    let mut is_shown = false;
    for budget in 5..60 {
        let answer = ask(&database, &format!("recall 'which code does locker L7 open with' budget {budget} tokens"));
        let of_lines = |row: &Row| row.lines.iter().map(|line| tokens::count(&line.text)).sum::<u32>();
        let used: u32 = answer.rows.iter().map(|row| row.tokens + of_lines(row)).sum();
        assert!(used <= budget, "{used} of {budget}");
        is_shown |= keys(&answer).first().is_some_and(|key| *key == "last");
    }
    assert!(is_shown);
}

#[test]
fn records_of_one_claim_in_several_forms_are_one_row() {
    let database = database(None);
    let script = r#"
        record call 'search_flights(flight UA281): price = $548' in episode 'e'
          with key = 'old', tool = 'search_flights', status = success;
        record call 'search_flights({"id": "UA281"}) = price=$543' in episode 'e'
          with key = 'new', tool = 'search_flights', status = success;
        record call 'search_flights(flight UA281): departure time = 10:39' in episode 'e'
          with key = 'time', tool = 'search_flights', status = success"#;
    database.query(script, &Params::new()).unwrap();
    let answer = ask(&database, "recall 'What is the price of flight UA281?'");
    assert_eq!(keys(&answer)[0], "new");
    assert_eq!(lines(&answer.rows[0])[0].1, "old");
    assert!(keys(&answer).contains(&"time"), "another attribute is a row of its own: {answer:?}");
    let answer = ask(&database, "recall 'Tell me the departure time of flight UA281'");
    assert_eq!(keys(&answer)[0], "time");
}

#[test]
fn a_code_occurs_whole_or_in_parts_beside_each_other() {
    let database = told(&["The locker QQ 7 has 7 shelves.", "Flight UA 123 leaves at 9.", "We meet at 8 in room XZ."]);
    let is_answerable = |question: &str| ask(&database, &format!("recall '{question}'")).answerable;
    assert!(is_answerable("When does UA123 leave?"));
    assert!(!is_answerable("What is in locker QQ7XZ1?"));
    assert!(!is_answerable("When does UA124 leave?"));
}

#[test]
fn capitals_of_a_language_with_capital_nouns_name_nothing() {
    let database = told(&[
        "Der Vertrag der Wohnung nennt eine Miete von 850 Euro im Monat und verlangt eine hohe Kaution vom Mieter.",
        "Meine Nachbarin verkauft ihren Wagen, weil die Werkstatt zu viel Geld für neue Bremsen und Reifen verlangt.",
        "Die Hausverwaltung schickt jeden Winter einen Brief über Heizung, Fenster und die Reinigung der Treppe.",
    ]);
    assert!(ask(&database, "recall 'Wie hoch ist der Mietpreis laut Vertrag?'").answerable);
    let database = told(&["The contract of the flat says that the rent is 850 euros and that a deposit is needed."]);
    assert!(!ask(&database, "recall 'What does the contract with Miller say?'").answerable);
}

/// Signs after a single letter belong to its name: `C`, `C++` and `C#` are three subjects.
#[test]
fn signs_tell_names_apart() {
    let database = told(&["Alice writes C for work", "Bob writes C++ for work", "Carol writes C# for work"]);
    for (question, right) in [("who writes C++?", "s1"), ("who writes C#?", "s2")] {
        assert_eq!(ask(&database, &format!("recall '{question}' limit 3")).rows[0].key, right, "{question}");
    }
}

/// A misspelt name, another form of it, a title and an ordinal number are no reason to doubt an answer.
#[test]
fn nearly_the_same_name_is_answerable() {
    let database =
        told(&["Melanie painted a sunset.", "Ann hiked in the Himalayas on May 3.", "Bo lives in Tennessee."]);
    for question in [
        "What did Melany paint?",
        "Was it a Himalayan hike of hers?",
        "Who lives in Tennesee?",
        "Did she meet Dr. Ann?",
        "What did Ann do on May 3rd?",
        "What did Ann do in Sept?",
    ] {
        assert!(ask(&database, &format!("recall '{question}' limit 3")).answerable, "{question}");
    }
    for question in ["What did Marlene Dietz paint?", "Who lives in Tasmania?"] {
        assert!(!ask(&database, &format!("recall '{question}' limit 3")).answerable, "{question}");
    }
}

/// A failed call that matches best is named where it is left out, and comes first where it is asked for.
#[test]
fn the_best_item_that_is_left_out_is_named() {
    let database = database(hashing());
    let script = "
        record call 'payment of order 17: timeout' in episode 'e' with key = 't1', tool = 'pay', status = failed;
        record call 'order 18 was packed' in episode 'e' with key = 't2', tool = 'pack', status = success;
    ";
    database.query(script, &Params::new()).unwrap();
    let told = |script: &str| {
        let answer = ask(&database, script);
        (answer.rows[0].key.clone(), answer.notes.iter().any(|note| note.contains("left out")))
    };
    let answer = ask(&database, "recall 'payment of order timeout'");
    assert_eq!(answer.rows[0].key, "t2");
    assert!(answer.notes.contains(&"t1 matched best and was left out: failed.".to_owned()), "{:?}", answer.notes);
    assert_eq!(told("recall 'payment of order timeout' include failed"), ("t1".to_owned(), false));
    assert_eq!(told("recall 'payment of order timeout' where failed"), ("t1".to_owned(), false));
    assert_eq!(told("recall 'payment of order timeout' where status = failed"), ("t1".to_owned(), false));
    assert_eq!(told("recall 'order packed'"), ("t2".to_owned(), false));
}

/// A date of the question raises what was said about then, and hides nothing.
#[test]
fn a_date_raises_what_was_said_about_then() {
    let database = database(hashing());
    let script = "
        record turn 'I read a book about owls' in episode 'e' with key = 'may', time = '2023-05-08T09:00:00Z';
        record turn 'I read a book about owls, too' in episode 'e' with key = 'june', time = '2023-06-20T09:00:00Z';
    ";
    database.query(script, &Params::new()).unwrap();
    for (question, right) in [
        ("Which book did you read on 7 May 2023?", "may"),
        ("Which book did you read on June 20, 2023?", "june"),
        ("Which book did you read in June 2023?", "june"),
    ] {
        let answer = ask(&database, &format!("recall '{question}' limit 2 lines none"));
        assert_eq!((answer.rows[0].key.as_str(), answer.rows.len()), (right, 2), "{question}");
    }
}
