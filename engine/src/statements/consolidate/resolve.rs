//! Consolidation with conflict resolution (HELM Algorithm 5): each claim of the selected traces becomes one recall.
//!
//! ```text
//! claims of the traces, grouped by key (scope, version, name)
//! for each key: rank by success > unknown > failed, newer > older; the first wins
//!     the recall says what the winner says and points to the bytes of those that agree with it, of its status
//!     alternatives lose to it (an edge `conflicts-with`), unless they stay contested
//! ```
//!
//! An alternative stays contested where the preference does not decide: of the winner's status, and neither newer nor
//! older; with `tau`, where its score by equation 1, without the question, is less than `tau`
//! below the winner's. A key of which only failed traces speak makes no recall.
//!
//! The recall has the key `claim:EPISODE:VERSION:NAME` (`%3A` for a colon in the first two, `%25` for a percent sign).
//! A later consolidation finds it by that key. If it says the same, is younger than the winner and rests on good traces
//! alone, it gets the pointers and edges that it lacks; if not, a new recall supersedes it and takes the key and the
//! themes over.
//!
//! Invariants:
//! 1. Again over the same traces it writes nothing.
//! 2. The pointers of a recall are to traces that say what it says: a loser's status never reaches it.
//! 3. At most `consolidate.limit` recalls of an episode are made or changed by a call: those over which traces disagree
//!    first, then those of most traces, then by name. The report counts the others.

use crate::extract::{self, ExtractOptions};
use crate::model::edge::Edge;
use crate::model::item::{Attributes, ItemId, Kind, Layer, Origin, Status, Support};
use crate::model::pointer::Pointer;
use crate::read::filter::Filter;
use crate::read::snapshot::Snapshot;
use crate::recall::score::Weights;
use crate::records::record::{FieldValue, PointerTarget, Record, RekeyRecord};
use crate::records::tables::ClaimRow;
use crate::state::State;
use crate::state::attributes::scalars::{Reads, Scalars};
use crate::state::claims::agree;
use crate::state::conflicts::Claimant;
use crate::state::reader_position::{Reader, ReaderPosition};
use crate::state::settings;
use crate::statements::selected;
use crate::write::draft::NewRecall;
use crate::write::transaction::{MAX_KEY_LEN, Transaction};
use crate::{Error, Result};
use holotype_query::Noun;
use holotype_query::plan::Selection;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The most traces that a recall points to: the most preferred ones.
const MAX_POINTERS: usize = 16;

/// A consolidation to be done.
///
/// ```
/// use holotype::Consolidate;
/// use holotype::query::Noun;
///
/// let consolidate = Consolidate::new(Noun::Calls).in_episode("trip-42");
/// # let _ = consolidate;
/// ```
#[derive(Debug, Clone)]
pub struct Consolidate {
    noun: Noun,
    selection: Selection,
    reader: Reader,
    tau: Option<f32>,
    into: Kind,
}

impl Consolidate {
    /// Of all traces of a kind.
    pub fn new(noun: Noun) -> Self {
        let (selection, reader) = (Selection::default(), Reader::default());
        Consolidate { noun, selection, reader, tau: None, into: Kind::Fact }
    }

    /// Of one episode.
    pub fn in_episode(mut self, id: impl Into<String>) -> Self {
        self.selection = crate::statements::in_episode(id.into());
        self
    }

    /// As a reader sees them who stands here.
    pub fn at(mut self, reader: Reader) -> Self {
        self.reader = reader;
        self
    }

    /// Alternatives whose score is less than this below the winner's stay contested.
    pub fn tau(mut self, tau: f32) -> Self {
        self.tau = Some(tau);
        self
    }

    /// The kind of the recalls that are made; facts by default.
    pub fn into(mut self, kind: Kind) -> Self {
        self.into = kind;
        self
    }

    pub(crate) fn among(mut self, selection: Selection) -> Self {
        self.selection = selection;
        self
    }
}

/// The effect of a consolidation on an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConsolidateOp {
    /// A recall was made.
    Made,
    /// A recall got pointers or edges that it lacked.
    Changed,
    /// A recall was superseded by one that says otherwise.
    Superseded,
    /// A trace lost to the recall.
    Lost,
    /// A trace disagrees, and nothing decides.
    Contested,
}

impl ConsolidateOp {
    /// The operation in a word.
    pub const fn as_str(self) -> &'static str {
        match self {
            ConsolidateOp::Made => "made",
            ConsolidateOp::Changed => "changed",
            ConsolidateOp::Superseded => "superseded",
            ConsolidateOp::Lost => "lost",
            ConsolidateOp::Contested => "contested",
        }
    }
}

