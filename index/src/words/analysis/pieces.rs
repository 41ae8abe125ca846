//! The pieces of a word: `flight_id`, `getUserById`, `XMLHttpRequest` and `UA123` taken apart.

use unicode_normalization::char::is_combining_mark;

/// The greatest number of pieces of a word.
pub(crate) const MAX_PARTS: usize = 16;

/// The kinds of characters inside a word.
#[derive(Default)]
pub(crate) struct Inside {
    pub(crate) digits: bool,
    pub(crate) apostrophe: bool,
    pub(crate) dots: usize,
    pub(crate) other_signs: bool,
}

#[derive(PartialEq, Clone, Copy)]
enum Kind {
    Small,
    Capital,
    Digit,
}

/// Cuts a word at signs, between letters and digits, before a capital after a small letter, and before the last of
/// several capitals if small letters follow (`XML|Http`).
pub(crate) fn cut_pieces(word: &str, pieces: &mut Vec<(usize, usize)>) -> Inside {
    let mut inside = Inside::default();
    let mut last: Option<Kind> = None;
    // The number of capitals before, and the start of the last of them.
    let (mut capitals, mut capital) = (0, 0);
    let mut open = false;
    pieces.clear();
    for (at, sign) in word.char_indices() {
        let kind = if sign.is_numeric() {
            inside.digits = true;
            Kind::Digit
        } else if sign.is_uppercase() {
            Kind::Capital
        } else if sign.is_alphanumeric() {
            Kind::Small
        } else if is_combining_mark(sign) {
            last.unwrap_or(Kind::Small)
        } else {
            match sign {
                '\'' => inside.apostrophe = true,
                '.' => inside.dots += 1,
                _ => inside.other_signs = true,
            }
            (last, capitals) = (None, 0);
            continue;
        };
        let end = at + sign.len_utf8();
        let continues = match (last, kind) {
            (Some(Kind::Digit), kind) => kind == Kind::Digit,
            (Some(Kind::Small), kind) => kind == Kind::Small,
            (Some(Kind::Capital), kind) => kind != Kind::Digit,
            (None, _) => false,
        };
        if !continues {
            open = pieces.len() < MAX_PARTS;
            if open {
                pieces.push((at, end));
            }
        } else if open && let Some(piece) = pieces.last_mut() {
            piece.1 = end;
            if kind == Kind::Small && capitals > 1 && !is_plural(&word[at..]) {
                piece.1 = capital;
                open = pieces.len() < MAX_PARTS;
                if open {
                    pieces.push((capital, end));
                }
            }
        }
        (capitals, capital) = if kind == Kind::Capital { (capitals + 1, at) } else { (0, 0) };
        last = Some(kind);
    }
    inside
}

/// Returns true for the `s` of `URLs`.
fn is_plural(rest: &str) -> bool {
    rest.strip_prefix('s').is_some_and(|after| !after.starts_with(char::is_lowercase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_pieces() {
        let table = [
            ("flight_id", "flight id"),
            ("getUserById", "get User By Id"),
            ("XMLHttpRequest", "XML Http Request"),
            ("toHTMLString", "to HTML String"),
            ("parseURLs URLsOf", "parse URLs URLs Of"),
            ("JSONParser2", "JSON Parser 2"),
            ("UA123b", "UA 123 b"),
            ("USA", "USA"),
            ("Hello", "Hello"),
            ("DÉJÀVu", "DÉJÀ Vu"),
            ("l'avion", "l avion"),
        ];
        let mut pieces = Vec::new();
        for (word, wanted) in table {
            cut_pieces(word, &mut pieces);
            let cut: Vec<&str> = pieces.iter().map(|(start, end)| &word[*start..*end]).collect();
            assert_eq!(cut.join(" "), wanted);
        }
        cut_pieces(&"ABc".repeat(40), &mut pieces);
        assert_eq!(pieces.len(), MAX_PARTS);
    }
}
