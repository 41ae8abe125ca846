//! From text to tokens.
//!
//! | token | written |
//! |-------|---------|
//! | word | a letter, then letters, digits, `_`, and `-` before a letter or digit |
//! | text | `'…'` or `"…"`; the quote doubled or escaped; `\\ \' \" \n \r \t \u{…}` |
//! | number | `-`? digits (`.` digits)? (`e` sign? digits)? |
//! | duration | digits and one of `ms s m h d w` |
//! | parameter | `$` and a word |
//! | signs | `= != < <= > >= , ; . * -> ( )` |
//! | comment | `--` to the end of the line |
//!
//! One pass, each character looked at a bounded number of times. What is no token is
//! reported and becomes [`TokenKind::Bad`], so that the parser can go on behind it.

use crate::error::{Collector, Error};
use crate::span::Span;
use crate::token::{Token, TokenKind};
use crate::value::{Duration, Number};
use crate::words::{Op, Unit};

/// True if `text` is one word, so that it need not be quoted in a name.
pub(crate) fn is_word(text: &str) -> bool {
    !text.is_empty() && word_len(text) == text.len()
}

/// Bytes of the word `text` begins with; 0 when it begins with none.
fn word_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_inside = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let mut len = 0;
    // Nearly every word is of ASCII letters.
    if bytes.first().is_some_and(u8::is_ascii_alphabetic) {
        while bytes.get(len).is_some_and(is_inside) {
            len += 1;
        }
        if bytes.get(len).is_none_or(|byte| byte.is_ascii() && *byte != b'-') {
            return len;
        }
    }
    let mut chars = text.char_indices().peekable();
    if !chars.next().is_some_and(|(_, c)| c.is_alphabetic()) {
        return 0;
    }
    while let Some((at, c)) = chars.next() {
        let inside =
            c.is_alphanumeric() || c == '_' || c == '-' && chars.peek().is_some_and(|(_, next)| next.is_alphanumeric());
        if !inside {
            return at;
        }
    }
    text.len()
}

/// Splits a source, which is at most `u32::MAX` bytes long, one token at a time: of a long source no more is kept than
/// the parser is looking at.
pub(crate) struct Lexer<'s> {
    source: &'s str,
    /// Offset of the next character.
    at: usize,
    line: u32,
    column: u32,
    /// The errors so far.
    pub(crate) errors: Collector,
    /// Spans of the comments, dashes included.
    pub(crate) comments: Vec<Span>,
    /// Bytes searched for the end of a text: a test bounds them by the length of the source.
    searched: u64,
}

impl<'s> Lexer<'s> {
    /// Begins before the first token.
    pub(crate) fn new(source: &'s str) -> Lexer<'s> {
        let at = if source.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Lexer { source, at, line: 1, column: 1, errors: Collector::default(), comments: Vec::new(), searched: 0 }
    }

    fn rest(&self) -> &'s str {
        &self.source[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        if c == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
        Some(c)
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.bump();
        }
        found
    }

