//! The schema as a page of documentation, made from the tables.

use std::fmt::Write;

use super::dims::Dim;
use super::keys::{Absent, KEYS, KeyKind};
use super::tensors::{Repeat, TENSORS};

/// The page `docs/schema.md`.
pub fn schema_page() -> String {
    let mut page = String::from(HEAD);
    page.push_str(
        "\n## Keys\n\nIntegers may have any width, numbers may be f32 or f64. An unknown `jepa.*` key is a warning.\n",
    );
    for section in ["general.", "jepa.s", "jepa.enc.", "jepa.pred.", "jepa.head.", "jepa.pre."] {
        let belongs = |name: &str| match section {
            "jepa.s" => name.matches('.').count() == 1 && name.starts_with("jepa."),
            prefix => name.starts_with(prefix),
        };
        page.push_str("\n| key | value | when absent | what it is |\n|---|---|---|---|\n");
        for k in KEYS.iter().filter(|k| belongs(k.name)) {
            line(&mut page, &[&format!("`{}`", k.name), &kind(k.kind), &absent(k.absent), k.doc]);
        }
    }
    page.push_str(
        "\n## Tensors\n\nShapes have the rows first, as in PyTorch; leading sizes of 1 make no difference. A tensor that is not in this table is \
         refused.\n\n| tensor | shape | types | when |\n|---|---|---|---|\n",
    );
    for t in TENSORS {
        for (suffix, dims, types) in t.form.parts(true) {
            let over = match t.repeat {
                Repeat::Once => "",
                Repeat::EncBlocks => ", `{i}` below `jepa.enc.n_layer`",
                Repeat::HierNorms => ", `{i}` below the number of `jepa.enc.hier_layers`",
                Repeat::PredBlocks => ", `{i}` below `jepa.pred.n_layer`",
                Repeat::HeadBlocks => ", `{i}` below `jepa.head.n_pool_layers`",
            };
            let bias = match (t.form, suffix) {
                (super::tensors::Form::PredQkv(_), ".bias") => ", `jepa.pred.qkv_bias`",
                _ => "",
            };
            let when = format!("{}{bias}{over}", t.when.text);
            line(&mut page, &[&format!("`{}{suffix}`", t.name), &shape(dims), types.words(), &when]);
        }
    }
    page
}

const HEAD: &str = "<!-- Made by `cargo xtask docs` from crates/jepa-gguf/src/schema; edit the tables there. -->\n\n# Schema of a bundle\n\n\
    One GGUF file is one bundle: an encoder, and optionally a predictor and a head. These tables are what the reader checks.\n\
    `general.file_type` holds ggml's number of the main type (0 f32, 1 f16, 7 q8_0, 12 q4_k, ...) and is advisory: the types of the tensors count.\n";

fn line(page: &mut String, cells: &[&str]) {
    writeln!(page, "| {} |", cells.join(" | ")).expect("writing to a string cannot fail");
}

fn kind(kind: KeyKind) -> String {
    match kind {
        KeyKind::Count { min, max } if min == max => min.to_string(),
        KeyKind::Count { min, max } => format!("integer, {min} to {max}"),
        KeyKind::Real { positive: true } => "number above 0".to_owned(),
        KeyKind::Real { positive: false } => "number".to_owned(),
        KeyKind::Flag => "bool".to_owned(),
        KeyKind::Word(words) => words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", "),
        KeyKind::Text => "string".to_owned(),
        KeyKind::Counts { min, max } => format!("integers, {min} to {max}"),
        KeyKind::Channels { positive: true } => "3 numbers above 0".to_owned(),
        KeyKind::Channels { positive: false } => "3 numbers".to_owned(),
        KeyKind::Texts => "strings".to_owned(),
    }
}

fn absent(absent: Absent) -> String {
    match absent {
        Absent::Refused(when) => format!("refused {when}"),
        Absent::Nothing => String::new(),
        Absent::Count(d) => d.to_string(),
        Absent::Real(d) if d == 1.0 / 255.0 => "1/255".to_owned(),
        Absent::Real(d) if d < 0.001 => format!("{d:e}"),
        Absent::Real(d) => d.to_string(),
        Absent::Flag(d) => d.to_string(),
        Absent::Word(d) => format!("`{d}`"),
        Absent::Derived(text) => text.to_owned(),
    }
}

fn shape(dims: &[Dim]) -> String {
    format!("[{}]", dims.iter().map(|d| d.source().replace('*', "·")).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_every_key_and_every_tensor_once() {
        let page = schema_page();
        for k in KEYS {
            assert_eq!(page.matches(&format!("\n| `{}` |", k.name)).count(), 1, "{}", k.name);
        }
        for t in TENSORS {
            for (suffix, ..) in t.form.parts(true) {
                assert_eq!(page.matches(&format!("\n| `{}{suffix}` |", t.name)).count(), 1, "{}{suffix}", t.name);
            }
        }
    }
}
