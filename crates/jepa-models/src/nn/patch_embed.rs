use burn::prelude::*;

use crate::error::ModelError;

/// Normalised pixels: a type of its own, so that raw values cannot be passed by accident.
///
/// Holds `[batch, chans, frames, height, width]`; a picture has one frame.
#[derive(Clone, Debug)]
pub struct Pixels<B: Backend> {
    tensor: Tensor<B, 5>,
}

impl<B: Backend> Pixels<B> {
    /// Takes clips that have been normalised already: `[batch, chans, frames, height, width]`.
    pub fn from_normalised_clips(tensor: Tensor<B, 5>) -> Self {
        Self { tensor }
    }

    /// Takes pictures that have been normalised already: `[batch, chans, height, width]`.
    pub fn from_normalised_images(tensor: Tensor<B, 4>) -> Self {
        Self { tensor: tensor.unsqueeze_dim(2) }
    }

    /// `[batch, chans, frames, height, width]`.
    pub fn dims(&self) -> [usize; 5] {
        self.tensor.dims()
    }

    /// Whether rows and columns are equally many; position tables ask.
    pub fn is_square(&self) -> bool {
        let [_, _, _, height, width] = self.dims();
        height == width
    }

    /// Every frame as a picture of its own, frames of one clip together: `[batch · frames, chans, 1, height, width]`.
    pub fn frames_alone(self) -> Self {
        let [batch, chans, frames, height, width] = self.dims();
        Self { tensor: self.tensor.swap_dims(1, 2).reshape([batch * frames, chans, 1, height, width]) }
    }

    /// The pixels as a tensor `[batch, chans, frames, height, width]`.
    pub fn into_tensor(self) -> Tensor<B, 5> {
        self.tensor
    }
}

/// Patch tokens of an input: `frames · rows · cols` of them, frame slowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Tubelets.
    pub frames: usize,
    /// Patches from top to bottom.
    pub rows: usize,
    /// Patches from left to right.
    pub cols: usize,
}

impl Grid {
    /// Number of patch tokens.
    pub fn tokens(&self) -> usize {
        self.frames * self.rows * self.cols
    }

    /// Tubelet, row and column of the token `id`.
    pub fn at(&self, id: usize) -> (usize, usize, usize) {
        let per_frame = self.rows * self.cols;
        (id / per_frame, id % per_frame / self.cols, id % self.cols)
    }
}

impl std::fmt::Display for Grid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.frames == 1 {
            write!(f, "{}×{}", self.rows, self.cols)
        } else {
            write!(f, "{}×{}×{}", self.frames, self.rows, self.cols)
        }
    }
}

