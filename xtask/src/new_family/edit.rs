//! Lines put into source files at places that are found by their text.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;

/// Where a text goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// Before the first line that is this.
    BeforeLine(&'static str),
    /// Before the line that closes what this first line opens: the next one as far from the edge.
    BeforeEndOf(&'static str),
    /// Behind this, in its line.
    AfterText(&'static str),
    /// Behind the table whose head begins with this.
    AfterTable(&'static str),
}

/// One insertion.
#[derive(Debug)]
pub(super) struct Edit {
    file: String,
    place: Place,
    text: String,
}

impl Edit {
    pub(super) fn new(file: impl Into<String>, place: Place, text: String) -> Self {
        Self { file: file.into(), place, text }
    }
}

/// The files as they become; none where an edit has no place.
pub(super) fn apply(root: &Path, edits: &[Edit]) -> Result<BTreeMap<String, String>, Box<dyn Error>> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for Edit { file, place, text } in edits {
        let before = match files.get(file) {
            Some(edited) => edited.clone(),
            None => fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"))?,
        };
        let after = insert(&before, *place, text).ok_or_else(|| format!("{file}: found no place {place:?}"))?;
        files.insert(file.clone(), after);
    }
    Ok(files)
}

fn insert(before: &str, place: Place, text: &str) -> Option<String> {
    if let Place::AfterText(anchor) = place {
        let (head, tail) = before.split_once(anchor)?;
        return Some(format!("{head}{anchor}{text}{tail}"));
    }
    let mut lines: Vec<&str> = before.lines().collect();
    let at = match place {
        Place::BeforeLine(anchor) => lines.iter().position(|line| *line == anchor)?,
        Place::BeforeEndOf(anchor) => {
            let start = lines.iter().position(|line| *line == anchor)?;
            let edge = |line: &str| line.len() - line.trim_start().len();
            let inside = |line: &&str| line.is_empty() || edge(line) > edge(anchor);
            let end = start + 1 + lines[start + 1..].iter().take_while(|line| inside(line)).count();
            (end < lines.len()).then_some(end)?
        }
        Place::AfterTable(anchor) => {
            let start = lines.iter().position(|line| line.starts_with(anchor))?;
            start + lines[start..].iter().take_while(|line| line.starts_with('|')).count()
        }
        Place::AfterText(_) => return None,
    };
    lines.insert(at, text);
    Some(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_go_where_they_are_sent() {
        let source = "use x::{a};\nmod b;\nfn f() {\n    match x {\n        A => {\n            1\n        }\n\n    }\n}\n| h |\n|---|\n| r |\n\nend\n";
        let put = |place| insert(source, place, "NEW");
        assert!(put(Place::AfterText("use x::{")).is_some_and(|text| text.starts_with("use x::{NEWa};\n")));
        assert!(put(Place::BeforeLine("mod b;")).is_some_and(|text| text.contains("};\nNEW\nmod b;\n")));
        assert!(put(Place::BeforeEndOf("    match x {")).is_some_and(|text| text.contains("\n\nNEW\n    }\n}\n")));
        assert!(put(Place::AfterTable("| h |")).is_some_and(|text| text.contains("| r |\nNEW\n\nend\n")));
    }

    #[test]
    fn a_place_that_is_not_there_is_none() {
        assert_eq!(insert("a\n", Place::BeforeLine("b"), "NEW"), None);
        assert_eq!(insert("a {\n    b\n", Place::BeforeEndOf("a {"), "NEW"), None);
    }
}
