//! World models on the command line: observations, states, and the model behind either family.

use std::path::Path;

use burn::prelude::*;
use jepa_models::world::{AcWorld, LewmWorld, WorldModel};
use jepa_models::{Jepa, ModelError, Pixels, Predictor};

use crate::arrays::Array;
use crate::exit::CliError;
use crate::inputs::Input;
use crate::progress::Progress;

/// A world model of either family.
pub(crate) enum World<B: Backend> {
    Ac(AcWorld<B>),
    Lewm(LewmWorld<B>),
}

/// Runs the same code for either family.
macro_rules! with_world {
    ($world:expr, $name:ident => $body:expr) => {
        match $world {
            $crate::cmd::world::World::Ac($name) => $body,
            $crate::cmd::world::World::Lewm($name) => $body,
        }
    };
}
pub(crate) use with_world;

impl<B: Backend> World<B> {
    /// The world model of a bundle.
    pub(crate) fn of(model: &Jepa<B>) -> Result<Self, ModelError> {
        let encoder = model.encoder().clone();
        match model.load_predictor()? {
            Predictor::Ac(predictor) => Ok(Self::Ac(AcWorld { encoder, predictor })),
            Predictor::Lewm(predictor) => Ok(Self::Lewm(LewmWorld { encoder, predictor })),
            Predictor::Masked(_) => Err(model.cannot("world model")),
        }
    }

    /// Encodes pictures, frame by frame: `[1, frames, tokens, dim]`.
    pub(crate) fn observe<P: AsRef<Path>>(
        &self,
        paths: &[P],
        model: &Jepa<B>,
        device: &B::Device,
        progress: &Progress,
    ) -> Result<Tensor<B, 4>, CliError> {
        let preprocess = model.preprocess();
        let (height, width) = preprocess.output_size();
        let mut observed = Vec::with_capacity(paths.len());
        for path in paths.iter().map(AsRef::as_ref) {
            let name = path.display().to_string();
            let prepared =
                Input::prepare_frame(path, preprocess).map_err(|error| CliError::input(name.clone(), error))?;
            prepared.notes.iter().for_each(|note| progress.remark(&name, note));
            let values =
                preprocess.normalise(&prepared.frames).map_err(|error| CliError::input(name.clone(), error))?;
            let pixels = Tensor::from_data(TensorData::new(values, [1, 3, 1, height, width]), device);
            observed.push(self.encode(&name, Pixels::from_normalised_clips(pixels))?);
        }
        Ok(Tensor::cat(observed, 1))
    }

    /// Encodes normalised frames: `[1, frames, tokens, dim]`.
    pub(crate) fn encode(&self, name: &str, pixels: Pixels<B>) -> Result<Tensor<B, 4>, CliError> {
        with_world!(self, world => world.observe(pixels)).map_err(|error| CliError::input(name, error))
    }
}

/// An f32 array of finite numbers.
pub(crate) fn read_finite(path: &Path) -> Result<(Vec<usize>, Vec<f32>), CliError> {
    let fail = |error: Box<dyn std::error::Error + Send + Sync>| CliError::input(path.display().to_string(), error);
    let array = Array::read_npy(path).map_err(|error| fail(error.into()))?;
    let shape = array.shape.clone();
    let values = array.into_f32().map_err(|error| fail(error.into()))?;
    match values.iter().position(|v| !v.is_finite()) {
        Some(at) => Err(fail(format!("value {at} is {}, wanted finite numbers", values[at]).into())),
        None => Ok((shape, values)),
    }
}

/// A fault of the numbers in `path`: of the array where shapes do not fit, of the model otherwise.
pub(crate) fn array_error(path: &Path, error: ModelError) -> CliError {
    match error {
        ModelError::Planner { .. } => CliError::usage(error.to_string()),
        ModelError::Shape { .. } | ModelError::TooManyFrames { .. } => {
            CliError::usage(format!("{}: {error}", path.display()))
        }
        other => CliError::input(path.display().to_string(), other),
    }
}
