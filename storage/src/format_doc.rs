//! Reads the tables of `docs/format.md`, so that tests can hold the code to the document.

/// Offset and size of every field of fixed size in the table under `heading`.
pub(crate) fn fields(heading: &str) -> Vec<(usize, usize)> {
    let document = include_str!("../../docs/format.md");
    let section =
        document.split("\n#").find(|section| section.trim_start_matches('#').trim_start().starts_with(heading));
    let section = section.unwrap_or_else(|| panic!("docs/format.md has no section '{heading}'"));
    let rows = section.lines().filter_map(|line| {
        let mut cells = line.split('|').skip(1).map(str::trim);
        Some((cells.next()?.parse().ok()?, cells.next()?.parse().ok()?))
    });
    rows.collect()
}

/// The fields between offsets, the last of which is the end.
pub(crate) fn between(offsets: &[usize]) -> Vec<(usize, usize)> {
    offsets.windows(2).map(|pair| (pair[0], pair[1] - pair[0])).collect()
}
