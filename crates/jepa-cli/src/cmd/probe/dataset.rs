//! Inputs of known classes: a folder of folders, or a list.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::exit::CliError;
use crate::inputs::{self, Input, natural_order};

/// Inputs and their classes.
#[derive(Debug)]
pub(super) struct Dataset {
    /// Names of the classes, in natural order.
    pub(super) labels: Vec<String>,
    pub(super) inputs: Vec<Input>,
    /// The class of every input.
    pub(super) classes: Vec<usize>,
}

/// A line of a `.jsonl` list.
#[derive(Deserialize)]
struct JsonLine {
    path: PathBuf,
    label: JsonLabel,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum JsonLabel {
    Text(String),
    Number(i64),
}

impl Dataset {
    /// Lists the inputs of `data`; nothing is decoded.
    ///
    /// # Errors
    /// [`CliError::Input`] for a folder without class folders, a class without an input, and a list that does not parse.
    pub(super) fn read(data: &Path, takes_clips: bool) -> Result<Self, CliError> {
        let listed = match (data.is_dir(), data.extension().and_then(|extension| extension.to_str())) {
            (true, _) => class_folders(data)?,
            (false, Some("csv")) => csv_list(data)?,
            (false, Some("jsonl")) => jsonl_list(data)?,
            (false, _) => {
                let what = match data.exists() {
                    true => "neither a folder of class folders, nor a .csv or .jsonl of path and label",
                    false => "no such file or folder",
                };
                return Err(CliError::input(data.display().to_string(), what));
            }
        };
        let mut by_label: BTreeMap<String, Vec<Input>> = BTreeMap::new();
        for (label, path) in listed {
            by_label.entry(label).or_default().extend(inputs::expand(&[path], takes_clips));
        }
        let mut by_label: Vec<_> = by_label.into_iter().collect();
        by_label.sort_by(|(a, _), (b, _)| natural_order(a, b));
        if by_label.is_empty() {
            return Err(CliError::input(data.display().to_string(), "it names no input"));
        }
        let mut dataset = Self { labels: Vec::new(), inputs: Vec::new(), classes: Vec::new() };
        for (class, (label, inputs)) in by_label.into_iter().enumerate() {
            if let Some(fault) = inputs.iter().map(Input::fault).collect::<Option<Vec<_>>>() {
                let name = inputs.first().map_or(label.clone(), |input| input.name.clone());
                let why = fault.first().copied().unwrap_or("no input");
                return Err(CliError::input(name, format!("{why}, and nothing else is of class {label:?}")));
            }
            dataset.classes.extend(inputs.iter().map(|_| class));
            dataset.inputs.extend(inputs);
            dataset.labels.push(label);
        }
        Ok(dataset)
    }

    /// The files that are read, but for the list itself.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        self.inputs.iter().flat_map(Input::files).map(PathBuf::as_path)
    }

    /// Where the inputs of each name stand, the first one first: what comes back from the stream has a name only.
    pub(super) fn places(&self) -> HashMap<&str, VecDeque<usize>> {
        let mut places: HashMap<&str, VecDeque<usize>> = HashMap::new();
        for (place, input) in self.inputs.iter().enumerate() {
            places.entry(&input.name).or_default().push_back(place);
        }
        places
    }
}

/// The folders in `data`, each with its name as a label.
fn class_folders(data: &Path) -> Result<Vec<(String, PathBuf)>, CliError> {
    let fail = |error: std::io::Error| CliError::input(data.display().to_string(), error);
    let mut folders = Vec::new();
    for entry in fs::read_dir(data).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') {
            folders.push((name, path));
        }
    }
    if folders.is_empty() {
        return Err(CliError::input(data.display().to_string(), "wanted one sub-folder per class, found none"));
    }
    Ok(folders)
}

/// Rows of path and label, quoted where they must be; a first row of these two words is a heading.
fn csv_list(data: &Path) -> Result<Vec<(String, PathBuf)>, CliError> {
    let fail = |what: String| CliError::input(data.display().to_string(), what);
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_path(data).map_err(|e| fail(e.to_string()))?;
    let mut listed = Vec::new();
    for (i, record) in reader.records().enumerate() {
        let record = record.map_err(|error| fail(error.to_string()))?;
        let line = record.position().map_or(0, csv::Position::line);
        let [path, label] = record.iter().collect::<Vec<_>>()[..] else {
            let quotes = if record.len() > 2 { "; quote what holds a comma" } else { "" };
            let s = if record.len() == 1 { "" } else { "s" };
            return Err(fail(format!("line {line}: {} field{s}, wanted path,label{quotes}", record.len())));
        };
        if i > 0 || (path, label) != ("path", "label") {
            listed.push((named(label.to_owned(), line).map_err(fail)?, beside(data, Path::new(path))));
        }
    }
    Ok(listed)
}

fn jsonl_list(data: &Path) -> Result<Vec<(String, PathBuf)>, CliError> {
    let fail = |what: String| CliError::input(data.display().to_string(), what);
    let text = fs::read_to_string(data).map_err(|error| fail(error.to_string()))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let parsed = lines.map(|(i, line)| {
        let JsonLine { path, label } = serde_json::from_str(line)
            .map_err(|error| fail(format!("line {}: {error}; wanted {{\"path\": …, \"label\": …}}", i + 1)))?;
        let label = match label {
            JsonLabel::Text(text) => text,
            JsonLabel::Number(number) => number.to_string(),
        };
        Ok((named(label, i as u64 + 1).map_err(fail)?, beside(data, &path)))
    });
    parsed.collect()
}

/// A label that says something; `line` is where it stands.
fn named(label: String, line: u64) -> Result<String, String> {
    if label.trim().is_empty() { Err(format!("line {line}: no label")) } else { Ok(label) }
}

/// Paths in a list are relative to the list.
fn beside(list: &Path, path: &Path) -> PathBuf {
    list.parent().unwrap_or(Path::new("")).join(path)
}
