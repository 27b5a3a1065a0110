//! A family that behaves like another one until its two files are edited: `cargo xtask new-family`.

mod edit;
mod trial;

use std::error::Error;
use std::fs;
use std::path::Path;

use crate::process::{Outcome, cargo, root, step};
use edit::{Edit, Place};

pub(crate) use trial::trial;

const HPARAMS: &str = "crates/jepa-gguf/src/schema/hparams.rs";
const RULES: &str = "crates/jepa-gguf/src/schema/families.rs";
const CONVERT: &str = "crates/jepa-gguf/src/convert";
const GRAPHS: &str = "crates/jepa-models/src/families";

#[derive(Debug, clap::Args)]
pub(crate) struct NewFamilyArgs {
    /// The word for `jepa.family` and `model_type`, of a-z, 0-9 and _; published files freeze it
    name: String,
    /// Family to start from, or one of its layouts in convert/registry.rs
    #[arg(long, value_name = "FAMILY[::LAYOUT]", default_value = "hfvit::VIT")]
    like: String,
}

/// Adds the family to this checkout and says what is left to do.
pub(crate) fn run(args: &NewFamilyArgs) -> Outcome {
    let family = NewFamily::plan(&root(), &args.name, &args.like)?;
    family.add(&root())?;
    step("format", &mut cargo(&["fmt", "--all"]))?;
    let NewFamily { word, like, .. } = family;
    eprintln!(
        "`{word}` is there and behaves like `{like}`. What is left, as docs/adding-a-family.md explains it:
  {CONVERT}/{word}.rs: the checkpoint's names and numbers
  {GRAPHS}/{word}.rs: what sets the graph apart
  {RULES}: what the schema allows it
  {GRAPHS}/registry.rs: its name, its repository, its pooling
  README.md, docs/families.md: its rows in the tables
  tests/reference/families/{word}.py, tests/fixtures: a case made by the original code
  cargo xtask docs, cargo xtask ci"
    );
    Ok(())
}

/// What is known about a family before it is added.
#[derive(Debug)]
struct NewFamily {
    word: String,
    /// Its variant of `Family`.
    variant: String,
    /// The word of the family that it starts as, its variant, and the name of the layout.
    like: String,
    like_variant: String,
    like_layout: String,
}

impl NewFamily {
    /// Checks the words against the sources below `root`.
    fn plan(root: &Path, word: &str, like: &str) -> Result<Self, Box<dyn Error>> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if !word.starts_with(|c: char| c.is_ascii_lowercase()) || !word.chars().all(plain) || word.ends_with('_') {
            return Err(format!("{word:?}: wanted a word of a-z, 0-9 and _ that begins with a letter").into());
        }
        for folder in [CONVERT, GRAPHS] {
            let file = format!("{folder}/{word}.rs");
            if root.join(&file).exists() {
                return Err(format!("{file} is there already; choose another name than {word:?}").into());
            }
        }
        let (like, layout) = like.split_once("::").map_or((like, None), |(like, layout)| (like, Some(layout)));
        let hparams = fs::read_to_string(root.join(HPARAMS))?;
        let (_, families) = hparams.split_once("    Family {\n").ok_or("schema/hparams.rs has no families")?;
        let words = families.split_once("\n    }\n").map_or(families, |(words, _)| words);
        let variants = words.lines().filter_map(|line| line.trim().split_once(" = "));
        let known: Vec<_> = variants.map(|(variant, word)| (variant, word.trim_matches(['"', ',']))).collect();
        let Some((like_variant, _)) = known.iter().find(|(_, word)| *word == like) else {
            let known: Vec<_> = known.iter().map(|(_, word)| *word).collect();
            return Err(format!("--like {like}: wanted one of {}", known.join(", ")).into());
        };
        let registry = fs::read_to_string(root.join(CONVERT).join("registry.rs"))?;
        let prefix = format!("    {like}::");
        let layouts: Vec<_> =
            registry.lines().filter_map(|line| line.strip_prefix(&prefix)?.strip_suffix(',')).collect();
        let found = layout.map_or(layouts.first(), |layout| layouts.iter().find(|known| **known == layout));
        let Some(like_layout) = found else {
            let layout = layout.unwrap_or_default();
            return Err(format!("--like {like}::{layout}: wanted one of the layouts {}", layouts.join(", ")).into());
        };
        Ok(Self {
            word: word.to_owned(),
            variant: variant(word),
            like: like.to_owned(),
            like_variant: (*like_variant).to_owned(),
            like_layout: (*like_layout).to_owned(),
        })
    }

    /// Writes its two files, its line in each registry and its rows in the tables; nothing where one of them has no place.
    fn add(&self, root: &Path) -> Outcome {
        let Self { word, variant, like, like_variant, .. } = self;
        let mut edits = vec![
            Edit::new(
                HPARAMS,
                Place::BeforeEndOf("    Family {"),
                format!("        /// {variant}.\n        {variant} = \"{word}\","),
            ),
            Edit::new(
                RULES,
                Place::BeforeEndOf("        match self {"),
                format!("            Self::{variant} => Self::{like_variant}.rules(),"),
            ),
            Edit::new(format!("{CONVERT}/mod.rs"), Place::BeforeLine("mod names;"), format!("mod {word};")),
            Edit::new(format!("{CONVERT}/registry.rs"), Place::AfterText("use super::{"), format!("{word}, ")),
            Edit::new(
                format!("{CONVERT}/registry.rs"),
                Place::BeforeEndOf("static LAYOUTS: &[Layout] = &["),
                format!("    {word}::HUB,"),
            ),
            Edit::new(format!("{GRAPHS}/mod.rs"), Place::BeforeLine("mod registry;"), format!("mod {word};")),
            Edit::new(
                format!("{GRAPHS}/mod.rs"),
                Place::BeforeEndOf("    match enc.config().family {"),
                format!("        Family::{variant} => {word}::embed(enc, pixels, pass),"),
            ),
            Edit::new(
                format!("{GRAPHS}/registry.rs"),
                Place::BeforeEndOf("    match family {"),
                format!(
                    "        Family::{variant} => About {{ name: \"{variant}\", repository: \"\", ..about(Family::{like_variant}) }},"
                ),
            ),
        ];
        for page in ["README.md", "docs/families.md"] {
            let row = row_like(&fs::read_to_string(root.join(page))?, like)
                .map(|rest| format!("| `{word}` | {variant} | | {rest}"))
                .ok_or_else(|| format!("{page}: the table of families has no row for `{like}`"))?;
            edits.push(Edit::new(page, Place::AfterTable("| `jepa.family` |"), row));
        }
        let changed = edit::apply(root, &edits)?;
        for (file, text) in changed {
            fs::write(root.join(file), text)?;
        }
        fs::write(root.join(CONVERT).join(format!("{word}.rs")), self.conversion())?;
        fs::write(root.join(GRAPHS).join(format!("{word}.rs")), self.graph())?;
        Ok(())
    }

    fn conversion(&self) -> String {
        let Self { word, variant, like, like_layout, .. } = self;
        format!(
            "//! {variant}: the layout of [`super::{like}`], told apart by its `model_type`.

use super::error::ConvertError;
use super::{like};
use super::registry::Layout;
use super::source::Source;
use crate::schema::{{Family, Hparams}};

/// As a folder with a `config.json`.
pub(super) const HUB: Layout = Layout {{
    family: Family::{variant},
    name: \"{variant}\",
    repositories: &[],
    model_types: &[\"{word}\"],
    read,
    ..{like}::{like_layout}
}};

fn read(source: &Source<'_>) -> Result<Hparams, ConvertError> {{
    Ok(Hparams {{ family: Family::{variant}, ..({like}::{like_layout}.read)(source)? }})
}}
"
        )
    }

    fn graph(&self) -> String {
        let Self { variant, like, .. } = self;
        format!(
            "//! {variant}: the graph of [`super::{like}`].

use burn::prelude::*;

use super::{like};
use crate::encoder::{{Embedded, Encoder, Pass}};
use crate::error::ModelError;
use crate::nn::Pixels;

pub(super) fn embed<B: Backend>(
    enc: &Encoder<B>,
    pixels: Pixels<B>,
    pass: &mut Pass<'_, '_, B>,
) -> Result<Embedded<B>, ModelError> {{
    {like}::embed(enc, pixels, pass)
}}
"
        )
    }
}

