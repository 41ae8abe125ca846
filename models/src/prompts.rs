//! Prompts: texts in files, each with a version and a hash.
//!
//! ```text
//! version 1
//! ---
//! the message of the system, to the end of the file
//! ```
//!
//! The hash is the BLAKE3 of the whole file. [`Prompts::record`] states version and hash of each prompt in a database,
//! where they are events: what was written or read since then was written or read under these prompts.

use crate::failure::Failure;
use holotype::Transaction;
use std::collections::BTreeMap;

macro_rules! roles {
    ($($(#[$meta:meta])* $role:ident $name:literal,)*) => {
        /// A role that a prompt is written for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Role {
            $($(#[$meta])* $role,)*
        }

        impl Role {
            /// Every role.
            pub const ALL: &'static [Role] = &[$(Role::$role,)*];

            /// The name, which is that of the prompt's file, and in a database `prompt.NAME`.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Role::$role => $name,)*
                }
            }

            /// The file of the built-in prompt.
            const fn built_in(self) -> &'static str {
                match self {
                    $(Role::$role => include_str!(concat!("../prompts/", $name, ".txt")),)*
                }
            }
        }
    };
}

roles! {
    /// Do the summaries suffice? (TierMem Figure 9)
    Router "router",
    /// The next search (TierMem Figure 8).
    Planner "planner",
    /// Findings in pages, with their quotes (TierMem Figure 7).
    Integrator "integrator",
    /// Texts in the order in which they help (TierMem B.7).
    Reranker "reranker",
    /// ADD, UPDATE or SKIP (TierMem B.6).
    MemoryManager "memory-manager",
    /// Is a finding worth keeping? (TierMem Figure 11)
    FindingFilter "finding-filter",
    /// The summary of a page (TierMem B.3).
    Summariser "summariser",
    /// State, subgoal and reward of a step (PlugMem Listings 1, 2 and 4).
    Standardiser "standardiser",
    /// The segments of a trajectory (PlugMem C.1).
    Segmenter "segmenter",
    /// Facts with concepts (PlugMem Listing 5).
    Extractor "extractor",
    /// A procedure with its return score (PlugMem Listings 3 and 6).
    ProcedureWriter "procedure-writer",
    /// Two intents as one (PlugMem Listing 7).
    IntentMerger "intent-merger",
    /// Two facts as one (PlugMem Listing 14).
    FactMerger "fact-merger",
    /// A new fact beside known ones (PlugMem Listing 17).
    Reflector "reflector",
    /// The memory that a question asks for (PlugMem Listing 8).
    ModeChooser "mode-chooser",
    /// Another hop, or enough (PlugMem Listing 10).
    HopController "hop-controller",
    /// One guidance out of events (PlugMem Listing 11).
    ReasonerEpisodic "reasoner-episodic",
    /// One guidance out of facts (PlugMem Listing 12).
    ReasonerSemantic "reasoner-semantic",
    /// One guidance out of procedures (PlugMem Listing 13).
    ReasonerProcedural "reasoner-procedural",
    /// A memory with citations (HELM A.8).
    Generator "generator",
    /// The operations of a step (HELM 3.3).
    Controller "controller",
    /// A plausible wrong passage (HiMPO D.1).
    Corruptor "corruptor",
    /// Is an answer right? (TierMem D.3)
    Judge "judge",
    /// An answer from evidence (TierMem Figure 10).
    Answerer "answerer",
    /// The facts of a page (TierMem Figure 6).
    PageFacts "page-facts",
}

/// A prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    version: u32,
    text: String,
    hash: String,
}

