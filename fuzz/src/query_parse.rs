//! The recall language from text to tree and back: `parse`, `format`, `check`, and errors as they are shown.

use holotype_query::{MAX_SOURCE_LEN, Params, bind, check, format, parse};

/// Any text parses to a tree whose printed form reads back as the same tree, or to errors that can be shown.
///
/// # Panics
/// When it does not.
pub fn target(data: &[u8]) {
    let source = &*String::from_utf8_lossy(data);
    match parse(source) {
        Ok(script) => {
            let text = format(&script);
            // Formatting may lengthen a source over the limit of its length.
            if text.len() <= MAX_SOURCE_LEN {
                assert_eq!(parse(&text).as_ref(), Ok(&script), "{text}");
                assert_eq!(format(&script), text);
            }
            for params in [None, Some(&Params::new())] {
                if let Err(errors) = check(&script, params, Some(3)) {
                    assert!(!errors.is_empty() && !errors.render(source).is_empty());
                }
            }
            if let Ok(plans) = bind(&script, &Params::new()) {
                let again = plans.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
                if again.len() <= MAX_SOURCE_LEN {
                    let again = parse(&again).and_then(|script| bind(&script, &Params::new()));
                    assert_eq!(again, Ok(plans), "the text of a plan says the plan");
                }
            }
            for statement in &script.statements {
                let line = statement.to_string();
                assert!(!line.contains('\n'), "{line}");
            }
        }
        Err(errors) => {
            assert!(!errors.is_empty() && errors.len() <= 64);
            for error in &errors {
                assert!(error.span.start <= error.span.end && error.span.end as usize <= source.len());
                assert!(error.line > 0 && error.column > 0);
            }
            assert!(errors.render(source).len() < 200_000);
        }
    }
}

/// Every example of the language's reference.
pub fn seeds() -> Vec<Vec<u8>> {
    let reference = include_str!("../../docs/query-language.md");
    let examples = reference.split("```holotype\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    examples.map(|example| example.as_bytes().to_vec()).collect()
}