/// The word in camel case; an underscore between two digits stays, as in `Vjepa2_1`.
fn variant(word: &str) -> String {
    let mut variant = String::new();
    let mut before = '_';
    let mut letters = word.chars().peekable();
    while let Some(letter) = letters.next() {
        let digits = before.is_ascii_digit() && letters.peek().is_some_and(char::is_ascii_digit);
        match letter {
            '_' if digits => variant.push('_'),
            '_' => {}
            _ if before == '_' => variant.push(letter.to_ascii_uppercase()),
            _ => variant.push(letter),
        }
        before = letter;
    }
    variant
}

/// What stands in a table of families behind the first three cells of a family's row.
fn row_like(page: &str, family: &str) -> Option<String> {
    let row = page.lines().find(|line| line.starts_with(&format!("| `{family}` |")))?;
    row.splitn(4, " | ").nth(3).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    #[test]
    fn variants_are_camel_case() {
        assert_eq!(variant("walkjepa"), "Walkjepa");
        assert_eq!(variant("walk_jepa2"), "WalkJepa2");
        assert_eq!(variant("vjepa2_1"), "Vjepa2_1");
    }

    #[test]
    fn words_that_cannot_be_are_refused_by_name() {
        let refused = |word: &str, like: &str| NewFamily::plan(&root(), word, like).unwrap_err().to_string();
        assert!(refused("Walk", "hfvit").contains("\"Walk\": wanted a word of a-z"));
        assert!(refused("lewm", "hfvit").contains("lewm.rs is there already"));
        assert!(refused("config", "hfvit").contains("config.rs is there already"));
        assert!(refused("walkjepa", "nothing").contains("--like nothing: wanted one of ijepa, vjepa"));
        assert!(refused("walkjepa", "hfvit::NONE").contains("wanted one of the layouts LITE_SSL, DINOV2, VIT"));
    }

    #[test]
    fn a_family_alone_means_its_first_layout() {
        let family = NewFamily::plan(&root(), "walkjepa", "vjepa2").unwrap();
        assert_eq!((family.like_variant.as_str(), family.like_layout.as_str()), ("Vjepa2", "HUB"));
    }

    #[test]
    fn a_row_is_taken_over_without_its_names() {
        let page = "| `a` | A | org/a | picture | CLS |\n";
        assert_eq!(row_like(page, "a").unwrap(), "picture | CLS |");
        assert_eq!(row_like(page, "b"), None);
    }
}
