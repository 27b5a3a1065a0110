//! LeWorldModel's encoder: the ViT of [`super::hfvit`] without registers, whose CLS token a projector turns into the state of the world.
//!
//! **Source** the LeWM training code over HF `ViTModel`. The projector is applied where the state is asked for, see
//! [`crate::Pool::State`].

use burn::prelude::*;

use super::hfvit;
use crate::encoder::{Embedded, Encoder, Pass};
use crate::error::ModelError;
use crate::nn::Pixels;

pub(super) fn embed<B: Backend>(
    enc: &Encoder<B>,
    pixels: Pixels<B>,
    pass: &mut Pass<'_, '_, B>,
) -> Result<Embedded<B>, ModelError> {
    enc.part(&enc.proj, "enc.proj.0.weight")?;
    hfvit::embed(enc, pixels, pass)
}
