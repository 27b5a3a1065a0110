//! `id2label`: the names of the classes.

use serde_json::Value;

use super::config::{Config, shown};
use super::error::ConvertError;

/// The labels in the order of their numbers; `None` when the configuration has none, or only the placeholders that transformers makes up.
pub(super) fn read(config: &Config, n_classes: usize) -> Result<Option<Vec<String>>, ConvertError> {
    const KEY: &str = "id2label";
    let Some(value) = config.raw(KEY) else { return Ok(None) };
    let Value::Object(map) = value else {
        return Err(config.bad(KEY, shown(value), "an object of numbers and labels"));
    };
    if map.len() != n_classes {
        return Err(config.bad(
            KEY,
            format!("{} labels", map.len()),
            format!("{n_classes}, the rows of the classifier"),
        ));
    }
    let mut labels = Vec::with_capacity(n_classes);
    for number in 0..n_classes {
        match map.get(&number.to_string()) {
            Some(Value::String(label)) => labels.push(label.clone()),
            Some(other) => return Err(config.bad(&format!("{KEY}.{number}"), shown(other), "a string")),
            None => {
                return Err(config.bad(KEY, format!("no label {number}"), format!("labels 0 to {}", n_classes - 1)));
            }
        }
    }
    let made_up = labels.iter().enumerate().all(|(number, label)| *label == placeholder(number));
    Ok((!made_up).then_some(labels))
}

/// The label that transformers makes up for a class without one.
pub(crate) fn placeholder(number: usize) -> String {
    format!("LABEL_{number}")
}
