use burn::prelude::*;

use super::{Cem, Noise, Plan};
use crate::error::ModelError;
use crate::world::WorldModel;

/// What is seen of the world before an action is chosen.
#[derive(Clone, Debug)]
pub struct Observation<B: Backend> {
    /// The latent frame, `[1, tokens, dim]`, one of [`WorldModel::observe`]'s.
    pub frame: Tensor<B, 3>,
    /// The state, `state_dim` values; empty for a model that takes none.
    pub state: Vec<f32>,
}

impl Cem {
    /// Pursues a goal with a receding horizon: plans, does the first action of the plan, looks again, and plans anew from there, `steps` times.
    ///
    /// `act` does an action in the world (a robot, a simulator, the world model itself) and gives what is seen afterwards; an error of it ends the
    /// pursuit. Every step draws anew: step `i` plans with the seed `seed + i`, so that the first plan is [`Cem::plan`]'s with `seed`.
    ///
    /// Gives the plans in their order; the actions done are the first of each.
    ///
    /// # Errors
    /// As [`Cem::plan`], and what `act` gives.
    pub fn pursue<B: Backend, W: WorldModel<B>, E: From<ModelError>>(
        &self,
        world: &W,
        start: Observation<B>,
        goal: Tensor<B, 3>,
        steps: usize,
        seed: u64,
        mut act: impl FnMut(&[f32]) -> Result<Observation<B>, E>,
    ) -> Result<Vec<Plan>, E> {
        let mut seen = start;
        let mut plans = Vec::with_capacity(steps);
        for step in 0..steps as u64 {
            let noise = Noise::Seeded(seed.wrapping_add(step));
            let plan = self.plan(world, seen.frame, goal.clone(), &seen.state, &noise)?;
            seen = act(&plan.actions[0])?;
            plans.push(plan);
        }
        Ok(plans)
    }
}
