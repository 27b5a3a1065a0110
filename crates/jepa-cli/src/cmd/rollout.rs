use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burn::prelude::*;
use jepa_models::Pixels;
use jepa_models::world::{Rollout, WorldModel, candidates_at_once};

use super::memory::refuse_too_big;
use super::model::{load, model_error};
use super::stream::{no_numbers, read_pixels};
use super::world::{World, array_error, read_finite, with_world};
use crate::args::{RolloutArgs, Shared};
use crate::backend::{Task, run_on};
use crate::exit::{CliError, say_on_stderr};
use crate::output::{Element, Format, RowWriter, refuse_overwriting, write_safetensors};
use crate::progress::Progress;
use crate::report;

pub(crate) fn run(args: RolloutArgs, shared: &Shared) -> Result<(), CliError> {
    let format = Format::of(&args.output, &[Format::Npy, Format::Safetensors])?;
    let read = args
        .context
        .iter()
        .chain([&args.actions, &args.model.model])
        .chain(&args.input_tensor)
        .chain(&args.states)
        .chain(&args.goal);
    refuse_overwriting(&args.output, read.map(PathBuf::as_path))?;
    run_on(RolloutTask { args: &args, shared, format }, shared)
}

struct RolloutTask<'a> {
    args: &'a RolloutArgs,
    shared: &'a Shared,
    format: Format,
}

/// What a rollout gave, candidates joined.
#[derive(Default)]
struct Rolled {
    /// `[steps, (tokens,) dim]` of one candidate.
    row: Vec<usize>,
    pred: Vec<f32>,
    states: Vec<f32>,
    energy: Vec<f32>,
}

impl Task for RolloutTask<'_> {
    type Output = ();

    fn run<B: Backend>(self, device: B::Device) -> Result<(), CliError> {
        let Self { args, shared, format } = self;
        let refuse = |error| model_error(&args.model.model, error);
        let model = load::<B>(&args.model, &device, shared)?;
        let world = World::of(&model).map_err(refuse)?;
        let (shape, values) = read_finite(&args.actions)?;
        let states = args.states.as_deref().map(read_finite).transpose()?.map(|(_, values)| values).unwrap_or_default();
        let state_dim = with_world!(&world, world => world.state_dim());
        if state_dim > 0 && states.is_empty() {
            let what = format!(
                "--states: wanted the start pose [{state_dim}] or all poses [frames, {state_dim}] (jepa.pred.state_dim)"
            );
            return Err(CliError::usage(what));
        }
        let progress = Progress::new(1, shared);
        let frames = match &args.input_tensor {
            Some(path) => {
                let (values, shape) = read_pixels(path)?;
                let pixels = Tensor::from_data(TensorData::new(values, shape), &device);
                world.encode(&path.display().to_string(), Pixels::from_normalised_clips(pixels))?
            }
            None => world.observe(&args.context, &model, &device, &progress)?,
        };
        let goal = match &args.goal {
            Some(path) => Some(world.observe(&[path], &model, &device, &progress)?.squeeze_dim::<3>(1)),
            None => None,
        };
        let rolled =
            with_world!(&world, world => roll_out(world, &args.actions, (&shape, &values), frames, &states, goal))?;
        if let Some(why) = no_numbers(&rolled.pred) {
            return Err(CliError::input(args.actions.display().to_string(), why));
        }
        write(args, format, &rolled)?;
        let candidates = rolled.pred.len() / rolled.row.iter().product::<usize>().max(1);
        let steps = rolled.row[0];
        if shared.json {
            let energy: Vec<_> = rolled.energy.chunks(steps.max(1)).collect();
            let output = args.output.display().to_string();
            report::print_json(
                &serde_json::json!({ "output": output, "candidates": candidates, "steps": steps, "energy": energy }),
            )?;
        } else if !shared.quiet {
            if !rolled.energy.is_empty() && format == Format::Npy {
                say_on_stderr("note: distances to the goal are in a .safetensors output, or printed with --json");
            }
            say_on_stderr(&format!(
                "{candidates} candidates rolled out for {steps} steps into {}",
                args.output.display()
            ));
        }
        Ok(())
    }
}

