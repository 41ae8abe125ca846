//! Work on the parts of a file by several threads, with results in the order of the parts.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::num::NonZero;
use std::ops::Range;
use std::thread;

/// Less text than this is no part of its own.
const LEAST: usize = 1 << 20;
/// Lines that a thread writes in one go.
const LINES: usize = 1 << 14;
/// Threads, at most.
const MOST: usize = 8;

fn threads() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get).min(MOST)
}

/// The parts of a text, each of whole lines.
pub(super) fn of_lines(text: &str) -> Vec<&str> {
    let count = threads().min(text.len() / LEAST).max(1);
    let mut parts = Vec::with_capacity(count);
    let mut rest = text;
    for part in 1..count {
        let wanted = (text.len() / count * part).saturating_sub(text.len() - rest.len());
        let end = rest.as_bytes().iter().skip(wanted).position(|byte| *byte == b'\n');
        // The byte after a line feed begins a character.
        let (this, others) = rest.split_at(end.map_or(rest.len(), |end| wanted + end + 1));
        parts.push(this);
        rest = others;
    }
    parts.push(rest);
    parts
}

/// The results of `work` on the parts, in their order; every part has a thread if the system has as many.
pub(super) fn each<'p, T: Send>(parts: &[&'p str], work: impl Fn(&'p str) -> T + Sync) -> Vec<T> {
    if let [only] = parts {
        return vec![work(only)];
    }
    thread::scope(|scope| {
        let work = &work;
        // Without another thread this one does the part, and does it now.
        let start = |part: &&'p str| {
            let part = *part;
            thread::Builder::new().spawn_scoped(scope, move || work(part)).map_err(|_| work(part))
        };
        let started: Vec<_> = parts.iter().map(start).collect();
        started.into_iter().map(|part| part.map_or_else(|done| done, joined)).collect()
    })
}

/// Writes what `render` makes of the lines `0..count`, in their order. Fails if no thread can start.
pub(super) fn write_in_order(
    out: &mut impl Write,
    count: usize,
    render: impl Fn(Range<usize>, &mut Vec<u8>) -> io::Result<()> + Sync,
) -> io::Result<()> {
    let parts = (0..count.div_ceil(LINES)).map(|part| part * LINES..count.min((part + 1) * LINES));
    if count <= LINES {
        let mut buffer = Vec::new();
        render(0..count, &mut buffer)?;
        return out.write_all(&buffer);
    }
    let (render, threads) = (&render, threads());
    thread::scope(|scope| {
        let mut running = VecDeque::new();
        let mut spare: Vec<Vec<u8>> = Vec::new();
        let mut write = |thread, spare: &mut Vec<Vec<u8>>| -> io::Result<()> {
            let mut buffer: Vec<u8> = joined(thread)?;
            out.write_all(&buffer)?;
            buffer.clear();
            spare.push(buffer);
            Ok(())
        };
        for part in parts {
            if running.len() > threads
                && let Some(first) = running.pop_front()
            {
                write(first, &mut spare)?;
            }
            let mut buffer = spare.pop().unwrap_or_default();
            let rendered = move || render(part, &mut buffer).map(|()| buffer);
            running.push_back(thread::Builder::new().spawn_scoped(scope, rendered)?);
        }
        running.into_iter().try_for_each(|thread| write(thread, &mut spare))
    })
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_whole_lines_and_the_text() {
        let text = "é, a line\n".repeat(4 * LEAST / 10);
        for text in [text.as_str(), "", "one", "\n"] {
            let parts = of_lines(text);
            assert_eq!(parts.concat(), text);
            assert!(parts.iter().rev().skip(1).all(|part| part.ends_with('\n')));
            let lines = each(&parts, |part| part.lines().count());
            assert_eq!(lines.into_iter().sum::<usize>(), text.lines().count());
        }
    }

    #[test]
    fn what_threads_render_is_written_in_order() {
        for count in [0, 1, LINES, 5 * LINES + 3] {
            let mut out = Vec::new();
            write_in_order(&mut out, count, |part, out| part.into_iter().try_for_each(|line| writeln!(out, "{line}")))
                .unwrap();
            let lines: Vec<usize> = String::from_utf8(out).unwrap().lines().map(|line| line.parse().unwrap()).collect();
            assert!(lines.into_iter().eq(0..count));
        }
    }
}
