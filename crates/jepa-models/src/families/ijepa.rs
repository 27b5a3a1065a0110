//! I-JEPA: a plain ViT on patch tokens alone, with a 2-D sine-cosine table.
//!
//! **Source** HF `IJepaModel` and, for context ids, Meta's code: the position is added first, then the rows are gathered.

use burn::prelude::*;

use super::one_picture;
use crate::encoder::{Embedded, Encoder, Pass};
use crate::error::ModelError;
use crate::nn::{Pixels, Visibility};

pub(super) fn embed<B: Backend>(
    enc: &Encoder<B>,
    pixels: Pixels<B>,
    pass: &mut Pass<'_, '_, B>,
) -> Result<Embedded<B>, ModelError> {
    one_picture(enc, &pixels)?;
    let square = pixels.is_square();
    let (x, grid) = enc.patches(pixels, pass)?; //                              [b, n, dim]
    let (_, table) = enc.table_2d(grid, square)?; //                            [n, dim]
    let x = pass.keep(x + table.unsqueeze()); //                                [b, kept, dim]
    Ok(Embedded { tokens: x, grid, prefix: 0, rope: None, visibility: Visibility::Full })
}
