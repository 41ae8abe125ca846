//! Faults planted in generated runs: blame lands on the module and step they were planted in.

use super::*;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }

    fn word(&mut self) -> String {
        let part = ["ba", "cor", "del", "fi", "gu", "hal", "jo", "kem", "lu", "mor", "nu", "pa", "quil", "ro", "su"];
        (0..4).map(|_| part[self.below(part.len())]).collect()
    }

    fn filler(&mut self) -> String {
        let words = ["rain", "later", "the page says", "among others", "see also", "in short"];
        words[self.below(words.len())].to_owned()
    }
}

const STEPS: usize = 4;

/// A run whose answer needs a word of every observation, thought and call, each remembered from the next write on. In a
/// run that is not good the memory lost half of them.
fn run(random: &mut Random, group: &str, rollout: usize, needed: &[String], good: bool) -> Run {
    let mut memory: Vec<&str> = Vec::new();
    let mut steps = Vec::new();
    for at in 0..STEPS {
        let [seen, thought, asked] = [0, 1, 2].map(|part| needed[3 * at + part].as_str());
        steps.push(RunStep {
            memory: format!("{} {}", random.filler(), memory.join(" ")),
            think: format!("{} so {thought}", random.filler()),
            call: format!("search {asked} {}", random.filler()),
            observation: format!("{} {seen}. {}", random.filler(), random.filler()),
        });
        let learned = [seen, thought, asked];
        memory.extend(learned.into_iter().filter(|_| good || random.below(2) == 0));
    }
    let (question, outcome) = (format!("question of {group}"), needed.join(" "));
    let reward = if good { 1.0 } else { 0.0 };
    Run { group: group.to_owned(), rollout: rollout.to_string(), question, outcome, reward, steps }
}

fn group(seed: u64, good: usize, bad: usize) -> Vec<Run> {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).max(1));
    let needed: Vec<String> = (0..3 * STEPS).map(|_| random.word()).collect();
    let group = format!("g{seed}");
    (0..good + bad).map(|nth| run(&mut random, &group, nth, &needed, nth < good)).collect()
}

fn board<'b>(template: &'b Template) -> Scoreboard<'b> {
    Scoreboard { scorer: &WordScorer, template }
}

#[test]
fn blame_lands_on_the_planted_module() {
    let template = Template::default();
    let (mut planted, mut found, mut by_module) = (0, 0, [[0; 2]; 4]);
    for seed in 1..=100 {
        let clean = &group(seed, 1, 0)[0];
        let mut interventions = Vec::new();
        for step in 0..STEPS {
            interventions.push(Intervention::ToolCorruption { step });
            interventions.push(Intervention::MemoryDrop { step });
            interventions.push(Intervention::DelayedDrop { step });
            interventions.extend(Module::ALL.map(|module| Intervention::Perturb { module, step }));
        }
        for intervention in interventions {
            let (module, step) = intervention.planted();
            // The first memory holds nothing yet: there is nothing to lose.
            if (module, step) == (Module::Memory, 0) {
                continue;
            }
            let faulty = intervene(clean, intervention, &ChangeAnswer).unwrap().unwrap();
            assert!(!faulty.is_fallback);
            let blamed = blame(clean, &faulty.run, &board(&template)).unwrap().blamed();
            planted += 1;
            by_module[module as usize][0] += 1;
            if blamed == Some((module, step)) {
                found += 1;
                by_module[module as usize][1] += 1;
            }
        }
    }
    assert!(found * 100 >= planted * 95, "{found} of {planted}: {by_module:?}");
    for [planted, found] in by_module {
        assert!(found * 100 >= planted * 95, "{found} of {planted}: {by_module:?}");
    }
}

#[test]
fn credit_finds_causes_where_the_outcome_alone_does_not() {
    let template = Template::default();
    let runs: Vec<Run> = (1..=12).flat_map(|seed| group(seed, 4, 4)).collect();
    let measured = deconfound(&runs, &board(&template), &ChangeAnswer, &CreditOptions::default()).unwrap();
    assert!(measured.counts.iter().all(|count| *count > 50), "{measured:?}");
    assert_eq!(measured.fallbacks, 0);
    assert!(measured.faithful_under_bad_tool.unwrap() < 0.5, "{measured:?}");
    assert!(measured.over_clean.unwrap() < 0.5, "{measured:?}");
    assert!(measured.drop_localisation.unwrap() > 0.68, "{measured:?}");
    assert!(measured.concentration.unwrap() > 0.9, "{measured:?}");
    let unsmoothed = CreditOptions { smoothing: None, ..CreditOptions::default() };
    let plain = deconfound(&runs, &board(&template), &ChangeAnswer, &unsmoothed).unwrap();
    assert_eq!(plain.delayed_recovery, Some(0.0));
    // The order of runs means nothing.
    let mut turned = runs;
    turned.reverse();
    let again = deconfound(&turned, &board(&template), &ChangeAnswer, &CreditOptions::default()).unwrap();
    assert_eq!(again, measured);
}

#[test]
fn nothing_studied_is_no_measure() {
    let template = Template::default();
    let none = deconfound(&[], &board(&template), &ChangeAnswer, &CreditOptions::default()).unwrap();
    assert_eq!(none, Deconfounding::default());
    let [long, short] = [group(1, 1, 0)[0].clone(), Run::default()];
    assert!(blame(&long, &short, &board(&template)).is_err());
    assert_eq!(blame(&long, &long, &board(&template)).unwrap().blamed(), None);
}
