//! Input of the HTTP interface: how strictly JSON of a client is read.

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// A value that may only be deserialized from a JSON object. By default serde also accepts a JSON array with the
/// fields in order.
pub struct JsonObject<T>(pub T);

impl<'de, T: DeserializeOwned> Deserialize<'de> for JsonObject<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let object = Value::Object(Map::deserialize(from)?);
        T::deserialize(object).map(Self).map_err(D::Error::custom)
    }
}

/// Reads an optional integer as JSON Schema defines it: any number without a fraction, so 556.0 is valid (JSON
/// Schema Validation 2020-12, section 6.1.1).
///
/// # Errors
///
/// If the value is not an integer, or out of the range of its type.
pub fn optional_integer<'de, D: Deserializer<'de>, T: TryFrom<u32>>(from: D) -> Result<Option<T>, D::Error> {
    let Some(number) = Option::<f64>::deserialize(from)? else { return Ok(None) };
    let is_whole = number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number);
    let whole = is_whole.then_some(number as u32).and_then(|whole| T::try_from(whole).ok());
    whole
        .map(Some)
        .ok_or_else(|| D::Error::custom(format!("{number} is not a whole number in the allowed range")))
}
