//! What can go wrong in a model, grouped by whose fault it is.

use jepa_gguf::GgufError;
use jepa_gguf::schema::Family;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    // The file.
    /// The bundle could not be read.
    #[error(transparent)]
    File(#[from] GgufError),

    // The caller's input.
    /// Pixels with another number of channels than the model's.
    #[error("pixels have {found} channels, the model takes {wanted} (jepa.enc.in_chans)")]
    Channels {
        /// Channels of the pixels.
        found: usize,
        /// Channels of the model.
        wanted: usize,
    },
    /// A picture or clip that does not fill one patch.
    #[error(
        "input of {frames} frames at {height}×{width} pixels does not fill one patch of {patch}×{patch} (jepa.enc.patch_size)"
    )]
    TooSmall {
        /// Frames of the input.
        frames: usize,
        /// Rows of the input.
        height: usize,
        /// Columns of the input.
        width: usize,
        /// Side of a patch.
        patch: usize,
    },
    /// A clip for a model that takes pictures only.
    #[error("input has {frames} frames, a model of family {family} takes one picture at a time")]
    ClipForImageModel {
        /// Frames of the input.
        frames: usize,
        /// Family of the model.
        family: Family,
    },
    /// A planner that makes no sense.
    #[error("planner: {what}")]
    Planner {
        /// What is wrong with it.
        what: String,
    },
    /// A probe that makes no sense.
    #[error("probe: {what}")]
    Probe {
        /// What is wrong with it.
        what: String,
    },
    /// A training that ran away.
    #[error("the loss of epoch {epoch} is no number; a smaller learning rate keeps it small")]
    Diverged {
        /// The epoch, counted from 1.
        epoch: usize,
    },
    /// A saved state that a training cannot go on from.
    #[error("the checkpoint cannot be used: {what}")]
    Checkpoint {
        /// Why.
        what: &'static str,
    },
    /// A tensor of another shape than the model takes.
    #[error("{name} has shape {found:?}, wanted {wanted}")]
    Shape {
        /// What the tensor is.
        name: &'static str,
        /// Its shape.
        found: Vec<usize>,
        /// The shape that fits, in words of the schema.
        wanted: String,
    },
    /// More frames than one call of a predictor has room for.
    #[error("{found} frames, the predictor has room for {most} (jepa.pred.n_frames)")]
    TooManyFrames {
        /// Frames given.
        found: usize,
        /// Frames that fit.
        most: usize,
    },
    /// No frame, or frames of different sizes in one clip.
    #[error("frames of a clip: {what}")]
    Frames {
        /// What is wrong with them.
        what: String,
    },
    /// Token ids that do not fit.
    #[error("token ids: {what}")]
    TokenIds {
        /// What is wrong with them.
        what: String,
    },
    /// A layer that the encoder does not have.
    #[error("layer {found}: the encoder has layers 0 to {last}; `last` and `last4` count from the end")]
    Layer {
        /// What was asked for.
        found: String,
        /// Last layer of the encoder.
        last: usize,
    },
    /// More blocks to train than the encoder has.
    #[error("last:{found}: the encoder has {n_layer} blocks")]
    Blocks {
        /// How many were asked for.
        found: usize,
        /// Blocks of the encoder.
        n_layer: usize,
    },
    /// A word that names no layer.
    #[error("layers: `{found}` is neither a number, `last`, nor `lastN`; write for instance 3,7,last")]
    LayerWord {
        /// What was written.
        found: String,
    },
    /// A word that names no part of an encoder to train.
    #[error("unfreeze: `{found}` is neither `last:N` nor `norms`; write for instance last:2")]
    Unfreeze {
        /// What was written.
        found: String,
    },
    /// A pooling that the model has no row for.
    #[error("pooling {wanted}: a model of family {family} has {missing}; it can do {available}")]
    Pool {
        /// What was asked for.
        wanted: &'static str,
        /// Family of the model.
        family: Family,
        /// What it lacks.
        missing: &'static str,
        /// What it offers.
        available: &'static str,
    },
    /// A size whose sides are not multiples of the patch.
    #[error("size {height}×{width} is no multiple of the patch size {patch}; nearest sizes are {down} and {up}")]
    Size {
        /// Rows asked for.
        height: usize,
        /// Columns asked for.
        width: usize,
        /// Side of a patch.
        patch: usize,
        /// Largest fitting size below, as `HxW`.
        down: String,
        /// Smallest fitting size above, as `HxW`.
        up: String,
    },
    /// A picture that cannot be brought into the model's form.
    #[error(transparent)]
    Pixels(#[from] jepa_pixels::PixelError),

    // The device.
    /// A type of numbers that the device cannot compute in.
    #[error("numbers of type {found}: backend {backend} cannot compute in it on this device; f32 always works")]
    Dtype {
        /// The type asked for.
        found: &'static str,
        /// The backend, as Burn calls it.
        backend: String,
    },

    // The weights.
    /// Results that are NaN or infinite.
    #[error("{what}: the model gave values that are no numbers: its weights or its preprocessing are damaged")]
    NoNumbers {
        /// Which.
        what: String,
    },

    // The file is fine, the model in it cannot do this.
    /// A task that needs a part which the model does not have.
    #[error("this {family} model has no {part}; it can {can}")]
    Cannot {
        /// Family of the model.
        family: Family,
        /// What it lacks.
        part: &'static str,
        /// What it can do instead.
        can: String,
    },
    /// A module whose parts do not fit its configuration.
    #[error("encoder of family {family} has no {part}, its graph needs it")]
    MissingPart {
        /// Family of the model.
        family: Family,
        /// The schema's name of the part.
        part: &'static str,
    },
}
