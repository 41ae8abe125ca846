//! The files of the page, which are part of the program.
//!
//! There is no build step: a browser reads these files as they are written here. `vendor/htm-preact.js` is preact (MIT)
//! and htm (Apache-2.0) in one file, as htm 3.1.1 publishes it; `vendor/SHA256SUMS` pins it, and a test compares.

/// A file of the page.
pub(crate) struct File {
    pub(crate) path: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) text: &'static str,
}

macro_rules! file {
    ($path:literal, $kind:literal) => {
        File { path: $path, kind: $kind, text: include_str!(concat!("../page/", $path)) }
    };
}

/// The document, with a place for styles and scripts.
pub(crate) const DOCUMENT: &str = include_str!("../page/index.html");

/// Styles.
pub(crate) const STYLE: File = file!("style.css", "text/css; charset=utf-8");

/// Scripts in the order in which they are loaded.
pub(crate) const SCRIPTS: [File; 8] = [
    file!("vendor/htm-preact.js", "text/javascript; charset=utf-8"),
    file!("data.js", "text/javascript; charset=utf-8"),
    file!("parts.js", "text/javascript; charset=utf-8"),
    file!("items.js", "text/javascript; charset=utf-8"),
    file!("item.js", "text/javascript; charset=utf-8"),
    file!("recall.js", "text/javascript; charset=utf-8"),
    file!("time.js", "text/javascript; charset=utf-8"),
    file!("main.js", "text/javascript; charset=utf-8"),
];

/// The file at a path.
pub(crate) fn file(path: &str) -> Option<&'static File> {
    std::iter::once(&STYLE).chain(&SCRIPTS).find(|file| file.path == path)
}

/// The document of the server: styles and scripts by reference.
pub(crate) fn served() -> String {
    let scripts = SCRIPTS.iter().map(|file| format!("<script defer src=\"{}\"></script>\n", file.path));
    DOCUMENT
        .replace("<!--style-->", "<link rel=\"stylesheet\" href=\"style.css\">")
        .replace("<!--scripts-->", &scripts.collect::<String>())
}

/// The document with everything inside, and data before the scripts.
pub(crate) fn whole(data: &str) -> String {
    // A script ends at `</script`, wherever that stands.
    let safe = |text: &str| text.replace("</script", "<\\/script");
    let scripts = SCRIPTS.iter().map(|file| format!("<script>\n{}\n</script>\n", safe(file.text)));
    DOCUMENT.replace("<!--style-->", &format!("<style>\n{}\n</style>", STYLE.text)).replace(
        "<!--scripts-->",
        &format!("<script type=\"application/json\" id=\"memory\">{data}</script>\n{}", scripts.collect::<String>()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    #[test]
    fn vendored_files_are_those_that_were_published() {
        for line in include_str!("../page/vendor/SHA256SUMS").lines() {
            let (sum, name) = line.split_once("  ").expect("a sum and a name");
            let file = SCRIPTS.iter().find(|file| file.path == format!("vendor/{name}")).expect("a file of the page");
            let digest = Sha256::digest(file.text.as_bytes());
            let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, sum, "{name}");
        }
    }

    #[test]
    fn the_page_is_small_and_asks_no_other_host() {
        let whole = whole("{}");
        assert!(whole.len() < 120_000, "{} bytes", whole.len());
        let own = SCRIPTS.iter().skip(1).map(|file| file.text).chain([DOCUMENT, STYLE.text]);
        for text in own {
            let foreign = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!foreign.contains("http://") && !foreign.contains("https://") && !foreign.contains("url("));
        }
    }
}
