//! V-JEPA 2: no table; rotary positions over frame, row and column in every block.
//!
//! **Source** Meta's V-JEPA 2 code. Ids are decoded on the grid of the input; HF decodes them on the square training grid, which is the same
//! at the native size only.

use burn::prelude::*;

use crate::encoder::{Embedded, Encoder, Pass};
use crate::error::ModelError;
use crate::nn::{Pixels, Visibility};

pub(super) fn embed<B: Backend>(
    enc: &Encoder<B>,
    pixels: Pixels<B>,
    pass: &mut Pass<'_, '_, B>,
) -> Result<Embedded<B>, ModelError> {
    let (x, grid) = enc.patches(pixels, pass)?; //                              [b, n, dim]
    let x = pass.keep(x); //                                                    [b, kept, dim]
    let rope = enc.rope(grid, 0, pass)?;
    Ok(Embedded { tokens: x, grid, prefix: 0, rope, visibility: Visibility::Full })
}
