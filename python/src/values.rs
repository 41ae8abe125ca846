//! Values between Python and the engine: times, durations and parameters.
//!
//! | Python | parameter |
//! |---|---|
//! | `str`, `bool`, `int`, `float` | itself; also numpy's scalars |
//! | `datetime` with a zone, `date` | its RFC 3339 text |
//! | array of one dimension | a vector; of texts, a list |
//! | `list`, `tuple` | a vector if all are `float`, otherwise a list |
//! | `set`, `frozenset` | a list |
//! | `{"text": …, "vector": …}`, `{"vector": …}` | a text with its vector, a vector |
//!
//! Lists are read to a depth of [`MAX_DEPTH`] and a number of [`MAX_VALUES`]: a list that contains itself is an error.

use crate::errors;
use crate::texts::{Text, string};
use crate::vectors::{is_array, vector};
use holotype::query::{ParamValue, Params};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyString, PyTuple, PyType};

/// The greatest depth of lists in a parameter.
const MAX_DEPTH: usize = 16;
/// The greatest number of values in a parameter, those of nested lists included.
const MAX_VALUES: usize = 4_000_000;

/// Microseconds since the epoch; a `datetime` in UTC for Python, or the `int` outside the years 1 to 9999.
#[derive(Clone, Copy)]
pub(crate) struct Micros(pub(crate) i64);

impl<'py> IntoPyObject<'py> for Micros {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match epoch(py)?.add(duration(py, self.0)?) {
            Err(error) if error.is_instance_of::<PyOverflowError>(py) => Ok(self.0.into_pyobject(py)?.into_any()),
            instant => instant,
        }
    }
}

