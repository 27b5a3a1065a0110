//! DINOv2-style ViTs (LeJEPA, lite_ssl, DINOv2 with registers): CLS, registers and patches with a learned table.
//!
//! **Source** lite_ssl's `ViTv2` and HF `Dinov2WithRegistersModel`. Registers come between CLS and the patches after the positions have been
//! added, and have none. The two sources resize the table by different rules ([`jepa_gguf::schema::PosInterp`]).

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
    let [batch, _, dim] = x.dims();
    let (cls_row, table) = enc.table_2d(grid, square)?; //                      [1, dim], [n, dim]
    let x = pass.keep(x + table.unsqueeze()); //                                [b, kept, dim]

    let mut parts = Vec::with_capacity(3);
    if let Some(cls_row) = cls_row {
        parts.push(enc.cls_rows(batch)? + cls_row.unsqueeze()); //              [b, 1, dim]
    }
    if let Some(registers) = &enc.reg_tokens {
        let registers = registers.val();
        let n = registers.dims()[0];
        parts.push(registers.unsqueeze::<3>().expand([batch, n, dim])); //           [b, registers, dim]
    }
    let prefix = parts.iter().map(|part| part.dims()[1]).sum();
    parts.push(x);
    let x = Tensor::cat(parts, 1); //                                           [b, prefix + kept, dim]
    Ok(Embedded { tokens: x, grid, prefix, rope: None, visibility: Visibility::Full })
}