/// One thing that a consolidation did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consolidated {
    /// The effect.
    pub op: ConsolidateOp,
    /// The item.
    pub item: ItemId,
    /// The claim's name.
    pub claim: String,
    /// The item's value of the claim; empty for a superseded recall.
    pub value: String,
}

/// The effects of a consolidation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConsolidateReport {
    /// In the order of the claims.
    pub done: Vec<Consolidated>,
    /// Claims whose recalls say what they should.
    pub unchanged: u64,
    /// Claims over the limit of an episode.
    pub over_limit: u64,
    /// Claims that only failed traces make.
    pub only_failed: u64,
}

impl Transaction<'_> {
    /// Consolidates (HELM Algorithm 5).
    ///
    /// ```
    /// # use holotype::{Consolidate, Durability, Holotype, NewTrace, Options, Status};
    /// # use holotype::query::Noun;
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let database = Holotype::create(dir.path().join("memory.holo"), Options::default())?;
    /// let mut transaction = database.begin()?;
    /// for price in ["$280", "$450"] {
    ///     let said = format!("search(flight UA123): price = {price}");
    ///     transaction.record(NewTrace::call("trip-42", "search", said).status(Status::Success).time(0))?;
    /// }
    /// transaction.record(NewTrace::call("trip-42", "search", "search(flight UA123): price = $460").time(1 << 30))?;
    /// let report = transaction.consolidate(&Consolidate::new(Noun::Calls))?;
    /// let made = transaction.snapshot()?.get("claim:trip-42::price of ua123")?.unwrap();
    /// assert_eq!(made.content.text(), "The price of ua123 is 450 USD.");
    /// # let _ = report;
    /// # Ok::<(), holotype::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] for things other than traces, a kind other than a recall's and a `tau` that is no number.
    pub fn consolidate(&mut self, consolidate: &Consolidate) -> Result<ConsolidateReport> {
        let Consolidate { noun, into, tau, .. } = consolidate;
        if !matches!(noun, Noun::Traces | Noun::Turns | Noun::Calls | Noun::Observations) {
            return Err(Error::Invalid(format!("consolidate {noun}: expected traces, turns, calls or observations")));
        }
        if into.layer() != Layer::Recall {
            return Err(Error::Invalid(format!(
                "consolidate into {into}: expected the kind of a recall, such as fact"
            )));
        }
        if tau.is_some_and(|tau| !tau.is_finite()) {
            return Err(Error::Invalid("tau: expected a finite number, such as 0.5".to_owned()));
        }
        self.atomically(|transaction| transaction.consolidate_inner(consolidate))
    }

    fn consolidate_inner(&mut self, consolidate: &Consolidate) -> Result<ConsolidateReport> {
        let snapshot = self.snapshot()?;
        let (position, found) = selected(&snapshot, consolidate.noun, &consolidate.selection, &consolidate.reader)?;
        let state = &snapshot.state;
        let seen = found
            .and(&*state.attributes.base_sets(state.bound()).visible()?)
            .and_not(Filter::new(&snapshot, &position).ahead()?);
        let mut report = ConsolidateReport::default();
        let (groups, themes) = (groups(&snapshot, seen.iter().map(ItemId))?, themes(&snapshot)?);
        let limit = settings::consolidate_limit(state)?;
        let decide = Decide { position, tau: consolidate.tau, snapshot: &snapshot };
        let mut changed: HashMap<Option<u32>, u64> = HashMap::new();
        for (key, group) in in_order(groups) {
            let Some(plan) = decide.plan(&key, group)? else {
                report.only_failed += 1;
                continue;
            };
            let of_episode = changed.entry(plan.winner.attributes.episode).or_default();
            let standing = self.standing(&plan)?;
            if matches!(&standing, Standing::Current { lacks: false, .. }) {
                report.unchanged += 1;
            } else if *of_episode >= limit {
                report.over_limit += 1;
            } else {
                *of_episode += 1;
                self.write_claim(
                    &Writing { snapshot: &snapshot, plan: &plan, themes: &themes },
                    standing,
                    consolidate.into,
                    &mut report,
                )?;
            }
        }
        Ok(report)
    }
}

/// The recall of a claim as it is.
enum Standing {
    /// There is none.
    Absent,
    /// It says otherwise, is older than what it should rest on, or rests on something bad.
    Outdated(ItemId, Box<Attributes>),
    /// It says what it should; `lacks` if pointers or edges are missing.
    Current { id: ItemId, lacks: bool },
}

