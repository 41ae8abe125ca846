"""Makes the tiny models of this folder and the vectors that model2vec gives, with model2vec 0.10.0 of PyPI:

    pip install model2vec==0.10.0 && python make.py

model2vec-rs gives the same vectors: oracle.rs.txt compares them.

plain: f32 rows, one a token, normalised. quantized: f16 rows with weights and a mapping, not normalised.
"""

import json
import pathlib

import numpy as np
from model2vec import StaticModel
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers

HERE = pathlib.Path(__file__).parent
WORDS = """[PAD] [UNK] [CLS] [SEP] [MASK] the train to lisbon costs 89 euro ##s night flight ##less un ##happy cafe
naive price = , . ! ? ' " - 東 京 日 本 a b c d ##b ##c ##d 7 ##b7 strasse straße ß é i o 2 — “ ” ( ) $ hotel room""".split()
TEXTS = [
    "The night train to Lisbon costs 89 euros.",
    "flightless unhappy trains",
    "Café naïve CAFÉ cafe\u0301",
    "東京の日本 hotel",
    "price=$89, (room) — “night”!",
    "xyzzy plugh",
    "the xyzzy train",
    "[PAD] the [UNK] train [MASK]?",
    "tab\tnewline\nthe\u00a0train\u200bnight\x00hotel\ufffd",
    "",
    "   ",
    "abcd a bcd",
    "the" + "b" * 150 + " train",
    "straße STRASSE ß",
    "👍 the hotel 👍",
    "İo the",
    "हिन्दी the",
]


def tokenizer():
    vocabulary = {word: number for number, word in enumerate(dict.fromkeys(WORDS))}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.add_special_tokens([AddedToken(word, special=True, normalized=False) for word in WORDS[:5]])
    return made, len(vocabulary)


def main():
    rng = np.random.default_rng(22)
    made, count = tokenizer()
    plain = StaticModel(rng.standard_normal((count, 5)).astype(np.float32), made, normalize=True)
    rows = rng.standard_normal((11, 4)).astype(np.float16)
    weights = rng.uniform(0.1, 2.0, count).astype(np.float32)
    mapping = rng.integers(0, 11, count)
    quantized = StaticModel(rows, made, weights=weights, token_mapping=mapping, normalize=False)
    for name, model in [("plain", plain), ("quantized", quantized)]:
        model.save_pretrained(HERE / name)
        for extra in (HERE / name).iterdir():
            if extra.name not in ("config.json", "model.safetensors", "tokenizer.json"):
                extra.unlink()
        vectors = StaticModel.from_pretrained(HERE / name, quantize_to="float32").encode(TEXTS).astype(np.float64)
        lines = [json.dumps({"text": text, "vector": vector}) for text, vector in zip(TEXTS, vectors.tolist())]
        (HERE / f"{name}.jsonl").write_text("\n".join(lines) + "\n")


main()
