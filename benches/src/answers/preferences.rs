//! Preferences of a user, told in one session and changed in another, asked without naming a session.
//!
//! The figure of the table is of the forms that repeat the frame; `other words` are changes told in another form.

use super::Context;
use super::checks::check;
use super::log::{DAY_US, Log, SECOND_US, START_US, remark};
use super::quality::Quality;
use super::report::Report;
use super::set::Set;
use crate::Result;
use crate::dataset::{Asked, Dataset};
use serde_json::json;

const BUDGET: u64 = 500;
const SESSIONS: usize = 12;
const SMALL_TALK: [&str; 6] = [
    "Can you summarise this report for me by noon?",
    "Thanks, that was exactly the table I was after.",
    "The train was late again, so I am starting a bit later today.",
    "Please draft a short reply to the landlord.",
    "How do I get coffee stains out of a shirt?",
    "That is all for today, talk to you soon.",
];

/// A preference in its old and its new form, and a question.
type Preference = [&'static str; 3];

/// The new sentence repeats the frame of the old one.
const FRAMES: [Preference; 40] = [
    ["My favourite colour is blue.", "My favourite colour is green.", "What is my favourite colour?"],
    ["Call me Bob.", "Call me Robert.", "What should you call me?"],
    ["I prefer tea in the morning.", "I prefer coffee in the morning.", "What do I prefer in the morning?"],
    ["I prefer window seats on planes.", "I prefer aisle seats on planes.", "Which seats do I prefer on planes?"],
    ["My name is Katharina Weiss.", "My name is Katharina Brandt.", "What is my name?"],
    ["I live in Leipzig.", "I live in Porto.", "Where do I live?"],
    ["I work at Northwind.", "I work at Contoso.", "Where do I work?"],
    ["My favourite band is Portishead.", "My favourite band is Radiohead.", "Which is my favourite band?"],
    ["My dentist is Dr. Okafor.", "My dentist is Dr. Lindqvist.", "Who is my dentist?"],
    ["My phone number is 0151 5550142.", "My phone number is 0171 5559988.", "What is my phone number?"],
    ["Please answer me in English.", "Please answer me in Spanish.", "In which language should you answer me?"],
    ["I use vim for editing.", "I use Helix for editing.", "Which program do I use for editing?"],
    ["My time zone is Europe/Berlin.", "My time zone is Europe/Lisbon.", "What is my time zone?"],
    ["I am allergic to peanuts these days.", "I am allergic to pollen these days.", "What am I allergic to?"],
    ["My gym days are Monday and Thursday.", "My gym days are Tuesday and Friday.", "When are my gym days?"],
    ["I like my steak medium.", "I like my steak rare.", "How do I like my steak?"],
    ["My partner is called Jonas.", "My partner is called Emil.", "How is my partner called?"],
    ["My cat is called Minka.", "My cat is called Tiger.", "How is my cat called?"],
    ["I usually wake up at 6:30.", "I usually wake up at 7:15.", "When do I usually wake up?"],
    [
        "My budget for the holiday is 1,200 euros.",
        "My budget for the holiday is 900 euros.",
        "What is my budget for the holiday?",
    ],
    ["My shoe size is 42.", "My shoe size is 43.", "What is my shoe size?"],
    ["I drive a Skoda.", "I drive a Volvo.", "Which car do I drive?"],
    ["Send invoices to anna@example.com.", "Send invoices to office@example.com.", "Where should you send invoices?"],
    [
        "My emergency contact is my sister Lena.",
        "My emergency contact is my brother Paul.",
        "Who is my emergency contact?",
    ],
    [
        "I want short summaries with bullet points.",
        "I want short summaries without bullet points.",
        "Which summaries do I want?",
    ],
    ["My meetings should last 30 minutes.", "My meetings should last 25 minutes.", "How long should my meetings last?"],
    ["I do my shopping on Saturdays.", "I do my shopping on Wednesdays.", "When do I do my shopping?"],
    [
        "My favourite restaurant is Casa Verde.",
        "My favourite restaurant is Nonna Rosa.",
        "Which is my favourite restaurant?",
    ],
    [
        "I am reading Middlemarch at the moment.",
        "I am reading Solaris at the moment.",
        "What am I reading at the moment?",
    ],
    [
        "My code should be formatted with tabs.",
        "My code should be formatted with spaces.",
        "How should my code be formatted?",
    ],
    ["My doctor's surgery is on Mill Lane.", "My doctor's surgery is on Castle Hill.", "Where is my doctor's surgery?"],
    ["I take my coffee with oat milk.", "I take my coffee with soy milk.", "What do I take my coffee with?"],
    ["My manager is Priya Sharma.", "My manager is Tomas Novak.", "Who is my manager?"],
    [
        "Remind me about the bins on Sunday evening.",
        "Remind me about the bins on Monday evening.",
        "When should you remind me about the bins?",
    ],
    ["My preferred airline is Lufthansa.", "My preferred airline is KLM.", "Which airline is my preferred one?"],
    [
        "I keep the spare key under the blue pot.",
        "I keep the spare key under the doormat.",
        "Where do I keep the spare key?",
    ],
    ["My desk is on the third floor.", "My desk is on the fifth floor.", "On which floor is my desk?"],
    [
        "Temperatures should be given in Celsius.",
        "Temperatures should be given in Fahrenheit.",
        "How should temperatures be given?",
    ],
    ["My running goal is 20 km a week.", "My running goal is 30 km a week.", "What is my running goal?"],
    ["I learn Italian in the evenings.", "I learn Portuguese in the evenings.", "What do I learn in the evenings?"],
];

/// The new sentence has another form.
const OTHER_WORDS: [Preference; 10] = [
    ["My favourite fruit is mango.", "These days cherries are the fruit I like best.", "What is my favourite fruit?"],
    [
        "I play the violin on weekends.",
        "I gave up the violin and play the cello on weekends now.",
        "What do I play on weekends?",
    ],
    ["My sister lives in Graz.", "My sister has moved to Trieste.", "Where does my sister live?"],
    ["My bank is Sparkasse.", "I switched to another bank: it is ING now.", "Which is my bank?"],
    ["I take the bus to the office.", "I go to the office by bike now.", "How do I get to the office?"],
    ["My landlord is Mr. Petrov.", "We have a new landlord, Ms. Duarte.", "Who is my landlord?"],
    ["I eat meat on Sundays.", "I stopped eating meat, on Sundays too.", "Do I eat meat on Sundays?"],
    [
        "My son goes to Oak School.",
        "My son changed schools and goes to Hill School.",
        "Which school does my son go to?",
    ],
    ["My laptop is a ThinkPad.", "I replaced my laptop by a Framework.", "Which laptop do I have?"],
    ["The alarm code is 4711.", "I changed the alarm code, it is now 8052.", "What is the alarm code?"],
];

pub(super) fn run(context: &Context, report: &mut Report) -> Result<()> {
    let set = Set::new("preferences", Dataset::of_runs(sessions())?, context)?;
    let frames = Quality::ask(&set, "", BUDGET, |case| case.category == "frame")?;
    report.line(frames.line(&set.name, "frame", BUDGET));
    let other = Quality::ask(&set, "", BUDGET, |case| case.category == "other words")?;
    report.line(other.line(&set.name, "other words", BUDGET));
    report.at_least("preferences that repeat the frame: newest first", 0.95, frames.right_first());
    check(&set, context, report)
}

/// The sessions, a week apart: preferences are told in the first half of them and changed in the second.
fn sessions() -> Vec<(String, Asked)> {
    let mut logs: Vec<(Log, i64)> =
        (0..).take(SESSIONS).map(|nth| (Log::new(format!("session-{nth}")), START_US + nth * 7 * DAY_US)).collect();
    let mut tell = |session: usize, nth: usize, text: &str| -> String {
        let (log, time) = &mut logs[session];
        let mut key = String::new();
        for text in [text, SMALL_TALK[nth % SMALL_TALK.len()]] {
            let told = log.add(remark(), Some(*time), text);
            *time += 40 * SECOND_US;
            key = if key.is_empty() { told } else { key };
        }
        key
    };
    let all = FRAMES.iter().map(|told| (told, "frame")).chain(OTHER_WORDS.iter().map(|told| (told, "other words")));
    let mut questions = Vec::new();
    for (nth, ([old, new, question], category)) in all.enumerate() {
        let half = SESSIONS / 2;
        let old = tell(nth % half, nth, old);
        let new = tell(half + nth * 5 % half, nth + 3, new);
        let known = json!({"evidence": [new], "stale": [old], "episode": null, "category": category});
        questions.push((question, known));
    }
    if let Some((last, _)) = logs.last_mut() {
        questions.into_iter().for_each(|(question, known)| last.ask(question, known));
    }
    logs.into_iter().map(|(log, _)| log.finish()).collect()
}
