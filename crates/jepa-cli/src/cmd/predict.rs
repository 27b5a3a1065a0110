use std::collections::BTreeMap;

use burn::prelude::*;
use jepa_models::{ModelError, Predictor, TokenIds, Trace};

use super::memory::refuse_too_big;
use super::model::{load, model_error};
use super::stream::{Through, no_numbers};
use crate::args::{Ids, PredictArgs, Shared};
use crate::arrays::{Array, Values};
use crate::backend::{Task, run_on};
use crate::exit::{CliError, say_on_stderr};
use crate::output::{Element, Format, RowWriter, refuse_overwriting, write_safetensors};
use crate::report;

pub(crate) fn run(args: PredictArgs, shared: &Shared) -> Result<(), CliError> {
    let format = Format::of(&args.output, &[Format::Npy, Format::Safetensors])?;
    let ids = |flag: &str, ids: &Ids| token_ids(ids).map_err(|what| CliError::usage(format!("{flag}: {what}")));
    let (context, targets) = (ids("--context", &args.context)?, ids("--targets", &args.targets)?);
    refuse_overwriting(&args.output, args.input.paths().chain([args.model.model.as_path()]))?;
    run_on(Predict { args: &args, shared, format, context, targets }, shared)
}

struct Predict<'a> {
    args: &'a PredictArgs,
    shared: &'a Shared,
    format: Format,
    context: TokenIds,
    targets: TokenIds,
}

impl Task for Predict<'_> {
    type Output = ();

    fn run<B: Backend>(self, device: B::Device) -> Result<(), CliError> {
        let Self { args, shared, format, context, targets } = self;
        let refuse = |error| model_error(&args.model.model, error);
        let model = load::<B>(&args.model, &device, shared)?;
        let predictor = match model.load_predictor().map_err(refuse)? {
            Predictor::Masked(predictor) => predictor,
            Predictor::Ac(_) | Predictor::Lewm(_) => return Err(refuse(model.cannot("masked predictor"))),
        };
        let through = Through::new(&model, &args.input, 1, 1, &device, shared).map_err(refuse)?;
        let (name, pixels) = through.only()?;
        let (seen, predicted) = (context.kept(), targets.kept());
        let needed = predictor.config().activation_bytes(pixels.dims()[0], seen, predicted);
        let what = format!("a prediction of {predicted} tokens from {seen}");
        refuse_too_big::<B>(&what, needed, "give fewer --targets")?;

        let predicted = model
            .predict_masked(&predictor, pixels, &context, &targets, args.mask_index, &mut Trace::none())
            .map_err(|error| match error {
                ModelError::TokenIds { .. } => CliError::usage(error.to_string()),
                _ => CliError::input(name.clone(), error),
            })?;

        let (shape, values) = plain(predicted.targets);
        if let Some(why) = no_numbers(&values) {
            return Err(CliError::input(name, why));
        }
        if format == Format::Npy {
            let mut writer = RowWriter::create(&args.output, format, Element::F32, "pred")?;
            for row in values.chunks_exact(shape[1] * shape[2]) {
                writer.push_f32(&name, &shape[1..], row)?;
            }
            writer.finish()?;
        } else {
            let mut tensors = BTreeMap::from([("pred".to_owned(), (shape.clone(), values))]);
            tensors.extend(predicted.context.map(|context| ("context".to_owned(), plain(context))));
            write_safetensors(&args.output, &tensors)?;
        }
        if shared.json {
            let output = args.output.display().to_string();
            report::print_json(&serde_json::json!({ "output": output, "input": name, "shape": shape }))?;
        } else if !shared.quiet {
            say_on_stderr(&format!("{} targets predicted into {} {shape:?}", targets.kept(), args.output.display()));
        }
        Ok(())
    }
}

fn plain<B: Backend>(x: Tensor<B, 3>) -> (Vec<usize>, Vec<f32>) {
    (x.dims().to_vec(), x.into_data().iter::<f32>().collect())
}

/// Ids from the argument, or from a file of `[ids]` or `[inputs, ids]`.
fn token_ids(ids: &Ids) -> Result<TokenIds, String> {
    let path = match ids {
        Ids::Listed(ids) => return TokenIds::shared(ids.clone()).map_err(|error| error.to_string()),
        Ids::File(path) => path,
    };
    let array = Array::read_npy(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let n = array.shape.last().copied().unwrap_or(0).max(1);
    let (Values::I64(values), 1..=2) = (&array.values, array.shape.len()) else {
        let found = format!("{} of shape {:?}", array.values.type_name(), array.shape);
        return Err(format!("{} holds {found}, wanted integers [ids] or [inputs, ids]", path.display()));
    };
    let id = |&id: &i64| usize::try_from(id).map_err(|_| format!("{}: token id {id} is negative", path.display()));
    let rows = values.chunks(n).map(|row| row.iter().map(id).collect()).collect::<Result<Vec<_>, _>>()?;
    TokenIds::per_element(rows).map_err(|error| error.to_string())
}
