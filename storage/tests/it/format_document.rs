//! The layouts at the heads of the derived files' modules are those `docs/format.md` publishes.

#[test]
fn every_layout_in_the_code_stands_in_the_document() {
    let document = include_str!("../../../docs/format.md");
    let modules = [
        ("segment_file", include_str!("../../src/segment_file.rs")),
        ("columns", include_str!("../../src/columns.rs")),
        ("catalog", include_str!("../../src/catalog.rs")),
        ("blocks", include_str!("../../src/catalog/blocks.rs")),
        ("lock", include_str!("../../src/lock.rs")),
    ];
    for (module, source) in modules {
        let rows: Vec<&str> = source.lines().filter_map(|line| line.strip_prefix("//! |")).collect();
        assert!(rows.len() > 5, "{module} has a layout");
        for row in rows {
            let row = format!("|{row}");
            assert!(document.lines().any(|line| line == row), "{module} says {row}");
        }
    }
}
