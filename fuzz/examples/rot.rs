//! Bit rot: `rot [--count N] [--seed S]` damages small databases at random and asks them questions
//! ([`holotype_fuzz::rot`]). Prints one line of JSON, or every answer that changed in silence.

use std::env;
use std::process::ExitCode;

use holotype_fuzz::rot;

fn main() -> ExitCode {
    let (mut count, mut seed) = (300, 1);
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().and_then(|value| value.parse().ok());
        match (word.as_str(), value) {
            ("--count", Some(value)) => count = value,
            ("--seed", Some(value)) => seed = value,
            _ => {
                eprintln!("rot: expected --count N or --seed S, each with a number, instead of {word}");
                return ExitCode::from(2);
            }
        }
    }
    // A panic is told with its case.
    std::panic::set_hook(Box::new(|_| {}));
    let (tally, broken) = rot::run(seed, count);
    let rot::Tally { unchanged, told, refused, changed } = tally;
    println!(
        concat!(
            r#"{{"rot":{{"seed":{},"damages":{},"unchanged":{},"told":{},"refused":{},"changed_and_told":{},"#,
            r#""silent":{}}}}}"#
        ),
        seed,
        count,
        unchanged,
        told,
        refused,
        changed,
        broken.len()
    );
    broken.iter().for_each(|broken| eprintln!("rot: {broken}"));
    if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
