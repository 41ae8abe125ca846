//! Tables of texts and their terms.

use super::*;

/// Words bare, surfaces with `=`, parts with `+`, wholes with `*`, pairs with `&`, joined digits with `#`, second
/// readings with `~`.
fn shown(analyzer: Analyzer, text: &str) -> String {
    let terms = analyzer.analyze(text);
    let shown = terms.iter().map(|(key, role)| match role {
        Role::Word | Role::Surface => key.clone(),
        Role::Part { .. } => format!("+{key}"),
        Role::Whole => format!("*{key}"),
        Role::Pair => format!("&{key}"),
        Role::Joined => format!("#{key}"),
        Role::Folded => format!("~{key}"),
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// Fails for each row whose text gives other terms.
fn check(table: &[(&str, &str)]) {
    let wrong: Vec<String> = table
        .iter()
        .map(|(text, terms)| (text, terms, shown(Analyzer::default(), text)))
        .filter(|(_, terms, found)| found != *terms)
        .map(|(text, terms, found)| format!("{text:?}\n  wanted {terms}\n  found  {found}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn words_and_codes() {
    check(&[
        // Words and stems.
        ("The cat sat.", "the cat sat"),
        ("Running runs ran", "run =running run =runs ran"),
        ("connections connected", "connect =connections connect =connected"),
        ("go, went; gone!", "go went gone"),
        // Apostrophes, straight and curly.
        ("Caroline's book", "carolin =caroline book"),
        ("Caroline\u{2019}s book", "carolin =caroline book"),
        ("the dogs' beds", "the dog =dogs bed =beds"),
        ("don't DON\u{2019}T", "dont dont"),
        ("they're we'll I'm she'd you've", "they we i she you"),
        ("O'Brien l'avion", "obrien +brien lavion +avion"),
        // Codes: one word of UAX #29 with parts.
        ("UA123", "ua123 +ua +123"),
        ("flight_id", "flightid +flight +id"),
        ("JavaScript iPhone", "javascript +java +script iphon =iphone +phone"),
        ("B12", "b12 +12"),
        ("__init__ _id", "init id"),
        ("3.14", "3.14 +3 +14"),
        ("v1.2.3", "1.2.3 +1 +2 +3"),
        ("10am", "10am +10 +am"),
        // Codes: several words with a whole.
        ("SKU-4411", "sku 4411 *sku-4411"),
        ("at 10:30", "at 10 30 *10:30"),
        ("2023-05-08", "2023 5 8 *2023-05-08"),
        ("$450", "450 *$450"),
        ("450€ or 50%", "450 *450€ or 50 *50%"),
        ("#42 @alice", "42 *#42 alic =alice *@alice"),
        ("ann@mail.org", "ann mail.org +mail +org *ann@mail.org"),
        ("src/main.rs:12", "src main.rs +main +rs 12 *src/main.rs:12"),
        ("https://example.org/a", "https example.org +exampl +org a *https://example.org/a"),
        ("e-mail", "e mail *email"),
        ("well-known", "well known *wellknown"),
        ("GPT-4", "gpt 4 *gpt-4"),
        ("std::map foo->bar", "std map *std::map foo bar *foo->bar"),
        ("getUserById XMLHttpRequest", "getuserbyid +get +user +by +id xmlhttprequest +xml +http +request"),
        // Names with signs.
        ("C, C++ and C#", "c c++ and c#"),
        ("C++17 c/c++ a+b", "c++ 17 *c++17 c c++ *c/c++ a b *a+b"),
        (".NET Notepad++ ...and", "net *.net notepad *notepad++ and"),
    ]);
}

#[test]
fn numbers_and_scripts() {
    check(&[
        // Numbers and acronyms.
        ("1,000 and 12,345.50", "1000 and 12345.50 +12345 +50"),
        ("$1,299.00 1.299,00 1.299", "1299 *$1299 1299 1.299 ~1299 +1 +299"),
        ("1 299 or 555-010-0199", "1 299 or #1299 555 010 0199 *555-010-0199 #5550100199"),
        ("1,5", "1.5 +1 +5"),
        ("U.S.A. e.g. a.m.", "usa eg am"),
        // NFKC, accents, case.
        ("cafe\u{301} café", "cafe =café cafe =café"),
        ("ＵＡ１２３", "ua123 +ua +123"),
        ("ﬁnal ①", "final 1"),
        ("Málaga", "malaga =málaga"),
        ("Straße STRASSE", "strass =straße strass =strasse"),
        ("ΟΔΟΣ οδός οδος", "οδ =οδοσ οδ =οδόσ οδ =οδοσ"),
        ("İstanbul ISTANBUL", "istanbul istanbul"),
        ("co\u{ad}operate", "cooper =cooperate"),
        // Other scripts.
        ("Москва живёт", "москв =москва живет =живёт"),
        ("東京", "東 &東京 京"),
        ("カタカナです", "カタカナ +カタ +タカ +カナ &ナで &です"),
        ("서울 여행", "서울 여행"),
        ("서울대학교에서 물을", "서울대학교 =서울대학교에서 +서울 +울대 +대학 +학교 물을 ~물"),
        ("שלום עולם", "שלום ~לום עולם"),
        ("مرحبا بالعالم", "مرحب =مرحبا عالم =بالعالم"),
        ("नमस्ते दुनिया", "नमस् =नमस्ते दुनिय =दुनिया"),
        // Nothing.
        ("", ""),
        (" \t\n … — !?", ""),
        ("👍🏽 ok", "👍 =👍🏽 ok"),
        ("👩\u{200d}💻🇩🇪", "👩\u{200d}💻 +👩 +💻 🇩🇪"),
        ("=\u{610} \u{a51}", ""),
    ]);
}

#[test]
fn without_stemming_words_stay() {
    let none = Analyzer::new(Stemming::None);
    assert_eq!(shown(none, "Running Caroline's e-mails UA123"), "running caroline e mails *emails ua123 +ua +123");
    assert_ne!(none.id(), Analyzer::new(Stemming::English).id());
    assert_eq!(none.id().to_string(), "analyser 2 (none)");
}

#[test]
fn long_words_are_cut_and_long_compounds_end() {
    let long = "é".repeat(100);
    let terms = Analyzer::default().analyze(&long);
    assert!(terms.iter().all(|(key, _)| key.len() <= MAX_TERM_LEN));
    let compound = vec!["ab"; 40].join("-");
    let terms = Analyzer::default().analyze(&compound);
    assert_eq!(terms.iter().filter(|(_, role)| *role == Role::Word).count(), 40);
    assert_eq!(terms.iter().filter(|(_, role)| *role == Role::Whole).count(), 3);
}

#[test]
fn windows_do_not_cut_words() {
    let text = "alpha beta-7 gamma ".repeat(10_000);
    let terms = Analyzer::default().analyze(&text);
    for key in ["alpha", "beta", "7", "beta-7", "gamma"] {
        assert_eq!(terms.iter().filter(|(term, _)| term == key).count(), 10_000, "{key}");
    }
}
