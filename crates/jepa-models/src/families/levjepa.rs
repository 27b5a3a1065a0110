//! LeVJEPA: V-JEPA 2's rotary positions with tubelets of one frame, a CLS token, and frames that cannot see later frames.
//!
//! CLS has no position, sees everything and is seen by no patch.
//!
//! **Source** own reading of two published descriptions; its training code agrees.

use burn::prelude::*;

use crate::encoder::{Embedded, Encoder, Pass};
use crate::error::ModelError;
use crate::nn::Pixels;

pub(super) fn embed<B: Backend>(
    enc: &Encoder<B>,
    pixels: Pixels<B>,
    pass: &mut Pass<'_, '_, B>,
) -> Result<Embedded<B>, ModelError> {
    let (x, grid) = enc.patches(pixels, pass)?; //                              [b, n, dim]
    let x = pass.keep(x); //                                                    [b, kept, dim]
    let x = Tensor::cat(vec![enc.cls_rows(x.dims()[0])?, x], 1); //             [b, 1 + kept, dim]
    let rope = enc.rope(grid, 1, pass)?;
    let visibility = enc.config().visibility(&pass.kept_ids(grid), grid, 1);
    Ok(Embedded { tokens: x, grid, prefix: 1, rope, visibility })
}
