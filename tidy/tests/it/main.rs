//! The tree follows its rules, but for the violations listed in `tidy/baseline.txt`, which only become fewer.

use holotype_tidy::{baseline, figures, imports, locks, rules, source};

#[test]
fn the_tree_follows_its_rules() {
    let root = source::root();
    let sources = source::load(&root).unwrap();
    assert!(sources.len() > 200, "{} sources", sources.len());
    let allowed = baseline::parse(include_str!("../../baseline.txt")).unwrap();
    let messages = baseline::compare(&rules::check(&root, &sources), &allowed);
    assert!(messages.is_empty(), "\n{}", messages.join("\n"));
}

/// Linking the engine takes longest of all that tests do.
#[test]
fn each_crate_has_one_integration_test_binary() {
    for krate in source::CRATES {
        let count = figures::test_binaries(&source::root().join(krate)).unwrap();
        assert!(count <= 1, "{krate}/tests has {count} binaries: make them modules of {krate}/tests/it/main.rs");
    }
}

#[test]
fn imports_between_the_rooms_of_the_engine_lead_down() {
    let upward = figures::upward(&source::load(&source::root()).unwrap());
    assert!(upward.is_empty(), "these lead up: {upward:#?}");
}

/// Files that all import each other can only be understood together.
#[test]
fn no_crate_has_a_large_circle_of_imports() {
    let sources = source::load(&source::root()).unwrap();
    for krate in source::CRATES {
        let graph = imports::graph(&sources, &format!("{krate}/src"));
        let circle = imports::largest_circle(&graph);
        assert!(circle.len() <= 8, "{} files of {krate} import each other: {circle:#?}", circle.len());
    }
}

#[test]
fn the_floor_of_the_engine_is_small() {
    let entries = std::fs::read_dir(source::root().join("engine/src")).unwrap().count();
    assert!(entries <= 19, "engine/src has {entries} entries");
}

#[test]
fn the_python_package_ships_the_crates_that_the_engine_is_tested_with() {
    let read = |path: &str| locks::parse(&std::fs::read_to_string(source::root().join(path)).unwrap());
    let messages = locks::out_of_step(&read("Cargo.lock"), &read("python/Cargo.lock"));
    assert!(messages.is_empty(), "in the folder `python`:\n{}", messages.join("\n"));
}
