//! Texts of a fleet: topics and names that databases share, words that all have, and noise.

use crate::random::Random;

/// Words of a topic, and those that every text has.
const TOPIC_WORDS: usize = 80;
const COMMON_WORDS: usize = 400;

/// Databases a topic, on average of the pool.
const DATABASES_OF_A_TOPIC: usize = 5;

/// Databases a name, on average.
const DATABASES_OF_A_NAME: usize = 4;

/// Names of a database.
const NAMES: usize = 20;

/// Of a hundred items, those about any topic of the pool.
const NOISE: usize = 10;

/// Of a hundred questions, those that have a name.
const NAMED: usize = 70;

/// A source of databases and questions.
pub(super) struct Corpus {
    random: Random,
    common: Vec<String>,
    topics: Vec<Vec<String>>,
    names: Vec<String>,
    /// The topic and the name of some items of each database.
    asked: Vec<(usize, usize)>,
}

impl Corpus {
    /// A corpus for that many databases.
    pub(super) fn new(databases: usize, seed: u64) -> Corpus {
        let mut random = Random(seed.max(1));
        let topics = (databases / DATABASES_OF_A_TOPIC).max(12);
        let names = (databases * NAMES / DATABASES_OF_A_NAME).max(40);
        let common = words(COMMON_WORDS, &mut random);
        Corpus {
            common,
            topics: (0..topics).map(|_| words(TOPIC_WORDS, &mut random)).collect(),
            names: words(names, &mut random),
            asked: Vec::new(),
            random,
        }
    }

    /// The texts of a database.
    pub(super) fn database(&mut self, items: usize) -> Vec<String> {
        let count = 3 + self.random.below(6);
        let topics: Vec<usize> = (0..count).map(|_| self.skewed(self.topics.len())).collect();
        let names: Vec<usize> = (0..NAMES).map(|_| self.random.below(self.names.len())).collect();
        let kept = self.random.below(items);
        let mut texts = Vec::with_capacity(items);
        for item in 0..items {
            let topic = match self.random.below(100) {
                noise if noise < NOISE => self.random.below(self.topics.len()),
                _ => topics[self.skewed(topics.len())],
            };
            // A name belongs to a topic of its database, more or less.
            let name = names[(topic * 7 + self.random.below(NAMES / 4)) % NAMES];
            if item == kept {
                self.asked.push((topic, name));
            }
            texts.push(self.text(topic, name));
        }
        texts
    }

    fn text(&mut self, topic: usize, name: usize) -> String {
        let len = 10 + self.random.below(10);
        let mut words = Vec::with_capacity(len + 1);
        for _ in 0..len {
            let word = match self.random.below(2) {
                0 => self.skewed(TOPIC_WORDS).min(TOPIC_WORDS - 1),
                _ => usize::MAX,
            };
            words.push(match word {
                usize::MAX => {
                    let word = self.skewed(COMMON_WORDS);
                    self.common[word].clone()
                }
                word => self.topics[topic][word].clone(),
            });
        }
        if self.random.below(100) < 60 {
            let at = self.random.below(words.len());
            words.insert(at, self.names[name].clone());
        }
        words.join(" ")
    }

    /// A question about an item of some database, in other words of its topic.
    pub(super) fn question(&mut self) -> String {
        let (topic, name) = self.asked[self.random.below(self.asked.len())];
        let mut words = Vec::new();
        for _ in 0..3 {
            let word = self.skewed(TOPIC_WORDS);
            words.push(self.topics[topic][word].clone());
        }
        for _ in 0..3 {
            let word = self.skewed(COMMON_WORDS);
            words.push(self.common[word].clone());
        }
        if self.random.below(100) < NAMED {
            words.push(self.names[name].clone());
        }
        words.join(" ")
    }

    /// A number below `bound`, small ones more often: the chance of the next goes down as its square root.
    fn skewed(&mut self, bound: usize) -> usize {
        let share = self.random.below(1 << 20) as f64 / f64::from(1 << 20);
        ((share * share * bound as f64) as usize).min(bound - 1)
    }
}

/// Words of three to nine letters, all made up.
fn words(count: usize, random: &mut Random) -> Vec<String> {
    const ONSETS: [&str; 16] = ["b", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v", "st", "tr"];
    const NUCLEI: [&str; 7] = ["a", "e", "i", "o", "u", "ai", "ou"];
    const CODAS: [&str; 6] = ["", "n", "r", "s", "l", "t"];
    let mut word = |_| {
        let syllables = 2 + random.below(2);
        (0..syllables)
            .map(|_| {
                let onset = ONSETS[random.below(ONSETS.len())];
                let nucleus = NUCLEI[random.below(NUCLEI.len())];
                format!("{onset}{nucleus}{}", CODAS[random.below(CODAS.len())])
            })
            .collect()
    };
    (0..count).map(&mut word).collect()
}
