//! The tokens of the language.

use crate::span::Span;
use crate::value::{Duration, Number};
use crate::words::Op;

/// A token and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) span: Span,
}

/// The kind of a token. Words and parameters are read from the source by their span.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TokenKind {
    /// A keyword, or a part of a name: which of them, the place decides.
    Word,
    /// A quoted string, its escapes resolved.
    Text(String),
    Number(Number),
    Duration(Duration),
    /// `$name`.
    Param,
    Op(Op),
    Comma,
    Semicolon,
    Dot,
    Star,
    Arrow,
    Open,
    Close,
    /// Something the lexer has already complained of.
    Bad,
    /// The end of the source; always the last token.
    End,
}
