//! Stop words: words that do not tell what a query is about.
//!
//! The English stop list of the Snowball project (M. Porter), without words that contain an apostrophe, in the form the
//! analyser produces. Only queries drop stop words. Documents keep them, so a query of stop words alone still matches.
//! BM25's idf is not enough in small collections, where "what" or "did" can be rarer than the word that matters.

use std::collections::HashSet;
use std::sync::OnceLock;

use crate::words::analysis::{Analyzer, Role, Stemming};

const ENGLISH: &str = "\
    i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself \
    it its itself they them their theirs themselves what which who whom this that these those am is are was were be \
    been being have has had having do does did doing would should could ought a an the and but if or because as \
    until while of at by for with about against between into through during before after above below to from up down \
    in out on off over under again further then once here there when where why how all any both each few more most \
    other some such no nor not only own same so than too very isn't aren't wasn't weren't hasn't haven't hadn't \
    doesn't don't didn't won't wouldn't shan't shouldn't can't cannot couldn't mustn't i'm you're he's she's it's \
    we're they're i've you've we've they've i'd you'd he'd she'd we'd they'd i'll you'll he'll she'll we'll they'll \
    let's that's who's what's here's there's when's where's why's how's";

/// Returns true if an analysed query word is a stop word.
pub(crate) fn is_stop_word(analyzer: &Analyzer, key: &str) -> bool {
    static STEMS: OnceLock<HashSet<String>> = OnceLock::new();
    if analyzer.stemming() == Stemming::None {
        return false;
    }
    let stems = STEMS.get_or_init(|| {
        let terms = analyzer.analyze(ENGLISH);
        terms.into_iter().filter(|(_, role)| *role == Role::Word).map(|(key, _)| key).collect()
    });
    stems.contains(key)
}
