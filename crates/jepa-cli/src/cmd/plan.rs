use burn::prelude::*;
use jepa_models::plan::{Cem, Noise, Plan};
use jepa_models::world::WorldModel;
use serde::Serialize;

use super::memory::refuse_too_big;
use super::model::{load, model_error};
use super::world::{World, array_error, read_finite, with_world};
use crate::args::{PlanArgs, Shared};
use crate::backend::{Task, run_on};
use crate::exit::CliError;
use crate::progress::Progress;
use crate::report::{self, Report};

pub(crate) fn run(args: PlanArgs, shared: &Shared) -> Result<(), CliError> {
    for (flag, value) in [("--action-std", args.action_std), ("--action-bound", args.action_bound)] {
        if value.is_some_and(|value| !value.is_finite() || value <= 0.0) {
            return Err(CliError::usage(format!("{flag}: wanted a finite number above 0")));
        }
    }
    run_on(PlanTask { args: &args, shared }, shared)
}

struct PlanTask<'a> {
    args: &'a PlanArgs,
    shared: &'a Shared,
}

impl Task for PlanTask<'_> {
    type Output = ();

    fn run<B: Backend>(self, device: B::Device) -> Result<(), CliError> {
        let Self { args, shared } = self;
        let refuse = |error| model_error(&args.model.model, error);
        let model = load::<B>(&args.model, &device, shared)?;
        let world = World::of(&model).map_err(refuse)?;
        let state = args.state.as_deref().map(read_finite).transpose()?.map(|(_, values)| values).unwrap_or_default();
        let state_dim = with_world!(&world, world => world.state_dim());
        if state.len() != state_dim {
            let what = format!(
                "--state: {} values given, this model's state has {state_dim} (jepa.pred.state_dim)",
                state.len()
            );
            return Err(CliError::usage(what));
        }
        let progress = Progress::new(1, shared);
        let observe = |path| Ok(world.observe(&[path], &model, &device, &progress)?.squeeze_dim::<3>(1));
        let (start, goal) = (observe(&args.observation)?, observe(&args.goal)?);
        let cem = self.planner(&world);
        let needed = with_world!(&world, world => world.step_bytes(args.horizon));
        refuse_too_big::<B>(&format!("one candidate of {} steps", args.horizon), needed, "lower --horizon")?;
        let what = format!("drawing {} sequences of {} steps", cem.samples, cem.horizon);
        refuse_too_big::<B>(
            &what,
            drawn_bytes(&cem, with_world!(&world, world => world.action_dim())),
            "lower --samples",
        )?;
        let plan = with_world!(&world, world => cem.plan(world, start, goal, &state, &Noise::Seeded(args.seed)))
            .map_err(|error| array_error(&args.model.model, error))?;
        report::print(&Planned::from(plan), shared)
    }
}

/// About how many bytes the sequences of a round take on the host: draws in f64, actions in f32 and what lists of them cost.
fn drawn_bytes(cem: &Cem, action_dim: usize) -> u64 {
    let step = (8 * cem.free.len() + 12 * action_dim + 64) as u64;
    (cem.samples as u64).saturating_mul((cem.horizon as u64).saturating_mul(step).saturating_add(128))
}

impl PlanTask<'_> {
    fn planner<B: Backend>(&self, world: &World<B>) -> Cem {
        let mut cem = match world {
            World::Ac(_) => Cem::for_ac(),
            World::Lewm(world) => Cem::over_all(world.action_dim()),
        };
        for free in &mut cem.free {
            free.std = self.args.action_std.unwrap_or(free.std);
            free.bound = self.args.action_bound.or(free.bound);
        }
        let PlanArgs { horizon, samples, top_k, iterations, .. } = *self.args;
        Cem { horizon, samples, top_k, iterations, ..cem }
    }
}

#[derive(Serialize)]
struct Planned {
    actions: Vec<Vec<f32>>,
    /// Cheapest cost of each round.
    costs: Vec<f64>,
}

impl From<Plan> for Planned {
    fn from(Plan { actions, costs }: Plan) -> Self {
        Self { actions, costs }
    }
}

impl Report for Planned {
    fn text(&self) -> String {
        let mut text = String::new();
        for (step, action) in self.actions.iter().enumerate() {
            let values: Vec<_> = action.iter().map(|v| format!("{v:9.5}")).collect();
            text += &format!("step {step}  {}\n", values.join(" "));
        }
        if let (Some(first), Some(last)) = (self.costs.first(), self.costs.last()) {
            text += &format!("cost {first:.6} in the first round, {last:.6} in the last\n");
        }
        text
    }
}
