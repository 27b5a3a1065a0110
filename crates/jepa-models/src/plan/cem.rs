use burn::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::error::ModelError;
use crate::world::{Rollout, WorldModel, candidates_at_once};

/// One value of an action that the planner may choose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FreeAction {
    /// Its place in the action.
    pub index: usize,
    /// Standard deviation of its first draws, in the action's units.
    pub std: f64,
    /// Draws are clipped to ± this.
    pub bound: Option<f64>,
    /// Part of the old mean that stays in each round, 0 to 1.
    pub momentum_mean: f64,
    /// Part of the old standard deviation that stays in each round, 0 to 1.
    pub momentum_std: f64,
    /// A final value closer to 0 than this becomes 0.
    pub dead_zone: f64,
    /// A value that it is held at: every draw, and the mean to begin with.
    pub held_at: Option<f64>,
}

/// The cross-entropy planner: draw action sequences, roll them out, keep the cheapest, draw again around those.
///
/// **Source** V-JEPA 2's `cem` and the defaults of its world-model wrapper. It plans over any [`WorldModel`]; LeWM has no published planner.
#[derive(Clone, Debug, PartialEq)]
pub struct Cem {
    /// Actions in a plan.
    pub horizon: usize,
    /// Sequences drawn in each round.
    pub samples: usize,
    /// Sequences kept of them.
    pub top_k: usize,
    /// Rounds.
    pub iterations: usize,
    /// The values that are planned; all others of an action are 0.
    pub free: Vec<FreeAction>,
    /// From this step on, this value of an action is fixed: step, index, value.
    pub fixed_from: Option<(usize, usize, f64)>,
}

/// Where the normal draws come from.
#[derive(Debug)]
pub enum Noise {
    /// A generator with this seed: the same draws on every backend and machine.
    Seeded(u64),
    /// Given draws, `[iterations, horizon, samples, free]` in one run.
    Given(Vec<f64>),
}

/// A plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// One action per step.
    pub actions: Vec<Vec<f32>>,
    /// Cheapest cost of a drawn sequence in each round.
    pub costs: Vec<f64>,
}

impl Cem {
    /// The reference's planner for V-JEPA 2-AC: x, y, z and gripper move, orientation stays.
    pub fn for_ac() -> Self {
        let free = |index, std, bound, dead_zone| FreeAction {
            index,
            std,
            bound: Some(bound),
            momentum_mean: 0.15,
            momentum_std: 0.15,
            dead_zone,
            held_at: None,
        };
        let reach = 0.05;
        Self {
            horizon: 2,
            samples: 400,
            top_k: 10,
            iterations: 10,
            free: vec![
                free(0, reach, reach, 0.0),
                free(1, reach, reach, 0.0),
                free(2, reach, reach, 0.0),
                free(6, 1.0, 0.75, 0.25),
            ],
            fixed_from: None,
        }
    }

    /// A planner over every value of an action, drawn with standard deviation 1 and not bounded: LeWM's actions are normalised.
    pub fn over_all(action_dim: usize) -> Self {
        let free = |index| FreeAction {
            index,
            std: 1.0,
            bound: None,
            momentum_mean: 0.15,
            momentum_std: 0.15,
            dead_zone: 0.0,
            held_at: None,
        };
        Self { free: (0..action_dim).map(free).collect(), ..Self::for_ac() }
    }

    /// Plans from one frame to a goal.
    ///
    /// **Shapes** `start` and `goal` `[1, tokens, dim]`; `state` has the model's state width, empty without states.
    ///
    /// # Errors
    /// [`ModelError::Planner`] for a configuration that makes no sense; as [`Rollout::step`] for what the model refuses.
    pub fn plan<B: Backend, W: WorldModel<B>>(
        &self,
        world: &W,
        start: Tensor<B, 3>,
        goal: Tensor<B, 3>,
        state: &[f32],
        noise: &Noise,
    ) -> Result<Plan, ModelError> {
        self.check(world.action_dim(), noise)?;
        let free = self.free.len();
        let mut rng = match noise {
            Noise::Seeded(seed) => Some(ChaCha8Rng::seed_from_u64(*seed)),
            Noise::Given(_) => None,
        };
        let per_round = self.horizon * self.samples * free;
        let of_each = |value: fn(&FreeAction) -> f64| (0..self.horizon).flat_map(move |_| self.free.iter().map(value));
        let mut mean: Vec<f64> = of_each(|free| free.held_at.unwrap_or(0.0)).collect();
        let mut std: Vec<f64> = of_each(|free| free.std).collect();
        let mut costs = Vec::with_capacity(self.iterations);
        for round in 0..self.iterations {
            let draws: Vec<f64> = match (noise, &mut rng) {
                (Noise::Given(draws), _) => draws[round * per_round..(round + 1) * per_round].to_vec(),
                (_, Some(rng)) => (0..per_round).map(|_| StandardNormal.sample(rng)).collect(),
                (Noise::Seeded(_), None) => unreachable!("a seeded planner has a generator"),
            };
            let sequences = self.sequences(&draws, &mean, &std);
            let cost = self.costs(world, &start, &goal, state, &sequences)?;
            let mut order: Vec<usize> = (0..self.samples).collect();
            order.sort_by(|&a, &b| cost[a].total_cmp(&cost[b]));
            costs.push(cost[order[0]]);
            let kept: Vec<&Vec<f64>> = order[..self.top_k].iter().map(|&i| &sequences[i]).collect();
            self.narrow(&mut mean, &mut std, &kept);
        }
        let actions =
            (0..self.horizon).map(|h| self.action(world.action_dim(), &self.settled(&mean[h * free..(h + 1) * free])));
        Ok(Plan { actions: actions.collect(), costs })
    }

