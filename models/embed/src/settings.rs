//! The files of a model's folder beside its weights: architecture, pooling, lengths, words before texts.
//!
//! | file | says |
//! |---|---|
//! | `config.json` | the family (bert, distilbert, roberta, xlm-roberta), its sizes, its activation |
//! | `modules.json` | what follows the transformer: pooling, and `Normalize` |
//! | `1_Pooling/config.json` | mean or cls |
//! | `sentence_bert_config.json` | the longest input in tokens, and whether texts are lowered |
//! | `tokenizer_config.json` | the longest input, where the file before does not say it |
//! | `config_sentence_transformers.json` | words before questions and passages, else [`PREFIXES`] |

use serde_json::Value;
use std::fs;
use std::io;
use std::path::Path;

/// The family of a transformer: names of tensors, and positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    Bert,
    DistilBert,
    /// RoBERTa and XLM-RoBERTa: positions begin behind the padding token.
    Roberta,
}

/// The activation between the two products of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activation {
    Gelu,
    GeluTanh,
    Relu,
}

/// The vector of a text from those of its tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pooling {
    Mean,
    Cls,
}

/// Everything about a model but its weights and its tokenizer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settings {
    pub(crate) family: Family,
    pub(crate) activation: Activation,
    pub(crate) hidden: usize,
    pub(crate) inner: usize,
    pub(crate) layers: usize,
    pub(crate) heads: usize,
    pub(crate) vocabulary: usize,
    /// Rows of the table of positions, and the position of the first token.
    pub(crate) positions: usize,
    pub(crate) first_position: usize,
    pub(crate) types: usize,
    pub(crate) epsilon: f32,
    pub(crate) pooling: Pooling,
    pub(crate) normalize: bool,
    /// Tokens of an input that count, at most, those that mark its beginning and its end included.
    pub(crate) most_tokens: usize,
    pub(crate) lowers: bool,
    pub(crate) query_prefix: String,
    pub(crate) passage_prefix: String,
}

/// Words before questions and passages, by a part of the model's name, for folders that do not say them.
const PREFIXES: [(&str, &str, &str); 9] = [
    ("e5-", "query: ", "passage: "),
    ("bge-small-en", BGE_ENGLISH, ""),
    ("bge-base-en", BGE_ENGLISH, ""),
    ("bge-large-en", BGE_ENGLISH, ""),
    ("bge-small-zh", BGE_CHINESE, ""),
    ("bge-base-zh", BGE_CHINESE, ""),
    ("bge-large-zh", BGE_CHINESE, ""),
    ("snowflake-arctic-embed", BGE_ENGLISH, ""),
    ("mxbai-embed", BGE_ENGLISH, ""),
];
const BGE_ENGLISH: &str = "Represent this sentence for searching relevant passages: ";
const BGE_CHINESE: &str = "为这个句子生成表示以用于检索相关文章：";

/// A file that does not say what is needed, with its name.
pub(crate) type Fault = (String, String);

