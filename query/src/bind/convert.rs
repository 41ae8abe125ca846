//! Values of Rust as values of parameters.

use crate::bind::ParamValue;
use jiff::Timestamp;
use std::time::SystemTime;

macro_rules! values {
    ($($from:ty, $value:ident => $made:expr;)+) => {
        $(impl From<$from> for ParamValue {
            fn from($value: $from) -> ParamValue {
                $made
            }
        })+
    };
}

values! {
    &str, value => ParamValue::Text(value.to_owned());
    String, value => ParamValue::Text(value);
    &String, value => ParamValue::Text(value.clone());
    bool, value => ParamValue::Bool(value);
    i32, value => ParamValue::Int(value.into());
    i64, value => ParamValue::Int(value);
    u32, value => ParamValue::Int(value.into());
    // A count above the largest one of the language is no count of anything stored.
    u64, value => ParamValue::Int(i64::try_from(value).unwrap_or(i64::MAX));
    usize, value => ParamValue::Int(i64::try_from(value).unwrap_or(i64::MAX));
    f32, value => ParamValue::Float(value.into());
    f64, value => ParamValue::Float(value);
    Vec<f32>, value => ParamValue::Vector(value);
    &Vec<f32>, value => ParamValue::Vector(value.clone());
    &[f32], value => ParamValue::Vector(value.to_vec());
    Vec<&str>, value => ParamValue::List(value.into_iter().map(ParamValue::from).collect());
    &[&str], value => ParamValue::List(value.iter().map(|text| ParamValue::from(*text)).collect());
    Vec<String>, value => ParamValue::List(value.into_iter().map(ParamValue::Text).collect());
    &[String], value => ParamValue::List(value.iter().map(ParamValue::from).collect());
    &Vec<String>, value => ParamValue::List(value.iter().map(ParamValue::from).collect());
    Vec<i64>, value => ParamValue::List(value.into_iter().map(ParamValue::Int).collect());
    &[i64], value => ParamValue::List(value.iter().map(|number| ParamValue::Int(*number)).collect());
    (&str, Vec<f32>), value => ParamValue::TextVector { text: value.0.to_owned(), vector: value.1 };
    (String, Vec<f32>), value => ParamValue::TextVector { text: value.0, vector: value.1 };
}

/// The microsecond in which the moment lies.
impl From<Timestamp> for ParamValue {
    fn from(value: Timestamp) -> ParamValue {
        ParamValue::Int(value.as_microsecond())
    }
}

/// As of a [`Timestamp`]; a moment that none has is the nearest one.
impl From<SystemTime> for ParamValue {
    fn from(value: SystemTime) -> ParamValue {
        let nearest = if value < SystemTime::UNIX_EPOCH { Timestamp::MIN } else { Timestamp::MAX };
        ParamValue::from(Timestamp::try_from(value).unwrap_or(nearest))
    }
}

impl<const N: usize> From<[&str; N]> for ParamValue {
    fn from(value: [&str; N]) -> ParamValue {
        ParamValue::from(value.as_slice())
    }
}

impl<const N: usize> From<[f32; N]> for ParamValue {
    fn from(value: [f32; N]) -> ParamValue {
        ParamValue::Vector(value.to_vec())
    }
}