/// A `timedelta`.
pub(crate) fn duration(py: Python<'_>, micros: i64) -> PyResult<Bound<'_, PyAny>> {
    static TIMEDELTA: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    TIMEDELTA.import(py, "datetime", "timedelta")?.call1((0, 0, micros))
}

/// The first moment of 1970, in UTC.
fn epoch(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static EPOCH: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let made = EPOCH.get_or_try_init(py, || -> PyResult<Py<PyAny>> {
        let datetime = py.import("datetime")?;
        let utc = datetime.getattr("timezone")?.getattr("utc")?;
        Ok(datetime.getattr("datetime")?.call1((1970, 1, 1, 0, 0, 0, 0, utc))?.unbind())
    });
    Ok(made?.bind(py))
}

// ---- times ----

/// Times from seconds to nanoseconds since 1970 are told apart by magnitude: each unit ends in the year 5138.
const UNITS: [(&str, f64, f64); 4] =
    [("seconds", 1e11, 1e6), ("milliseconds", 1e14, 1e3), ("microseconds", 1e17, 1.0), ("nanoseconds", 1e20, 1e-3)];

const TIME: &str = "a datetime with a time zone, a date, RFC 3339 text, or a number since 1970";

/// A time given as a `datetime` with a zone, a `date`, RFC 3339 text, or a number since the epoch.
///
/// A number that is not of microseconds is taken by its magnitude, with a warning.
pub(crate) fn micros(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    let (micros, unit) = micros_and_unit(value)?;
    unit.map_or(Ok(()), |unit| warn_of_unit(value, unit))?;
    Ok(micros)
}

/// A time, and the unit of its number if that is not microseconds.
pub(crate) fn micros_and_unit(value: &Bound<'_, PyAny>) -> PyResult<(i64, Option<&'static str>)> {
    let py = value.py();
    if let Ok(text) = value.cast::<PyString>() {
        let parsed = holotype::time::parse(&string(text, "time")?);
        return Ok((parsed.map_err(|error| errors::raise(py, &error, None))?, None));
    }
    if let Some(micros) = of_calendar(value)? {
        return Ok((micros, None));
    }
    if value.is_instance_of::<PyBool>() || value.get_type().name()?.to_str()? == "bool" {
        return Err(errors::wrong_type(py, &format!("time: expected {TIME}, found bool")));
    }
    // A whole number is not rounded on its way.
    if let Ok(whole) = value.extract::<i64>() {
        let (unit, _) = unit_of(py, whole as f64)?;
        let micros = match unit {
            "seconds" => whole * 1_000_000,
            "milliseconds" => whole * 1_000,
            "microseconds" => whole,
            _ => whole.div_euclid(1_000),
        };
        return Ok((micros, (unit != "microseconds" && whole != 0).then_some(unit)));
    }
    let number: f64 = member("time", TIME, value)?;
    let (unit, factor) = unit_of(py, number)?;
    Ok(((number * factor).round() as i64, (unit != "microseconds").then_some(unit)))
}

/// The unit of a number of time and its length in microseconds.
fn unit_of(py: Python<'_>, number: f64) -> PyResult<(&'static str, f64)> {
    let found = UNITS.iter().find(|(_, below, _)| number.abs() < *below);
    found.map(|(unit, _, factor)| (*unit, *factor)).ok_or_else(|| {
        errors::invalid(py, "bad-time", &format!("time: {number} is no time since 1970"), &format!("give {TIME}"))
    })
}

/// Says that a number was taken as another unit than microseconds.
pub(crate) fn warn_of_unit(value: &Bound<'_, PyAny>, unit: &str) -> PyResult<()> {
    let py = value.py();
    let message = format!("the time {value} is taken as {unit} since 1970; give microseconds, or a datetime");
    let category = py.import("holotype.errors")?.getattr("TimeUnitWarning")?;
    py.import("warnings")?.call_method1("warn", (message, category, 2))?;
    Ok(())
}

/// The microseconds of a `datetime`, a `date` or numpy's `datetime64`; `None` of anything else.
pub(crate) fn of_calendar(value: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    if is_datetime(value)? {
        return of_datetime(value).map(Some);
    }
    static DATE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    if value.is_instance(DATE.import(value.py(), "datetime", "date")?)? {
        const DAYS_TO_1970: i64 = 719_163;
        let days: i64 = value.call_method0("toordinal")?.extract()?;
        return Ok(Some((days - DAYS_TO_1970) * 86_400_000_000));
    }
    let kind = value.get_type();
    if kind.name()?.to_str()? != "datetime64" || kind.module()?.to_str()? != "numpy" {
        return Ok(None);
    }
    let micros = value.call_method1("astype", ("datetime64[us]",))?.call_method1("astype", ("int64",))?;
    // numpy's missing time.
    match micros.extract()? {
        i64::MIN => Err(errors::invalid(value.py(), "bad-time", "time: it is NaT, which is no time", "give None")),
        micros => Ok(Some(micros)),
    }
}

fn is_datetime(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    static DATETIME: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    value.is_instance(DATETIME.import(value.py(), "datetime", "datetime")?)
}

fn of_datetime(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    let py = value.py();
    if value.getattr("tzinfo")?.is_none() {
        let hint = "give it one, such as datetime.now(timezone.utc)";
        return Err(errors::invalid(py, "invalid", "the datetime has no time zone", hint));
    }
    let since = value.sub(epoch(py)?)?;
    let part = |name| since.getattr(name)?.extract::<i64>();
    Ok((part("days")? * 86_400 + part("seconds")?) * 1_000_000 + part("microseconds")?)
}

/// A time as microseconds since 1970, for the package.
#[pyfunction(name = "micros")]
pub(crate) fn micros_of(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    micros(value)
}

// ---- members ----

/// Reads a value of a dict, naming it if its type is wrong.
pub(crate) fn member<'py, T: FromPyObjectOwned<'py>>(
    name: &str,
    expected: &str,
    value: &Bound<'py, PyAny>,
) -> PyResult<T> {
    value.extract().map_err(|error: T::Error| {
        let error: PyErr = error.into();
        if errors::is_own(value.py(), &error) {
            return error;
        }
        errors::wrong_type(value.py(), &format!("{name}: expected {expected}, found {}", type_name(value)))
    })
}

/// Reads a text, naming it if it is none.
pub(crate) fn text_of(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    match value.cast::<PyString>() {
        Ok(text) => string(text, name),
        Err(_) => Err(errors::wrong_type(value.py(), &format!("{name}: expected a str, found {}", type_name(value)))),
    }
}

/// Reads a whole number from 0. A float that is whole is one: so a column of numbers comes that lacks some.
pub(crate) fn whole(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    const EXPECTED: &str = "a whole number from 0";
    if is_float(value)? {
        let number: f64 = member(name, EXPECTED, value)?;
        if (0.0..9e15).contains(&number) && number.fract() == 0.0 {
            return Ok(number as u64);
        }
    }
    member(name, EXPECTED, value)
}

pub(crate) fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "another type".to_owned(), |name| name.to_string())
}

// ---- parameters ----

