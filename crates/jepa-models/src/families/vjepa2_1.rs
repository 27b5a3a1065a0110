//! V-JEPA 2.1: V-JEPA 2 with a path of its own for pictures, a vector that says which path was taken, and norms for several layers.
//!
//! **Source** Meta's V-JEPA 2.1 code. Rotary positions are interleaved and, with `rope_interpolate`, rescaled to the grid of 256-pixel
//! training. The norms of the hierarchical outputs are the encoder's business, see [`crate::Encoded::hier`].

use burn::prelude::*;

use crate::encoder::{Embedded, Encoder, Pass};
use crate::error::ModelError;
use crate::nn::{Pixels, Visibility};

pub(super) fn embed<B: Backend>(
    enc: &Encoder<B>,
    pixels: Pixels<B>,
    pass: &mut Pass<'_, '_, B>,
) -> Result<Embedded<B>, ModelError> {
    let one_frame = pixels.dims()[2] == 1;
    let hparams = &enc.config().hparams;
    let (mut x, grid) = if one_frame && hparams.image_patch_embed {
        enc.image_patches(pixels, pass)? //                                     [b, n, dim]
    } else {
        enc.patches(pixels, pass)?
    };
    if hparams.modality_embed {
        let modality = if one_frame {
            enc.part(&enc.mod_embed_img, "enc.mod_embed_img")?
        } else {
            enc.part(&enc.mod_embed_video, "enc.mod_embed_video")?
        };
        x = x + modality.val().unsqueeze();
    }
    let x = pass.keep(x); //                                                    [b, kept, dim]
    let rope = enc.rope(grid, 0, pass)?;
    Ok(Embedded { tokens: x, grid, prefix: 0, rope, visibility: Visibility::Full })
}