/// Cuts pixels into tubelets, the rows that the patch embedding multiplies.
///
/// **Shapes** `[batch, chans, frames, height, width]` → `[batch, tokens, chans · tubelet · patch · patch]` and the grid. Channels are slowest
/// in a row, then the frame in the tubelet, then pixel row and column. Pixels and frames that do not fill a patch are dropped, as a strided
/// convolution does. A clip shorter than a tubelet is repeated `tubelet` times as a whole.
///
/// **Source** HF `VJEPA2Embeddings` for the repetition.
///
/// # Errors
/// [`ModelError::Channels`] for another channel count, [`ModelError::TooSmall`] for a picture smaller than a patch.
pub fn tubelets<B: Backend>(
    pixels: Pixels<B>,
    chans: usize,
    tubelet: usize,
    patch: usize,
) -> Result<(Tensor<B, 3>, Grid), ModelError> {
    let [batch, found, frames, height, width] = pixels.dims();
    if found != chans {
        return Err(ModelError::Channels { found, wanted: chans });
    }
    if batch == 0 {
        return Err(ModelError::Frames { what: "the batch is empty".into() });
    }
    if height < patch || width < patch || frames == 0 {
        return Err(ModelError::TooSmall { frames, height, width, patch });
    }
    let repeats = if frames < tubelet { tubelet } else { 1 };
    let grid = Grid { frames: frames * repeats / tubelet, rows: height / patch, cols: width / patch };
    let x = pixels.into_tensor();
    #[cfg(feature = "cpu")]
    let x = match crate::cpu::tubelets(x, grid, tubelet, patch) {
        Ok(rows) => return Ok((rows, grid)),
        Err(x) => x,
    };
    let x = if repeats > 1 { x.repeat_dim(2, repeats) } else { x };
    let Grid { frames: gt, rows: gh, cols: gw } = grid;
    let x = x.narrow(2, 0, gt * tubelet).narrow(3, 0, gh * patch).narrow(4, 0, gw * patch);

    // Two steps, since ndarray stops at six dimensions: first the columns come together, then rows and frames.
    let x = x
        .reshape([batch * chans, gt, tubelet, gh * patch, gw, patch]) //        [b·c, gt, τ, gh·p, gw, p]
        .permute([0, 1, 4, 2, 3, 5]) //                                         [b·c, gt, gw, τ, gh·p, p]
        .reshape([batch * chans, gt * gw, tubelet, gh, patch * patch]) //       [b·c, gt·gw, τ, gh, p·p]
        .reshape([batch, chans, gt, gw, tubelet * gh, patch * patch]) //        [b, c, gt, gw, τ·gh, p·p]
        .permute([0, 2, 3, 1, 4, 5]) //                                         [b, gt, gw, c, τ·gh, p·p]
        .reshape([batch * gt, gw, chans * tubelet, gh, patch * patch]) //       [b·gt, gw, c·τ, gh, p·p]
        .permute([0, 3, 1, 2, 4]) //                                            [b·gt, gh, gw, c·τ, p·p]
        .reshape([batch, grid.tokens(), chans * tubelet * patch * patch]); //   [b, tokens, c·τ·p·p]
    Ok((x, grid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn_flex::Flex;

    #[test]
    fn a_row_is_channel_then_frame_then_pixel_row_then_column() {
        let device = Default::default();
        let [b, c, t, h, w] = [2, 3, 5, 7, 9];
        let (tau, p) = (2, 3);
        let values =
            Tensor::<Flex, 1, Int>::arange(0..(b * c * t * h * w) as i64, &device).float().reshape([b, c, t, h, w]);
        let at = |b_: usize, c_: usize, t_: usize, h_: usize, w_: usize| {
            ((((b_ * c + c_) * t + t_) * h + h_) * w + w_) as f32
        };
        let (x, grid) = tubelets(Pixels::<Flex>::from_normalised_clips(values), c, tau, p).unwrap();
        assert_eq!(grid, Grid { frames: 2, rows: 2, cols: 3 });
        let mut want = Vec::new();
        for b_ in 0..b {
            for id in 0..grid.tokens() {
                let (gt, gh, gw) = grid.at(id);
                for c_ in 0..c {
                    for dt in 0..tau {
                        for dh in 0..p {
                            for dw in 0..p {
                                want.push(at(b_, c_, gt * tau + dt, gh * p + dh, gw * p + dw));
                            }
                        }
                    }
                }
            }
        }
        assert_eq!(x.into_data().to_vec::<f32>().unwrap(), want);
    }

    #[test]
    fn an_empty_batch_is_refused() {
        let empty = Tensor::<Flex, 5>::zeros([0, 3, 2, 8, 8], &Default::default());
        assert!(tubelets(Pixels::from_normalised_clips(empty), 3, 2, 4).is_err());
    }

    #[test]
    fn a_clip_shorter_than_a_tubelet_is_repeated_whole() {
        let device = Default::default();
        let clip = Tensor::<Flex, 1>::from_floats([1.0, 2.0], &device).reshape([1, 1, 2, 1, 1]);
        let (x, grid) = tubelets(Pixels::from_normalised_clips(clip), 1, 4, 1).unwrap();
        assert_eq!(grid.frames, 2);
        assert_eq!(x.into_data().to_vec::<f32>().unwrap(), [1., 2., 1., 2., 1., 2., 1., 2.]);
    }
}
