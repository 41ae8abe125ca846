//! The statements that write.

use crate::ast::{Pointer, Predicate, Reader, Ref, Scope};
use crate::span::Spanned;
use crate::value::{Arg, Duration, Id, ItemRef, Name, Passage, Value};
use crate::words::{Edge, Kind, Mark, MergeKind, Noun};

/// `record KIND TEXT in episode …`: a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The kind.
    pub kind: Spanned<Kind>,
    /// The text.
    pub text: Spanned<Arg<Passage>>,
    /// The episode's id.
    pub episode: Spanned<Arg<Id>>,
    /// `claims …`.
    pub claims: Vec<ClaimAssignment>,
    /// `with …`.
    pub with: Vec<Assignment>,
}

/// `remember KIND TEXT from …`: a recall or a theme.
#[derive(Clone, Debug, PartialEq)]
pub struct Remember {
    /// The kind.
    pub kind: Spanned<Kind>,
    /// The text.
    pub text: Spanned<Arg<Passage>>,
    /// `from …`: what it rests on; empty for `ungrounded`.
    pub from: Vec<Spanned<Pointer>>,
    /// The episode's id; inherited when not written.
    pub episode: Option<Spanned<Arg<Id>>>,
    /// `claims …`.
    pub claims: Vec<ClaimAssignment>,
    /// `with …`.
    pub with: Vec<Assignment>,
}

/// `learn TEXT from …`: a verified write-back.
#[derive(Clone, Debug, PartialEq)]
pub struct Learn {
    /// The finding.
    pub text: Spanned<Arg<Passage>>,
    /// Its evidence.
    pub from: Vec<Spanned<Pointer>>,
    /// `claims …`.
    pub claims: Vec<ClaimAssignment>,
    /// `add only`: without looking for a recall to update.
    pub add_only: bool,
    /// `as update of ITEM`: the recall it updates; not beside `add only`.
    pub update_of: Option<Spanned<Arg<ItemRef>>>,
}

/// `reflect TEXT from … [top n]`: a fact that is added, or merged with a near one.
#[derive(Clone, Debug, PartialEq)]
pub struct Reflect {
    /// The fact.
    pub text: Spanned<Arg<Passage>>,
    /// Its evidence.
    pub from: Vec<Spanned<Pointer>>,
    /// `top n`: how many of the nearest known facts are looked at.
    pub top: Option<Spanned<Arg<u64>>>,
}

/// `induce NOUN …`: facts and concepts drawn from traces.
#[derive(Clone, Debug, PartialEq)]
pub struct Induce {
    /// The kind of traces.
    pub noun: Spanned<Noun>,
    /// The selected traces.
    pub selection: Selection,
}

/// `update ITEM to TEXT [from …]`: a recall or a theme that supersedes another, and takes its key and its pointers.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// The item that is superseded.
    pub item: Spanned<Arg<ItemRef>>,
    /// The new text.
    pub text: Spanned<Arg<Passage>>,
    /// `from …`: further evidence; empty if there is none.
    pub from: Vec<Spanned<Pointer>>,
    /// `claims …`.
    pub claims: Vec<ClaimAssignment>,
    /// `with …`.
    pub with: Vec<Assignment>,
}

/// `retract REF, … because TEXT`: items are taken out of use.
#[derive(Clone, Debug, PartialEq)]
pub struct Retract {
    /// The retracted things.
    pub targets: Vec<Spanned<Ref>>,
    /// The reason.
    pub because: Spanned<Arg<String>>,
}

/// `NAME = VALUE [global]` of a `claims`.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimAssignment {
    /// The claim's name.
    pub name: Spanned<Arg<String>>,
    /// Its value.
    pub value: Spanned<Arg<Value>>,
    /// It competes in the whole database, and not only in its episode.
    pub global: bool,
}

/// `NAME = VALUE` of a `with`.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// The attribute.
    pub name: Spanned<Name>,
    /// Its value.
    pub value: Spanned<Arg<Value>>,
}

/// `mark REF STATE [because TEXT]` and `mark NOUN … as STATE [because TEXT]`.
#[derive(Clone, Debug, PartialEq)]
pub struct MarkStatement {
    /// The marked things.
    pub target: MarkTarget,
    /// The new state.
    pub marking: Spanned<Marking>,
    /// The reason.
    pub because: Option<Spanned<Arg<String>>>,
}

/// The things that a `mark` goes over.
#[derive(Clone, Debug, PartialEq)]
pub enum MarkTarget {
    /// This.
    Ref(Spanned<Ref>),
    /// All that are selected; the selection is never empty.
    Selected {
        /// The kind of items.
        noun: Spanned<Noun>,
        /// The selected items.
        selection: Selection,
    },
}

