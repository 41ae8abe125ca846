//! From tokens to the syntax tree: recursive descent, one function a production.
//!
//! Invariants:
//!
//! 1. Time is linear in the source: at no token are more than a fixed number of
//!    alternatives tried, and no token is read twice.
//! 2. The stack is bounded: every production that can hold itself goes through
//!    [`Parser::nested`], which refuses to go deeper than [`MAX_DEPTH`].
//! 3. Memory is bounded: the tree grows with the tokens, and no more than [`MAX_TOKENS`] are read.
//! 4. A production that fails has reported why. Parsing then goes on at the next
//!    clause or statement, and the tree is thrown away in the end.
//!
//! Expected tokens are stated nowhere: the parser remembers each alternative that it tried in vain
//! until it reads a token, and an error lists them.

mod clauses;
mod predicate;
mod read;
mod value;
mod write;

use crate::ast::{Comment, Script, Statement};
use crate::error::{Error, Errors, nearest};
use crate::lexer::Lexer;
use crate::span::{Span, Spanned};
use crate::token::{Token, TokenKind};

/// Longest source accepted, in bytes.
pub const MAX_SOURCE_LEN: usize = 1 << 20;
/// Deepest nesting of predicates and stages accepted.
pub const MAX_DEPTH: u32 = 128;
/// Most statements of a script: the tree of a short statement is a hundred times as long as its text.
pub const MAX_STATEMENTS: usize = 10_000;
/// Most tokens (words, literals, signs) of a script: each may become a node of some hundred bytes.
pub const MAX_TOKENS: usize = 100_000;

const SHELL_HINT: &str = "in a shell, put the whole statement in single quotes and its texts \
                          in double ones: inside double quotes the shell replaces $name";

/// Parses a script.
///
/// # Errors
///
/// Everything that is wrong with the text, up to 64 errors.
pub fn parse(source: &str) -> Result<Script, Errors> {
    if source.len() > MAX_SOURCE_LEN {
        let span = Span { line: 1, column: 1, ..Span::default() };
        let error = Error::new("too-long", span, "a script has at most 1 MiB of text")
            .hint("split it, or hand the data in through parameters or an import");
        return Err(error.into());
    }
    let mut parser = Parser::new(source);
    let statements = parser.script();
    let comments = place_comments(source, &statements, &parser.lexer.comments, &mut 0);
    parser.lexer.errors.finish(Script { statements, comments })
}

/// A production failed, and has said so.
struct Failed;

type Parsed<T> = Result<T, Failed>;

/// Something that would have been accepted.
#[derive(Clone, Copy)]
enum Expected {
    Word(&'static str),
    OneOf(&'static [&'static str]),
    Class(&'static str),
}

struct Parser<'s> {
    source: &'s str,
    lexer: Lexer<'s>,
    /// The next token, and the one behind it.
    next: Token,
    second: Token,
    /// The span of the token before them; empty before the first.
    last: Span,
    /// The number of tokens read.
    read: usize,
    depth: u32,
    /// The alternatives tried in vain at the next token.
    tried: Vec<Expected>,
    /// The number of looks at a token, to show that time is linear.
    looks: usize,
}

