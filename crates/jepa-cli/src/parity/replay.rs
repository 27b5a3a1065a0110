//! Replaying the tests of a case and judging their outputs.

use std::collections::BTreeMap;
use std::path::Path;

use burn::prelude::*;
use jepa_models::world::{POSE_DIM, pose_rotation};
use jepa_models::{Agreement, Bar, Jepa};

use super::case::{Case, Test, Variant};
use super::kinds::Player;
use super::{Dump, Line, Outcome, ParityError, Tier};
use crate::arrays::{Array, read_safetensors};

/// What a replay gave.
#[derive(Debug)]
pub struct Replay {
    /// One line per expected output.
    pub lines: Vec<Line>,
    /// The outputs that were got, except those of other conventions.
    pub outputs: Dump,
}

/// Replays every test of `variant` with `model`, which must have been loaded from the variant's model file.
///
/// # Errors
/// [`ParityError`] when the case contradicts itself; an output that misses its bar is a line, not an error.
pub fn replay<B: Backend>(
    case: &Case,
    variant: &Variant,
    model: Jepa<B>,
    device: &B::Device,
) -> Result<Replay, ParityError> {
    let read = |path: &Path| {
        read_safetensors(path)
            .map_err(|error| ParityError::File { file: path.display().to_string(), what: error.to_string() })
    };
    let inputs = read(&variant.inputs)?;
    let expect = if variant.expect == variant.inputs { inputs.clone() } else { read(&variant.expect)? };
    let tier = Tier::of::<B>(device, model.dtype());
    let mut player = Player::new(model, inputs, device.clone());
    let mut replay = Replay { lines: Vec::new(), outputs: Dump::new() };
    for test in &variant.tests {
        let line = Line {
            case: case.name.clone(),
            model_type: variant.model_type.clone(),
            test: test.id.clone(),
            kind: test.kind.clone(),
            output: None,
            outcome: Outcome::Skip,
            cos_min: None,
            rel_max: None,
            note: None,
        };
        let played = player.play(test).map_err(|what| ParityError::Test { test: test.id.clone(), what })?;
        match played {
            Some(got) => {
                let fed_back = test.kind.ends_with("rollout") || test.kind.ends_with("cem");
                let bar = tier.bar(variant.bar, fed_back);
                outputs(test, &got, &expect, variant, bar, &line, &mut replay);
            }
            None => replay.lines.push(Line { note: Some(format!("kind {} is not replayed", test.kind)), ..line }),
        }
    }
    Ok(replay)
}

/// Judges every expected output of a test.
fn outputs(
    test: &Test,
    got: &BTreeMap<String, TensorData>,
    expect: &BTreeMap<String, Array>,
    variant: &Variant,
    bar: Bar,
    line: &Line,
    replay: &mut Replay,
) {
    for (role, name) in &test.outputs {
        let line = Line { output: Some(role.clone()), ..line.clone() };
        let optional = test.optional_outputs.iter().any(|optional| optional == role || optional == name);
        match (got.get(role), expect.get(name)) {
            (None, _) if optional => {}
            (None, _) => replay.lines.push(Line { note: Some("this kind has no such output".into()), ..line }),
            (_, None) => {
                let note = Some(format!("the expected tensor {name} is not in {}", variant.expect.display()));
                replay.lines.push(Line { outcome: Outcome::Miss, note, ..line });
            }
            (Some(got), Some(want)) => {
                let (shape, values) = (got.shape.to_vec(), got.iter::<f32>().collect::<Vec<_>>());
                replay.lines.push(judge(&shape, &values, want, bar, optional, line));
                if !optional {
                    replay.outputs.insert(name.clone(), (shape, values));
                }
            }
        }
    }
}

fn judge(shape: &[usize], values: &[f32], want: &Array, bar: Bar, optional: bool, line: Line) -> Line {
    let verdict = |passed| match (optional, passed) {
        (true, _) => Outcome::Optional,
        (false, true) => Outcome::Pass,
        (false, false) => Outcome::Miss,
    };
    if shape != want.shape {
        return Line {
            outcome: verdict(false),
            note: Some(format!("shape {shape:?}, wanted {:?}", want.shape)),
            ..line
        };
    }
    let (mut got, mut want): (Vec<f64>, _) = (values.iter().map(|&v| v.into()).collect(), want.values.to_f64());
    let mut row = shape.last().copied().unwrap_or(1);
    if line.output.as_deref().is_some_and(|role| role.ends_with("pose") || role == "poses") && row == POSE_DIM {
        (got, want, row) = (with_rotations(&got), with_rotations(&want), POSE_DIM - 3 + 9);
    }
    let agreement = Agreement::of(&got, &want, row);
    let outcome = verdict(agreement.clears(bar));
    Line { outcome, cos_min: Some(agreement.cos_min), rel_max: Some(agreement.rel_max), ..line }
}

/// Poses with their angles as rotation matrices: near the poles different angles are the same rotation.
fn with_rotations(poses: &[f64]) -> Vec<f64> {
    poses
        .chunks_exact(POSE_DIM)
        .flat_map(|pose| {
            let pose: [f64; POSE_DIM] = pose.try_into().expect("chunks have this length");
            let rotation = pose_rotation(&pose).into_iter().flatten();
            [pose[0], pose[1], pose[2], pose[6]].into_iter().chain(rotation).collect::<Vec<_>>()
        })
        .collect()
}
