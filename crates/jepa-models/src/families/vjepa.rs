//! V-JEPA: tubelets of two frames and a 3-D sine-cosine table, resized trilinearly to other clips.
//!
//! **Source** Meta's V-JEPA code. Fewer frames at the native size go through the resize too.

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
    let table = enc.table_3d(grid)?; //                                         [n, dim]
    let x = pass.keep(x + table.unsqueeze()); //                                [b, kept, dim]
    Ok(Embedded { tokens: x, grid, prefix: 0, rope: None, visibility: Visibility::Full })
}
