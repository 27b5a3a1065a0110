//! What is timed: one part of a model, and random inputs for it.

use burn::prelude::*;
use burn::tensor::{DType, Distribution};
use jepa_models::head::{AttentiveHead, AttentiveHeadConfig, LinearHead};
use jepa_models::nn::with_linears_as;
use jepa_models::predictor::{AcPredictorConfig, MaskedPredictor, MaskedPredictorConfig, PredictInput, TrainedOn};
use jepa_models::world::{AcWorld, Rollout, WorldModel, candidates_at_once};
use jepa_models::{Encoder, EncoderConfig, Head, Jepa, ModelError, Predictor, TokenIds, Trace, noise};

use crate::args::BenchTask;
use crate::cmd::world::{World, with_world};

/// Most frames of a clip, unless others are asked for.
const FRAMES: usize = 16;

/// Steps of a rollout, from one observed frame: the horizon of V-JEPA 2-AC's planner.
const STEPS: usize = 2;

/// A module that was drawn in f32, as the type asked for.
fn drawn<B: Backend, M: Module<B>>(module: M, dtype: DType) -> M {
    // A mapped module is a drawn one; one of f32 can wait until it is used.
    if dtype == DType::F32 { module } else { with_linears_as(module, dtype) }
}

/// A part of a model.
#[allow(clippy::large_enum_variant, reason = "there is one per bench")]
pub(super) enum Subject<B: Backend> {
    /// An encoder and the frames of one input.
    Encoder(Encoder<B>, usize),
    /// A masked predictor and the tokens of one input: every second one is seen, the others are predicted.
    Masked(MaskedPredictor<B>, usize),
    /// One prediction of a world model, from as many frames as a rollout ends with.
    Step(World<B>),
    /// [`STEPS`] predictions of a world model, one after the other.
    Rollout(World<B>),
    /// A head and the tokens of one input.
    Attentive(AttentiveHead<B>, usize, EncoderConfig),
    Linear(LinearHead<B>, EncoderConfig),
}

/// One pass over a batch; gives the tokens of one input.
pub(super) type Pass<'a> = Box<dyn Fn() -> Result<usize, ModelError> + 'a>;

/// What of a model is timed, and how.
#[derive(Clone, Copy)]
pub(super) struct Choice {
    pub(super) task: BenchTask,
    /// Frames of a clip, where they are not the model's.
    pub(super) frames: Option<usize>,
    /// Type of the linear layers.
    pub(super) dtype: DType,
}

impl Choice {
    /// Frames of one input.
    fn frames(self, config: &EncoderConfig) -> usize {
        match config.hparams.n_frames {
            1 => 1,
            native => self.frames.unwrap_or(native.min(FRAMES)),
        }
    }

    /// Patch tokens of one input.
    fn tokens(self, config: &EncoderConfig) -> usize {
        let grid = config.native_grid();
        grid.tokens() / grid.frames * self.frames(config).div_ceil(config.hparams.tubelet_size)
    }
}

impl<B: Backend> Subject<B> {
    /// The part of the size called `shape`, with weights as the backend draws them; `None` when there is no such size.
    pub(super) fn of_shape(choice: Choice, shape: &str, device: &B::Device) -> Option<Self> {
        let dtype = choice.dtype;
        let config = EncoderConfig::of_shape(shape)?;
        Some(match choice.task {
            BenchTask::Encoder => Self::Encoder(drawn(config.init(device), dtype), choice.frames(&config)),
            BenchTask::Predictor => {
                let predictor = MaskedPredictorConfig::of_shape(shape)?.init(device);
                Self::Masked(drawn(predictor, dtype), choice.tokens(&config))
            }
            BenchTask::Head => {
                let head = AttentiveHeadConfig::of_shape(shape)?.init(device);
                Self::Attentive(drawn(head, dtype), choice.tokens(&config), config)
            }
            BenchTask::Rollout => Self::Rollout(World::Ac(AcWorld {
                predictor: drawn(AcPredictorConfig::of_shape(shape)?.init(device), dtype),
                encoder: drawn(config.init(device), dtype),
            })),
        })
    }

