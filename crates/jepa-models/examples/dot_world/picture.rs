//! The picture of a task: what is asked, what the model expects, and what happened.

use burn::prelude::*;
use burn_flex::Flex;
use jepa_models::ModelError;
use jepa_models::plan::Noise;
use jepa_models::world::Rollout;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::canvas::{Canvas, Colour, Point};
use crate::plan::{Attempt, Player, Task};
use crate::world::{Dot, PAINT, Push, RADIUS, SIDE, empty_box, random_push};

/// Pixels along a side of a panel.
const PANEL: usize = 320;
const MARGIN: usize = 24;
/// Pixels of the strip for one of the model's.
const ZOOM: usize = 2;
const GAP: usize = 8;
/// Places along a side of the box that imagined states are compared with.
const PLACES: usize = 41;
/// Imagined paths beside the planned one.
const CANDIDATES: usize = 16;

const PAPER: Colour = [255.0; 3];
const GOAL: Colour = [22.0, 128.0, 112.0];
const NEAR: Colour = [46.0, 134.0, 148.0];
const FAR: Colour = [246.0, 232.0, 200.0];
const THOUGHT: Colour = [40.0, 44.0, 60.0];

/// Places of the dot, and what the model makes of them.
struct Atlas {
    places: Vec<Dot>,
    /// `[places, dim]`.
    states: Tensor<Flex, 2>,
}

impl Atlas {
    fn of(player: &Player) -> Result<Self, ModelError> {
        let at = |i: usize| RADIUS + (1.0 - 2.0 * RADIUS) * i as f64 / (PLACES - 1) as f64;
        let grid = (0..PLACES * PLACES).map(|i| Dot { x: at(i % PLACES), y: at(i / PLACES) });
        let places: Vec<Dot> = grid.filter(|dot| dot.is_free()).collect();
        let states = places.iter().map(|&dot| Ok(player.look(dot)?.squeeze_dim::<2>(0)));
        Ok(Self { states: Tensor::cat(states.collect::<Result<Vec<_>, ModelError>>()?, 0), places })
    }

    /// Squared distances of a state `[1, dim]` to those of all places.
    fn distances(&self, state: Tensor<Flex, 2>) -> Vec<f32> {
        (self.states.clone() - state).powi_scalar(2).sum_dim(1).into_data().iter::<f32>().collect()
    }

    /// The place whose state is nearest.
    fn read(&self, state: Tensor<Flex, 2>) -> Dot {
        let distances = self.distances(state);
        let nearest = (0..self.places.len()).min_by(|&a, &b| distances[a].total_cmp(&distances[b]));
        self.places[nearest.expect("the box has free places")]
    }
}

/// Draws a task and what became of it. Left the box with start and goal; in the middle the distance of states to the goal's, random sequences as the
/// model expects them to end up, and the plan; right what happened. Below, the pictures that the model saw.
pub(crate) fn draw(player: &Player, task: Task, attempt: &Attempt, seed: u64) -> Result<Canvas, ModelError> {
    let (width, frame) = (3 * PANEL + 4 * MARGIN, SIDE * ZOOM);
    let mut canvas = Canvas::new(width, PANEL + frame + 3 * MARGIN, PAPER);
    let lefts = [0, 1, 2].map(|panel| MARGIN + panel * (PANEL + MARGIN));
    let [asked, expected, happened] = lefts;
    let on =
        |left: usize, dot: Dot| -> Point { [left as f64 + dot.x * PANEL as f64, MARGIN as f64 + dot.y * PANEL as f64] };
    let radius = RADIUS * PANEL as f64;

    canvas.lay(&task.start.picture(PANEL), asked, MARGIN, 1);
    canvas.lay(&empty_box(PANEL), expected, MARGIN, 1);
    canvas.lay(&task.start.picture(PANEL), happened, MARGIN, 1);

    let atlas = Atlas::of(player)?;
    shade(&mut canvas, &atlas, player.look(task.goal)?.squeeze_dim(0), |dot| on(expected, dot));
    let on_all = |left, path: &[Dot]| path.iter().map(|&dot| on(left, dot)).collect::<Vec<_>>();
    let (candidates, plan) = thoughts(player, &atlas, task, seed)?;
    for path in &candidates {
        trail(&mut canvas, &on_all(expected, path), 1.5, 0.3);
    }
    trail(&mut canvas, &on_all(expected, &plan), 4.0, 1.0);
    canvas.disc(on(expected, task.start), 0.5 * radius, PAINT, 1.0);

    for &dot in &attempt.path[1..] {
        canvas.disc(on(happened, dot), radius, PAINT, 0.22);
    }
    trail(&mut canvas, &on_all(happened, &attempt.path), 3.0, 1.0);
    for left in lefts {
        canvas.ring(on(left, task.goal), radius, 4.0, GOAL);
    }

    for (i, dot) in attempt.path.iter().enumerate() {
        let left = MARGIN + i * (frame + GAP);
        if left + frame + MARGIN <= width {
            canvas.lay(&dot.picture(SIDE), left, PANEL + 2 * MARGIN, ZOOM);
        }
    }
    Ok(canvas)
}