/// The inputs from which the recall of a claim is written.
struct Writing<'w> {
    snapshot: &'w Snapshot,
    plan: &'w Plan,
    themes: &'w HashMap<String, ItemId>,
}

/// The scope, the version and the name of claims that are resolved together. Extracted claims, and those stated for
/// their episode, are of an episode.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct GroupKey {
    episode: Option<u32>,
    version: Option<u32>,
    name: String,
}

impl GroupKey {
    fn new(claim: &ClaimRow, attributes: &Attributes) -> GroupKey {
        let episode = attributes.episode.filter(|_| claim.is_extracted() || !claim.global);
        GroupKey { episode, version: attributes.version, name: claim.name.clone() }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let number = |number: Option<u32>| number.unwrap_or(u32::MAX).to_be_bytes();
        [&number(self.episode), &number(self.version), self.name.as_bytes()].concat()
    }
}

/// The claims of some traces by scope, version and name, each best first.
fn groups(snapshot: &Snapshot, traces: impl Iterator<Item = ItemId>) -> Result<BTreeMap<GroupKey, Vec<Claimant>>> {
    let mut groups: BTreeMap<GroupKey, Vec<Claimant>> = BTreeMap::new();
    for id in traces {
        snapshot.tick()?;
        let claims = snapshot.state.claims_of(id)?;
        if claims.is_empty() {
            continue;
        }
        let attributes = snapshot.state.attributes(id)?;
        for claim in claims {
            let key = GroupKey::new(&claim, &attributes);
            groups.entry(key).or_default().push(Claimant { claim, item: id, attributes: attributes.clone() });
        }
    }
    for group in groups.values_mut() {
        group.sort_by(Claimant::best_first);
    }
    Ok(groups)
}

/// The groups that disagree first, then those of most traces, then by key.
fn in_order(groups: BTreeMap<GroupKey, Vec<Claimant>>) -> Vec<(GroupKey, Vec<Claimant>)> {
    let mut groups: Vec<(GroupKey, Vec<Claimant>)> = groups.into_iter().collect();
    groups.sort_by_cached_key(|(key, group)| {
        let disagree = group.first().is_some_and(|winner| group.iter().any(|other| !other.agrees_with(winner)));
        (!disagree, std::cmp::Reverse(group.len()), key.clone())
    });
    groups
}

/// The themes by their text, in lower case.
fn themes(snapshot: &Snapshot) -> Result<HashMap<String, ItemId>> {
    let mut themes = HashMap::new();
    let of_layer = snapshot.state.attributes.base_sets(snapshot.len()).layer(Layer::Theme)?;
    for id in of_layer.iter().map(ItemId) {
        themes.entry(snapshot.content(id)?.text().trim().to_lowercase()).or_insert(id);
    }
    Ok(themes)
}

/// The rules by which claims are decided.
struct Decide<'s> {
    snapshot: &'s Snapshot,
    position: ReaderPosition,
    tau: Option<f32>,
}

/// A decided claim.
struct Plan {
    /// The recall's key.
    key: String,
    winner: Claimant,
    /// The winner and those that agree with it, of its status.
    support: Vec<ItemId>,
    lost: Vec<Claimant>,
    contested: Vec<Claimant>,
}

impl Decide<'_> {
    /// The decision; `None` if only failed traces speak.
    fn plan(&self, key: &GroupKey, group: Vec<Claimant>) -> Result<Option<Plan>> {
        let mut rivals = group.into_iter();
        let Some(winner) = rivals.next().filter(|winner| winner.attributes.status != Some(Status::Failed)) else {
            return Ok(None);
        };
        let key = recall_key(self.snapshot, &winner, key)?;
        let mut plan = Plan { key, support: vec![winner.item], winner, lost: Vec::new(), contested: Vec::new() };
        for rival in rivals {
            if rival.agrees_with(&plan.winner) {
                let supports = rival.attributes.status == plan.winner.attributes.status
                    && plan.support.len() < MAX_POINTERS
                    && !plan.support.contains(&rival.item);
                plan.support.extend(supports.then_some(rival.item));
            } else if rival.item != plan.winner.item {
                let open = self.is_open(&plan.winner, &rival)?;
                if open { &mut plan.contested } else { &mut plan.lost }.push(rival);
            }
        }
        Ok(Some(plan))
    }

    fn is_open(&self, winner: &Claimant, rival: &Claimant) -> Result<bool> {
        let Some(tau) = self.tau else {
            return Ok(!winner.is_preferred_to(rival));
        };
        let weights = Weights::profile(&self.snapshot.state, "helm")?;
        let score = |rival: &Claimant| weights.unasked(&Scalars::of(&rival.attributes, Reads::ALL), &self.position);
        Ok(score(winner) - score(rival) < tau)
    }
}

