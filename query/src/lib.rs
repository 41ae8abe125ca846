//! Holotype's recall language: lexer, parser, formatter, checks.
