//! Vectors: as many as texts, of the right length, in the order of the texts.

use crate::server::{Act, Server, limits};
use holotype::embed::Embedder;
use holotype_models::{Embeddings, Failure};
use serde_json::{Value, json};

fn entry(index: i64, embedding: Value) -> Value {
    json!({"object": "embedding", "index": index, "embedding": embedding})
}

#[test]
fn vectors_come_in_the_order_of_the_texts_and_in_batches() {
    // The vector of a text is its length and its place in the batch; each answer is in reverse order.
    let server = Server::new(|_, request| {
        let inputs = request.body["input"].as_array().unwrap().clone();
        let vector = |(nth, text): (usize, &Value)| entry(nth as i64, json!([text.as_str().unwrap().len(), nth]));
        let data: Vec<Value> = inputs.iter().enumerate().map(vector).rev().collect();
        Act::body(&json!({"data": data}))
    });
    let (client, _) = server.client(limits());
    let embeddings = Embeddings::new(client, 2).prefix("q: ");
    let vectors = embeddings.vectors(&["a", "bb", "ccc", "dddd"]).unwrap();
    assert_eq!(vectors, [[4.0, 0.0], [5.0, 1.0], [6.0, 2.0], [7.0, 0.0]]);
    let requests = server.requests();
    assert_eq!((requests.len(), requests[0].path.as_str()), (2, "/v1/embeddings"));
    assert_eq!(requests[1].body["input"], json!(["q: dddd"]));
    // A text without words has no vector, and nobody is asked.
    assert_eq!(embeddings.embed_query(" … ").unwrap(), None);
    assert_eq!(embeddings.vectors(&[]).unwrap(), Vec::<Vec<f32>>::new());
    assert_eq!(server.requests().len(), 2);
    assert_eq!(embeddings.embed_query("x").unwrap(), Some(vec![4.0, 0.0]));
}

#[test]
fn a_wrong_length_number_or_order_is_refused() {
    let (a, b) = (|| json!([1.0, 0.5]), || json!([0.25, 2]));
    for (data, why) in [
        (json!([entry(0, a())]), "1 vectors for 2 texts"),
        (json!([entry(0, a()), entry(1, b()), entry(2, b())]), "3 vectors for 2 texts"),
        (json!([entry(0, a()), entry(1, json!([1.0]))]), "1 dimensions, and 2 were expected"),
        (json!([entry(0, a()), entry(1, json!([1, 2, 3]))]), "3 dimensions"),
        (json!([entry(1, a()), entry(1, b())]), "two vectors for text 1"),
        (json!([entry(0, a()), entry(2, b())]), "text 2 of 2"),
        (json!([entry(0, a()), entry(-1, b())]), "without an `index`"),
        (json!([entry(0, a()), json!({"embedding": b()})]), "without an `index`"),
        (json!([entry(0, a()), entry(1, json!("AACAPw=="))]), "no list"),
        (json!([entry(0, a()), entry(1, json!([1.0, null]))]), "no finite number"),
        (json!([entry(0, a()), entry(1, json!([1.0, 1e300]))]), "no finite number"),
        (json!([entry(0, a()), entry(1, json!([0.0, -0.0]))]), "zeros for text 1"),
        (json!({}), "no list `data`"),
    ] {
        let server = Server::script(vec![Act::body(&json!({"data": data}))]);
        let (client, _) = server.client(limits());
        let embeddings = Embeddings::new(client, 2);
        let error = embeddings.vectors(&["a", "b"]).unwrap_err();
        assert!(matches!(&error, Failure::Answer { .. }) && error.to_string().contains(why), "{data}: {error}");
    }
}

#[test]
fn an_error_of_the_server_is_an_error_of_the_role() {
    let server = Server::script(vec![Act::Answer(401, Vec::new(), "no key".to_owned())]);
    let (client, _) = server.client(limits());
    let error = Embeddings::new(client, 2).embed_passages(&["a"]).unwrap_err().to_string();
    assert!(error.contains("status 401: no key"), "{error}");
}