/// The key of the recall of a claim.
fn recall_key(snapshot: &Snapshot, winner: &Claimant, group: &GroupKey) -> Result<String> {
    let escaped = |name: &str| name.replace('%', "%25").replace(':', "%3A");
    let Attributes { episode, version, .. } = &winner.attributes;
    let episode = match episode.filter(|_| group.episode.is_some()) {
        Some(episode) => escaped(&snapshot.state.episode_id(episode)?),
        None => "*".to_owned(),
    };
    let version = version.map(|version| snapshot.state.symbol_name(version)).transpose()?.unwrap_or_default();
    let key = format!("claim:{episode}:{}:{}", escaped(&version), winner.claim.name);
    if key.len() <= MAX_KEY_LEN && !key.contains('\0') {
        return Ok(key);
    }
    Ok(format!("claim:#{}", blake3::hash(&group.to_bytes()).to_hex()))
}

impl Transaction<'_> {
    fn standing(&mut self, plan: &Plan) -> Result<Standing> {
        let state = self.state()?;
        let Some(id) = state.item_by_key(&plan.key)? else { return Ok(Standing::Absent) };
        let attributes = state.attributes(id)?;
        let is_said =
            |claim: &ClaimRow| claim.name == plan.winner.claim.name && agree(&claim.value, &plan.winner.claim.value);
        let is_sound = attributes.active && !attributes.redacted && attributes.support == Support::Supported;
        if !is_sound || plan.winner.item > id || !state.stated_claims_of(id)?.iter().any(is_said) {
            return Ok(Standing::Outdated(id, Box::new(attributes)));
        }
        let lacks = !plan.lacked_pointers(state, id)?.is_empty() || !plan.lacked_losers(state, id)?.is_empty();
        Ok(Standing::Current { id, lacks })
    }

    /// Brings the recall of a claim to what it should be.
    fn write_claim(
        &mut self,
        writing: &Writing<'_>,
        standing: Standing,
        into: Kind,
        report: &mut ConsolidateReport,
    ) -> Result<()> {
        let Writing { snapshot, plan, .. } = writing;
        let value = &plan.winner.claim.value;
        let recall = match standing {
            Standing::Current { id, .. } => {
                report.done.push(plan.done(ConsolidateOp::Changed, id, value));
                id
            }
            Standing::Absent => self.new_claim(writing, into, None, report)?,
            Standing::Outdated(id, attributes) => self.new_claim(writing, into, Some((id, *attributes)), report)?,
        };
        for id in plan.lacked_pointers(self.state()?, recall)? {
            self.cite(recall, &pointer(snapshot, id, &plan.winner)?)?;
        }
        for (loser, value) in plan.lacked_losers(self.state()?, recall)? {
            self.link(recall, Edge::ConflictsWith, loser)?;
            report.done.push(plan.done(ConsolidateOp::Lost, loser, &value));
        }
        let contested = plan.contested.iter();
        report.done.extend(contested.map(|rival| plan.done(ConsolidateOp::Contested, rival.item, &rival.claim.value)));
        Ok(())
    }

    /// Makes the recall of a claim, in place of a known one that is outdated.
    fn new_claim(
        &mut self,
        writing: &Writing<'_>,
        into: Kind,
        known: Option<(ItemId, Attributes)>,
        report: &mut ConsolidateReport,
    ) -> Result<ItemId> {
        let Writing { snapshot, plan, themes } = writing;
        let (name, value) = (&plan.winner.claim.name, &plan.winner.claim.value);
        let text = sentence(name, value);
        let from = pointer(snapshot, plan.winner.item, &plan.winner)?;
        let mut recall = NewRecall::new(into, text.clone()).origin(Origin::Refined).from(from.clone());
        recall.vector = self.text_vector(&text)?;
        let id = self.remember(if known.is_some() { recall } else { recall.key(plan.key.clone()) })?;
        report.done.push(plan.done(ConsolidateOp::Made, id, value));
        let is_global = plan.winner.claim.global && !plan.winner.claim.is_extracted();
        self.claim(id, name, value, is_global, &[from])?;
        let subject = name.split_once(" of ").map_or(name.as_str(), |(_, subject)| subject);
        let subject = subject.split('.').next().unwrap_or_default().to_lowercase();
        let mut parents: Vec<ItemId> = themes.get(&subject).copied().into_iter().collect();
        if let Some((old, attributes)) = known {
            let spare = self.generated_key()?;
            self.push(Record::Rekey(RekeyRecord { key: spare, item: old.0 }))?;
            self.push(Record::Rekey(RekeyRecord { key: plan.key.clone(), item: id.0 }))?;
            parents.extend(self.state()?.edges_out(old, Some(Edge::Parent))?.iter().map(|end| end.far));
            if attributes.active {
                self.link(id, Edge::Supersedes, old)?;
                report.done.push(plan.done(ConsolidateOp::Superseded, old, ""));
            }
        }
        parents.sort_unstable();
        parents.dedup();
        for parent in parents {
            self.link(id, Edge::Parent, parent)?;
        }
        Ok(id)
    }
}