impl<'s> Parser<'s> {
    fn new(source: &'s str) -> Parser<'s> {
        let mut lexer = Lexer::new(source);
        let (next, second) = (lexer.token(), lexer.token());
        Parser { source, lexer, next, second, last: Span::default(), read: 0, depth: 0, tried: Vec::new(), looks: 0 }
    }

    fn script(&mut self) -> Vec<Spanned<Statement>> {
        let mut statements = Vec::new();
        if *self.kind() == TokenKind::End {
            let span = self.span();
            self.lexer
                .errors
                .push(Error::new("empty", span, "nothing to run: the statement is empty").hint(SHELL_HINT));
        }
        while *self.kind() != TokenKind::End && !self.lexer.errors.is_full() {
            if statements.len() == MAX_STATEMENTS {
                let message = format!("a script has at most {MAX_STATEMENTS} statements");
                let error = Error::new("too-long", self.span(), message);
                self.lexer.errors.push_last(error.hint("split it, or hand the data in through an import"));
                break;
            }
            match self.spanned(Parser::statement) {
                Ok(statement) => {
                    statements.push(statement);
                    if !self.at_statement_end() {
                        self.tried.push(Expected::Class("`;`"));
                        self.report_unexpected(None);
                        self.skip_statement();
                    }
                }
                Err(Failed) => self.skip_statement(),
            }
            self.eat(&TokenKind::Semicolon, "`;`");
        }
        statements
    }

    fn skip_statement(&mut self) {
        while !self.at_statement_end() && !self.lexer.errors.is_full() {
            self.bump();
        }
    }

    /// Runs `production` and notes from where to where it read.
    fn spanned<T>(&mut self, production: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<Spanned<T>> {
        let start = self.span();
        let node = production(self)?;
        Ok(Spanned::new(node, start.to(self.last_span())))
    }

    /// Runs `production` one level deeper.
    fn nested<T>(&mut self, production: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == MAX_DEPTH {
            let span = self.span();
            let message = format!("nested deeper than {MAX_DEPTH} levels");
            self.lexer.errors.push(Error::new("too-deep", span, message));
            return Err(Failed);
        }
        self.depth += 1;
        let parsed = production(self);
        self.depth -= 1;
        parsed
    }

    /// `item { "," item }`.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.eat(&TokenKind::Comma, "`,`") {
            items.push(item(self)?);
        }
        Ok(items)
    }

    // --- tokens ---

    fn kind(&self) -> &TokenKind {
        &self.next.kind
    }

    /// The kind of the token behind the next one.
    fn second_kind(&self) -> &TokenKind {
        &self.second.kind
    }

    fn span(&self) -> Span {
        self.next.span
    }

    /// The span of the token before the next one; before the first, the span of the first.
    fn last_span(&self) -> Span {
        if self.read == 0 { self.next.span } else { self.last }
    }