    /// The part of a file's model.
    ///
    /// # Errors
    /// [`ModelError::Cannot`] when the model has no such part.
    pub(super) fn of_model(choice: Choice, model: &Jepa<B>) -> Result<Self, ModelError> {
        let config = model.encoder().config();
        Ok(match choice.task {
            BenchTask::Encoder => Self::Encoder(model.encoder().clone(), choice.frames(config)),
            BenchTask::Predictor => match model.load_predictor()? {
                Predictor::Masked(predictor) => Self::Masked(predictor, choice.tokens(config)),
                Predictor::Ac(_) | Predictor::Lewm(_) => Self::Step(World::of(model)?),
            },
            BenchTask::Head => match model.load_head()? {
                Head::Attentive(head) => Self::Attentive(head, choice.tokens(config), config.clone()),
                Head::Linear(head) => Self::Linear(head, config.clone()),
            },
            BenchTask::Rollout => Self::Rollout(World::of(model)?),
        })
    }

    /// Blocks of the part.
    pub(super) fn layers(&self) -> usize {
        match self {
            Self::Encoder(encoder, _) => encoder.blk.len(),
            Self::Masked(predictor, _) => predictor.blk.len(),
            Self::Step(world) | Self::Rollout(world) => match world {
                World::Ac(world) => world.predictor.blk.len(),
                World::Lewm(world) => world.predictor.blk.len(),
            },
            Self::Attentive(head, ..) => head.blk.len(),
            Self::Linear(..) => 1,
        }
    }

    /// Whether the tensors of a pass of an encoder stay below the largest of the device; other parts are not asked.
    pub(super) fn fits_device(&self, batch: usize) -> bool {
        match self {
            Self::Encoder(encoder, frames) => {
                let hp = &encoder.config().hparams;
                let shape = [batch, hp.in_chans, *frames, hp.img_size, hp.img_size];
                encoder.config().fits_device(shape, false)
            }
            _ => true,
        }
    }

    /// About how many bytes the inputs and activations of a pass take; saturates.
    pub(super) fn pass_bytes(&self, batch: usize) -> u64 {
        let product = |factors: &[usize]| factors.iter().fold(4u64, |bytes, &n| bytes.saturating_mul(n as u64));
        match self {
            Self::Encoder(encoder, frames) => {
                let hp = &encoder.config().hparams;
                let shape = [batch, hp.in_chans, *frames, hp.img_size, hp.img_size];
                // The pixels are drawn in f32 and copied once.
                encoder.config().activation_bytes(shape, 0).saturating_add(product(&shape).saturating_mul(2))
            }
            Self::Masked(predictor, tokens) => {
                predictor.config().activation_bytes(batch, tokens.div_ceil(2), *tokens / 2)
            }
            Self::Step(world) => {
                with_world!(world, world => world.step_bytes(world.window().0).saturating_mul(batch as u64))
            }
            Self::Rollout(world) => {
                // As many candidates run at once as fit; the frames of all of them are kept.
                let (tokens, dim) = frame_of(world);
                let step = with_world!(world, world => world.step_bytes(1 + STEPS));
                product(&[batch, 1 + STEPS, tokens, dim, 2]).saturating_add(step)
            }
            Self::Attentive(_, tokens, config) => {
                let hp = &config.hparams;
                product(&[batch, *tokens, 14 * hp.embed_dim + 2 * hp.ffn_dim])
            }
            Self::Linear(_, config) => product(&[batch, 2 * config.hparams.embed_dim]),
        }
    }

