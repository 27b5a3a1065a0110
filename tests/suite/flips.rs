//! Deliberate mistakes: `fixtures/flips.json` turns one trait of a family over at a time, and the cases must notice.
//!
//! The edits are explained in `reference/flips.py`, which wrote the file and checked each of them against the reference.

use std::collections::BTreeMap;
use std::path::Path;

use burn::prelude::Backend;
use jepa_cli::parity::{Case, Outcome, Variant, replay};
use jepa_gguf::{GgmlType, Gguf, GgufWriter, Metadata, Value};
use serde::Deserialize;

use crate::{fixtures, load};

#[derive(Debug, Deserialize)]
struct Flip {
    case: String,
    flip: String,
    /// Absent for mistakes that only the reference's graph can make.
    edit: Option<Vec<Step>>,
    /// Tests that noticed in the reference.
    misses: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Step {
    Set { set: String, to: serde_json::Value },
    Option { option: String, to: String },
    Copy { copy: String, to: String },
    SwapRows { swap_rows: String, at: [usize; 2], count: usize },
    SwapColumns { swap_columns: String, at: [usize; 2], count: usize },
    Swap { swap: [String; 2] },
    RollRows { roll_rows: String, by: i64 },
    Fill { fill: String, with: f32 },
}

/// A bundle in memory: keys, and tensors as shape and f32 values in the order of the file.
struct Editable {
    metadata: Metadata,
    order: Vec<String>,
    tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
}

/// Every mistake that a file or an option can make pushes a test that the reference named outside its bar.
pub fn every_deliberate_mistake_misses_the_bar<B: Backend>() {
    let text = std::fs::read_to_string(fixtures().join("flips.json")).expect("the fixtures are committed");
    let flips: Vec<Flip> = serde_json::from_str(&text).expect("flips.json is sound");
    let (mut tried, mut unnoticed) = (0, Vec::new());
    for flip in &flips {
        let folder = fixtures().join("cases").join(&flip.case);
        let case = Case::read(&folder).expect("the committed cases are sound");
        let mut variant = case.variants(Some("f32")).expect("every case has an f32 model").remove(0);
        variant.tests.retain(|test| flip.misses.contains(&test.id));
        let Some(steps) = &flip.edit else {
            eprintln!("skipped: {}: {} (only the reference's graph can make this mistake)", flip.case, flip.flip);
            continue;
        };
        tried += 1;
        if !is_noticed::<B>(&case, variant, steps) {
            unnoticed.push(format!("{}: {}", flip.case, flip.flip));
        }
    }
    assert!(unnoticed.is_empty(), "{unnoticed:#?}");
    assert!(tried > 140, "only {tried} mistakes were tried");
}

fn is_noticed<B: Backend>(case: &Case, mut variant: Variant, steps: &[Step]) -> bool {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut bundle = Editable::read(&variant.model);
    steps.iter().for_each(|step| bundle.apply(step, &mut variant));
    variant.model = folder.path().join("flipped.gguf");
    bundle.write(&variant.model);
    let replayed =
        replay(case, &variant, load::<B>(&variant), &B::Device::default()).expect("the committed cases are sound");
    replayed.lines.iter().any(|line| line.outcome == Outcome::Miss)
}

impl Editable {
    fn read(path: &Path) -> Self {
        let file = Gguf::open(path).expect("the committed models are sound");
        let tensors = file.tensors().iter().map(|info| {
            let values = file.tensor(info.name()).expect("listed tensors are there").to_f32();
            (info.name().to_owned(), (info.shape().to_vec(), values))
        });
        let order = file.tensors().iter().map(|info| info.name().to_owned()).collect();
        Self { metadata: file.metadata().clone(), order, tensors: tensors.collect() }
    }

    fn write(&self, path: &Path) {
        let mut writer = GgufWriter::new(self.metadata.clone());
        for name in &self.order {
            writer.declare(name, &self.tensors[name].0, GgmlType::F32).expect("an edit keeps names and shapes");
        }
        let mut file = writer.create(path).expect("a writable temporary folder");
        for name in &self.order {
            let bytes: Vec<u8> = self.tensors[name].1.iter().flat_map(|v| v.to_le_bytes()).collect();
            file.tensor(name, &bytes).expect("tensors come in the declared order");
        }
        file.finish().expect("a writable temporary folder");
    }

    fn apply(&mut self, step: &Step, variant: &mut Variant) {
        match step {
            Step::Set { set, to } => {
                let value = like(self.metadata.get(set), to);
                self.metadata.set(set.clone(), value);
            }
            Step::Option { option, to } => {
                assert_eq!(option, "pos_interp", "an option that the suite does not know");
                variant.tests.iter_mut().for_each(|test| test.options.pos_interp = Some(to.clone()));
            }
            Step::Swap { swap: [a, b] } => {
                let (of_a, of_b) = (self.values(a).clone(), self.values(b).clone());
                *self.values(a) = of_b;
                *self.values(b) = of_a;
            }
            Step::Copy { copy, to } => {
                let values = self.values(copy).clone();
                *self.values(to) = values;
            }
            Step::Fill { fill, with } => self.values(fill).fill(*with),
            Step::SwapRows { swap_rows, at, count } => {
                let width = self.row_width(swap_rows);
                let values = self.values(swap_rows);
                (0..count * width).for_each(|i| values.swap(at[0] * width + i, at[1] * width + i));
            }
            Step::SwapColumns { swap_columns, at, count } => {
                let width = self.row_width(swap_columns);
                for row in self.values(swap_columns).chunks_exact_mut(width) {
                    (0..*count).for_each(|i| row.swap(at[0] + i, at[1] + i));
                }
            }
            Step::RollRows { roll_rows, by } => {
                let width = self.row_width(roll_rows);
                let values = self.values(roll_rows);
                let rows = (values.len() / width) as i64;
                values.rotate_right(by.rem_euclid(rows) as usize * width);
            }
        }
    }

    fn values(&mut self, name: &str) -> &mut Vec<f32> {
        &mut self.tensors.get_mut(name).unwrap_or_else(|| panic!("no tensor {name}")).1
    }

    /// Values in one row; a vector has rows of one value.
    fn row_width(&self, name: &str) -> usize {
        let shape = &self.tensors[name].0;
        if shape.len() > 1 { shape[shape.len() - 1] } else { 1 }
    }
}

/// A JSON value in the type that the key has, or would have.
fn like(old: Option<&Value>, to: &serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match (to, old) {
        (Json::Bool(flag), _) => Value::Bool(*flag),
        (Json::String(text), _) => Value::String(text.clone()),
        (Json::Number(number), Some(Value::F32(_))) => Value::F32(number.as_f64().expect("a number") as f32),
        (Json::Number(number), _) if number.is_u64() => Value::U32(number.as_u64().expect("an integer") as u32),
        (Json::Number(number), _) => Value::F32(number.as_f64().expect("a number") as f32),
        (Json::Array(items), _) => {
            let items = items.iter().map(|item| item.as_u64().expect("an integer") as u32).collect();
            Value::Array(jepa_gguf::Array::U32(items))
        }
        (Json::Null | Json::Object(_), _) => panic!("an edit sets a value"),
    }
}
