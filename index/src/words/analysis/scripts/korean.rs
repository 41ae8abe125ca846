//! Korean words without particles.
//!
//! Particles of two syllables and more are cut wherever they leave a syllable, particles of one syllable where they
//! leave two; a particle whose form depends on the sound before it is cut only after that sound. Cutting repeats, so a
//! noun that ends like a particle (`고양이`) has one stem with and without another. A word of two syllables that ends
//! in a particle of one (`물을`) is kept, and its first syllable is a variant. Verbs made of a noun with 하다 and 되다
//! are reduced to the noun. Compounds are found by adjacent pairs of syllables (`pairs`).

use crate::words::analysis::scripts::{cut_ending, has_chars};

/// Particles and endings of several syllables, the longest first among those with a common end.
#[rustfmt::skip]
const LONG: [&str; 68] = [
    "으로부터", "에게서는", "이라고는", "했습니다", "하였습니다", "되었습니다", "됐습니다", "있습니다", "이었습니다", "였습니다", "에서부터",
    "에서는", "에서도", "에서의", "에게는", "에게도", "에게서", "한테서", "으로는", "으로도", "으로써", "으로서", "까지는", "까지도",
    "부터는", "이라고", "이라는", "이지만", "합니다", "됩니다", "입니다", "했어요", "됐어요", "이에요", "하신다", "하셨다", "하였다",
    "되었다", "이었다", "에서", "에게", "한테", "께서", "으로", "로서", "로써", "까지", "부터", "마다", "조차", "마저", "처럼",
    "보다", "밖에", "이나", "이랑", "하고", "이다", "였다", "예요", "했다", "한다", "하다", "하는", "해요", "됐다", "된다", "되는",
];
/// Particles of one syllable after any sound.
const ANY: [&str; 5] = ["의", "에", "도", "만", "들"];
/// Particles of one syllable after a consonant.
const AFTER_CONSONANT: [&str; 4] = ["은", "이", "을", "과"];
/// Particles of one syllable after a vowel.
const AFTER_VOWEL: [&str; 5] = ["는", "가", "를", "와", "랑"];
/// The particle of direction, after a vowel and after rieul.
const DIRECTION: &str = "로";

/// The number of a final consonant rieul.
const RIEUL: u32 = 8;

const SYLLABLES: std::ops::RangeInclusive<char> = '\u{ac00}'..='\u{d7a3}';

/// Reduces a word to its stem.
pub(crate) fn stem(word: &mut String) {
    while cut_ending(word, &LONG, 1) || particle(word).is_some_and(|len| cut_particle(word, len)) {}
}

/// The first syllable of a stem of two, if the second may be a particle.
pub(crate) fn variant(stem: &str) -> Option<&str> {
    particle(stem).and_then(|len| stem.get(..stem.len() - len)).filter(|rest| has_chars(rest, 1))
}

/// The adjacent pairs of syllables of a stem of three and more: parts of a compound.
pub(crate) fn pairs(stem: &str) -> impl Iterator<Item = &str> {
    let is_pair = |pair: &&str| pair.chars().all(|sign| SYLLABLES.contains(&sign));
    let ends = stem.char_indices().skip(2).map(|(at, _)| at).chain([stem.len()]);
    let pairs = stem.char_indices().zip(ends).filter_map(|((start, _), end)| stem.get(start..end));
    pairs.filter(move |pair| pair.len() < stem.len() && is_pair(pair))
}

fn cut_particle(word: &mut String, len: usize) -> bool {
    let rest = word.len() - len;
    let cut = has_chars(&word[..rest], 2);
    if cut {
        word.truncate(rest);
    }
    cut
}

/// The length in bytes of the particle of one syllable at the end of a word.
fn particle(word: &str) -> Option<usize> {
    let (rest, ending) = word.split_at_checked(word.len().checked_sub(3)?)?;
    let fits = ANY.contains(&ending)
        || match final_consonant(rest.chars().next_back()?) {
            None => [&AFTER_CONSONANT[..], &AFTER_VOWEL, &[DIRECTION]].concat().contains(&ending),
            Some(0) => AFTER_VOWEL.contains(&ending) || ending == DIRECTION,
            Some(RIEUL) if ending == DIRECTION => true,
            Some(_) => AFTER_CONSONANT.contains(&ending),
        };
    fits.then_some(3)
}

/// The number of the final consonant of a syllable, 0 without one; `None` for a sign of another script, whose sound is
/// unknown. Each pair of a leading consonant and a vowel is followed by 27 syllables with a final consonant.
fn final_consonant(sign: char) -> Option<u32> {
    SYLLABLES.contains(&sign).then(|| (u32::from(sign) - 0xac00) % 28)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_and_without_particles() {
        let table = [
            ("서울에서", "서울"),
            ("서울에서는", "서울"),
            ("서울로", "서울"),
            ("고양이", "고양"),
            ("고양이의", "고양"),
            ("고양이가", "고양"),
            ("집에서", "집"),
            ("나이", "나이"),
            ("회의", "회의"),
            ("회의에서", "회의"),
            ("예약했습니다", "예약"),
            ("iphone은", "iphone"),
            ("물을", "물을"),
        ];
        for (word, wanted) in table {
            let mut found = word.to_owned();
            stem(&mut found);
            assert_eq!(found, wanted, "{word}");
        }
        assert_eq!(variant("물을"), Some("물"));
        assert_eq!(variant("나이"), None);
        assert_eq!(pairs("서울대학교").collect::<Vec<_>>(), ["서울", "울대", "대학", "학교"]);
        assert_eq!(pairs("서울").count(), 0);
    }
}
