use std::path::Path;

use jepa_models::{Agreement, Bar};
use serde::Serialize;

use crate::args::{CompareArgs, Shared};
use crate::arrays::{Array, read_named};
use crate::exit::CliError;
use crate::report::{self, Report};

pub(crate) fn run(args: &CompareArgs, shared: &Shared) -> Result<(), CliError> {
    let read = |path: &Path| read_named(path).map_err(|error| CliError::input(path.display().to_string(), error));
    let (got, want) = (read(&args.a)?, read(&args.b)?);
    let bar =
        Bar { cos_min: args.min_cos.unwrap_or(f64::NEG_INFINITY), rel_max: args.max_rel.unwrap_or(f64::INFINITY) };
    let judged = args.min_cos.is_some() || args.max_rel.is_some();

    let mut comparison = Comparison { tensors: Vec::new(), only_in_a: Vec::new(), only_in_b: Vec::new() };
    if let (1, Some((_, a)), 1, Some((name, b))) =
        (got.len(), got.first_key_value(), want.len(), want.first_key_value())
    {
        comparison.tensors.push(compare(name.clone(), a, b, bar, judged)?);
    } else {
        for (name, b) in &want {
            match got.get(name) {
                Some(a) => comparison.tensors.push(compare(name.clone(), a, b, bar, judged)?),
                None => comparison.only_in_b.push(name.clone()),
            }
        }
        comparison.only_in_a = got.keys().filter(|name| !want.contains_key(*name)).cloned().collect();
    }
    if comparison.tensors.is_empty() {
        return Err(CliError::Missed {
            what: format!("{} and {} share no tensor name", args.a.display(), args.b.display()),
        });
    }
    report::print(&comparison, shared)?;
    let missed = comparison.tensors.iter().filter(|t| t.passed == Some(false)).count();
    match (missed, comparison.only_in_b.len()) {
        (0, 0) => Ok(()),
        (0, absent) if judged => {
            Err(CliError::Missed { what: format!("{absent} wanted tensors are not in {}", args.a.display()) })
        }
        (0, _) => Ok(()),
        (missed, _) => {
            Err(CliError::Missed { what: format!("{missed} of {} tensors miss the bar", comparison.tensors.len()) })
        }
    }
}

fn compare(name: String, a: &Array, b: &Array, bar: Bar, judged: bool) -> Result<Line, CliError> {
    if a.shape != b.shape {
        let what = if name.is_empty() { String::new() } else { format!("tensor {name}: ") };
        return Err(CliError::Missed { what: format!("{what}shape {:?} against {:?}", a.shape, b.shape) });
    }
    let row = a.shape.last().copied().unwrap_or(1);
    let agreement = Agreement::of(&a.values.to_f64(), &b.values.to_f64(), row);
    let Agreement { cos_mean, cos_median, cos_min, max_abs, rel_max } = agreement;
    let passed = judged.then(|| agreement.clears(bar));
    Ok(Line { name, shape: a.shape.clone(), cos_mean, cos_median, cos_min, rel_max, max_abs, passed })
}

#[derive(Serialize)]
struct Comparison {
    tensors: Vec<Line>,
    only_in_a: Vec<String>,
    only_in_b: Vec<String>,
}

#[derive(Serialize)]
struct Line {
    name: String,
    shape: Vec<usize>,
    cos_mean: f64,
    cos_median: f64,
    cos_min: f64,
    rel_max: f64,
    max_abs: f64,
    /// Whether the bar was cleared, where one was given.
    passed: Option<bool>,
}

impl Report for Comparison {
    fn text(&self) -> String {
        let mut text = String::new();
        for t in &self.tensors {
            let verdict = match t.passed {
                Some(true) => "pass  ",
                Some(false) => "MISS  ",
                None => "",
            };
            let name = if t.name.is_empty() { String::new() } else { format!("{}  ", t.name) };
            text += &format!(
                "{verdict}{name}{:?}  cosine mean {:.8} median {:.8} min {:.8}  rel_max {:.3e}  max_abs {:.3e}\n",
                t.shape, t.cos_mean, t.cos_median, t.cos_min, t.rel_max, t.max_abs
            );
        }
        for (file, names) in [("A", &self.only_in_a), ("B", &self.only_in_b)] {
            if !names.is_empty() {
                text += &format!("only in {file}: {}\n", names.join(", "));
            }
        }
        text
    }
}