    fn check(&self, action_dim: usize, noise: &Noise) -> Result<(), ModelError> {
        let refuse = |what: String| Err(ModelError::Planner { what });
        if self.horizon == 0 || self.samples == 0 || self.iterations == 0 {
            return refuse("horizon, samples and iterations must be at least 1".into());
        }
        if self.top_k < 2 || self.top_k > self.samples {
            return refuse(format!(
                "top-k is {}, wanted 2 to {} (samples): a spread needs two",
                self.top_k, self.samples
            ));
        }
        if let Some(free) = self.free.iter().find(|free| free.index >= action_dim) {
            return refuse(format!("action value {} is planned, the model's actions have {action_dim}", free.index));
        }
        match noise {
            Noise::Given(draws) => {
                let wanted = self.iterations * self.horizon * self.samples * self.free.len();
                if draws.len() == wanted {
                    Ok(())
                } else {
                    refuse(format!("{} given draws, wanted {wanted}", draws.len()))
                }
            }
            Noise::Seeded(_) => Ok(()),
        }
    }

    /// The drawn sequences: per sample `horizon · free` values.
    fn sequences(&self, draws: &[f64], mean: &[f64], std: &[f64]) -> Vec<Vec<f64>> {
        let free = self.free.len();
        let value = |sample: usize, h: usize, f: usize| {
            let drawn = draws[(h * self.samples + sample) * free + f] * std[h * free + f] + mean[h * free + f];
            let drawn = self.free[f].bound.map_or(drawn, |bound| drawn.clamp(-bound, bound));
            let drawn = self.free[f].held_at.unwrap_or(drawn);
            match self.fixed_from {
                Some((step, index, fixed)) if h >= step && self.free[f].index == index => fixed,
                _ => drawn,
            }
        };
        (0..self.samples)
            .map(|sample| {
                (0..self.horizon)
                    .flat_map(|h| (0..free).map(move |f| (h, f)))
                    .map(|(h, f)| value(sample, h, f))
                    .collect()
            })
            .collect()
    }

    /// Cost of every sequence, as many at once as memory holds: all of them for a small model.
    fn costs<B: Backend, W: WorldModel<B>>(
        &self,
        world: &W,
        start: &Tensor<B, 3>,
        goal: &Tensor<B, 3>,
        state: &[f32],
        sequences: &[Vec<f64>],
    ) -> Result<Vec<f64>, ModelError> {
        let at_once = candidates_at_once(world, self.horizon);
        let costs = sequences.chunks(at_once).map(|some| self.roll_out(world, start, goal, state, some));
        Ok(costs.collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// Cost of sequences that are rolled out in one batch.
    fn roll_out<B: Backend, W: WorldModel<B>>(
        &self,
        world: &W,
        start: &Tensor<B, 3>,
        goal: &Tensor<B, 3>,
        state: &[f32],
        sequences: &[Vec<f64>],
    ) -> Result<Vec<f64>, ModelError> {
        let [_, tokens, dim] = start.dims();
        let candidates = sequences.len();
        let frames = start.clone().reshape([1, 1, tokens, dim]).expand([candidates, 1, tokens, dim]);
        let mut rollout =
            Rollout::start(world, frames, vec![Vec::new(); candidates], vec![state.to_vec(); candidates])?;
        let free = self.free.len();
        for h in 0..self.horizon {
            let actions: Vec<Vec<f32>> = sequences
                .iter()
                .map(|values| self.action(world.action_dim(), &values[h * free..(h + 1) * free]))
                .collect();
            rollout.step(world, &actions)?;
        }
        Ok(world.cost(rollout.last(), goal.clone()).into_data().iter::<f64>().collect())
    }

    /// Mean and standard deviation after a round; the deviation of the kept values has n - 1 in its denominator.
    fn narrow(&self, mean: &mut [f64], std: &mut [f64], kept: &[&Vec<f64>]) {
        let n = kept.len() as f64;
        for i in 0..mean.len() {
            let free = &self.free[i % self.free.len()];
            let kept_mean = kept.iter().map(|values| values[i]).sum::<f64>() / n;
            let kept_std = (kept.iter().map(|values| (values[i] - kept_mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
            mean[i] = (1.0 - free.momentum_mean) * kept_mean + free.momentum_mean * mean[i];
            std[i] = (1.0 - free.momentum_std) * kept_std + free.momentum_std * std[i];
        }
    }

    /// Final values of one step: inside the dead zone they are 0.
    fn settled(&self, values: &[f64]) -> Vec<f64> {
        values.iter().zip(&self.free).map(|(&v, free)| if v.abs() < free.dead_zone { 0.0 } else { v }).collect()
    }

    /// A whole action of the free values.
    fn action(&self, action_dim: usize, values: &[f64]) -> Vec<f32> {
        let mut action = vec![0.0; action_dim];
        self.free.iter().zip(values).for_each(|(free, &value)| action[free.index] = value as f32);
        action
    }
}
