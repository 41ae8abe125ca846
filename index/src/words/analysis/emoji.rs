//! Emoji as terms.
//!
//! An emoji is a segment of UAX #29 that begins with a pictograph: a pictograph with its skin tone, several joined by
//! zero-width joiners, or a flag of two regional indicators. Variation selectors are removed before (`normal`). The
//! skin tone is a matter of form, like an inflection: the term is the emoji without it, the surface has it. The
//! pictographs of a joined emoji are its parts.

/// Joins pictographs to one emoji.
pub(crate) const ZERO_WIDTH_JOINER: char = '\u{200d}';

/// Returns true for pictographs and regional indicators. Arrows and geometric shapes are punctuation of lists rather
/// than words, and are left out.
pub(crate) fn is_emoji(sign: char) -> bool {
    matches!(sign,
        '\u{231a}' | '\u{231b}' | '\u{2328}' | '\u{23cf}' | '\u{23e9}'..='\u{23f3}' | '\u{23f8}'..='\u{23fa}'
        | '\u{2600}'..='\u{2775}' | '\u{2795}'..='\u{27bf}' | '\u{2b1b}' | '\u{2b1c}' | '\u{2b50}' | '\u{2b55}'
        | '\u{1f000}'..='\u{1f0ff}' | '\u{1f170}'..='\u{1f3fa}' | '\u{1f400}'..='\u{1faff}')
}

/// Returns true for the skin tones.
pub(crate) fn is_emoji_modifier(sign: char) -> bool {
    matches!(sign, '\u{1f3fb}'..='\u{1f3ff}')
}

/// Writes the emoji of a segment without skin tones.
pub(crate) fn emoji_into(segment: &str, emoji: &mut String) {
    emoji.clear();
    emoji.extend(segment.chars().filter(|sign| is_emoji(*sign) || *sign == ZERO_WIDTH_JOINER));
    emoji.truncate(emoji.trim_end_matches(ZERO_WIDTH_JOINER).len());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_without_skin_tones() {
        let table = [("👍🏽", "👍"), ("👩🏽\u{200d}💻", "👩\u{200d}💻"), ("🇩🇪", "🇩🇪"), ("❤", "❤"), ("🙈\u{200d}", "🙈")];
        let mut emoji = String::new();
        for (segment, wanted) in table {
            emoji_into(segment, &mut emoji);
            assert_eq!(emoji, wanted);
        }
        assert!(!['a', '→', '•', '1', '🏽', '©'].into_iter().any(is_emoji));
    }
}