fn roll_out<B: Backend, W: WorldModel<B>>(
    world: &W,
    path: &Path,
    (shape, values): (&[usize], &[f32]),
    frames: Tensor<B, 4>,
    state: &[f32],
    goal: Option<Tensor<B, 3>>,
) -> Result<Rolled, CliError> {
    let width = world.action_dim();
    let [_, seeds, tokens, dim] = frames.dims();
    let (candidates, steps) = match *shape {
        [steps, w] if w == width => (1, steps),
        [candidates, steps, w] if w == width && candidates > 0 => (candidates, steps),
        _ => {
            let what = format!(
                "actions have shape {shape:?}, wanted [steps, {width}] or [candidates, steps, {width}] (jepa.pred.action_dim)"
            );
            return Err(CliError::usage(format!("{}: {what}", path.display())));
        }
    };
    let past = seeds - 1;
    if steps <= past {
        let what = format!(
            "{steps} actions, wanted more than {past}: one between each two of the {seeds} context frames, then one for each step"
        );
        return Err(CliError::usage(format!("{}: {what}", path.display())));
    }
    let per_candidate = world.step_bytes(seeds + steps - past);
    refuse_too_big::<B>(&format!("one candidate of {} steps", steps - past), per_candidate, "give fewer actions")?;
    let at_once = candidates_at_once(world, seeds + steps - past);

    let fail = |error| array_error(path, error);
    let row = if tokens == 1 { vec![steps - past, dim] } else { vec![steps - past, tokens, dim] };
    let mut rolled = Rolled { row, ..Rolled::default() };
    let sequences: Vec<&[f32]> = values.chunks_exact(steps * width).take(candidates).collect();
    for some in sequences.chunks(at_once) {
        let k = some.len();
        let start = frames.clone().expand([k, seeds, tokens, dim]);
        let (between, ahead): (Vec<_>, Vec<_>) =
            some.iter().map(|row| (row[..past * width].to_vec(), row[past * width..].to_vec())).unzip();
        let states = if world.state_dim() > 0 { vec![state.to_vec(); k] } else { Vec::new() };
        let out = Rollout::start(world, start, between, states).map_err(fail)?.run(world, &ahead).map_err(fail)?;
        if let Some(goal) = &goal {
            let flat = out.frames.clone().reshape([k * (steps - past), tokens, dim]);
            rolled.energy.extend(world.cost(flat, goal.clone()).into_data().iter::<f32>());
        }
        rolled.pred.extend(out.frames.into_data().iter::<f32>());
        rolled.states.extend(out.states.concat());
    }
    Ok(rolled)
}

fn write(args: &RolloutArgs, format: Format, rolled: &Rolled) -> Result<(), CliError> {
    let per_candidate = rolled.row.iter().product::<usize>();
    if format == Format::Npy {
        let mut writer = RowWriter::create(&args.output, format, Element::F32, "pred")?;
        for (i, row) in rolled.pred.chunks_exact(per_candidate).enumerate() {
            writer.push_f32(&format!("{}[{i}]", args.actions.display()), &rolled.row, row)?;
        }
        return writer.finish();
    }
    let candidates = rolled.pred.len() / per_candidate;
    let shaped = |rest: &[usize]| [&[candidates], rest].concat();
    let mut tensors = BTreeMap::from([("pred".to_owned(), (shaped(&rolled.row), rolled.pred.clone()))]);
    if !rolled.states.is_empty() {
        tensors.insert("states".into(), (shaped(&[rolled.states.len() / candidates]), rolled.states.clone()));
    }
    if !rolled.energy.is_empty() {
        tensors.insert("energy".into(), (shaped(&[rolled.row[0]]), rolled.energy.clone()));
    }
    write_safetensors(&args.output, &tensors)
}