    fn slice(&self, span: Span) -> &'s str {
        &self.source[span.range()]
    }

    /// The next token when it is a word.
    fn word(&self) -> Option<&'s str> {
        self.word_of(&self.next)
    }

    fn word_of(&self, token: &Token) -> Option<&'s str> {
        (token.kind == TokenKind::Word).then(|| self.slice(token.span))
    }

    fn at_statement_end(&self) -> bool {
        matches!(self.kind(), TokenKind::Semicolon | TokenKind::End)
    }

    /// Reads the next token, whatever it is; the end stays the end.
    fn bump(&mut self) -> Span {
        let span = self.span();
        if *self.kind() != TokenKind::End {
            self.next = std::mem::replace(&mut self.second, self.lexer.token());
            self.last = span;
            self.read += 1;
        }
        self.tried.clear();
        if self.read == MAX_TOKENS && *self.kind() != TokenKind::End {
            self.end_here();
        }
        span
    }

    /// Refuses to read on: what follows is the end.
    fn end_here(&mut self) {
        let error = Error::new("too-long", self.span(), format!("a script has at most {MAX_TOKENS} words and signs"));
        self.lexer.errors.push_last(error.hint("split it, or hand the data in through parameters or an import"));
        self.next.kind = TokenKind::End;
        self.second = self.next.clone();
    }

    /// True if the next token is this keyword; if not, it would have been welcome.
    fn at_word(&mut self, keyword: &'static str) -> bool {
        self.looks += 1;
        let found = self.is_word(keyword);
        if !found {
            self.tried.push(Expected::Word(keyword));
        }
        found
    }

    /// True if the next token is this keyword.
    fn is_word(&self, keyword: &str) -> bool {
        self.word_of(&self.next).is_some_and(|word| word.eq_ignore_ascii_case(keyword))
    }

    /// True if the token behind the next one is this keyword.
    fn is_second_word(&self, keyword: &str) -> bool {
        self.word_of(&self.second).is_some_and(|word| word.eq_ignore_ascii_case(keyword))
    }

    fn eat_word(&mut self, keyword: &'static str) -> bool {
        let found = self.at_word(keyword);
        if found {
            self.bump();
        }
        found
    }

    fn expect_word(&mut self, keyword: &'static str) -> Parsed<Span> {
        if self.at_word(keyword) { Ok(self.bump()) } else { self.unexpected() }
    }

    fn eat(&mut self, kind: &TokenKind, shown: &'static str) -> bool {
        self.looks += 1;
        let found = self.kind() == kind;
        if found {
            self.bump();
        } else {
            self.tried.push(Expected::Class(shown));
        }
        found
    }

    fn expect(&mut self, kind: &TokenKind, shown: &'static str) -> Parsed<()> {
        if self.eat(kind, shown) { Ok(()) } else { self.unexpected() }
    }

    /// The variant of a closed set of words that is written here.
    fn eat_one_of<T: Copy>(&mut self, all: &[T], words: &'static [&'static str]) -> Option<T> {
        self.looks += words.len();
        let found = self.word().and_then(|word| words.iter().position(|it| it.eq_ignore_ascii_case(word)));
        let Some(found) = found else {
            self.tried.push(Expected::OneOf(words));
            return None;
        };
        self.bump();
        all.get(found).copied()
    }

    fn expect_one_of<T: Copy>(&mut self, all: &[T], words: &'static [&'static str]) -> Parsed<Spanned<T>> {
        let span = self.span();
        match self.eat_one_of(all, words) {
            Some(found) => Ok(Spanned::new(found, span)),
            None => self.unexpected(),
        }
    }

    // --- errors ---

    /// Reports `error` and fails.
    fn fail<T>(&mut self, error: Error) -> Parsed<T> {
        self.lexer.errors.push(error);
        Err(Failed)
    }

    /// Reports that the next token is none of those tried, and fails.
    fn unexpected<T>(&mut self) -> Parsed<T> {
        self.unexpected_with(None)
    }

    fn unexpected_with<T>(&mut self, hint: Option<&str>) -> Parsed<T> {
        self.report_unexpected(hint);
        Err(Failed)
    }

    fn report_unexpected(&mut self, hint: Option<&str>) {
        // The lexer has already complained, or nobody would see another error.
        if *self.kind() == TokenKind::Bad || self.lexer.errors.is_full() {
            return;
        }
        let message = match self.kind() {
            TokenKind::End => "the script ends too early".to_owned(),
            TokenKind::Semicolon => "the statement ends too early".to_owned(),
            _ => format!("unexpected {}", shortened(self.slice(self.span()))),
        };
        let mut error = Error::new("syntax", self.unexpected_span(), message);
        // Each that was tried, and whether it is a word.
        let mut tried = Vec::new();
        for expected in &self.tried {
            match *expected {
                Expected::Word(word) => tried.push((word, true)),
                Expected::OneOf(words) => tried.extend(words.iter().map(|word| (*word, true))),
                Expected::Class(class) => tried.push((class, false)),
            }
        }
        for (index, (shown, is_word)) in tried.iter().enumerate() {
            if !tried[..index].contains(&tried[index]) {
                error = error.expected(if *is_word { format!("`{shown}`") } else { (*shown).to_owned() });
            }
        }
        if let Some(word) = self.word() {
            error = error.nearest(nearest(word, tried.iter().filter(|(_, is_word)| *is_word).map(|(word, _)| *word)));
        }
        if let Some(hint) = hint {
            error = error.hint(hint);
        }
        self.lexer.errors.push(error);
    }

    /// The span of the next token. The end is right behind the last token, however
    /// many blank lines follow.
    fn unexpected_span(&self) -> Span {
        let last = self.last_span();
        let shown = self.slice(last);
        if *self.kind() != TokenKind::End || self.read == 0 || shown.contains('\n') {
            return self.span();
        }
        Span { start: last.end, end: last.end, line: last.line, column: last.column + shown.chars().count() as u32 }
    }

    /// Puts a clause in its place, or reports that it is there already.
    fn place<T>(&mut self, slot: &mut Option<Spanned<T>>, clause: Spanned<T>, name: &str) {
        if slot.is_some() {
            let message = format!("`{name}` is written twice");
            let error = Error::new("duplicate-clause", clause.span, message)
                .hint("write each clause once, with everything it says together");
            self.lexer.errors.push(error);
        } else {
            *slot = Some(clause);
        }
    }
}

