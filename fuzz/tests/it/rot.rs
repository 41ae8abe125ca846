//! Bit rot, a few cases of it; `.ci/run` tries more.

use holotype_fuzz::rot;

#[test]
fn no_damage_changes_an_answer_in_silence() {
    let (tally, broken) = rot::run(7, 60);
    assert_eq!(broken, Vec::<String>::new());
    assert!(
        tally.changed > 0 && tally.refused > 0 && tally.told > 0,
        "{tally:?}: damages that do nothing show nothing"
    );
}
