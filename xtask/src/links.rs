//! Dead links in Markdown: files that are not there, and headings that are not in them.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::process::Outcome;

/// Checks every relative link of `pages`, paths below `root`. Pages of the folder `book` may link to files of that folder only, since nothing else is built
/// into it, and its `SUMMARY.md` must list them all.
pub(crate) fn check(root: &Path, pages: &[PathBuf], book: &Path) -> Outcome {
    let mut texts = HashMap::new();
    for page in pages {
        let text = fs::read_to_string(root.join(page)).map_err(|error| format!("{}: {error}", page.display()))?;
        texts.insert(page.clone(), text);
    }
    let mut dead = Vec::new();
    for page in pages {
        for (line, target) in links(&texts[page]) {
            if let Some(why) = fault(root, &texts, book, page, &target) {
                dead.push(format!("{}:{line}: {target}: {why}", page.display()));
            }
        }
    }
    let summary = book.join("SUMMARY.md");
    let listed = texts.get(&summary).map(|text| links(text)).unwrap_or_default();
    let listed: HashSet<PathBuf> = listed.into_iter().filter_map(|(_, target)| beside(&summary, &target)).collect();
    let unlisted = pages.iter().filter(|page| page.starts_with(book) && **page != summary && !listed.contains(*page));
    dead.extend(unlisted.map(|page| format!("{}: not in {}", page.display(), summary.display())));
    if dead.is_empty() { Ok(()) } else { Err(format!("dead links:\n  {}", dead.join("\n  ")).into()) }
}

/// What is wrong with a link of `page`.
fn fault(
    root: &Path,
    texts: &HashMap<PathBuf, String>,
    book: &Path,
    page: &Path,
    target: &str,
) -> Option<&'static str> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let Some(file) = (if path.is_empty() { Some(page.to_owned()) } else { beside(page, path) }) else {
        return Some("leads out of the repository");
    };
    if page.starts_with(book) && !file.starts_with(book) {
        return Some("is not a page of the book");
    }
    if !root.join(&file).exists() {
        return Some("is not there");
    }
    let read;
    let text = match texts.get(&file) {
        Some(text) => text,
        None if anchor.is_some() => {
            read = fs::read_to_string(root.join(&file)).unwrap_or_default();
            &read
        }
        None => return None,
    };
    anchor.filter(|anchor| !anchors(text).contains(*anchor)).map(|_| "has no such heading")
}

/// The path below the root that `link` means on `page`; `None` above the root.
fn beside(page: &Path, link: &str) -> Option<PathBuf> {
    let mut path = page.parent()?.to_owned();
    for part in Path::new(link).components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir if path.pop() => {}
            _ => return None,
        }
    }
    Some(path)
}

/// Lines outside of fenced blocks, numbered from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((at + 1, line))
    })
}

/// The targets of `[text](target)` and `[label]: target`, with their lines; code is skipped.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, line) in prose(text) {
        // Every second piece between back ticks is code.
        let plain: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        if let Some((_, target)) = plain.strip_prefix('[').and_then(|rest| rest.split_once("]: ")) {
            found.push((at, target.trim().to_owned()));
        }
        let targets = plain.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        // A title may follow the target.
        found.extend(targets.filter_map(|(inside, _)| inside.split_whitespace().next()).map(|t| (at, t.to_owned())));
    }
    found
}

/// The anchors of all headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> HashSet<String> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    let mut anchors = HashSet::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        let level = line.len() - title.len();
        if !(1..=6).contains(&level) || !title.starts_with(' ') {
            continue;
        }
        let keep = |c: char| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || matches!(c, '-' | '_') => Some(c.to_ascii_lowercase()),
            _ => None,
        };
        let anchor: String = title.trim().chars().filter_map(keep).collect();
        let seen = counts.entry(anchor.clone()).or_default();
        anchors.insert(if *seen == 0 { anchor } else { format!("{anchor}-{seen}") });
        *seen += 1;
    }
    anchors
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    /// What the check says about a book of these pages.
    fn said(pages: &[(&str, &str)]) -> String {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("docs")).unwrap();
        for (name, text) in pages {
            fs::write(root.path().join(name), text).unwrap();
        }
        let names: Vec<_> = pages.iter().map(|(name, _)| PathBuf::from(name)).collect();
        check(root.path(), &names, Path::new("docs")).err().map_or_else(String::new, |error| error.to_string())
    }

    const SUMMARY: (&str, &str) = ("docs/SUMMARY.md", "- [A](a.md)\n- [B](b.md)\n");

    #[test]
    fn live_links_pass() {
        let a = "# One two\n\n## `--dtype`, on cards\n\n## Again\n\n## Again\n[b](b.md#b \"title\") [r][r] [self](#again-1) `[no](gone.md)`\n\n```sh\n[no](gone.md)\n```\n[r]: ./b.md\n";
        let pages = [
            SUMMARY,
            ("docs/a.md", a),
            ("docs/b.md", "# B\n[a](a.md#one-two) [c](a.md#--dtype-on-cards) [w](https://burn.dev/#x)\n"),
            ("README.md", "[a](docs/a.md#again) [self](Cargo.toml)"),
            ("Cargo.toml", ""),
        ];
        assert_eq!(said(&pages), "");
    }

    #[test]
    fn a_dead_file_is_found() {
        let said = said(&[SUMMARY, ("docs/a.md", "# A\n\n[gone](gone.md)\n"), ("docs/b.md", "[r]: also-gone.md\n")]);
        assert!(said.contains("docs/a.md:3: gone.md: is not there"), "{said}");
        assert!(said.contains("docs/b.md:1: also-gone.md: is not there"), "{said}");
    }

    #[test]
    fn a_dead_anchor_is_found() {
        let said = said(&[SUMMARY, ("docs/a.md", "# A\n[b](b.md#c) [self](#nowhere)\n"), ("docs/b.md", "# B\n")]);
        assert!(said.contains("docs/a.md:2: b.md#c: has no such heading"), "{said}");
        assert!(said.contains("docs/a.md:2: #nowhere: has no such heading"), "{said}");
    }

    #[test]
    fn a_page_of_the_book_stays_in_the_book() {
        let said =
            said(&[SUMMARY, ("docs/a.md", "[r](../README.md) [o](../../x)\n"), ("docs/b.md", ""), ("README.md", "")]);
        assert!(said.contains("../README.md: is not a page of the book"), "{said}");
        assert!(said.contains("../../x: leads out of the repository"), "{said}");
    }

    #[test]
    fn a_page_that_the_summary_forgets_is_found() {
        let said = said(&[("docs/SUMMARY.md", "- [A](a.md)\n"), ("docs/a.md", ""), ("docs/b.md", "")]);
        assert!(said.contains("docs/b.md: not in docs/SUMMARY.md"), "{said}");
    }
}
