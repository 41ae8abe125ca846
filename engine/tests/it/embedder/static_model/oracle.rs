//! Compares the recorded vectors of the tiny models with those of model2vec-rs, which brings a hundred crates and is
//! therefore no dependency of the tests. From this folder:
//!
//! ```sh
//! cargo new /tmp/oracle && cp oracle.rs /tmp/oracle/src/main.rs && here=$PWD && cd /tmp/oracle
//! cargo add serde_json && cargo add model2vec-rs@=0.4.0 --no-default-features --features local-only,fancy-regex
//! cargo run -- "$here"
//! ```
//!
//! It prints the largest difference of a number for each model: below 1e-15 with model2vec-rs 0.4.0.

use model2vec_rs::model::StaticModel;
use serde_json::Value;

fn main() {
    let folder = std::env::args().nth(1).expect("the folder of the models");
    for name in ["plain", "quantized"] {
        let model = StaticModel::from_pretrained(format!("{folder}/{name}"), None, None, None).unwrap();
        let lines = std::fs::read_to_string(format!("{folder}/{name}.jsonl")).unwrap();
        let mut largest = 0.0_f64;
        for line in lines.lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            let vector = model.encode_single(case["text"].as_str().unwrap());
            let recorded = case["vector"].as_array().unwrap();
            assert_eq!(vector.len(), recorded.len());
            for (number, recorded) in vector.iter().zip(recorded) {
                largest = largest.max((f64::from(*number) - recorded.as_f64().unwrap()).abs());
            }
        }
        println!("{name}: {largest}");
    }
}
