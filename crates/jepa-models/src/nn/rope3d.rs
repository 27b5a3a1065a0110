use burn::prelude::*;
use jepa_gguf::schema::{RopeHparams, RopeLayout};

use super::{Grid, as_type};

/// Where a token stands: tubelet, row and column, in units of the grid. Fractions come from interpolation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenPosition {
    /// Tubelet, counted from 0.
    pub t: f64,
    /// Row, counted from 0.
    pub h: f64,
    /// Column, counted from 0.
    pub w: f64,
}

/// Cosines and sines of a stack's rotary positions, as plain numbers.
///
/// Three axes share a head: of its `head_dim` lanes the first `width` turn with the tubelet, the next `width` with the row, the next with the
/// column, and what is left over is not turned. **Source** V-JEPA 2 `RoPEAttention`; in the [`RopeLayout::Tiled`] layout the two lanes of a
/// pair turn by different angles, which is how those weights were trained.
#[derive(Clone, Copy, Debug)]
pub struct RopeAngles {
    hparams: RopeHparams,
    head_dim: usize,
}

impl RopeAngles {
    /// The angles of heads that are `head_dim` wide.
    pub fn new(hparams: RopeHparams, head_dim: usize) -> Self {
        Self { hparams, head_dim }
    }

    /// Lanes of one axis: even, and three times it fits into a head.
    pub fn width(&self) -> usize {
        self.head_dim / 3 / 2 * 2
    }

    /// Position of the token `id` on `grid`, rescaled to the reference grid where the model does that.
    pub fn position(&self, id: usize, grid: Grid) -> TokenPosition {
        let (t, h, w) = grid.at(id);
        TokenPosition { t: t as f64, h: self.rescale(h, grid.rows), w: self.rescale(w, grid.cols) }
    }

    /// A grid of one row has no extent to rescale: position 0 (the reference divides by zero).
    fn rescale(&self, index: usize, extent: usize) -> f64 {
        if self.hparams.interpolate && extent > 1 {
            index as f64 * (self.hparams.ref_grid as f64 - 1.0) / (extent as f64 - 1.0)
        } else {
            index as f64
        }
    }

    /// The angle of each turned lane, `3 · width` of them.
    pub fn lanes(&self, position: TokenPosition) -> impl Iterator<Item = f64> + '_ {
        let width = self.width();
        [position.t, position.h, position.w].into_iter().flat_map(move |p| {
            (0..width).map(move |lane| {
                let k = match self.hparams.layout {
                    RopeLayout::Tiled => lane % (width / 2),
                    RopeLayout::Interleaved => lane / 2,
                };
                p * self.hparams.theta.powf(-2.0 * k as f64 / width as f64)
            })
        })
    }
}

/// Rotary positions of one forward pass, ready to turn queries and keys.
#[derive(Clone, Debug)]
pub struct Rope<B: Backend> {
    /// `[1 or batch, 1, tokens, 3 · width]`.
    cos: Tensor<B, 4>,
    sin: Tensor<B, 4>,
}

impl<B: Backend> Rope<B> {
    /// The turns of `positions`, one row per batch element or one row for all; `None` is a token without a position, which is not turned.
    ///
    /// Returns `None` when heads are too narrow to hold three axes.
    pub fn new(angles: RopeAngles, positions: &[Vec<Option<TokenPosition>>], device: &B::Device) -> Option<Self> {
        let lanes = 3 * angles.width();
        if lanes == 0 {
            return None;
        }
        let tokens = positions.first().map_or(0, Vec::len);
        let mut cos = Vec::with_capacity(positions.len() * tokens * lanes);
        let mut sin = Vec::with_capacity(cos.capacity());
        for position in positions.iter().flatten() {
            match position {
                Some(position) => angles.lanes(*position).for_each(|angle| {
                    cos.push(angle.cos() as f32);
                    sin.push(angle.sin() as f32);
                }),
                None => {
                    cos.resize(cos.len() + lanes, 1.0);
                    sin.resize(sin.len() + lanes, 0.0);
                }
            }
        }
        let shape = [positions.len(), 1, tokens, lanes];
        Some(Self {
            cos: Tensor::from_data(TensorData::new(cos, shape), device),
            sin: Tensor::from_data(TensorData::new(sin, shape), device),
        })
    }

