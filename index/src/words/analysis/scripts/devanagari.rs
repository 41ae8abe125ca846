//! Hindi words without endings.
//!
//! Ramanathan and Rao, *A Lightweight Stemmer for Hindi*, 2003: the longest ending of a list is cut if two characters
//! remain. Candrabindu is anusvara here, as after folding.

use crate::words::analysis::scripts::cut_ending;

/// Endings, the longest first.
#[rustfmt::skip]
const ENDINGS: [&str; 64] = [
    "ाएंगी", "ाएंगे", "ाऊंगी", "ाऊंगा", "ाइयों", "ाइयां", "ाएगी", "ाएगा", "ाओगी", "ाओगे", "एंगी",
    "ेंगी", "एंगे", "ेंगे", "ूंगी", "ूंगा", "ातीं", "नाओं", "नाएं", "ताओं", "ताएं", "ियों", "ियां",
    "ाकर", "ाइए", "ाईं", "ाया", "ेगी", "ेगा", "ोगी", "ोगे", "ाने", "ाना", "ाते", "ाती", "ाता",
    "तीं", "ाओं", "ाएं", "ुओं", "ुएं", "ुआं", "कर", "ाओ", "िए", "ाई", "ाए", "ने", "नी", "ना", "ते",
    "ीं", "ती", "ता", "ां", "ों", "ें", "ो", "े", "ू", "ु", "ी", "ि", "ा",
];

/// The least number of characters of a stem.
const LEAST: usize = 2;

/// Reduces a folded word to its stem.
pub(crate) fn stem(word: &mut String) {
    cut_ending(word, &ENDINGS, LEAST);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inflected_words() {
        let table = [("लड़की", "लड़क"), ("लड़कियों", "लड़क"), ("लड़कियां", "लड़क"), ("किताबें", "किताब"), ("घर", "घर")];
        for (word, wanted) in table {
            let mut word = word.to_owned();
            stem(&mut word);
            assert_eq!(word, wanted);
        }
    }
}