    /// A pass over `batch` inputs, or candidates of a world model.
    pub(super) fn pass<'a>(&'a self, batch: usize, seed: u64, device: &B::Device) -> Pass<'a> {
        let normal = |shape: [usize; 3]| Tensor::<B, 3>::random(shape, Distribution::Normal(0.0, 1.0), device);
        match self {
            Self::Encoder(encoder, frames) => {
                let pixels = noise::<B>(encoder.config(), batch, *frames, seed, device);
                Box::new(move || {
                    let tokens = encoder.encode(pixels.clone())?.tokens;
                    wait(&tokens);
                    Ok(tokens.dims()[1])
                })
            }
            Self::Masked(predictor, tokens) => {
                let config = predictor.config();
                let ids = |first| TokenIds::shared((first..*tokens).step_by(2).collect()).expect("ids are distinct");
                let (seen, hidden) = (ids(0), ids(1));
                let context = normal([batch, seen.kept(), config.masked.n_hier_in * config.enc_dim]);
                Box::new(move || {
                    let input =
                        PredictInput { context: &seen, targets: &hidden, mask_index: 0, modality: TrainedOn::Clip };
                    wait(&predictor.forward(context.clone(), input, &mut Trace::none())?.targets);
                    Ok(*tokens)
                })
            }
            Self::Step(world) => {
                let (tokens, dim) = frame_of(world);
                with_world!(world, world => {
                    let (most, slides) = world.window();
                    let frames = if slides { most } else { STEPS.min(most) };
                    let latents = normal([batch, frames * tokens, dim]).reshape([batch, frames, tokens, dim]);
                    let actions = normal([batch, frames, world.action_dim()]);
                    let states = normal([batch, frames, world.state_dim().max(1)]);
                    Box::new(move || {
                        wait(&world.predict_next(latents.clone(), actions.clone(), states.clone())?);
                        Ok(frames * tokens)
                    })
                })
            }
            Self::Rollout(world) => {
                let (tokens, dim) = frame_of(world);
                let start = normal([batch, tokens, dim]).reshape([batch, 1, tokens, dim]);
                with_world!(world, world => Box::new(move || {
                    roll_out(world, &start)?;
                    Ok(STEPS * tokens)
                }))
            }
            Self::Attentive(head, tokens, config) => {
                let features = normal([batch, *tokens, config.hparams.embed_dim]);
                Box::new(move || {
                    wait(&head.forward(features.clone(), &mut Trace::none()));
                    Ok(*tokens)
                })
            }
            Self::Linear(head, config) => {
                let pooled = normal([1, batch, config.hparams.embed_dim]).squeeze_dim::<2>(0);
                Box::new(move || {
                    wait(&head.forward(pooled.clone()));
                    Ok(1)
                })
            }
        }
    }
}

/// Rolls every candidate of `start` forward, as many at once as a planner would.
fn roll_out<B: Backend, W: WorldModel<B>>(world: &W, start: &Tensor<B, 4>) -> Result<(), ModelError> {
    let candidates = start.dims()[0];
    let at_once = candidates_at_once(world, 1 + STEPS);
    for first in (0..candidates).step_by(at_once) {
        let some = at_once.min(candidates - first);
        let states = if world.state_dim() > 0 { vec![vec![0.0; world.state_dim()]; some] } else { Vec::new() };
        let actions = vec![vec![0.1; STEPS * world.action_dim()]; some];
        let frames = start.clone().narrow(0, first, some);
        let rolled = Rollout::start(world, frames, vec![Vec::new(); some], states)?.run(world, &actions)?;
        wait(&rolled.frames);
    }
    Ok(())
}

/// Tokens and width of a frame's latents.
fn frame_of<B: Backend>(world: &World<B>) -> (usize, usize) {
    match world {
        World::Ac(world) => (world.predictor.tokens_per_frame(), world.predictor.config().enc_dim),
        World::Lewm(world) => (1, world.predictor.config().hparams.embed_dim),
    }
}

/// Reading a value back waits for a device that works in the background.
fn wait<B: Backend, const D: usize>(x: &Tensor<B, D>) {
    let _ = x.clone().narrow(0, 0, 1).narrow(D - 1, 0, 1).into_data();
}
