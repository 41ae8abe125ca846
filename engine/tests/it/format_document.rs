//! `docs/format.md` says what the engine's records, rows and columns and the index files hold; this holds it to the
//! code.

use holotype::{Edge, Encoding, Kind, Metric, Origin, Source, Status};

const DOCUMENT: &str = include_str!("../../../docs/format.md");
const RECORD: &str = include_str!("../../src/records/record.rs");
const TABLES: &str = include_str!("../../src/records/tables.rs");
const ATTRIBUTES: &str = include_str!("../../src/state/attributes/chunk.rs");

/// The cells of every table row of the section under `heading`.
fn rows(heading: &str) -> Vec<Vec<&'static str>> {
    let marker = format!("## {heading}");
    let start = DOCUMENT.find(&marker).unwrap_or_else(|| panic!("docs/format.md has no section {heading:?}"));
    let body = &DOCUMENT[start + marker.len()..];
    let end = body.find("\n## ").unwrap_or(body.len());
    let rows = body[..end].lines().filter(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`')).collect()).collect()
}

/// The row of a section whose first two cells are these; its other cells.
fn row(heading: &str, first: &str, second: &str) -> Vec<&'static str> {
    let found = rows(heading).into_iter().find(|cells| cells[0] == first && cells.get(1) == Some(&second));
    found.unwrap_or_else(|| panic!("{heading}: no row {first} | {second}")).split_off(2)
}

/// The fields of a struct in a source file, in their order.
fn fields(source: &str, name: &str) -> Vec<String> {
    let start = source.find(&format!("struct {name} {{")).unwrap_or_else(|| panic!("no struct {name}"));
    let body = &source[start..];
    let body = &body[..body.find("\n}").unwrap_or(body.len())];
    let fields = body.lines().filter_map(|line| line.trim().strip_prefix("pub(crate) ")?.split_once(": "));
    fields.map(|(field, _)| field.to_owned()).collect()
}

/// The names in a cell such as `number u32, key string?`.
fn names(cell: &str) -> Vec<String> {
    cell.split(", ").filter_map(|part| part.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn every_record_type_is_described_field_by_field() {
    let numbers: Vec<(&str, &str)> = RECORD
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub(super) const ")?.strip_suffix(';')?.split_once(": u8 = "))
        .collect();
    assert!(numbers.len() >= 12);
    for (name, number) in numbers {
        let name = name.to_lowercase();
        let of = match name.as_str() {
            "unlink" => "LinkRecord".to_owned(),
            _ => {
                let capitalised = name.split('_').map(|word| format!("{}{}", word[..1].to_uppercase(), &word[1..]));
                format!("{}Record", capitalised.collect::<String>())
            }
        };
        let cells = row("What the records say", number, &name);
        assert_eq!(names(cells[0]), fields(RECORD, &of), "{name}");
    }
    let structure = |name: &str| {
        let found = rows("What the records say").into_iter().find(|cells| cells[0] == name && cells.len() == 2);
        names(found.unwrap_or_else(|| panic!("no structure {name}"))[1])
    };
    assert_eq!(structure("field"), fields(RECORD, "Field"));
    assert_eq!(structure("uncited"), fields(RECORD, "UncitedRecord"));
    assert_eq!(structure("pointer"), fields(RECORD, "PointerRecord"));
}

#[test]
fn every_byte_that_stands_for_a_name_is_described() {
    let described = |what: &str| {
        let found = rows("What the records say").into_iter().find(|cells| cells[0] == what && cells.len() == 2);
        let cell = found.unwrap_or_else(|| panic!("no byte {what}"))[1];
        cell.split([',', ';']).map(|pair| pair.trim().to_owned()).collect::<Vec<_>>()
    };
    macro_rules! check {
        ($what:literal, $type:ty) => {
            let names: Vec<String> = <$type>::ALL.iter().map(|name| format!("{} {name}", name.to_byte())).collect();
            assert_eq!(described($what), names);
        };
    }
    check!("kind", Kind);
    check!("status", Status);
    check!("source", Source);
    check!("origin", Origin);
    check!("edge", Edge);
    let metrics =
        [Metric::Cosine, Metric::Dot, Metric::L2].map(|metric| format!("{} {}", metric.code(), metric.name()));
    assert_eq!(described("metric"), metrics);
    let encodings = [Encoding::F32, Encoding::F16, Encoding::I8];
    assert_eq!(described("encoding"), encodings.map(|encoding| format!("{} {}", encoding.code(), encoding.name())));
}

#[test]
fn every_table_of_the_catalog_is_described() {
    let tables: Vec<(&str, &str)> = TABLES
        .lines()
        .filter_map(|line| line.strip_prefix("pub(crate) const ")?.strip_suffix(';')?.split_once(": u8 = "))
        .collect();
    assert!(tables.len() >= 21);
    for (name, number) in tables {
        let cells = row("What the rows say", number, name);
        let values = match name {
            "EDGE_OUT" => fields(TABLES, "EdgeRow"),
            "EPISODE" => fields(TABLES, "EpisodeRow"),
            "PAGE" => fields(TABLES, "PageRow"),
            "COMMIT" => fields(TABLES, "CommitRow"),
            "MANIFEST" => fields(TABLES, "ManifestRow"),
            _ => continue,
        };
        assert_eq!(names(cells[1]), values, "{name}");
    }
    let totals = DOCUMENT.split_once("\nTotals: ").expect("docs/format.md describes the totals").1.replace('\n', " ");
    let mut from = 0;
    for field in fields(TABLES, "Meta") {
        let found = totals[from..].find(&format!("{field} "));
        from += found.unwrap_or_else(|| panic!("the totals of docs/format.md do not say {field} in its place"));
    }
}

#[test]
fn every_column_is_described() {
    let columns: Vec<(&str, &str)> = ATTRIBUTES
        .lines()
        .filter_map(|line| line.trim().strip_prefix("writer.")?.split_once("(\""))
        .filter_map(|(kind, rest)| Some((kind, rest.split_once('"')?.0)))
        .collect();
    assert!(columns.len() >= 23);
    for (kind, name) in columns {
        let described = rows("Derived files").into_iter().any(|cells| cells[0] == name && cells.get(1) == Some(&kind));
        assert!(described, "docs/format.md does not describe the column {name} of type {kind}");
    }
}

#[test]
fn the_layouts_at_the_heads_of_the_index_files_are_those_of_the_document() {
    let modules = [
        ("words/segment", include_str!("../../../index/src/words/segment/mod.rs")),
        ("words/postings", include_str!("../../../index/src/words/postings/mod.rs")),
        ("segment/layout", include_str!("../../../index/src/segment/layout.rs")),
    ];
    for (module, source) in modules {
        let rows: Vec<&str> = source.lines().filter_map(|line| line.strip_prefix("//! ")).collect();
        let rows: Vec<&&str> = rows.iter().filter(|row| row.starts_with('|')).collect();
        assert!(rows.len() > 3, "{module} has a layout");
        for row in rows {
            assert!(DOCUMENT.lines().any(|line| line == *row), "{module} says {row}");
        }
    }
}
