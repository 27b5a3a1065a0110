//! From a model to pushes: the planner in the world, beside random play.

use burn::prelude::*;
use burn_flex::Flex;
use jepa_models::plan::{Cem, FreeAction, Noise};
use jepa_models::world::{LewmWorld, WorldModel};
use jepa_models::{ModelError, Preprocess};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::world::{DOOR, Dot, RADIUS, SIDE, random_push};

/// Pushes that an attempt has.
pub(crate) const PUSHES: usize = 20;
/// Pushes after which a plan is to end at the goal.
const APPOINTED: usize = 8;
/// Pushes that are done before the next look.
const AT_ONCE: usize = 2;
/// The goal is reached when the dot's centre is closer to it than this.
pub(crate) const CLOSE: f64 = RADIUS;

/// From where to where.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Task {
    /// Where the dot is.
    pub(crate) start: Dot,
    /// Where it shall be: in the other room.
    pub(crate) goal: Dot,
}

impl Task {
    /// Tasks drawn evenly; every one of them leads through the door.
    pub(crate) fn draw(count: usize, seed: u64) -> Vec<Self> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut pairs =
            std::iter::repeat_with(|| Self { start: Dot::somewhere(&mut rng), goal: Dot::somewhere(&mut rng) });
        pairs.by_ref().filter(|task| task.start.in_left_room() != task.goal.in_left_room()).take(count).collect()
    }

    /// Whether the wall stands on the straight way: both places are above the door.
    pub(crate) fn is_walled_off(self) -> bool {
        self.start.y < DOOR[0] && self.goal.y < DOOR[0]
    }
}

/// What became of a task.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    /// Where the dot was, the start first; the last one is close to the goal when the attempt succeeded.
    pub(crate) path: Vec<Dot>,
    /// Whether the goal was reached.
    pub(crate) reached: bool,
}

/// Plans from pictures alone.
#[derive(Debug)]
pub(crate) struct Player {
    pub(crate) world: LewmWorld<Flex>,
    preprocess: Preprocess,
    pub(crate) cem: Cem,
}

impl Player {
    /// A player with this model.
    pub(crate) fn new(world: LewmWorld<Flex>, preprocess: Preprocess) -> Self {
        let free = |index| FreeAction {
            index,
            std: 1.2,
            bound: Some(1.0),
            momentum_mean: 0.1,
            momentum_std: 0.1,
            dead_zone: 0.0,
            held_at: None,
        };
        let cem = Cem {
            horizon: APPOINTED,
            samples: 200,
            top_k: 16,
            iterations: 4,
            free: vec![free(0), free(1)],
            fixed_from: None,
        };
        Self { world, preprocess, cem }
    }

    /// What the model makes of a picture of the dot.
    ///
    /// **Shapes** → `[1, 1, dim]`.
    pub(crate) fn look(&self, dot: Dot) -> Result<Tensor<Flex, 3>, ModelError> {
        let picture = self.preprocess.image::<Flex>(&dot.picture(SIDE), &Default::default())?;
        Ok(self.world.observe(picture)?.squeeze_dim(1))
    }

    /// Pursues the goal: plans to be there after [`APPOINTED`] pushes, does [`AT_ONCE`] of them, looks, and plans the rest anew.
    ///
    /// The cost of a plan is that of where it ends. With a horizon that is always as long, arriving could be put off with every plan.
    pub(crate) fn pursue(&self, task: Task, seed: u64) -> Result<Attempt, ModelError> {
        let goal = self.look(task.goal)?;
        let mut path = vec![task.start];
        let ahead = (1..=APPOINTED / AT_ONCE).rev().map(|plans| plans * AT_ONCE).cycle();
        for (horizon, seed) in ahead.zip(seed..).take(PUSHES / AT_ONCE) {
            let seen = self.look(path[path.len() - 1])?;
            let plan =
                Cem { horizon, ..self.cem.clone() }.plan(&self.world, seen, goal.clone(), &[], &Noise::Seeded(seed))?;
            for action in &plan.actions[..AT_ONCE] {
                let dot = path[path.len() - 1].pushed([action[0], action[1]]);
                path.push(dot);
                if dot.distance(task.goal) < CLOSE {
                    return Ok(Attempt { path, reached: true });
                }
            }
        }
        Ok(Attempt { path, reached: false })
    }
}

/// Random play on a task; the goal counts as reached when the dot comes close to it at any time.
pub(crate) fn wander(task: Task, seed: u64) -> Attempt {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut path = vec![task.start];
    for _ in 0..PUSHES {
        let dot = path[path.len() - 1].pushed(random_push(&mut rng));
        path.push(dot);
        if dot.distance(task.goal) < CLOSE {
            return Attempt { path, reached: true };
        }
    }
    Attempt { path, reached: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model;
    use std::path::Path;

    fn player() -> Player {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/dot-world.gguf");
        let (world, preprocess) = model::open(&file).unwrap();
        Player::new(world, preprocess)
    }

    #[test]
    fn the_model_of_the_repository_brings_the_dot_through_the_door_and_random_play_does_not() {
        let player = player();
        for (task, seed) in Task::draw(3, 0).into_iter().zip(0..) {
            let attempt = player.pursue(task, seed).unwrap();
            assert!(attempt.reached, "{task:?}: {:?}", attempt.path);
            assert!(!wander(task, seed).reached);
        }
    }

    #[test]
    fn an_attempt_is_the_same_for_the_same_seed() {
        let (player, task) = (player(), Task::draw(1, 4)[0]);
        assert_eq!(player.pursue(task, 1).unwrap().path, player.pursue(task, 1).unwrap().path);
    }

    #[test]
    fn tasks_lead_from_room_to_room() {
        let tasks = Task::draw(50, 2);
        assert_eq!(tasks.len(), 50);
        assert!(tasks.iter().all(|task| task.start.in_left_room() != task.goal.in_left_room()));
        assert_eq!(tasks[..9], Task::draw(9, 2));
    }
}