    /// The turns of the tokens with these ids on `grid`, behind `prefix` tokens without a position.
    pub fn of_ids(
        angles: RopeAngles,
        ids: &[Vec<usize>],
        grid: Grid,
        prefix: usize,
        device: &B::Device,
    ) -> Option<Self> {
        let row = |ids: &Vec<usize>| {
            std::iter::repeat_n(None, prefix).chain(ids.iter().map(|&id| Some(angles.position(id, grid)))).collect()
        };
        Self::new(angles, &ids.iter().map(row).collect::<Vec<_>>(), device)
    }

    /// Cosines and sines, `[1 or batch, 1, tokens, lanes]` each.
    #[cfg(feature = "cpu")]
    pub(crate) fn parts(&self) -> [Tensor<B, 4>; 2] {
        [self.cos.clone(), self.sin.clone()]
    }

    /// Turns queries or keys: `x·cos + r·sin` with `r[2k] = -x[2k+1]`, `r[2k+1] = x[2k]`, in f32 whatever the type of `x`.
    ///
    /// **Shapes** `[batch, heads, tokens, head_dim]` → the same.
    pub fn turn(&self, x: Tensor<B, 4>) -> Tensor<B, 4> {
        let [b, h, n, head_dim] = x.dims();
        let lanes = self.cos.dims()[3];
        let own = x.dtype();
        let x = as_type(x, self.cos.dtype());
        let turned = x.clone().narrow(3, 0, lanes);
        let pairs = turned.clone().reshape([b, h, n, lanes / 2, 2]);
        let (even, odd) = (pairs.clone().narrow(4, 0, 1), pairs.narrow(4, 1, 1));
        let rotated = Tensor::cat(vec![odd.neg(), even], 4).reshape([b, h, n, lanes]);
        let turned = turned * self.cos.clone() + rotated * self.sin.clone();
        if lanes == head_dim {
            return as_type(turned, own);
        }
        as_type(Tensor::cat(vec![turned, x.narrow(3, lanes, head_dim - lanes)], 3), own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn angles(layout: RopeLayout, head_dim: usize) -> RopeAngles {
        RopeAngles::new(RopeHparams { theta: 10000.0, layout, interpolate: false, ref_grid: 16 }, head_dim)
    }

    #[test]
    fn widths_of_the_published_heads() {
        for (head_dim, width) in [(64, 20), (32, 10), (24, 8), (22, 6), (20, 6), (16, 4), (14, 4), (6, 2), (5, 0)] {
            assert_eq!(angles(RopeLayout::Tiled, head_dim).width(), width, "head_dim {head_dim}");
        }
    }

    #[test]
    fn layouts_order_the_frequencies_of_an_axis() {
        let position = TokenPosition { t: 1.0, h: 0.0, w: 0.0 };
        let frequency = |k: f64| 10000f64.powf(-2.0 * k / 6.0);
        let first_axis = |layout| angles(layout, 20).lanes(position).take(6).collect::<Vec<_>>();
        assert_eq!(first_axis(RopeLayout::Tiled), [0.0, 1.0, 2.0, 0.0, 1.0, 2.0].map(frequency));
        assert_eq!(first_axis(RopeLayout::Interleaved), [0.0, 0.0, 1.0, 1.0, 2.0, 2.0].map(frequency));
    }

    #[test]
    fn a_grid_of_one_row_stays_at_position_zero() {
        let mut angles = angles(RopeLayout::Interleaved, 24);
        angles.hparams.interpolate = true;
        let position = angles.position(2, Grid { frames: 1, rows: 1, cols: 4 });
        assert_eq!((position.h, position.w), (0.0, 10.0));
    }
}