/// A piece of source in backquotes, its middle left out when it is long.
fn shortened(source: &str) -> String {
    const SHOWN: usize = 30;
    let shown: String = source.chars().take(SHOWN).collect();
    let ellipsis = if shown.len() < source.len() { "…" } else { "" };
    format!("`{}{ellipsis}`", shown.escape_debug().to_string().replace("\\'", "'"))
}

/// Finds the statement each comment is printed with; adds to `searched` the bytes read for it.
///
/// A comment belongs above the statement it stands before or in, unless it stands
/// behind the end of one on the same line.
fn place_comments(
    source: &str,
    statements: &[Spanned<Statement>],
    comments: &[Span],
    searched: &mut u64,
) -> Vec<Comment> {
    let mut next = 0;
    // The number of statements before the last comment that stands in none.
    let mut last_behind = None;
    comments
        .iter()
        .map(|span| {
            while statements.get(next).is_some_and(|it| it.span.start < span.start) {
                next += 1;
            }
            let before = next.checked_sub(1).map(|index| statements[index].span);
            let inside = before.is_some_and(|it| span.start < it.end);
            // A comment ends its line, so only the first one behind a statement can be on that line. Looking at the
            // source for each one takes quadratic time if the first is long.
            let is_first = !inside && last_behind.replace(next) != Some(next);
            let trailing = before
                .filter(|_| is_first)
                .is_some_and(|it| !has_line_end(&source[it.end as usize..span.start as usize], searched));
            Comment {
                statement: if inside || trailing { next - 1 } else { next },
                trailing,
                text: source[span.range()][2..].trim().to_owned(),
            }
        })
        .collect()
}

/// True if a text has a line end.
fn has_line_end(text: &str, searched: &mut u64) -> bool {
    let found = text.find('\n');
    *searched += found.unwrap_or(text.len()) as u64;
    found.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of tokens of a source, and of looks at them.
    fn cost(source: &str) -> (usize, usize) {
        let mut parser = Parser::new(source);
        parser.script();
        (parser.read + 2, parser.looks)
    }

    /// Looks are counted, not timed: a bound per token is linear time.
    #[test]
    fn no_token_is_looked_at_more_often_than_there_are_alternatives() {
        const PER_TOKEN: usize = 80;
        let repeated = [
            ("recall 'x' where ", "step = 1 or "),
            ("recall 'x' where ", "not "),
            ("recall 'x' where ", "("),
            ("recall 'x' where ", "step in (1) and (active = true) or "),
            ("", "recall 'x' limit 1;"),
            ("", "find items where a = 1 return b;"),
            ("recall 'x' through ", "( themes -> "),
            ("recall 'x' through ", "themes 1 by near, words pool 3 -> "),
            ("recall 'x' ", "where limit "),
            ("recall 'x' ", "limt "),
            ("sources of ", "'x', "),
            ("", "; "),
            ("", "mark "),
        ];
        for (head, body) in repeated {
            let source = head.to_owned() + &body.repeat(2_000);
            let (tokens, looks) = cost(&source);
            assert!(looks <= PER_TOKEN * tokens, "{head}{body}: {looks} looks, {tokens} tokens");
        }
    }

    /// Many short comments behind a long one took quadratic time, 3 s for 1 MiB.
    #[test]
    fn comments_are_placed_in_linear_time() {
        let source = format!("show episodes; -- {}\n{}", "x".repeat(1 << 19), "--\n".repeat(1 << 17));
        let mut parser = Parser::new(&source);
        let statements = parser.script();
        let mut searched = 0;
        let comments = place_comments(&source, &statements, &parser.lexer.comments, &mut searched);
        assert_eq!(comments.len(), (1 << 17) + 1);
        assert!(
            comments[0].trailing && comments[1..].iter().all(|comment| !comment.trailing && comment.statement == 1)
        );
        assert!(searched <= 2 * source.len() as u64, "{searched} bytes");
    }

    #[test]
    fn a_long_word_is_shown_shortened() {
        assert_eq!(shortened("abc"), "`abc`");
        assert_eq!(shortened(&"x".repeat(99)), format!("`{}…`", "x".repeat(30)));
    }
}
