//! The texts of `help`.

/// A topic: its name, and statements that can be typed as they stand.
pub(super) const TOPICS: &[(&str, &str)] = &[
    (
        "recall",
        "\
recall 'what does UA123 cost?'                              the best rows for a question, with their evidence
recall 'UA123' in episode 'trip-42' limit 5                 within one episode
recall 'UA123' through facts 5 -> traces 5 by linked        along a path
recall 'UA123' where tool = 'pay' include failed            only some rows; failed ones too
recall 'UA123' exclude stale(200 steps, 7d)                 not what is old
recall 'UA123' expand depth 2 within 1500 tokens            with the evidence under each row
recall 'UA123' budget 2000 tokens                           as many rows as fit
recall 'UA123' at step 12 as of commit 3                    the position of the reader; what was known then",
    ),
    (
        "find",
        "\
find traces where tool = 'pay' and step > 10                items as they are; nothing is hidden
find facts order by time desc limit 10 return key, text     in an order, some columns
find pages; find claims; find episodes                      other things
count traces by tool, status                                how many
count traces, sum tokens by time every 1d                   and how much",
    ),
    (
        "lineage",
        "\
sources of 'r1' depth 3                                     what an item rests on
dependents of 't1'                                          what rests on it
history of 'r1'                                             what changed, and when
verify 'r1'                                                 whether what it cites is still there",
    ),
    (
        "write",
        "\
record call 'price=$450' in episode 'trip-42' with tool = 'search'      what happened
remember fact 'UA123 costs $450' from 't1' quoting 'price=$450'        what follows from it
mark 't2' failed because 'timeout'                                     how it went
link 'r2' supersedes 'r1'                                              how items relate
explain mark 't2' failed                                               what it would change",
    ),
    (
        "show",
        "\
show episodes       also pages, segments, settings, stats, head
explain STATEMENT   how it would run, and why
verify log          whether every byte is as it was written",
    ),
];

const END: &str = "\
Enter runs a statement when it is complete, as does `;`; several at once are one transaction. Tab completes.
.format table|json|jsonl|markdown    .timing on|off    help TOPIC    quit";

/// The help on a topic, or on all of them in short; nothing for a topic that is none.
pub(super) fn on(topic: Option<&str>) -> Option<String> {
    match topic {
        Some(topic) => TOPICS.iter().find(|(name, _)| *name == topic).map(|(_, text)| (*text).to_owned()),
        None => {
            let firsts =
                TOPICS.iter().map(|(name, text)| format!("{name:<10}{}", text.lines().next().unwrap_or_default()));
            Some(firsts.chain([String::new(), END.to_owned()]).collect::<Vec<_>>().join("\n"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holotype::query::{check, parse};

    #[test]
    fn every_example_can_be_typed_as_it_stands() {
        for (_, text) in TOPICS {
            for line in text.lines() {
                let example = line.split("  ").next().unwrap_or_default();
                let script = parse(&example.replace("STATEMENT", "count traces"));
                let script = script.unwrap_or_else(|errors| panic!("{}", errors.render(example)));
                check(&script, None, None).unwrap_or_else(|errors| panic!("{}", errors.render(example)));
            }
        }
        assert!(on(None).is_some_and(|help| help.contains("quit")));
        assert_eq!(on(Some("nonsense")), None);
    }
}
