//! The effect of an operation on the model, and when it must be refused.

use crate::model::operation::{CLOCK, Op, key_name, text};
use crate::model::plain::{MClaim, MItem, MPointer, Model};
use holotype::{Edge, Kind, Layer, Status};

/// Does an operation to the model; nothing when it must be refused.
pub(crate) fn apply_to_model(op: &Op, model: &mut Model) -> Option<()> {
    match op {
        Op::Record { episode, key, tool, step, time, version, status, source, words, vector } => {
            let id = model.items.len();
            let at = model.episode(*episode);
            let row = model.episodes[at].clone();
            let newest = model.reader(at).0;
            let step = step.unwrap_or_else(|| newest.map_or(0, |step| step + 1));
            let tool = tool.map(|tool| format!("tool{tool}"));
            if !model.traces.insert((tool.clone().unwrap_or_default(), row.id.clone(), step)) {
                return None;
            }
            let text = text(*words, id);
            let spoken = tool.map_or_else(|| text.clone(), |tool| format!("{tool}: {text}"));
            let item = MItem {
                key: name(model, *key, id)?,
                episode: Some(at),
                step: Some(step),
                time: Some(time.unwrap_or(CLOCK)),
                version: version.map(|version| format!("v{version}")).or(row.version),
                status: Some(status.unwrap_or(Status::Unknown)),
                source: *source,
                vector: *vector,
                tokens: spoken.chars().count().div_ceil(4) as u64,
                ..MItem::new(Kind::Turn, text)
            };
            model.items.push(item);
            model.episodes[at].open_page.push(id);
            let tokens: u64 = model.episodes[at].open_page.iter().map(|trace| model.items[*trace].tokens).sum();
            if tokens >= model.page_tokens {
                model.close_page(at);
            }
        }
        Op::Remember { kind, key, from, page, children, ungrounded, episode, time, status, source } => {
            let id = model.items.len();
            let spans: Vec<_> = from.iter().filter_map(|span| model.span(*span)).collect();
            if !spans.iter().all(|span| model.resolves(*span)) {
                return None;
            }
            let mut pointers: Vec<MPointer> =
                spans.iter().map(|(id, start, end)| MPointer::Span(*id, *start, *end)).collect();
            let pages = model.pages.len();
            pointers.extend(page.filter(|_| pages > 0).map(|page| MPointer::Page(usize::from(page) % pages)));
            if pointers.is_empty() && kind.layer() == Layer::Recall && !ungrounded {
                return None;
            }
            let children: Vec<usize> = if kind.layer() == Layer::Theme {
                children
                    .iter()
                    .filter_map(|child| model.item(*child))
                    .filter(|id| model.items[*id].key.is_some())
                    .collect()
            } else {
                Vec::new()
            };
            if children.iter().any(|child| model.items[*child].kind.layer() != Layer::Recall) {
                return None;
            }
            let key = name(model, *key, id)?;
            let episode = episode.map(|episode| model.episode(episode));
            model.items.push(MItem {
                key,
                episode,
                time: *time,
                status: *status,
                source: *source,
                ungrounded: *ungrounded,
                ..MItem::new(*kind, text(7, id))
            });
            for pointer in pointers {
                if let (Kind::Summary, MPointer::Page(page)) = (*kind, &pointer) {
                    model.pages[*page].summarised = true;
                }
                model.add_pointer(id, pointer);
            }
            model.edges.extend(children.into_iter().map(|child| (child, Edge::Parent.to_byte(), id)));
        }
        Op::Update { key, from, ungrounded } => {
            let key = key_name(*key);
            let old = *model.keys.get(&key)?;
            if model.items[old].kind.layer() == Layer::Trace {
                return None;
            }
            let id = model.items.len();
            let spans: Vec<_> = from.iter().filter_map(|span| model.span(*span)).collect();
            if !spans.iter().all(|span| model.resolves(*span)) {
                return None;
            }
            let mut pointers = model.items[old].pointers.clone();
            pointers.extend(spans.iter().map(|(id, start, end)| MPointer::Span(*id, *start, *end)));
            if pointers.is_empty() && !ungrounded {
                return None;
            }
            model.items[old].key = None;
            model.items[old].active = false;
            let fact = MItem::new(Kind::Fact, text(3, id));
            model.items.push(MItem { key: Some(key.clone()), ungrounded: *ungrounded, ..fact });
            model.keys.insert(key, id);
            for pointer in pointers {
                model.add_pointer(id, pointer);
            }
            model.edges.insert((id, Edge::Supersedes.to_byte(), old));
        }
        Op::Cite(id, span) => {
            let (id, span) = (model.item(*id)?, model.span(*span)?);
            if !model.resolves(span) || span.0 >= id || model.items[id].kind.layer() == Layer::Trace {
                return None;
            }
            model.add_pointer(id, MPointer::Span(span.0, span.1, span.2));
        }
        Op::Link(from, edge, to) => {
            let (from, to) = (model.item(*from)?, model.item(*to)?);
            if !model.may_link(from, *edge, to) {
                return None;
            }
            if *edge == Edge::Cites {
                let len = model.items[to].text.len() as u64;
                model.add_pointer(from, MPointer::Span(to, 0, len));
            }
            model.edges.insert((from, edge.to_byte(), to));
            if *edge == Edge::Supersedes {
                model.items[to].active = false;
            }
        }
        Op::Unlink(from, edge, to) => {
            let (from, to) = some_edge(model, *from, *edge, *to)?;
            let by_page =
                |pointer: &MPointer| matches!(pointer, MPointer::Page(page) if model.pages[*page].traces.contains(&to));
            if *edge == Edge::Cites && model.items[from].pointers.iter().any(by_page) {
                return None;
            }
            if !model.edges.remove(&(from, edge.to_byte(), to)) {
                return None;
            }
            if *edge == Edge::Cites {
                model.items[from]
                    .pointers
                    .retain(|pointer| !matches!(pointer, MPointer::Span(target, ..) if *target == to));
            }
        }
        Op::Status(id, status) => {
            let id = model.item(*id)?;
            model.items[id].status = Some(*status);
        }
        Op::Utility(id, utility) => {
            let id = model.item(*id)?;
            model.items[id].utility = f32::from(*utility);
        }
        Op::Inactive(id) => {
            let id = model.item(*id)?;
            model.items[id].active = false;
        }
        Op::Claim(id, name, value, global) => {
            let item = model.item(*id)?;
            let (name, value) = (format!("n{name}"), value.to_string());
            model.claims.push(MClaim { item, name, value, global: *global });
        }
        Op::Episode(episode, version, open) => {
            let at = model.episode(*episode);
            if *open == Some(false) && !model.episodes[at].open_page.is_empty() {
                model.close_page(at);
            }
            let row = &mut model.episodes[at];
            row.open = open.unwrap_or(row.open);
            row.version = version.map(|version| format!("v{version}")).or(row.version.take());
        }
        Op::PageTokens(tokens) => model.page_tokens = *tokens,
        Op::Summarise(page, summarised) => {
            let pages = model.pages.len().max(1);
            model.pages.get_mut(usize::from(*page) % pages)?.summarised = *summarised;
        }
        Op::Commit(_) | Op::Drop | Op::Look | Op::Keep | Op::Checkpoint | Op::Reopen | Op::Rebuild => {}
    }
    Some(())
}

/// Gives a new item its key, if it asks for one that is free; the engine chooses one for those that do not ask.
fn name(model: &mut Model, key: Option<u8>, id: usize) -> Option<Option<String>> {
    let Some(key) = key.map(key_name) else { return Some(None) };
    if model.keys.contains_key(&key) {
        return None;
    }
    model.keys.insert(key.clone(), id);
    Some(Some(key))
}

/// An edge of that type if there is one, else any two items.
pub(crate) fn some_edge(model: &Model, from: u8, edge: Edge, to: u8) -> Option<(usize, usize)> {
    let of_type: Vec<_> = model.edges.iter().filter(|(_, byte, _)| *byte == edge.to_byte()).collect();
    match of_type.get(usize::from(from) % of_type.len().max(1)) {
        Some((from, _, to)) => Some((*from, *to)),
        None => Some((model.item(from)?, model.item(to)?)),
    }
}