impl Settings {
    /// Reads the files of a folder.
    ///
    /// # Errors
    /// The name of a file, and what is wrong with it.
    pub(crate) fn read(folder: &Path) -> Result<Settings, Fault> {
        let config = required(folder, "config.json")?;
        let at = |what: String| ("config.json".to_owned(), what);
        let family = family(&config).map_err(at)?;
        let names = match family {
            Family::DistilBert => ["dim", "hidden_dim", "n_layers", "n_heads", "activation"],
            _ => ["hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "hidden_act"],
        };
        let size = |name: &str| size(&config, name).map_err(at);
        let [hidden, inner, layers, heads] = [names[0], names[1], names[2], names[3]].map(size);
        let (hidden, inner, layers, heads) = (hidden?, inner?, layers?, heads?);
        if hidden % heads != 0 {
            return Err(at(format!("`{}` {hidden} is no multiple of `{}` {heads}", names[0], names[3])));
        }
        if let Some(kind) = config["position_embedding_type"].as_str().filter(|kind| *kind != "absolute") {
            return Err(at(format!("`position_embedding_type` is {kind:?}; absolute positions are supported")));
        }
        let positions = size("max_position_embeddings")?;
        let padding = config["pad_token_id"].as_u64().map_or(1, |id| id as usize);
        let first_position = if family == Family::Roberta { padding + 1 } else { 0 };
        let Some(longest) = positions.checked_sub(first_position).filter(|longest| *longest > 2) else {
            return Err(at(format!("`max_position_embeddings` is {positions}")));
        };
        let (pooling, normalize) = modules(folder)?;
        let sentence = optional(folder, "sentence_bert_config.json")?.unwrap_or_default();
        let tokenizer = optional(folder, "tokenizer_config.json")?.unwrap_or_default();
        let stated = sentence["max_seq_length"].as_u64().or_else(|| tokenizer["model_max_length"].as_u64());
        let most_tokens = stated.and_then(|most| usize::try_from(most).ok()).unwrap_or(longest).clamp(3, longest);
        let (query_prefix, passage_prefix) = prefixes(folder, &config)?;
        Ok(Settings {
            family,
            activation: activation(&config, names[4]).map_err(at)?,
            hidden,
            inner,
            layers,
            heads,
            vocabulary: size("vocab_size")?,
            positions,
            first_position,
            types: if family == Family::DistilBert {
                0
            } else {
                config["type_vocab_size"].as_u64().unwrap_or(2) as usize
            },
            epsilon: config["layer_norm_eps"].as_f64().unwrap_or(1e-12) as f32,
            pooling,
            normalize,
            most_tokens,
            lowers: sentence["do_lower_case"].as_bool().unwrap_or(false),
            query_prefix,
            passage_prefix,
        })
    }
}

/// The family that `config.json` names.
fn family(config: &Value) -> Result<Family, String> {
    match config["model_type"].as_str() {
        Some("bert") => Ok(Family::Bert),
        Some("distilbert") => Ok(Family::DistilBert),
        Some("roberta" | "xlm-roberta" | "camembert") => Ok(Family::Roberta),
        Some(other) => Err(format!(
            "`model_type` is {other:?}; bert, distilbert, roberta, xlm-roberta and camembert are supported"
        )),
        None => Err("it has no `model_type`; a folder as sentence-transformers saves it is expected".to_owned()),
    }
}

fn activation(config: &Value, name: &str) -> Result<Activation, String> {
    match config[name].as_str() {
        None | Some("gelu") => Ok(Activation::Gelu),
        Some("gelu_new" | "gelu_pytorch_tanh") => Ok(Activation::GeluTanh),
        Some("relu") => Ok(Activation::Relu),
        Some(other) => Err(format!("`{name}` is {other:?}; gelu, gelu_new and relu are supported")),
    }
}

fn size(config: &Value, name: &str) -> Result<usize, String> {
    let number = config[name].as_u64().filter(|number| (1..=1 << 20).contains(number));
    number.map(|number| number as usize).ok_or_else(|| match &config[name] {
        Value::Null => format!("it has no `{name}`"),
        stated => format!("`{name}` is {stated}; a whole number above 0 is expected"),
    })
}

/// The pooling and whether vectors have length 1. Without `modules.json` it is the mean, as sentence-transformers does.
fn modules(folder: &Path) -> Result<(Pooling, bool), Fault> {
    let Some(modules) = optional(folder, "modules.json")? else { return Ok((Pooling::Mean, false)) };
    let (mut pooling, mut normalize) = (Pooling::Mean, false);
    for module in modules.as_array().into_iter().flatten() {
        let kind = module["type"].as_str().unwrap_or_default();
        match kind.rsplit('.').next().unwrap_or_default() {
            "Transformer" => {}
            "Normalize" => normalize = true,
            "Pooling" => {
                let name = format!("{}/config.json", module["path"].as_str().unwrap_or("1_Pooling"));
                let config = required(folder, &name)?;
                pooling = pooling_of(&config).map_err(|what| (name, what))?;
            }
            other => {
                let what = format!("it has a module {other:?}; Transformer, Pooling and Normalize are supported");
                return Err(("modules.json".to_owned(), what));
            }
        }
    }
    Ok((pooling, normalize))
}

fn pooling_of(config: &Value) -> Result<Pooling, String> {
    let stated = config.as_object().into_iter().flatten();
    let modes = stated.filter(|(name, on)| name.starts_with("pooling_mode_") && on.as_bool() == Some(true));
    let modes: Vec<&str> = modes.map(|(name, _)| name.as_str()).collect();
    match (modes.as_slice(), config["pooling_mode"].as_str()) {
        (["pooling_mode_mean_tokens"], _) | ([], Some("mean")) => Ok(Pooling::Mean),
        (["pooling_mode_cls_token"], _) | ([], Some("cls")) => Ok(Pooling::Cls),
        ([], None) => Err("it names no pooling; mean or cls is expected".to_owned()),
        (others, other) => {
            let found = if others.is_empty() { other.unwrap_or_default().to_owned() } else { others.join(" and ") };
            Err(format!("it names the pooling {found}; mean or cls is expected"))
        }
    }
}

/// The words before questions and before passages.
fn prefixes(folder: &Path, config: &Value) -> Result<(String, String), Fault> {
    let stated = optional(folder, "config_sentence_transformers.json")?.unwrap_or_default();
    let prompts = &stated["prompts"];
    let of = |names: &[&str]| names.iter().find_map(|name| prompts[*name].as_str()).map(str::to_owned);
    let by_default = stated["default_prompt_name"].as_str().and_then(|name| prompts[name].as_str());
    let (query, passage) = (of(&["query", "search_query"]), of(&["passage", "document", "search_document"]));
    if query.as_ref().or(passage.as_ref()).is_some_and(|words| !words.is_empty()) || by_default.is_some() {
        let or_default = |words: Option<String>| words.or(by_default.map(str::to_owned)).unwrap_or_default();
        return Ok((or_default(query), or_default(passage)));
    }
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let named = folder.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let stated = config["_name_or_path"].as_str().unwrap_or_default().to_lowercase();
    let known = PREFIXES.iter().find(|(part, ..)| named.contains(part) || stated.contains(part));
    Ok(known.map(|(_, query, passage)| ((*query).to_owned(), (*passage).to_owned())).unwrap_or_default())
}

fn required(folder: &Path, name: &str) -> Result<Value, Fault> {
    optional(folder, name)?.ok_or_else(|| {
        (name.to_owned(), "it is missing; a folder as sentence-transformers saves it is expected".to_owned())
    })
}

fn optional(folder: &Path, name: &str) -> Result<Option<Value>, Fault> {
    let bytes = match fs::read(folder.join(name)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err((name.to_owned(), error.to_string())),
    };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| (name.to_owned(), format!("it is no JSON: {error}")))
}
