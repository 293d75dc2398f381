//! Values that go into statements and come out of rows, the same for every engine.

use crate::{Error, Tx};

/// A value of a column, or a list of them for a statement that asks whether a column is `in` it.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Int(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
    Ints(Vec<i64>),
    Texts(Vec<String>),
}

/// One row of an answer, by position.
#[derive(Debug)]
pub struct Row(pub(super) Vec<Value>);

impl Tx<'_> {
    /// Runs a statement; how many rows it changed.
    pub(crate) fn exec(&mut self, sql: &str, values: &[Value]) -> Result<usize, Error> {
        let changed = self.on.exec(sql, values)?;
        self.changes += changed;
        Ok(changed)
    }

    /// Adds a row with a statement that ends in `returning`; the number it was given.
    pub(crate) fn insert(&mut self, sql: &str, values: &[Value]) -> Result<i64, Error> {
        let added = self.fetch_one(sql, values)?;
        self.changes += 1;
        added.map_or(Err(Error::Decode("an insert returned nothing".into())), |mut row| row.int(0))
    }

    /// Runs a query; all its rows.
    pub(crate) fn fetch(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, Error> {
        self.on.fetch(sql, values)
    }

    /// The first row, if there is one.
    pub(crate) fn fetch_one(&mut self, sql: &str, values: &[Value]) -> Result<Option<Row>, Error> {
        Ok(self.fetch(sql, values)?.into_iter().next())
    }
}

impl Row {
    pub fn text(&mut self, at: usize) -> Result<String, Error> {
        match std::mem::replace(self.slot(at)?, Value::Null) {
            Value::Text(text) => Ok(text),
            other => Err(Error::Decode(format!("column {at} is not text: {other:?}"))),
        }
    }

    pub fn maybe_text(&mut self, at: usize) -> Result<Option<String>, Error> {
        match self.slot(at)? {
            Value::Null => Ok(None),
            _ => self.text(at).map(Some),
        }
    }

    pub fn int(&mut self, at: usize) -> Result<i64, Error> {
        match self.slot(at)? {
            Value::Int(n) => Ok(*n),
            other => Err(Error::Decode(format!("column {at} is not a whole number: {other:?}"))),
        }
    }

    pub fn maybe_int(&mut self, at: usize) -> Result<Option<i64>, Error> {
        match self.slot(at)? {
            Value::Null => Ok(None),
            _ => self.int(at).map(Some),
        }
    }

    pub fn real(&mut self, at: usize) -> Result<f64, Error> {
        match self.slot(at)? {
            Value::Real(n) => Ok(*n),
            Value::Int(n) => Ok(*n as f64),
            other => Err(Error::Decode(format!("column {at} is not a number: {other:?}"))),
        }
    }

    pub fn maybe_real(&mut self, at: usize) -> Result<Option<f64>, Error> {
        match self.slot(at)? {
            Value::Null => Ok(None),
            _ => self.real(at).map(Some),
        }
    }

    pub fn blob(&mut self, at: usize) -> Result<Vec<u8>, Error> {
        match std::mem::replace(self.slot(at)?, Value::Null) {
            Value::Blob(bytes) => Ok(bytes),
            Value::Null => Ok(Vec::new()),
            other => Err(Error::Decode(format!("column {at} is not bytes: {other:?}"))),
        }
    }

    pub fn json<T: serde::de::DeserializeOwned>(&mut self, at: usize) -> Result<T, Error> {
        let text = self.text(at)?;
        serde_json::from_str(&text).map_err(|error| Error::Decode(error.to_string()))
    }

    fn slot(&mut self, at: usize) -> Result<&mut Value, Error> {
        self.0.get_mut(at).ok_or_else(|| Error::Decode(format!("no column {at}")))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Value {
        Value::Blob(bytes)
    }
}

impl From<f64> for Value {
    fn from(n: f64) -> Value {
        Value::Real(n)
    }
}

impl From<i64> for Value {
    fn from(n: i64) -> Value {
        Value::Int(n)
    }
}

impl From<&[i64]> for Value {
    fn from(list: &[i64]) -> Value {
        Value::Ints(list.to_vec())
    }
}

impl From<bool> for Value {
    fn from(yes: bool) -> Value {
        Value::Int(yes.into())
    }
}

impl From<domain::Timestamp> for Value {
    fn from(at: domain::Timestamp) -> Value {
        Value::Int(at.0)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(maybe: Option<T>) -> Value {
        maybe.map_or(Value::Null, Into::into)
    }
}
