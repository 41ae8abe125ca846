//! Tables: rows with named columns, and cells as Python values.

use crate::columns;
use crate::json;
use crate::pickle::{Reduced, reduced, table_state};
use crate::values::{Micros, duration};
use holotype::answer::Table as EngineTable;
use holotype::cell::Cell;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PySlice, PyTuple};
use std::sync::Arc;

/// The table of a statement: `columns`, and rows as tuples.
#[pyclass(frozen, module = "holotype", sequence)]
pub(crate) struct Table {
    pub(crate) inner: Arc<EngineTable>,
}

/// A cell as a Python value: a time as a `datetime`, a duration as a `timedelta`, an absent one as `None`.
pub(crate) fn to_python<'py>(py: Python<'py>, cell: Option<&Cell>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match cell {
        Some(Cell::Text(text)) => text.into_pyobject(py)?.into_any(),
        Some(Cell::Number(number)) => number.into_pyobject(py)?.into_any(),
        Some(Cell::Integer(number)) => number.into_pyobject(py)?.into_any(),
        Some(Cell::Bool(yes)) => yes.into_pyobject(py)?.to_owned().into_any(),
        Some(Cell::Time(micros)) => Micros(*micros).into_pyobject(py)?,
        Some(Cell::Duration(micros)) => duration(py, *micros)?,
        Some(Cell::List(cells)) => {
            let cells = cells.iter().map(|cell| to_python(py, Some(cell))).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, cells)?.into_any()
        }
        Some(Cell::Json(members)) => json::object_to_python(py, members)?.into_any(),
        // A sort of cell that this package does not know yet.
        Some(other) => other.to_string().into_pyobject(py)?.into_any(),
        None => py.None().into_bound(py),
    })
}

impl Table {
    fn row<'py>(&self, py: Python<'py>, row: &[Option<Cell>]) -> PyResult<Bound<'py, PyTuple>> {
        let cells = row.iter().map(|cell| to_python(py, cell.as_ref())).collect::<PyResult<Vec<_>>>()?;
        PyTuple::new(py, cells)
    }

    fn all<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        self.inner.rows.iter().map(|row| self.row(py, row)).collect()
    }
}

#[pymethods]
impl Table {
    /// The verb of the statement.
    #[getter]
    fn verb(&self) -> &'static str {
        self.inner.verb
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.inner.columns.clone()
    }

    /// The rows as tuples.
    #[getter]
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.all(py)?)
    }

    /// Remarks on how the rows were found.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.inner.notes.clone()
    }

    /// True if a check found damage.
    #[getter]
    fn failed(&self) -> bool {
        self.inner.failed
    }

    /// The rows as dicts, by column name.
    fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let dict = |row: &Vec<Option<Cell>>| {
            let dict = PyDict::new(py);
            for (name, cell) in self.inner.columns.iter().zip(row) {
                dict.set_item(name, to_python(py, cell.as_ref())?)?;
            }
            Ok(dict)
        };
        self.inner.rows.iter().map(dict).collect()
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A consumer may ask for a schema, and a producer may ignore that.
        drop(requested_schema);
        columns::stream(py, columns::of_table(&self.inner))
    }

    fn __len__(&self) -> usize {
        self.inner.rows.len()
    }

    /// A row as a tuple, or the rows of a slice as a list.
    fn __getitem__<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(slice) = index.cast::<PySlice>() {
            return self.rows(py)?.as_any().get_item(slice);
        }
        let row = position(index.extract()?, self.inner.rows.len()).and_then(|at| self.inner.rows.get(at));
        let row = row.ok_or_else(|| PyIndexError::new_err("there is no such row"))?;
        Ok(self.row(py, row)?.into_any())
    }

    fn __contains__(&self, py: Python<'_>, row: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.rows(py)?.contains(row)
    }

    fn __reversed__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("builtins")?.call_method1("reversed", (self.rows(py)?,))
    }

    /// The place of the first row that equals this one.
    #[pyo3(signature = (value, start=0, stop=isize::MAX))]
    fn index(&self, py: Python<'_>, value: &Bound<'_, PyAny>, start: isize, stop: isize) -> PyResult<usize> {
        self.rows(py)?.call_method1("index", (value, start, stop))?.extract()
    }

    /// The number of rows that equal this one.
    fn count(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<usize> {
        self.rows(py)?.call_method1("count", (value,))?.extract()
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.inner == other.inner
    }

    fn __hash__(&self) -> u64 {
        (self.inner.columns.len() as u64) << 32 ^ self.inner.rows.len() as u64
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduced(py, "table", table_state(py, &self.inner)?)
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__<'py>(slf: Bound<'py, Self>, memo: Bound<'py, PyAny>) -> Bound<'py, Self> {
        // It never changes, so that there is nothing to remember.
        drop(memo);
        slf
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.rows(py)?.try_iter()?.into_any())
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        display(slf.as_any(), "table_text")
    }

    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<String> {
        display(slf.as_any(), "table_html")
    }
}

/// The index of a sequence of this length; negative ones count from the end.
pub(crate) fn position(index: isize, len: usize) -> Option<usize> {
    let from_end = index.checked_add_unsigned(len);
    usize::try_from(if index < 0 { from_end? } else { index }).ok()
}

/// The object as `holotype._display` shows it.
pub(crate) fn display(object: &Bound<'_, PyAny>, function: &str) -> PyResult<String> {
    object.py().import("holotype._display")?.call_method1(function, (object,))?.extract()
}
