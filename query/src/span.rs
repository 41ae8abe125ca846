//! Places in the source.
//!
//! Invariants:
//!
//! 1. A span is a half-open range of byte offsets of the source, on character
//!    boundaries, and the line and column of its first character. The lexer counts
//!    those as it goes, so that nobody has to search the source for them later.
//! 2. Two spanned things are equal when the things are, wherever they stood: a
//!    statement equals its formatted self.

use std::fmt;
use std::ops::{Deref, DerefMut, Range};

/// A half-open range of byte offsets of the source, and the place it begins at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
    /// Line of the first character, from 1; 0 for what no source holds.
    pub line: u32,
    /// Column of the first character, in characters from 1; 0 for what no source
    /// holds.
    pub column: u32,
}

impl Span {
    /// From the start of this span to the end of a later one.
    pub fn to(self, later: Span) -> Span {
        Span { end: self.end.max(later.end), ..self }
    }

    /// The span as a range, to slice the source with.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A thing and where it was written. Equality ignores the place.
#[derive(Clone, Copy, Default)]
pub struct Spanned<T> {
    /// The thing.
    pub node: T,
    /// Its place in the source.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// `node`, written at `span`.
    pub fn new(node: T, span: Span) -> Spanned<T> {
        Spanned { node, span }
    }

    /// The same place with another thing.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Spanned<U> {
        Spanned { node: f(self.node), span: self.span }
    }
}

/// A thing built by a program stands nowhere: its span is empty, at the start.
impl<T> From<T> for Spanned<T> {
    fn from(node: T) -> Spanned<T> {
        Spanned { node, span: Span::default() }
    }
}

impl<T> Deref for Spanned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.node
    }
}

impl<T> DerefMut for Spanned<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.node
    }
}

impl<T: PartialEq> PartialEq for Spanned<T> {
    fn eq(&self, other: &Spanned<T>) -> bool {
        self.node == other.node
    }
}

impl<T: Eq> Eq for Spanned<T> {}

/// Without the span, so that printed trees can be compared.
impl<T: fmt::Debug> fmt::Debug for Spanned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.node.fmt(f)
    }
}

impl<T: fmt::Display> fmt::Display for Spanned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.node.fmt(f)
    }
}