    fn bump_while(&mut self, wanted: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&wanted) {
            self.bump();
        }
    }

    fn skip_digits(&mut self) {
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        self.at += digits;
        self.column += digits as u32;
    }

    /// Passes over `len` bytes that hold no line end.
    fn advance(&mut self, len: usize) {
        self.column += self.rest()[..len].chars().count() as u32;
        self.at += len;
    }

    /// Passes over `len` bytes, which may hold line ends, and gives them.
    fn pass(&mut self, len: usize) -> &'s str {
        let passed = &self.rest()[..len];
        match passed.rfind('\n') {
            None => self.advance(len),
            Some(last) => {
                self.line += passed.bytes().filter(|byte| *byte == b'\n').count() as u32;
                self.column = 1 + passed[last + 1..].chars().count() as u32;
                self.at += len;
            }
        }
        passed
    }

    /// An empty span at the next character.
    fn here(&self) -> Span {
        Span { start: self.at as u32, end: self.at as u32, line: self.line, column: self.column }
    }

    fn since(&self, start: Span) -> Span {
        Span { end: self.at as u32, ..start }
    }

    /// Reads the next token; after the last, and from then on, [`TokenKind::End`].
    pub(crate) fn token(&mut self) -> Token {
        self.skip_blanks();
        let start = self.here();
        let kind = match self.peek() {
            None => TokenKind::End,
            Some('\'' | '"') => self.text(start),
            Some('$') => self.param(start),
            Some(c) if c.is_ascii_digit() => self.number(start),
            Some('-') if self.rest()[1..].starts_with(|c: char| c.is_ascii_digit()) => self.number(start),
            Some(c) if c.is_alphabetic() => {
                self.advance(word_len(self.rest()));
                TokenKind::Word
            }
            Some(c) => self.sign(c, start),
        };
        Token { kind, span: self.since(start) }
    }

    fn skip_blanks(&mut self) {
        loop {
            let spaces = self.rest().bytes().take_while(|byte| *byte == b' ').count();
            self.at += spaces;
            self.column += spaces as u32;
            self.bump_while(char::is_whitespace);
            if !self.rest().starts_with("--") {
                return;
            }
            let start = self.here();
            let len = self.rest().find('\n').unwrap_or(self.rest().len());
            self.advance(len);
            let comment = self.since(start);
            self.comments.push(comment);
        }
    }

    fn bad(&mut self, error: Error) -> TokenKind {
        self.errors.push(error);
        TokenKind::Bad
    }

    fn sign(&mut self, first: char, start: Span) -> TokenKind {
        self.bump();
        match first {
            ',' => TokenKind::Comma,
            ';' => TokenKind::Semicolon,
            '.' => TokenKind::Dot,
            '*' => TokenKind::Star,
            '(' => TokenKind::Open,
            ')' => TokenKind::Close,
            '-' if self.eat('>') => TokenKind::Arrow,
            '=' if self.eat('=') => {
                self.bad(Error::new("bad-character", self.since(start), "no sign `==`").nearest(Some("=")))
            }
            '=' => TokenKind::Op(Op::Eq),
            '!' if self.eat('=') => TokenKind::Op(Op::Ne),
            '<' if self.eat('=') => TokenKind::Op(Op::Le),
            '<' if self.eat('>') => {
                self.bad(Error::new("bad-character", self.since(start), "no sign `<>`").nearest(Some("!=")))
            }
            '<' => TokenKind::Op(Op::Lt),
            '>' if self.eat('=') => TokenKind::Op(Op::Ge),
            '>' => TokenKind::Op(Op::Gt),
            _ => self.strange(first, start),
        }
    }

    /// A character no token begins with, and all like it that follow.
    fn strange(&mut self, first: char, start: Span) -> TokenKind {
        self.bump_while(|c| c == first);
        let shown = first.escape_debug();
        let error = Error::new("bad-character", start, format!("nothing begins with `{shown}`"));
        let error = match first {
            '‘' | '’' | '“' | '”' | '«' | '»' | '`' | '´' => {
                error.hint("texts stand in straight quotes: 'text' or \"text\"")
            }
            '{' | '}' | '[' | ']' => error.hint("lists and groups stand in ( )"),
            '/' | '#' => error.hint("a comment begins with --"),
            '–' | '—' | '→' => error.hint("stages are joined with ->, comments begin with --"),
            _ => error,
        };
        self.bad(Error { span: self.since(start), ..error })
    }

    fn param(&mut self, start: Span) -> TokenKind {
        self.bump();
        let len = word_len(self.rest());
        if len == 0 {
            let error = Error::new("bad-character", self.since(start), "`$` without a name")
                .hint("a parameter is written $name, and its name begins with a letter");
            return self.bad(error);
        }
        self.advance(len);
        TokenKind::Param
    }

    fn number(&mut self, start: Span) -> TokenKind {
        self.eat('-');
        self.skip_digits();
        let digits = &self.source[start.start as usize..self.at];
        let mut whole = true;
        if self.rest().starts_with('.') && self.rest()[1..].starts_with(|c: char| c.is_ascii_digit()) {
            whole = false;
            self.bump();
            self.skip_digits();
        }
        if self.exponent_follows() {
            whole = false;
            self.advance(2);
            self.skip_digits();
        }
        let number = &self.source[start.start as usize..self.at];
        let suffix = word_len(self.rest());
        if suffix > 0 {
            let unit = &self.rest()[..suffix];
            self.advance(suffix);
            return self.duration(start, whole.then_some(digits), unit);
        }
        match read_number(number, whole) {
            Some(number) => TokenKind::Number(number),
            None => self.bad(Error::new("bad-number", self.since(start), "this number is too large")),
        }
    }

    /// True if an `e`, perhaps a sign, and a digit come next.
    fn exponent_follows(&self) -> bool {
        matches!(self.rest().as_bytes(), [b'e' | b'E', b'0'..=b'9', ..] | [b'e' | b'E', b'+' | b'-', b'0'..=b'9', ..])
    }

    fn duration(&mut self, start: Span, digits: Option<&str>, unit: &str) -> TokenKind {
        let span = self.since(start);
        let Some(unit) = Unit::from_word(unit) else {
            let error = Error::new("bad-duration", span, "no unit of time")
                .expected("one of ms, s, m, h, d, w right behind the digits");
            return self.bad(error);
        };
        let Some(digits) = digits.filter(|digits| !digits.starts_with('-')) else {
            let error = Error::new("bad-duration", span, "a duration is a whole number of units")
                .hint("write 36h rather than 1.5d");
            return self.bad(error);
        };
        match digits.parse().ok().and_then(|count| Duration::new(count, unit)) {
            Some(duration) => TokenKind::Duration(duration),
            None => self.bad(Error::new("bad-duration", span, "this duration is too long")),
        }
    }

    fn text(&mut self, start: Span) -> TokenKind {
        let quote = self.bump();
        let mut text = String::new();
        let mut sound = true;
        loop {
            // Most of a text is neither quote nor backslash. A text without a closing quote is passed over whole:
            // searching the rest again at each of its characters would take quadratic time.
            let rest = self.rest();
            let plain = rest.bytes().position(|byte| matches!(byte, b'\'' | b'"' | b'\\')).unwrap_or(rest.len());
            self.searched += plain as u64;
            text.push_str(self.pass(plain));
            let here = self.here();
            match self.bump() {
                None => {
                    let error = Error::new("bad-string", start, "this text is never closed")
                        .hint("a quote inside a text is doubled ('it''s') or escaped ('it\\'s')");
                    return self.bad(error);
                }
                c if c == quote => {
                    if self.peek() != quote {
                        break;
                    }
                    self.bump();
                    text.extend(c);
                }
                Some('\\') => {
                    let c = self.escape(here);
                    sound &= c.is_some();
                    text.extend(c);
                }
                Some(c) => text.push(c),
            }
        }
        if sound { TokenKind::Text(text) } else { TokenKind::Bad }
    }

    /// The character an escape stands for, the backslash read already; nothing, and an
    /// error, when it stands for none.
    fn escape(&mut self, start: Span) -> Option<char> {
        match self.bump() {
            Some(c @ ('\\' | '\'' | '"')) => return Some(c),
            Some('n') => return Some('\n'),
            Some('r') => return Some('\r'),
            Some('t') => return Some('\t'),
            Some('u') => return self.unicode_escape(start),
            _ => {}
        }
        let error = Error::new("bad-string", self.since(start), "no such escape")
            .hint(r#"the escapes are \\ \' \" \n \r \t \u{…}; a backslash is \\"#);
        self.errors.push(error);
        None
    }

    fn unicode_escape(&mut self, start: Span) -> Option<char> {
        let mut code: u32 = 0;
        let mut digits = 0;
        let mut closed = false;
        if self.eat('{') {
            while let Some(digit) = self.peek().and_then(|c| c.to_digit(16)).filter(|_| digits < 6) {
                self.bump();
                code = code * 16 + digit;
                digits += 1;
            }
            closed = self.eat('}');
        }
        let c = char::from_u32(code).filter(|_| closed && digits > 0);
        if c.is_none() {
            let error = Error::new("bad-string", self.since(start), "no such character")
                .hint(r"write one to six hexadecimal digits in braces: \u{20AC}");
            self.errors.push(error);
        }
        c
    }
}

