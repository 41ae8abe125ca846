//! Look-alikes: statements of one form that must not hide each other, each case in a separate memory.
//!
//! | figure | meaning |
//! |---|---|
//! | `told` | cases whose answer gives the text of every statement: folding a statement whose text differs hides it |
//! | `right_first` | cases whose first row is the newest statement without a qualification, where one is right |

use super::Context;
use super::checks::hidden;
use super::log::{Log, SECOND_US, START_US, remark};
use super::quality::first_is_right;
use super::report::Report;
use super::set::Set;
use super::shown::told;
use crate::Result;
use crate::dataset::Dataset;
use serde_json::json;
use std::collections::HashSet;

/// A memory with a question, and the statement that should be its first row.
struct Alike {
    kind: &'static str,
    statements: &'static [&'static str],
    question: &'static str,
    first: Option<usize>,
}

const fn alike(
    kind: &'static str,
    statements: &'static [&'static str],
    question: &'static str,
    first: Option<usize>,
) -> Alike {
    Alike { kind, statements, question, first }
}

const CASES: [Alike; 36] = [
    alike(
        "ids",
        &[
            "Ticket 2041 was closed by the night shift.",
            "Ticket 2042 was closed by the night shift.",
            "Ticket 2043 was closed by the night shift.",
            "Ticket 2044 was closed by the night shift.",
            "Ticket 2045 was closed by the night shift.",
            "Ticket 2046 was closed by the night shift.",
        ],
        "Which tickets were closed by the night shift?",
        None,
    ),
    alike(
        "ids",
        &["Order A17 has been shipped.", "Order A18 has been shipped.", "Order A19 has been shipped."],
        "Has order A18 been shipped?",
        Some(1),
    ),
    alike(
        "ids",
        &["Invoice INV-301 is due on 4 May.", "Invoice INV-302 is due on 4 June.", "Invoice INV-303 is due on 4 July."],
        "When is invoice INV-301 due?",
        Some(0),
    ),
    alike(
        "ids",
        &["Room 12 is booked by the choir.", "Room 14 is booked by the choir.", "Room 15 is booked by the choir."],
        "Which rooms are booked by the choir?",
        None,
    ),
    alike(
        "denial",
        &["The review with Maren was moved to Tuesday.", "The review with Maren was not moved to Tuesday."],
        "Was the review with Maren moved?",
        None,
    ),
    alike(
        "denial",
        &["The contract with Hellberg is signed.", "The contract with Hellberg is not signed."],
        "Is the contract with Hellberg signed?",
        None,
    ),
    alike(
        "denial",
        &["Paulo can come to the dinner.", "Paulo cannot come to the dinner."],
        "Can Paulo come to the dinner?",
        None,
    ),
    alike(
        "denial",
        &["The lift in house C works again.", "The lift in house C never works again."],
        "Does the lift in house C work?",
        None,
    ),
    alike("supposed", &["The rent is $900.", "Suppose the rent were $700."], "What is the rent?", Some(0)),
    alike(
        "supposed",
        &["The price of kit K7 is $450.", "If the price of kit K7 is $300, we buy two."],
        "What is the price of kit K7?",
        Some(0),
    ),
    alike(
        "supposed",
        &["The launch is on 3 March.", "Imagine the launch is on 3 April."],
        "When is the launch?",
        Some(0),
    ),
    alike(
        "supposed",
        &["The team has nine members.", "Let us assume the team has twelve members."],
        "How many members has the team?",
        Some(0),
    ),
    alike(
        "several at once",
        &["Ida is allergic to peanuts.", "Ida is allergic to penicillin."],
        "What is Ida allergic to?",
        None,
    ),
    alike(
        "several at once",
        &["Noor's allergy is nickel.", "Noor's allergy is shellfish.", "Noor's allergy is latex."],
        "What is Noor's allergy?",
        None,
    ),
    alike(
        "several at once",
        &["Samuel speaks Danish.", "Samuel speaks Arabic.", "Samuel speaks Welsh."],
        "Which languages does Samuel speak?",
        None,
    ),
    alike(
        "several at once",
        &["Greta is married.", "Greta is vegetarian.", "Greta is on parental leave."],
        "What do you know about Greta?",
        None,
    ),
    alike(
        "several at once",
        &["Tariq has a daughter called Amal.", "Tariq has a son called Sami."],
        "Which children does Tariq have?",
        None,
    ),
    alike(
        "qualified",
        &["The wifi password is tulip-48.", "The wifi password for guests is rose-12."],
        "What is the wifi password?",
        Some(0),
    ),
    alike(
        "qualified",
        &["The price of kit K7 is $450.", "The price of kit K7 in Asia is $300."],
        "What is the price of kit K7?",
        Some(0),
    ),
    alike(
        "qualified",
        &["The office opens at 8:00.", "On Sundays the office opens at 11:00."],
        "When does the office open?",
        Some(0),
    ),
    alike(
        "qualified",
        &["Parking costs 12 euros a day.", "Parking costs 5 euros a day for residents."],
        "What does parking cost?",
        Some(0),
    ),
    alike(
        "qualified",
        &["The pool is open until 20:00.", "The pool is open until 22:00 for members."],
        "Until when is the pool open?",
        Some(0),
    ),
    alike(
        "past",
        &["The price of kit K7 is $450.", "Last year the price of kit K7 was $300."],
        "What is the price of kit K7?",
        Some(0),
    ),
    alike(
        "past",
        &["The head of the lab is Dr. Ruiz.", "Until 2020 the head of the lab was Dr. Amann."],
        "Who is the head of the lab?",
        Some(0),
    ),
    alike("past", &["The rent is $900.", "Before the renovation the rent was $650."], "What is the rent?", Some(0)),
    alike(
        "past",
        &["The capital of the fund is 80 million.", "Originally the capital of the fund was 20 million."],
        "What is the capital of the fund?",
        Some(0),
    ),
    alike("past", &["Our supplier is Hartmann.", "Our previous supplier was Lorenz."], "Who is our supplier?", Some(0)),
    alike(
        "past",
        &["In 2023 the chair of Acme was Ann Lee.", "In 2025 the chair of Acme was Bob Ray."],
        "Who was the chair of Acme in 2023?",
        Some(0),
    ),
    alike(
        "past",
        &["The bakery is on Mill Lane.", "Years ago the bakery was on Castle Hill."],
        "Where is the bakery?",
        Some(0),
    ),
    alike(
        "persons",
        &["Lena Berg lives in Malmo.", "Lena Holt lives in Izmir."],
        "Where does Lena Berg live?",
        Some(0),
    ),
    alike(
        "persons",
        &["My brother works at the port.", "My sister works at the airport."],
        "Where does my brother work?",
        Some(0),
    ),
    alike(
        "persons",
        &["Mr. Adler moved to the north office.", "Mr. Adams moved to the south office."],
        "Where did Mr. Adler move?",
        Some(0),
    ),
    alike(
        "fields",
        &["The length of board B4 is 90 cm.", "The width of board B4 is 40 cm.", "The depth of board B4 is 3 cm."],
        "What is the length of board B4?",
        Some(0),
    ),
    alike(
        "fields",
        &["The start of run R5 is 9:00.", "The end of run R5 is 11:30."],
        "When is the start of run R5?",
        Some(0),
    ),
    alike(
        "updated",
        &["The rent is $850.", "The rent is $900.", "Suppose the rent were $700."],
        "What is the rent?",
        Some(1),
    ),
    alike(
        "updated",
        &["The gate of UA41 is B7.", "The gate of UA41 is C2.", "The gate of UA44 is A9."],
        "What is the gate of UA41?",
        Some(1),
    ),
];

