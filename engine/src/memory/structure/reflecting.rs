//! Reflective updating (PlugMem F, after RMM; Listing 17): a new fact is added, or merged with one of the nearest.

use super::merging::{FactMerger, MergeByWords, Relation};
use crate::{Error, Result};

/// The decision about a new fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reflection {
    /// It is written as it is.
    Add,
    /// It becomes one statement with a known one, counted from 0 among those shown.
    Merge(usize, String),
}

impl Reflection {
    /// Reads a reply in the format of Listing 17: `Add()` or `Merge(index, statement)`, for so many known facts.
    ///
    /// # Errors
    /// [`Error::Invalid`] for any other reply, an index beyond the known facts, or an empty statement.
    pub fn parse(reply: &str, known: usize) -> Result<Reflection> {
        let refused = |why: &str| Error::Invalid(format!("the reply of a reflector {why}: {reply:?}"));
        let reply = reply.trim();
        if reply == "Add()" {
            return Ok(Reflection::Add);
        }
        let inside = reply.strip_prefix("Merge(").and_then(|rest| rest.strip_suffix(')'));
        let inside = inside.ok_or_else(|| refused("is neither Add() nor Merge(index, statement)"))?;
        let (index, text) = inside.split_once(',').ok_or_else(|| refused("has no statement"))?;
        let index: usize = index.trim().parse().map_err(|_| refused("has no index"))?;
        if index >= known {
            return Err(refused(&format!("names a fact beyond the {known} known ones")));
        }
        match text.trim() {
            "" => Err(refused("has an empty statement")),
            text => Ok(Reflection::Merge(index, text.to_owned())),
        }
    }
}

/// Decides what becomes of a new fact.
pub trait Reflector {
    /// The decision, for the nearest known facts, the nearest first.
    ///
    /// # Errors
    /// An error counts as [`Reflection::Add`]: nothing is lost.
    fn reflect(&self, known: &[String], new: &str) -> Result<Reflection>;
}

/// The built-in reflector: merges with the first known fact that says the same or speaks of the same, by the shares of
/// common words of [`MergeByWords`].
#[derive(Debug, Clone, Copy, Default)]
pub struct ReflectByWords;

impl Reflector for ReflectByWords {
    fn reflect(&self, known: &[String], new: &str) -> Result<Reflection> {
        for (index, known) in known.iter().enumerate() {
            let merged = MergeByWords.merge(known, new)?;
            if merged.relation != Relation::Stitch {
                return Ok(Reflection::Merge(index, merged.text));
            }
        }
        Ok(Reflection::Add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_one_of_two_calls_or_refused() {
        let parse = |reply| Reflection::parse(reply, 2);
        assert_eq!(parse(" Add() ").unwrap(), Reflection::Add);
        let merged = Reflection::Merge(1, "She runs, although (she says) she hates it.".to_owned());
        assert_eq!(parse("Merge(1, She runs, although (she says) she hates it.)").unwrap(), merged);
        for reply in ["", "add()", "Add(1)", "Merge(2, x)", "Merge(-1, x)", "Merge(0)", "Merge(0, )", "Merge(0, x"] {
            assert!(parse(reply).is_err(), "{reply}");
        }
    }

    #[test]
    fn what_shares_words_is_merged() {
        let known = ["Ann lives in Oslo".to_owned(), "UA123 costs $450 today".to_owned()];
        let reflect = |new| ReflectByWords.reflect(&known, new).unwrap();
        assert_eq!(reflect("UA123 costs $480 today"), Reflection::Merge(1, "UA123 costs $480 today".to_owned()));
        assert_eq!(reflect("The opera opens in May"), Reflection::Add);
    }
}