/// The parameters of a statement.
pub(crate) fn params(given: Option<&Bound<'_, PyDict>>) -> PyResult<Params> {
    let mut params = Params::new();
    for (name, value) in given.into_iter().flatten() {
        let Text(name) = member("params", "names that are str", &name)?;
        let value = Reading { name: &name, left: MAX_VALUES }.param(&value, 0)?;
        params.insert(name.trim_start_matches('$').to_owned(), value);
    }
    Ok(params)
}

/// True for a `float`, numpy's among them.
fn is_float(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    if value.is_instance_of::<PyFloat>() {
        return Ok(true);
    }
    let kind = value.get_type();
    Ok(kind.name()?.to_str()?.starts_with("float") && kind.module()?.to_str()? == "numpy")
}

/// The reading of one parameter.
struct Reading<'n> {
    name: &'n str,
    /// The number of values that may still be read.
    left: usize,
}

impl Reading<'_> {
    fn param(&mut self, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<ParamValue> {
        self.left = self.left.checked_sub(1).ok_or_else(|| {
            let message = format!("{} holds more than {MAX_VALUES} values", self.name);
            errors::invalid(value.py(), "invalid", &message, "ask with fewer of them at a time")
        })?;
        if let Ok(text) = value.cast::<PyString>() {
            return Ok(ParamValue::Text(string(text, self.name)?));
        }
        if value.is_instance_of::<PyBool>() {
            return Ok(ParamValue::Bool(value.extract()?));
        }
        if value.is_exact_instance_of::<PyInt>() {
            return self.number(value);
        }
        if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
            return self.list(value, depth);
        }
        if value.is_instance_of::<PySet>() || value.is_instance_of::<PyFrozenSet>() {
            return self.members(value, depth);
        }
        if let Ok(dict) = value.cast::<PyDict>() {
            return self.passage(dict);
        }
        if is_array(value)? {
            if value.getattr("ndim")?.extract::<usize>()? == 0 {
                return self.param(&value.call_method0("item")?, depth);
            }
            let kind: String = value.getattr("dtype")?.getattr("kind")?.extract()?;
            if "UO".contains(&kind) {
                return self.members(&value.call_method0("tolist")?, depth);
            }
            return vector(value).map(ParamValue::Vector);
        }
        if let Some(micros) = of_calendar(value)? {
            return Ok(ParamValue::Text(holotype::time::format(micros)));
        }
        if value.get_type().name()?.to_str()? == "bool" {
            return Ok(ParamValue::Bool(value.is_truthy()?));
        }
        self.number(value)
    }

    /// An integer if it fits, otherwise any number.
    fn number(&self, value: &Bound<'_, PyAny>) -> PyResult<ParamValue> {
        match value.extract::<i64>() {
            Ok(whole) => Ok(ParamValue::Int(whole)),
            Err(_) => {
                let expected = "a str, number, bool, datetime, vector, list, or a dict with text and vector";
                member(self.name, expected, value).map(ParamValue::Float)
            }
        }
    }

    fn list(&mut self, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<ParamValue> {
        let mut floats = false;
        for member in value.try_iter()? {
            floats = is_float(&member?)?;
            if !floats {
                break;
            }
        }
        if floats { vector(value).map(ParamValue::Vector) } else { self.members(value, depth) }
    }

    fn members(&mut self, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<ParamValue> {
        if depth == MAX_DEPTH {
            let message = format!("{}: its lists are nested deeper than {MAX_DEPTH}, or contain themselves", self.name);
            return Err(errors::invalid(value.py(), "invalid", &message, "give a list of values"));
        }
        let mut members = Vec::new();
        for member in value.try_iter()? {
            members.push(self.param(&member?, depth + 1)?);
        }
        Ok(ParamValue::List(members))
    }

    /// A vector, or a text with its vector.
    fn passage(&self, dict: &Bound<'_, PyDict>) -> PyResult<ParamValue> {
        let expected = format!("{}: expected a dict with the members text and vector", self.name);
        let wrong = || errors::wrong_type(dict.py(), &expected);
        let vector = vector(&dict.get_item("vector")?.ok_or_else(wrong)?)?;
        match (dict.get_item("text")?, dict.len()) {
            (Some(text), 2) => Ok(ParamValue::TextVector { text: text_of(self.name, &text)?, vector }),
            (None, 1) => Ok(ParamValue::Vector(vector)),
            _ => Err(wrong()),
        }
    }
}
