//! The session, fed from a pipe.

use crate::command_line::program::Place;

#[test]
fn a_session_answers_goes_on_after_mistakes_and_ends_with_the_worst_status() {
    let place = Place::with_trip();
    let input = ".format jsonl\n\
                 count traces\n  where tool = 'search_flights'\n\
                 recal 'x'\n\
                 count recalls;\n\
                 .nonsense\n\
                 .quit\n\
                 count themes\n";
    let run = place.run_with(&["repl", "memory.holo"], input);
    assert_eq!(run.status, 2, "{run:#?}");
    let counts: Vec<serde_json::Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(counts.len(), 2, "nothing is run after .quit: {run:#?}");
    assert_eq!((&counts[0]["rows"][0]["count"], &counts[1]["rows"][0]["count"]), (&2.into(), &1.into()));
    assert!(run.stderr.contains("did you mean `recall`?"), "{run:#?}");
    assert!(run.stderr.contains("there is no command .nonsense"), "{run:#?}");
}

#[test]
fn a_session_writes_and_helps() {
    let place = Place::with_trip();
    let run = place.run_with(&["repl", "memory.holo"], "mark 't1' failed because 'no'\n.help\n.timing on\nshow head");
    assert_eq!(run.status, 0, "{run:#?}");
    assert!(run.stdout.contains("    quit\n") && run.stdout.contains(" ms\n"), "{run:#?}");
    let run = place.run_with(&["repl", "memory.holo", "--read-only"], "mark 't1' failed because 'no'\n");
    assert_eq!(run.status, 2, "{run:#?}");
}

#[test]
fn a_session_keeps_to_its_limits_and_goes_on() {
    let place = Place::with_trip();
    let input = "find traces where text contains 'UA123'\ncount recalls\n.help lineage\n";
    let run = place.run_with(&["repl", "memory.holo", "--max-rows", "1", "--format", "jsonl"], input);
    assert_eq!(run.status, 5, "{run:#?}");
    assert!(run.stderr.contains("limited to 1") && run.stdout.contains("\"count\":1"), "{run:#?}");
    assert!(run.stdout.contains("dependents of 't1'"), "{run:#?}");
    assert!(!run.stdout.contains('\u{1b}'), "no colours in a pipe: {run:#?}");
}