/// The state that a `mark` gives its target.
#[derive(Clone, Debug, PartialEq)]
pub enum Marking {
    /// A state.
    State(Mark),
    /// `utility x`.
    Utility(Spanned<Arg<f64>>),
    /// `reward x`: one more report on how much an item helped.
    Reward(Spanned<Arg<f64>>),
}

/// `link ITEM EDGE POINTER` and `unlink …`.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// True if the edge is removed.
    pub remove: bool,
    /// The item that the edge starts from.
    pub item: Spanned<Arg<ItemRef>>,
    /// The type of the edge.
    pub edge: Spanned<Edge>,
    /// The target of the edge.
    pub pointer: Spanned<Pointer>,
}

/// `{ in … | where … | at … }` of a write: which things it goes over, and from where it looks at them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// `in …`.
    pub scope: Option<Spanned<Scope>>,
    /// `where …`.
    pub filter: Option<Spanned<Predicate>>,
    /// `at …`; of `consolidate` and `prune` only.
    pub reader: Option<Box<Spanned<Reader>>>,
}

/// `consolidate NOUN …`.
#[derive(Clone, Debug, PartialEq)]
pub struct Consolidate {
    /// The kind of items.
    pub noun: Spanned<Noun>,
    /// The selected items.
    pub selection: Selection,
    /// `tau x`.
    pub tau: Option<Spanned<Arg<f64>>>,
    /// `into KIND`.
    pub into: Option<Spanned<Kind>>,
}

/// `merge …`.
#[derive(Clone, Debug, PartialEq)]
pub enum Merge {
    /// `merge NOUN …`: find what belongs together.
    Candidates {
        /// The kind of items.
        noun: Spanned<Noun>,
        /// The selected items.
        selection: Selection,
        /// `tau x`.
        tau: Option<Spanned<Arg<f64>>>,
        /// `top n`.
        top: Option<Spanned<Arg<u64>>>,
    },
    /// `merge ITEM, ITEM … into TEXT as KIND`; two items or more.
    Items {
        /// The originals.
        items: Vec<Spanned<Arg<ItemRef>>>,
        /// The merged statement.
        into: Spanned<Arg<Passage>>,
        /// Its relation to the originals.
        kind: Spanned<MergeKind>,
    },
}

/// `prune NOUN [to n] … [redundant above x]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Prune {
    /// The pruned kinds, with the number of items that stay.
    pub targets: Vec<PruneTarget>,
    /// The selected items.
    pub selection: Selection,
    /// `redundant above x`.
    pub redundant: Option<Spanned<Arg<f64>>>,
}

/// `NOUN [to n]`.
#[derive(Clone, Debug, PartialEq)]
pub struct PruneTarget {
    /// The kind of items.
    pub noun: Spanned<Noun>,
    /// The number of items that stay.
    pub keep: Option<Spanned<Arg<u64>>>,
}

/// `decay NOUN … half-life DURATION below x`.
#[derive(Clone, Debug, PartialEq)]
pub struct Decay {
    /// The kind of recalls.
    pub noun: Spanned<Noun>,
    /// The selected recalls.
    pub selection: Selection,
    /// After this long, utility counts half.
    pub half_life: Spanned<Duration>,
    /// Recalls of less utility are retired.
    pub below: Spanned<Arg<f64>>,
}

/// `compress NOUN … after DURATION`.
#[derive(Clone, Debug, PartialEq)]
pub struct Compress {
    /// The kind of traces.
    pub noun: Spanned<Noun>,
    /// The selected traces.
    pub selection: Selection,
    /// Older ones are left to their pages.
    pub after: Spanned<Duration>,
}

/// `forget … [cascade] because TEXT`.
#[derive(Clone, Debug, PartialEq)]
pub struct Forget {
    /// The forgotten things.
    pub target: ForgetTarget,
    /// True if what rests on it goes too.
    pub cascade: bool,
    /// The reason.
    pub because: Spanned<Arg<String>>,
}

/// The things that a `forget` erases.
#[derive(Clone, Debug, PartialEq)]
pub enum ForgetTarget {
    /// These.
    Refs(Vec<Spanned<Ref>>),
    /// All that are selected; the selection is never empty.
    Selected {
        /// The kind of items.
        noun: Spanned<Noun>,
        /// The selected items.
        selection: Selection,
    },
}

/// `open episode …` and `close episode …`.
#[derive(Clone, Debug, PartialEq)]
pub struct EpisodeStatement {
    /// True if the episode is closed; opened otherwise.
    pub close: bool,
    /// The episode's id.
    pub episode: Spanned<Arg<Id>>,
    /// `with …`.
    pub with: Vec<Assignment>,
}

/// `set NAME = VALUE`, and `declare field NAME TYPE`, which sets `field.NAME`.
#[derive(Clone, Debug, PartialEq)]
pub struct Set {
    /// The setting.
    pub name: Spanned<Name>,
    /// Its value.
    pub value: Spanned<Arg<Value>>,
}
