//! The families: what sets each apart, one short file each.
//!
//! An encoder's graph is always *embed, blocks, norm*. A family's file says how pixels become the tokens that enter the blocks, which rotary
//! positions turn them and which tokens see which; [`crate::nn::Block`] and [`crate::Encoder`] do the rest.

mod hfvit;
mod ijepa;
mod levjepa;
mod lewm;
mod registry;
mod vjepa;
mod vjepa2;
mod vjepa2_1;

use burn::prelude::*;
use jepa_gguf::schema::Family;

use crate::encoder::{Embedded, Encoder, Pass};
use crate::error::ModelError;
use crate::nn::Pixels;

pub use registry::{About, about};

/// Pixels to the tokens that enter the blocks, by the graph of the encoder's family.
pub(crate) fn embed<B: Backend>(
    enc: &Encoder<B>,
    pixels: Pixels<B>,
    pass: &mut Pass<'_, '_, B>,
) -> Result<Embedded<B>, ModelError> {
    match enc.config().family {
        Family::Ijepa => ijepa::embed(enc, pixels, pass),
        Family::Vjepa => vjepa::embed(enc, pixels, pass),
        Family::Vjepa2 => vjepa2::embed(enc, pixels, pass),
        Family::Vjepa2_1 => vjepa2_1::embed(enc, pixels, pass),
        Family::Levjepa => levjepa::embed(enc, pixels, pass),
        Family::Hfvit => hfvit::embed(enc, pixels, pass),
        Family::Lewm => lewm::embed(enc, pixels, pass),
    }
}

/// Refuses a clip where the family takes pictures.
fn one_picture<B: Backend>(enc: &Encoder<B>, pixels: &Pixels<B>) -> Result<(), ModelError> {
    match pixels.dims()[2] {
        1 => Ok(()),
        frames => Err(ModelError::ClipForImageModel { frames, family: enc.config().family }),
    }
}