impl Plan {
    /// The supporting traces that a recall does not point to and may, up to as many as it should.
    fn lacked_pointers(&self, state: &State, recall: ItemId) -> Result<Vec<ItemId>> {
        let mut known = Vec::new();
        for stored in state.pointers(recall)? {
            known.extend(match stored.target {
                PointerTarget::Item(id) => Some(id),
                PointerTarget::Page(_) => None,
            });
        }
        let lacked = self.support.iter().copied().filter(|id| *id < recall && !known.contains(&id.0));
        Ok(lacked.take(MAX_POINTERS.saturating_sub(known.len())).collect())
    }

    /// The traces that lost and that a recall is not linked to, with what they say.
    fn lacked_losers(&self, state: &State, recall: ItemId) -> Result<BTreeMap<ItemId, String>> {
        let known = state.edges_out(recall, Some(Edge::ConflictsWith))?;
        let known: HashSet<ItemId> = known.iter().map(|end| end.far).collect();
        let lacked = self.lost.iter().filter(|loser| !known.contains(&loser.item));
        Ok(lacked.map(|loser| (loser.item, loser.claim.value.clone())).collect())
    }

    fn done(&self, op: ConsolidateOp, item: ItemId, value: &str) -> Consolidated {
        Consolidated { op, item, claim: self.winner.claim.name.clone(), value: value.to_owned() }
    }
}

/// The claim as a sentence that makes the same claim.
fn sentence(name: &str, value: &str) -> String {
    match name.contains(" of ") {
        true => format!("The {name} is {value}."),
        false => format!("{name} = {value}"),
    }
}

/// A pointer to the bytes of a trace that say what the winner says: to the value as written, else to the whole text.
fn pointer(snapshot: &Snapshot, id: ItemId, winner: &Claimant) -> Result<Pointer> {
    let stated = snapshot.state.stated_claims_of(id)?;
    for claim in stated.iter().filter(|claim| claim.name == winner.claim.name) {
        if let Some(from) = claim.from.iter().find(|from| from.target == PointerTarget::Item(id.0)) {
            return Ok(Pointer::to_item(id).field(from.field.clone()).bytes(from.start, from.end));
        }
    }
    let record = snapshot.content(id)?.record;
    let texts: Vec<(&str, &str)> = record
        .fields
        .iter()
        .filter(|field| matches!(field.value, FieldValue::Text(_) | FieldValue::Json(_)))
        .filter_map(|field| Some((field.name.as_str(), std::str::from_utf8(field.value.bytes()).ok()?)))
        .collect();
    let fields: Vec<extract::Field<'_>> = texts.iter().map(|(name, text)| extract::Field { name, text }).collect();
    let options = ExtractOptions { ignore: settings::ignored(&snapshot.state)?, ..ExtractOptions::default() };
    let claims = extract::extract(record.tool.as_deref(), &fields, &options);
    let said = claims.iter().find(|claim| claim.name() == winner.claim.name && claim.value == winner.claim.value);
    if let Some(said) = said
        && let Some((field, _)) = texts.get(said.field)
    {
        return Ok(Pointer::to_item(id).field(*field).bytes(said.span.start as u64, said.span.end as u64));
    }
    // A claim of the caller need not stand in the text: its value if it does, once; else all of it.
    let text = texts.iter().find(|(name, _)| *name == "text").map_or("", |(_, text)| text);
    let at: Vec<usize> = text.match_indices(winner.claim.value.as_str()).map(|(at, _)| at).take(2).collect();
    Ok(match at.as_slice() {
        [at] if !winner.claim.value.is_empty() => {
            Pointer::to_item(id).bytes(*at as u64, (*at + winner.claim.value.len()) as u64)
        }
        _ => Pointer::to_item(id),
    })
}