pub(super) fn run(context: &Context, report: &mut Report) -> Result<()> {
    let (mut all_told, mut right, mut with_first) = (0, 0, 0);
    for (nth, case) in CASES.iter().enumerate() {
        let mut log = Log::new(format!("alike-{nth}"));
        let at = |nth: i64| Some(START_US + nth * 3 * 3_600 * SECOND_US);
        let keys: Vec<String> =
            (0..).zip(case.statements).map(|(nth, text)| log.add(remark(), at(nth), text)).collect();
        let first: Vec<&String> = case.first.iter().map(|first| &keys[*first]).collect();
        log.ask(case.question, json!({"evidence": first}));
        let set = Set::new(format!("alike-{nth}"), Dataset::of_runs(vec![log.finish()])?, context)?;
        let asked = &set.cases[0];
        let answer = asked.ask(&set.snapshot(), "limit 10")?;
        let keys_told: HashSet<&str> = answer.rows.iter().flat_map(told).collect();
        let is_told = keys.iter().all(|key| keys_told.contains(key.as_str()));
        let is_right = first_is_right(asked, &answer);
        all_told += usize::from(is_told);
        with_first += case.first.iter().count();
        right += usize::from(is_right);
        let mut line = json!({"set": "alike", "kind": case.kind, "question": case.question, "told": is_told});
        if case.first.is_some() {
            line["right_first"] = json!(is_right);
        }
        report.line(line);
        hidden(&set, report)?;
    }
    report.all("look-alikes: every statement told", (all_told, CASES.len()));
    report.all("look-alikes: unqualified newest first", (right, with_first));
    Ok(())
}