/// A path as a line, with a bead at each place when it is drawn in full.
fn trail(canvas: &mut Canvas, path: &[Point], width: f64, share: f64) {
    for pair in path.windows(2) {
        canvas.line(pair[0], pair[1], width, THOUGHT, share);
    }
    for &place in path.iter().filter(|_| share == 1.0) {
        canvas.disc(place, width / 2.0 + 3.0, THOUGHT, 1.0);
    }
}

/// Where the model expects random sequences of pushes to lead, and where the first plan.
fn thoughts(player: &Player, atlas: &Atlas, task: Task, seed: u64) -> Result<(Vec<Vec<Dot>>, Vec<Dot>), ModelError> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut sequence = || (0..player.cem.horizon).map(|_| random_push(&mut rng)).collect::<Vec<Push>>();
    let mut sequences: Vec<Vec<Push>> = (0..CANDIDATES).map(|_| sequence()).collect();
    let (start, goal) = (player.look(task.start)?, player.look(task.goal)?);
    let plan = player.cem.plan(&player.world, start, goal, &[], &Noise::Seeded(seed))?;
    sequences.push(plan.actions.iter().map(|action| [action[0], action[1]]).collect());
    let mut paths = imagine(player, atlas, task.start, &sequences)?;
    let planned = paths.pop().expect("a sequence was pushed");
    Ok((paths, planned))
}

/// Colours the free places of the middle panel by how far their states are from the goal's.
fn shade(canvas: &mut Canvas, atlas: &Atlas, goal: Tensor<Flex, 2>, on: impl Fn(Dot) -> Point) {
    let distances = atlas.distances(goal);
    let most = distances.iter().copied().fold(0.0, f32::max);
    let cell = ((1.0 - 2.0 * RADIUS) * PANEL as f64 / (PLACES - 1) as f64).ceil() as usize;
    for (&place, distance) in atlas.places.iter().zip(distances) {
        let far = f64::from((distance / most).sqrt());
        let colour = [0, 1, 2].map(|c| NEAR[c] + (FAR[c] - NEAR[c]) * far);
        let [left, top] = on(place).map(|v| v as usize - cell / 2);
        for (col, row) in (0..cell).flat_map(|col| (0..cell).map(move |row| (col, row))) {
            canvas.mix(left + col, top + row, colour, 1.0);
        }
    }
}

/// Where the model expects sequences of pushes to lead, read off the nearest states of the atlas.
fn imagine(player: &Player, atlas: &Atlas, start: Dot, sequences: &[Vec<Push>]) -> Result<Vec<Vec<Dot>>, ModelError> {
    let state = player.look(start)?; //                                         [1, 1, d]
    let [_, _, dim] = state.dims();
    let frames = state.reshape([1, 1, 1, dim]).expand([sequences.len(), 1, 1, dim]);
    let none = vec![Vec::new(); sequences.len()];
    let actions: Vec<Vec<f32>> = sequences.iter().map(|pushes| pushes.concat()).collect();
    let rolled = Rollout::start(&player.world, frames, none.clone(), none)?.run(&player.world, &actions)?;
    let steps = player.cem.horizon;
    let at = |candidate: usize, step: usize| {
        let state = rolled.frames.clone().narrow(0, candidate, 1).narrow(1, step, 1);
        atlas.read(state.reshape([1, dim]))
    };
    let path = |candidate| std::iter::once(start).chain((0..steps).map(|step| at(candidate, step))).collect();
    Ok((0..sequences.len()).map(path).collect())
}
