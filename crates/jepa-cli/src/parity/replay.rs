//! Running the tests of a case and judging their outputs.

use std::collections::BTreeMap;
use std::path::Path;

use burn::prelude::*;
use jepa_gguf::schema::{Hparams, PosInterp, PredictorKind};
use jepa_models::{Agreement, EncodeOptions, Encoded, Encoder, Jepa, ModelError, Pixels, Pool, TokenIds, Trace};

use super::case::{Case, Test, Variant};
use super::{Dump, Line, Outcome, ParityError};
use crate::arrays::{Array, Values, read_safetensors};

type Arrays = BTreeMap<String, Array>;

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
    model: &mut Jepa<B>,
    device: &B::Device,
) -> Result<Replay, ParityError> {
    let read = |path: &Path| {
        read_safetensors(path)
            .map_err(|error| ParityError::File { file: path.display().to_string(), what: error.to_string() })
    };
    let inputs = read(&variant.inputs)?;
    let expect = if variant.expect == variant.inputs { inputs.clone() } else { read(&variant.expect)? };
    let n_hier = n_hier_in(model.hparams());
    let encoder = model.encoder_mut();
    let native_interp = encoder.config().hparams.pos_interp;
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
        if !matches!(test.kind.as_str(), "encode" | "encode_masked") {
            replay.lines.push(Line { note: Some(format!("kind {} is not replayed", test.kind)), ..line });
            continue;
        }
        let fail = |what: String| ParityError::Test { test: test.id.clone(), what };
        encoder.set_pos_interp(pos_interp(test).map_err(fail)?.unwrap_or(native_interp));
        let encoded = encode(encoder, test, &inputs, device);
        encoder.set_pos_interp(native_interp);
        let encoded = encoded.map_err(fail)?;
        for (role, name) in &test.outputs {
            let line = Line { output: Some(role.clone()), ..line.clone() };
            let got = output(&encoded, role, test, n_hier).transpose().map_err(|error| fail(error.to_string()))?;
            let optional = test.optional_outputs.iter().any(|optional| optional == role || optional == name);
            match (got, expect.get(name)) {
                (None, _) if optional => {}
                (None, _) => replay.lines.push(Line { note: Some("no such output of an encoder".into()), ..line }),
                (_, None) => {
                    replay.lines.push(Line { note: Some(format!("{name} is not stored for this type")), ..line })
                }
                (Some(got), Some(want)) => {
                    let (shape, values) = (got.shape.to_vec(), got.iter::<f32>().collect::<Vec<_>>());
                    replay.lines.push(judge(&shape, &values, want, variant, optional, line));
                    if !optional {
                        replay.outputs.insert(name.clone(), (shape, values));
                    }
                }
            }
        }
    }
    Ok(replay)
}

fn judge(shape: &[usize], values: &[f32], want: &Array, variant: &Variant, optional: bool, line: Line) -> Line {
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
    let got: Vec<f64> = values.iter().map(|&v| v.into()).collect();
    let agreement = Agreement::of(&got, &want.values.to_f64(), shape.last().copied().unwrap_or(1));
    let outcome = verdict(agreement.clears(variant.bar));
    Line { outcome, cos_min: Some(agreement.cos_min), rel_max: Some(agreement.rel_max), ..line }
}

/// Hierarchical outputs that the predictor reads; all of them without a predictor.
fn n_hier_in(hparams: &Hparams) -> usize {
    match hparams.pred.as_ref().map(|pred| &pred.kind) {
        Some(PredictorKind::Masked(masked)) => masked.n_hier_in,
        _ => hparams.enc.hier_layers.len(),
    }
}

/// The rule that a test asks for, in the words of the case files.
fn pos_interp(test: &Test) -> Result<Option<PosInterp>, String> {
    match test.options.pos_interp.as_deref() {
        None | Some("trilinear") => Ok(None),
        Some("bicubic_offset01") => Ok(Some(PosInterp::Offset)),
        Some("bicubic_size") => Ok(Some(PosInterp::Size)),
        Some("bicubic_antialias") => Ok(Some(PosInterp::Antialias)),
        Some(other) => Err(format!(
            "options.pos_interp is {other}, wanted bicubic_offset01, bicubic_size, bicubic_antialias or trilinear"
        )),
    }
}

fn encode<B: Backend>(
    encoder: &Encoder<B>,
    test: &Test,
    inputs: &Arrays,
    device: &B::Device,
) -> Result<Encoded<B>, String> {
    let input = |role: &str| {
        let name = test.inputs.get(role).ok_or_else(|| format!("has no input {role}"))?;
        inputs.get(name).ok_or_else(|| format!("tensor {name} is not in the file"))
    };
    let pixels = input("pixels")?;
    let Values::F32(values) = &pixels.values else {
        return Err(format!("pixels hold {}, wanted f32", pixels.values.type_name()));
    };
    let shape = match pixels.shape[..] {
        [b, c, h, w] => [b, c, 1, h, w],
        [b, c, t, h, w] => [b, c, t, h, w],
        _ => return Err(format!("pixels have shape {:?}, wanted 4 or 5 axes", pixels.shape)),
    };
    let pixels = Pixels::from_normalised_clips(Tensor::from_data(TensorData::new(values.clone(), shape), device));
    let context = match test.kind.as_str() {
        "encode_masked" => Some(token_ids(input("ctx_ids")?)?),
        _ => None,
    };
    let options = EncodeOptions { context: context.as_ref(), layers: &[] };
    encoder.encode_with(pixels, options, &mut Trace::none()).map_err(|error| error.to_string())
}

fn token_ids(array: &Array) -> Result<TokenIds, String> {
    let (Values::I64(values), [_, n]) = (&array.values, &array.shape[..]) else {
        return Err(format!(
            "ids are {} of shape {:?}, wanted integers [batch, ids]",
            array.values.type_name(),
            array.shape
        ));
    };
    let rows = values
        .chunks(*n)
        .map(|row| {
            row.iter().map(|&id| usize::try_from(id).map_err(|_| format!("token id {id} is negative"))).collect()
        })
        .collect::<Result<Vec<_>, _>>()?;
    TokenIds::per_element(rows).map_err(|error| error.to_string())
}

/// The output that a role names; `None` for a role that encoders do not have.
fn output<B: Backend>(
    encoded: &Encoded<B>,
    role: &str,
    test: &Test,
    n_hier: usize,
) -> Option<Result<TensorData, ModelError>> {
    let pool = match test.options.pooling.as_deref() {
        Some("cls") => Pool::Cls,
        Some("mean") => Pool::Mean,
        _ => Pool::Auto,
    };
    match role {
        "tokens" => Some(Ok(encoded.tokens.to_data())),
        "pooled" => Some(encoded.pooled(pool).map(Tensor::into_data)),
        "emb" => Some(encoded.pooled(Pool::State).map(Tensor::into_data)),
        "hier_concat" => encoded.hier_concat(n_hier).map(|x| Ok(x.into_data())),
        _ => {
            let k: usize = role.strip_prefix("hier")?.parse().ok()?;
            encoded.hier.get(k).map(|x| Ok(x.to_data()))
        }
    }
}