/// The exact number `text` is, a double when it is not whole or too long; nothing when
/// it is larger than any double.
fn read_number(text: &str, whole: bool) -> Option<Number> {
    if whole {
        if let Ok(n) = text.parse() {
            return Some(Number::Natural(n));
        }
        if let Ok(n) = text.parse::<i64>() {
            return Some(Number::from(n));
        }
    }
    text.parse().ok().filter(|n: &f64| n.is_finite()).map(Number::Real)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The tokens of a source, the last of them the end; and what was wrong.
    fn lex(source: &str) -> (Vec<Token>, Lexer<'_>) {
        let mut lexer = Lexer::new(source);
        let mut tokens = Vec::new();
        loop {
            tokens.push(lexer.token());
            if tokens.last().is_some_and(|last| last.kind == TokenKind::End) {
                return (tokens, lexer);
            }
        }
    }

    fn kinds(source: &str) -> Vec<TokenKind> {
        let (tokens, lexer) = lex(source);
        assert_eq!(lexer.errors.finish(()), Ok(()), "{source}");
        let mut kinds: Vec<TokenKind> = tokens.into_iter().map(|token| token.kind).collect();
        assert_eq!(kinds.pop(), Some(TokenKind::End));
        kinds
    }

    /// Bytes are counted, not time: unterminated texts once took quadratic time.
    #[test]
    fn lexing_an_unterminated_text_searches_each_byte_once() {
        const LEN: usize = 1 << 20;
        for body in ["x", "é", "\n", "\"", "\\n", "''"] {
            let source = "'".to_owned() + &body.repeat(LEN / body.len());
            let (_, lexer) = lex(&source);
            assert!(lexer.searched <= source.len() as u64, "{body:?}: {} bytes", lexer.searched);
        }
    }

    #[test]
    fn an_arrow_ends_a_word() {
        use TokenKind::{Arrow, Word};
        assert_eq!(kinds("a->b"), [Word, Arrow, Word]);
        assert_eq!(kinds("half-life"), [Word]);
        assert_eq!(kinds("a--b"), [Word]);
    }

    #[test]
    fn numbers_are_exact_where_they_can_be() {
        use TokenKind::Number as N;
        assert_eq!(
            kinds("18446744073709551615 -9223372036854775808 18446744073709551616 -0 5.0 1e3"),
            [
                N(Number::Natural(u64::MAX)),
                N(Number::Negative(i64::MIN)),
                N(Number::Real(18_446_744_073_709_551_616.0)),
                N(Number::Natural(0)),
                N(Number::Real(5.0)),
                N(Number::Real(1000.0)),
            ]
        );
    }

    #[test]
    fn quotes_are_doubled_or_escaped() {
        let text = |t: &str| TokenKind::Text(t.to_owned());
        assert_eq!(
            kinds(r#"'it''s' 'it\'s' "a ""b""" '\u{20AC}\n'"#),
            [text("it's"), text("it's"), text("a \"b\""), text("€\n")]
        );
    }

    #[test]
    fn columns_count_characters() {
        let (tokens, _) = lex("'äö' x\n  y");
        let places: Vec<(u32, u32)> = tokens.iter().map(|token| (token.span.line, token.span.column)).collect();
        assert_eq!(places, [(1, 1), (1, 6), (2, 3), (2, 4)]);
    }

    proptest! {
        /// The tokens lie behind each other, and what lies between is blank or comment.
        #[test]
        fn every_byte_is_in_one_token_or_between(source in ".{0,200}") {
            let (tokens, _) = lex(&source);
            let mut end = 0;
            for token in &tokens {
                prop_assert!(token.span.start >= end);
                let between = &source[end as usize..token.span.start as usize];
                let blank = between.trim_start_matches('\u{feff}').trim();
                prop_assert!(blank.is_empty() || blank.starts_with("--"), "{:?}", between);
                end = token.span.end;
            }
            prop_assert_eq!(end as usize, source.len());
            prop_assert!(tokens.len() <= source.len() + 1);
        }
    }
}
