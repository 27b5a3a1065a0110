//! Pixels gathered into the rows of the patch embedding.

use burn::prelude::*;

use super::values::Values;
use crate::nn::Grid;

/// The rows of all tubelets of `grid`, in one pass over the pixels; gives them back when they are not for the kernels. Frames behind the last are the
/// first ones again.
///
/// **Shapes** `[batch, chans, frames, height, width]` → `[batch, tokens, chans · tubelet · patch · patch]`; the grid lies within the frames' picture.
pub(crate) fn tubelets<B: Backend>(
    pixels: Tensor<B, 5>,
    grid: Grid,
    tubelet: usize,
    patch: usize,
) -> Result<Tensor<B, 3>, Tensor<B, 5>> {
    let size = pixels.dims();
    let pixels = Values::of(pixels)?;
    let shape = [size[0], grid.tokens(), size[1] * tubelet * patch * patch];
    Ok(Values::filled(&shape, |rows| gather(pixels.as_slice(), size, grid, tubelet, patch, rows)).into_tensor())
}

fn gather(
    pixels: &[f32],
    [_, chans, frames, height, width]: [usize; 5],
    grid: Grid,
    tubelet: usize,
    patch: usize,
    rows: &mut [f32],
) {
    for (i, row) in rows.chunks_exact_mut(chans * tubelet * patch * patch).enumerate() {
        let (element, (t, h, w)) = (i / grid.tokens(), grid.at(i % grid.tokens()));
        for (j, line) in row.chunks_exact_mut(patch).enumerate() {
            let (chan, frame, y) = (j / (tubelet * patch), j / patch % tubelet, j % patch);
            let frame = (t * tubelet + frame) % frames;
            let at = (((element * chans + chan) * frames + frame) * height + h * patch + y) * width + w * patch;
            line.copy_from_slice(&pixels[at..][..patch]);
        }
    }
}
