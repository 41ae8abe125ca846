//! The sentences of a text that a finding rests on (TierMem B.5, deterministic linking), found without a model.

use super::ByWords;
use crate::memory::structure::sentences;
use std::collections::BTreeSet;
use std::ops::Range;

/// Content words that a further sentence must add.
const ADDED: usize = 2;

impl ByWords {
    /// The sentences that say a finding, as byte ranges in order: the one that shares most content words with it, then
    /// each that shares at least two more. The whole text if none shares any.
    ///
    /// ```
    /// use holotype::write_back::ByWords;
    /// let text = "Hi there! I moved to Oslo in May. The ferry is late. My sister Ann lives in Oslo too.";
    /// let spans = ByWords::default().sentences_of(text, "Bob moved to Oslo in May.");
    /// assert_eq!(spans.iter().map(|span| &text[span.clone()]).collect::<Vec<_>>(), ["I moved to Oslo in May."]);
    /// ```
    pub fn sentences_of(&self, text: &str, finding: &str) -> Vec<Range<usize>> {
        let wanted = self.content(finding);
        let shared = |span: Range<usize>| {
            let words: BTreeSet<String> = self.content(&text[span.clone()]).intersection(&wanted).cloned().collect();
            (span, words)
        };
        let mut ranked: Vec<(Range<usize>, BTreeSet<String>)> = sentences(text).into_iter().map(shared).collect();
        ranked.sort_by_key(|(span, words)| (std::cmp::Reverse(words.len()), span.start));
        let mut held: BTreeSet<String> = BTreeSet::new();
        let mut spans: Vec<Range<usize>> = Vec::new();
        for (span, words) in ranked {
            let added = words.difference(&held).count();
            if added >= ADDED || (spans.is_empty() && added > 0) {
                held.extend(words);
                spans.push(span);
            }
        }
        if spans.is_empty() {
            spans.push(0..text.len());
        }
        spans.sort_by_key(|span| span.start);
        spans
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn said<'t>(text: &'t str, finding: &str) -> Vec<&'t str> {
        ByWords::default().sentences_of(text, finding).into_iter().map(|span| &text[span]).collect()
    }

    #[test]
    fn the_sentences_that_say_it_are_found_in_order() {
        let text = "Hello! I adopted a dog last week. How are you? The dog is called Rex, a brown terrier.";
        assert_eq!(said(text, "Ann adopted a dog."), ["I adopted a dog last week."]);
        assert_eq!(
            said(text, "Ann's dog Rex is a brown terrier that she adopted last week."),
            ["I adopted a dog last week.", "The dog is called Rex, a brown terrier."]
        );
        assert_eq!(said(text, "Zebras."), [text]);
        assert_eq!(said("", "Zebras."), [""]);
    }

    proptest! {
        #[test]
        fn spans_are_in_order_apart_and_on_character_boundaries(text in any::<String>(), finding in "\\PC{0,30}") {
            let spans = ByWords::default().sentences_of(&text, &finding);
            prop_assert!(!spans.is_empty());
            prop_assert!(spans.iter().all(|span| text.get(span.clone()).is_some()));
            prop_assert!(spans.windows(2).all(|pair| pair[0].end <= pair[1].start));
        }
    }
}