impl Prompt {
    /// Reads the content of a prompt's file.
    ///
    /// # Errors
    /// [`Failure::Invalid`] for a file that does not begin with `version N`, N above 0, and a line `---`, or that has
    /// no text after them.
    pub fn parse(file: &str) -> Result<Prompt, Failure> {
        let wrong = |why: &str| {
            let form = "a prompt begins with the lines `version N` and `---`, and its text follows";
            Failure::Invalid(format!("{why}; {form}"))
        };
        let mut lines = file.splitn(3, '\n');
        let first = lines.next().unwrap_or_default().trim_end();
        let version = first.strip_prefix("version ").and_then(|version| version.parse::<u32>().ok());
        let version = version.filter(|version| *version > 0);
        let version = version.ok_or_else(|| wrong(&format!("the first line is {first:?}")))?;
        if lines.next().map(str::trim_end) != Some("---") {
            return Err(wrong("the second line is not `---`"));
        }
        let text = lines.next().unwrap_or_default().trim();
        if text.is_empty() {
            return Err(wrong("the prompt has no text"));
        }
        Ok(Prompt { version, text: text.to_owned(), hash: blake3::hash(file.as_bytes()).to_hex().to_string() })
    }

    /// The version.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The text: the message of the system.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The BLAKE3 of the file, in hexadecimal digits.
    pub fn hash(&self) -> &str {
        &self.hash
    }
}

/// A prompt for each role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompts {
    of_role: BTreeMap<Role, Prompt>,
}

impl Prompts {
    /// The prompts of this crate, `models/prompts/`.
    ///
    /// # Errors
    /// [`Failure::Invalid`] names a file that is none; a test holds that there is no such file.
    pub fn built_in() -> Result<Prompts, Failure> {
        let parsed = Role::ALL.iter().map(|role| Ok((*role, Prompt::parse(role.built_in())?)));
        Ok(Prompts { of_role: parsed.collect::<Result<_, Failure>>()? })
    }

    /// Puts another prompt in the place of a role's.
    pub fn with(mut self, role: Role, prompt: Prompt) -> Prompts {
        self.of_role.insert(role, prompt);
        self
    }

    /// The prompt of a role.
    ///
    /// # Errors
    /// [`Failure::Invalid`] if the role has none.
    pub fn of(&self, role: Role) -> Result<&Prompt, Failure> {
        let missing = || Failure::Invalid(format!("the role {} has no prompt", role.as_str()));
        self.of_role.get(&role).ok_or_else(missing)
    }

    /// States version and hash of the prompts of these roles in the database, as the settings `prompt.ROLE`. What is
    /// stated already is not written again.
    ///
    /// # Errors
    /// Those of the transaction; [`holotype::Error::Invalid`] for a role without a prompt.
    pub fn record(&self, transaction: &mut Transaction<'_>, roles: &[Role]) -> holotype::Result<()> {
        for role in roles {
            let prompt = self.of(*role)?;
            transaction.set(&format!("prompt.{}", role.as_str()), &format!("{} {}", prompt.version, prompt.hash))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_has_a_version_and_a_text() {
        let prompt = Prompt::parse("version 3\n---\n\nAnswer in JSON.\nNothing else.\n").unwrap();
        assert_eq!((prompt.version(), prompt.text()), (3, "Answer in JSON.\nNothing else."));
        assert_eq!(prompt.hash().len(), 64);
        for file in [
            "",
            "x",
            "version 0\n---\nx",
            "version x\n---\nx",
            "version 1\nx",
            "version 1\n---\n",
            "version 1\n---\n \n",
        ] {
            assert!(Prompt::parse(file).is_err(), "{file:?}");
        }
    }

    /// A changed prompt is another version, since what was written under it is told apart by these two. After a change:
    /// count the version up, and put the hash that the failure shows here.
    #[test]
    fn versions_and_hashes_of_the_built_in_prompts() {
        let prompts = Prompts::built_in().unwrap();
        let lines: Vec<String> = Role::ALL
            .iter()
            .map(|role| {
                let prompt = prompts.of(*role).unwrap();
                format!("{} {} {}\n", role.as_str(), prompt.version(), prompt.hash())
            })
            .collect();
        assert_eq!(lines.concat(), include_str!("../prompts/versions"));
    }
}
