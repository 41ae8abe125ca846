//! Delivery: an event twice, no turn in time, a hook that is killed.

use crate::command_line::program::Place;
use crate::hooks::{hook, keys, project, recorded};
use holotype::{Holotype, Options};
use std::collections::HashSet;
use std::io::Write as _;
use std::process::Stdio;

fn prompt(number: usize) -> String {
    format!(r#"{{"session":"s","event":"prompt","prompt_id":"p{number}","prompt":"prompt {number}"}}"#)
}

fn spooled(place: &Place) -> usize {
    let entries = std::fs::read_dir(place.path(".holotype/spool")).into_iter().flatten().flatten();
    entries.filter(|entry| entry.path().extension().is_some_and(|found| found == "jsonl")).count()
}

#[test]
fn an_event_delivered_twice_is_one_item() {
    let place = project();
    for input in [prompt(1), prompt(1), prompt(2)] {
        hook(&place, "generic", &input);
    }
    assert_eq!(keys(&place), ["s/p1", "s/p2"]);
    assert!(String::from_utf8(place.read(".holotype/hook.log")).unwrap().contains("1 known"));
}

#[test]
fn without_a_turn_an_event_is_spooled_and_the_next_hook_takes_it_in() {
    let place = project();
    hook(&place, "generic", &prompt(0));
    let exclusive = Holotype::open(place.path(".holotype/memory.holo"), Options::default()).unwrap();
    for number in [1, 2, 1] {
        let run = hook(&place, "generic", &prompt(number));
        assert_eq!(run.stderr.lines().count(), 1, "{run:#?}");
        assert!(run.stderr.starts_with("holotype hook: "), "{run:#?}");
    }
    assert_eq!(spooled(&place), 3);
    exclusive.close().unwrap();
    let run = hook(&place, "generic", &prompt(3));
    assert_eq!(run.stderr, "");
    assert_eq!(keys(&place), ["s/p0", "s/p1", "s/p2", "s/p3"]);
    assert_eq!(spooled(&place), 0);
}

#[test]
fn a_spooled_file_that_is_none_is_set_aside_and_holds_nothing_up() {
    let place = project();
    std::fs::create_dir(place.path(".holotype/spool")).unwrap();
    place.write(".holotype/spool/1.jsonl", "not an event\n");
    let run = hook(&place, "generic", &prompt(1));
    assert!(run.stderr.contains("it is set aside"), "{run:#?}");
    assert_eq!(keys(&place), ["s/p1"]);
    assert!(place.path(".holotype/spool/1.wrong").exists());
}

#[test]
fn hooks_that_are_killed_lose_nothing_acknowledged_and_record_nothing_twice() {
    let place = project();
    hook(&place, "generic", &prompt(0));
    let mut acknowledged = HashSet::from(["s/p0".to_owned()]);
    for number in 1..40 {
        let mut command = place.command(&["hook", "--for", "generic"]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(prompt(number).as_bytes()).unwrap();
        // Work between the start and the kill that takes a different time in each round.
        for _ in 0..number % 13 {
            let _ = std::fs::read_dir(place.path(".holotype")).unwrap().count();
            std::thread::yield_now();
        }
        let killed = number % 3 != 0 && child.kill().is_ok();
        if child.wait().unwrap().success() && !killed {
            acknowledged.insert(format!("s/p{number}"));
        }
    }
    hook(&place, "generic", &prompt(99));
    let found = keys(&place);
    let distinct: HashSet<String> = found.iter().cloned().collect();
    assert_eq!(found.len(), distinct.len(), "{found:?}");
    assert!(acknowledged.is_subset(&distinct), "{acknowledged:?} {found:?}");
    assert_eq!(spooled(&place), 0);
    place.run(&["verify", ".holotype/memory.holo"]).ok();
}

#[test]
fn many_hooks_leave_few_derived_files_and_the_next_full_opening_makes_them() {
    let place = project();
    for number in 0..30 {
        hook(&place, "generic", &prompt(number));
    }
    let derived = |place: &Place| -> usize {
        let count = |name: &str| std::fs::read_dir(place.path(".holotype/memory.holo").join(name)).unwrap().count();
        ["columns", "vectors", "words"].into_iter().map(count).sum()
    };
    assert_eq!(derived(&place), 0);
    place.run(&["checkpoint", ".holotype/memory.holo"]).ok();
    assert!(derived(&place) > 0);
    assert_eq!(recorded(&place).len(), 30);
}
