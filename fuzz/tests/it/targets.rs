//! Every target holds over its seeds and over mutations of them, the same ones every time; and the rig that says so
//! does find a target that fails.

use holotype_fuzz::{TARGETS, Target, canary, mutate};

/// The seed of the mutations, which makes failures reproducible.
const SEED: u64 = 20_260_105;

fn check(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("it is listed");
    let Target { run, mutations, .. } = *target;
    let seeds: Vec<Vec<u8>> = target.all_seeds().unwrap().into_iter().map(|(_, bytes)| bytes).collect();
    assert!(!seeds.is_empty(), "{name} has no seeds");
    if let Err(input) = mutate::run(run, &seeds, mutations, SEED) {
        panic!("{name} fails on b\"{}\"", input.escape_ascii());
    }
}

macro_rules! targets {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            check(stringify!($name));
        })*

        #[test]
        fn every_target_is_run_here() {
            let listed: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(listed, [$(stringify!($name)),*]);
        }
    };
}

targets! {
    query_parse statement interchange_line npy claims time log_open record_payload segment_frame vector_segment
    word_segment columns floor proof damage operations
}

#[test]
fn a_target_that_fails_is_found() {
    let seeds = [b"HOLP".to_vec()];
    let input = mutate::run(canary::target, &seeds, 20_000, SEED).expect_err("the canary lies one byte away");
    assert!(input.starts_with(b"HOLO"), "{}", input.escape_ascii());
    assert_eq!(mutate::run(canary::target, &seeds, 10, SEED), Ok(()));
}

/// Each target has a binary for libFuzzer, and each binary a target.
#[test]
fn every_target_has_its_binary() {
    let manifest = include_str!("../../Cargo.toml");
    let listed = manifest.matches("path = \"fuzz_targets/").count();
    assert_eq!(listed, TARGETS.len() + 1, "the targets and the canary");
    for target in TARGETS {
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{}.rs\"", target.name)), "{}", target.name);
    }
}
