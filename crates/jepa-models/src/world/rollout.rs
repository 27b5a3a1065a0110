use burn::prelude::*;

use super::WorldModel;
use crate::error::ModelError;

/// Memory that candidates rolled out together may take.
const BYTES_AT_ONCE: u64 = 2 << 30;

/// How many candidates to roll out together, up to `frames` frames long: all of them for a small model, at least one for any.
pub fn candidates_at_once<B: Backend, W: WorldModel<B>>(world: &W, frames: usize) -> usize {
    (BYTES_AT_ONCE / world.step_bytes(frames).max(1)).max(1) as usize
}

/// Many candidates stepped through a world model together.
///
/// Frame `j` is left by action `j`: with `H` frames to start from, the first `H - 1` actions lead from frame to frame and the rest into the
/// unknown. States are the poses of the frames, where the model has them.
#[derive(Debug)]
pub struct Rollout<B: Backend> {
    /// `[candidates, frames, tokens, dim]`.
    frames: Tensor<B, 4>,
    /// Per candidate, one action after the other.
    actions: Vec<Vec<f32>>,
    /// Per candidate, one state after the other.
    states: Vec<Vec<f32>>,
}

/// What a rollout gave.
#[derive(Debug)]
pub struct RolledOut<B: Backend> {
    /// Predicted frames, `[candidates, steps, tokens, dim]`.
    pub frames: Tensor<B, 4>,
    /// States of every frame, the given ones first: per candidate `frames · state_dim` values.
    pub states: Vec<Vec<f32>>,
}

impl<B: Backend> Rollout<B> {
    /// Starts from frames `[candidates, H, tokens, dim]`.
    ///
    /// `actions` holds per candidate the `(H - 1) · action_dim` values between those frames. `states` holds per candidate the state of the first
    /// frame, from which the others follow, or the states of all `H`; it is empty for a model without states.
    ///
    /// # Errors
    /// [`ModelError::Shape`] for counts that do not fit.
    pub fn start<W: WorldModel<B>>(
        world: &W,
        frames: Tensor<B, 4>,
        actions: Vec<Vec<f32>>,
        states: Vec<Vec<f32>>,
    ) -> Result<Self, ModelError> {
        let [candidates, n, ..] = frames.dims();
        let (action_dim, state_dim) = (world.action_dim(), world.state_dim());
        let fits = |name, rows: &[Vec<f32>], widths: &[usize], words: String| match rows.len() == candidates
            && rows.iter().all(|row| widths.contains(&row.len()))
        {
            true => Ok(()),
            false => {
                let found = vec![rows.len(), rows.first().map_or(0, Vec::len)];
                Err(ModelError::Shape { name, found, wanted: words })
            }
        };
        let past = (n - 1) * action_dim;
        fits(
            "actions between the frames",
            &actions,
            &[past],
            format!("[{candidates}, {past}] (jepa.pred.action_dim)"),
        )?;
        let mut rollout = Self { frames, actions, states };
        if state_dim > 0 {
            let wanted =
                format!("[{candidates}, {state_dim}] or [{candidates}, {}] (jepa.pred.state_dim)", n * state_dim);
            fits("states", &rollout.states, &[state_dim, n * state_dim], wanted)?;
            for (states, actions) in rollout.states.iter_mut().zip(&rollout.actions) {
                for action in actions.chunks_exact(action_dim).skip(states.len() / state_dim - 1) {
                    let next = world.next_state(&states[states.len() - state_dim..], action);
                    states.extend(next);
                }
            }
        } else {
            rollout.states = vec![Vec::new(); candidates];
        }
        Ok(rollout)
    }

    /// Number of candidates.
    pub fn candidates(&self) -> usize {
        self.frames.dims()[0]
    }

    /// The last frame of every candidate, `[candidates, tokens, dim]`.
    pub fn last(&self) -> Tensor<B, 3> {
        self.frames.clone().narrow(1, self.frames.dims()[1] - 1, 1).squeeze_dim(1)
    }

    /// Does `actions`, one per candidate, and predicts the frame that follows.
    ///
    /// # Errors
    /// [`ModelError::Shape`] for actions of another width or number, [`ModelError::TooManyFrames`] beyond the model's slots.
    pub fn step<W: WorldModel<B>>(&mut self, world: &W, actions: &[Vec<f32>]) -> Result<(), ModelError> {
        let [candidates, n, tokens, dim] = self.frames.dims();
        let (action_dim, state_dim) = (world.action_dim(), world.state_dim());
        if actions.len() != candidates || actions.iter().any(|action| action.len() != action_dim) {
            let found = vec![actions.len(), actions.first().map_or(0, Vec::len)];
            let wanted = format!("[{candidates}, {action_dim}] (candidates, jepa.pred.action_dim)");
            return Err(ModelError::Shape { name: "actions", found, wanted });
        }
        self.actions.iter_mut().zip(actions).for_each(|(past, action)| past.extend(action));
        let (most, slides) = world.window();
        if n > most && !slides {
            return Err(ModelError::TooManyFrames { found: n, most });
        }
        let seen = n.min(most);
        let window = self.frames.clone().narrow(1, n - seen, seen);
        let device = self.frames.device();
        let rows = |values: &[Vec<f32>], width: usize| {
            let last: Vec<f32> = values.iter().flat_map(|row| &row[row.len() - seen * width..]).copied().collect();
            Tensor::<B, 3>::from_data(TensorData::new(last, [candidates, seen, width]), &device)
        };
        let states = match state_dim {
            // A tensor without elements is trouble on some devices; this one is not looked at.
            0 => Tensor::zeros([1, 1, 1], &device),
            width => rows(&self.states, width),
        };
        let next = world.predict_next(window, rows(&self.actions, action_dim), states)?;
        self.frames = Tensor::cat(vec![self.frames.clone(), next.reshape([candidates, 1, tokens, dim])], 1);
        if state_dim > 0 {
            for (states, action) in self.states.iter_mut().zip(actions) {
                let next = world.next_state(&states[states.len() - state_dim..], action);
                states.extend(next);
            }
        }
        Ok(())
    }

    /// Does whole sequences of actions, `steps · action_dim` values per candidate, and gives the predicted frames.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn run<W: WorldModel<B>>(mut self, world: &W, actions: &[Vec<f32>]) -> Result<RolledOut<B>, ModelError> {
        let (width, start) = (world.action_dim(), self.frames.dims()[1]);
        let values = actions.first().map_or(0, Vec::len);
        let steps = values / width;
        if steps == 0 || actions.iter().any(|row| row.len() != steps * width) {
            let wanted = format!("[candidates, steps · {width}] (jepa.pred.action_dim)");
            return Err(ModelError::Shape { name: "actions", found: vec![actions.len(), values], wanted });
        }
        for step in 0..steps {
            let now: Vec<Vec<f32>> = actions.iter().map(|row| row[step * width..(step + 1) * width].to_vec()).collect();
            self.step(world, &now)?;
        }
        Ok(RolledOut { frames: self.frames.narrow(1, start, steps), states: self.states })
    }
}
