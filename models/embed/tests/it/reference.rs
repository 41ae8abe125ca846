//! Every family, pooling, activation and form of numbers against a plain computation, and tokens against stated ids.

use crate::tiny::{BERT, Kind, Tiny};
use holotype::embed::Embedder as _;
use holotype_embed::Transformer;
use safetensors::Dtype;
use std::fs;

fn opened(kind: Kind) -> (tempfile::TempDir, Tiny, Transformer) {
    let folder = tempfile::tempdir().unwrap();
    let tiny = Tiny::new(kind);
    tiny.write(folder.path());
    let model = Transformer::open(folder.path()).unwrap();
    (folder, tiny, model)
}

const TEXTS: [&str; 8] = [
    "the night train to Lisbon leaves late!",
    "train",
    "",
    "!!!",
    "the the the the the the the the the the the the the the the the the the the the the the the",
    "der Zug nach Lissabon",
    "列車 🚆 ﬁn\u{301}",
    "late \u{0} night",
];

#[test]
fn vectors_are_those_of_a_plain_computation() {
    let kinds = [
        BERT,
        Kind { pooling: "cls", ..BERT },
        Kind { pooling: "cls", normalize: false, ..BERT },
        Kind { normalize: false, activation: "relu", ..BERT },
        Kind { activation: "gelu_new", ..BERT },
        Kind { form: Dtype::F16, ..BERT },
        Kind { form: Dtype::BF16, ..BERT },
        Kind { family: "distilbert", ..BERT },
        Kind { family: "distilbert", pooling: "cls", form: Dtype::F16, ..BERT },
        Kind { family: "xlm-roberta", ..BERT },
        Kind { family: "xlm-roberta", pooling: "cls", form: Dtype::BF16, ..BERT },
    ];
    for kind in kinds {
        let (_folder, tiny, model) = opened(kind);
        // In one call, packed and in the order of their lengths; and each in a call of its own.
        let together = model.vectors(&TEXTS).unwrap();
        for (text, vector) in TEXTS.iter().zip(together) {
            let alone = model.vectors(&[text]).unwrap().remove(0);
            let expected = tiny.vector(&model.tokens(text).unwrap());
            for (found, expected) in [&vector, &alone].into_iter().flat_map(|vector| vector.iter().zip(&expected)) {
                assert!((f64::from(*found) - expected).abs() < 1e-5, "{kind:?} {text:?}: {found}, not {expected}");
            }
        }
    }
}

#[test]
fn word_pieces_keep_what_they_do_not_know_and_are_neither_padded_nor_cut_early() {
    let (_folder, _, model) = opened(BERT);
    let tokens = |text| model.tokens(text).unwrap();
    assert_eq!(tokens("The night train to Lisbon leaves LATE!"), [2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 3]);
    assert_eq!(tokens("train xyz train"), [2, 6, 1, 6, 3]);
    assert_eq!(tokens(""), [2, 3]);
}

#[test]
fn unigrams_are_those_of_the_greatest_probability() {
    let (_folder, _, model) = opened(Kind { family: "xlm-roberta", ..BERT });
    // `▁` and `Lissabon` have the logarithm -9 together, `▁Lissabon` -12.
    assert_eq!(model.tokens("der Zug nach Lissabon").unwrap(), [0, 4, 5, 6, 7, 8, 2]);
    assert_eq!(model.tokens("列").unwrap(), [0, 7, 3, 2]);
}

#[test]
fn a_long_text_is_cut_by_tokens_and_that_is_said_once() {
    let (_folder, _, model) = opened(Kind { family: "xlm-roberta", ..BERT });
    assert_eq!(model.most_tokens(), 16, "two of 18 positions stand before the first token");
    assert_eq!(model.take_note(), None);
    let long = "Zug ".repeat(40);
    assert_eq!(model.tokens(&long).unwrap().len(), 16);
    let note = model.take_note().expect("something was left out");
    assert!(note.contains("reads 16 tokens"), "{note}");
    model.tokens(&long).unwrap();
    assert_eq!(model.take_note(), None);
}

#[test]
fn questions_and_passages_have_the_words_before_them_that_the_folder_states() {
    let (folder, tiny, _) = opened(BERT);
    let prompts = r#"{"prompts": {"query": "train ", "passage": "late "}}"#;
    fs::write(folder.path().join("config_sentence_transformers.json"), prompts).unwrap();
    let model = Transformer::open(folder.path()).unwrap();
    let near = |found: &[f32], tokens: &[u32]| {
        let expected = tiny.vector(tokens);
        found.iter().zip(expected).all(|(found, expected)| (f64::from(*found) - expected).abs() < 1e-5)
    };
    assert!(near(&model.embed_query("night").unwrap().unwrap(), &[2, 6, 5, 3]));
    assert!(near(&model.embed_passages(&["night"]).unwrap()[0].clone().unwrap(), &[2, 12, 5, 3]));
    assert_eq!(model.embed_passages(&[" \n"]).unwrap(), [None], "a blank text has no vector");
}

#[test]
fn the_fingerprint_tells_models_and_their_settings_apart() {
    let mut known = Vec::new();
    for kind in [BERT, Kind { pooling: "cls", ..BERT }, Kind { normalize: false, ..BERT }] {
        let (folder, _, model) = opened(kind);
        known.push(model.fingerprint());
        assert_eq!(Transformer::open(folder.path()).unwrap().fingerprint(), model.fingerprint());
        let prompts = r#"{"prompts": {"query": "train "}}"#;
        fs::write(folder.path().join("config_sentence_transformers.json"), prompts).unwrap();
        known.push(Transformer::open(folder.path()).unwrap().fingerprint());
    }
    known.sort();
    known.dedup();
    assert_eq!(known.len(), 6);
}

#[test]
fn a_folder_that_does_not_fit_is_refused_with_the_file_and_the_reason() {
    let cases: [(&str, &str, &str, &str); 7] = [
        ("config.json", "\"bert\"", "\"t5\"", "`model_type` is \"t5\""),
        ("config.json", "\"gelu\"", "\"swish\"", "`hidden_act` is \"swish\""),
        ("config.json", "\"num_attention_heads\":3", "\"num_attention_heads\":5", "no multiple"),
        ("config.json", "\"vocab_size\":14", "\"vocab_size\":15", "has the shape [14, 12]"),
        ("modules.json", "models.Normalize", "models.Dense", "a module \"Dense\""),
        (
            "1_Pooling/config.json",
            "\"pooling_mode_max_tokens\":false",
            "\"pooling_mode_max_tokens\":true",
            "the pooling",
        ),
        ("tokenizer.json", "\"late\":12", "\"late\":12,\"more\":14", "15 tokens, and the model 14"),
    ];
    for (file, from, to, reason) in cases {
        let (folder, ..) = opened(BERT);
        let path = folder.path().join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{file} has no {from}");
        fs::write(&path, text.replace(from, to)).unwrap();
        let error = Transformer::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    for file in ["config.json", "tokenizer.json", "model.safetensors"] {
        let (folder, ..) = opened(BERT);
        let path = folder.path().join(file);
        let bytes = fs::read(&path).unwrap();
        for damaged in [&bytes[..bytes.len() / 2], b"", b"{}"] {
            fs::write(&path, damaged).unwrap();
            let error = Transformer::open(folder.path()).unwrap_err().to_string();
            assert!(error.contains(file), "{error}");
        }
        fs::remove_file(&path).unwrap();
        let error = holotype_embed::open(folder.path()).unwrap_err();
        assert!(format!("{error:?}").contains(file), "{error:?}");
    }
}
