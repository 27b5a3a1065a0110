use burn::prelude::*;
use jepa_gguf::schema::PosInterp;

use super::Grid;

/// One axis of a resize as a matrix `[out, in]`: row `o` holds the weights of the input points that make output point `o`.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisWeights {
    rows: usize,
    cols: usize,
    weights: Vec<f32>,
}

impl AxisWeights {
    /// Bicubic from `from` to `to` points by the rule `interp`.
    ///
    /// **Source** PyTorch's `interpolate(mode="bicubic")`: a = -0.75 without antialias and indices clamped to the border; with antialias
    /// a = -0.5, the kernel stretched when shrinking, and points outside left out.
    pub fn bicubic(from: usize, to: usize, interp: PosInterp) -> Self {
        match interp {
            PosInterp::Offset => Self::sampled(from, to, from as f64 / (to as f64 + 0.1), cubic_points),
            PosInterp::Size => Self::sampled(from, to, from as f64 / to as f64, cubic_points),
            PosInterp::Antialias => Self::antialiased(from, to),
        }
    }

    /// Linear from `from` to `to` points, as PyTorch's `interpolate(mode="trilinear")` does each axis.
    pub fn linear(from: usize, to: usize) -> Self {
        Self::sampled(from, to, from as f64 / to as f64, |centre| {
            let centre = centre.max(0.0);
            let (base, fraction) = (centre.floor(), centre.fract());
            vec![(base, 1.0 - fraction), (base + 1.0, fraction)]
        })
    }

    fn sampled(from: usize, to: usize, step: f64, points: impl Fn(f64) -> Vec<(f64, f64)>) -> Self {
        let mut matrix = Self { rows: to, cols: from, weights: vec![0.0; to * from] };
        for o in 0..to {
            for (point, weight) in points((o as f64 + 0.5) * step - 0.5) {
                let point = point.clamp(0.0, from as f64 - 1.0) as usize;
                matrix.weights[o * from + point] += weight as f32;
            }
        }
        matrix
    }

    fn antialiased(from: usize, to: usize) -> Self {
        let mut matrix = Self { rows: to, cols: from, weights: vec![0.0; to * from] };
        let step = from as f64 / to as f64;
        let stretch = step.max(1.0);
        for o in 0..to {
            let middle = (o as f64 + 0.5) * step;
            let lo = (middle - 2.0 * stretch + 0.5).floor().max(0.0) as usize;
            let hi = ((middle + 2.0 * stretch + 0.5).floor() as usize).min(from);
            let row: Vec<f64> = (lo..hi).map(|j| cubic(-0.5, (j as f64 - middle + 0.5) / stretch)).collect();
            let sum: f64 = row.iter().sum();
            for (j, weight) in (lo..hi).zip(row) {
                matrix.weights[o * from + j] = (weight / sum) as f32;
            }
        }
        matrix
    }

    fn tensor<B: Backend>(self, device: &B::Device) -> Tensor<B, 2> {
        Tensor::from_data(TensorData::new(self.weights, [self.rows, self.cols]), device)
    }
}

fn cubic_points(centre: f64) -> Vec<(f64, f64)> {
    (-1..=2).map(|d| centre.floor() + f64::from(d)).map(|j| (j, cubic(-0.75, centre - j))).collect()
}

/// Keys' cubic convolution kernel.
fn cubic(a: f64, s: f64) -> f64 {
    let s = s.abs();
    if s <= 1.0 {
        ((a + 2.0) * s - (a + 3.0)) * s * s + 1.0
    } else if s < 2.0 {
        ((a * s - 5.0 * a) * s + 8.0 * a) * s - 4.0 * a
    } else {
        0.0
    }
}

/// Resizes a stored 2-D position table, each channel for itself.
///
/// **Shapes** `[from.rows · from.cols, dim]` → `[to.rows · to.cols, dim]`.
pub fn resize_table_2d<B: Backend>(table: Tensor<B, 2>, from: Grid, to: Grid, interp: PosInterp) -> Tensor<B, 2> {
    let rows = AxisWeights::bicubic(from.rows, to.rows, interp);
    let cols = AxisWeights::bicubic(from.cols, to.cols, interp);
    resize_rows_cols(table, from, to, rows, cols)
}

/// Resizes a stored 3-D position table, trilinearly.
///
/// **Shapes** `[from.tokens(), dim]` → `[to.tokens(), dim]`.
pub fn resize_table_3d<B: Backend>(table: Tensor<B, 2>, from: Grid, to: Grid) -> Tensor<B, 2> {
    let dim = table.dims()[1];
    let frames = AxisWeights::linear(from.frames, to.frames).tensor(&table.device());
    let table = frames
        .matmul(table.reshape([from.frames, from.rows * from.cols * dim])) //     [gt, gh0·gw0·d]
        .reshape([to.frames * from.rows * from.cols, dim]);
    let (rows, cols) = (AxisWeights::linear(from.rows, to.rows), AxisWeights::linear(from.cols, to.cols));
    resize_rows_cols(table, Grid { frames: to.frames, ..from }, to, rows, cols)
}

/// The two spatial axes; `from.frames` pictures are resized alike.
fn resize_rows_cols<B: Backend>(
    table: Tensor<B, 2>,
    from: Grid,
    to: Grid,
    rows: AxisWeights,
    cols: AxisWeights,
) -> Tensor<B, 2> {
    let (frames, dim, device) = (from.frames, table.dims()[1], table.device());
    let rows = rows.tensor(&device).unsqueeze::<3>();
    let cols = cols.tensor(&device).unsqueeze::<3>();
    let x = rows.matmul(table.reshape([frames, from.rows, from.cols * dim])); //    [t, gh, gw0·d]
    let x = cols.matmul(x.reshape([frames * to.rows, from.cols, dim])); //          [t·gh, gw, d]
    x.reshape([frames * to.rows * to.cols, dim])
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: [PosInterp; 3] = [PosInterp::Offset, PosInterp::Size, PosInterp::Antialias];

    #[test]
    fn weights_of_every_output_point_sum_to_one() {
        for rule in RULES {
            for (from, to) in [(4, 6), (7, 3), (16, 24), (11, 15), (1, 5), (5, 1)] {
                let matrix = AxisWeights::bicubic(from, to, rule);
                for row in matrix.weights.chunks(from) {
                    assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6, "{rule} {from}->{to}");
                }
            }
        }
    }

    #[test]
    fn the_native_size_is_the_identity_except_with_the_offset() {
        let identity: Vec<f32> = (0..25).map(|i| if i % 6 == 0 { 1.0 } else { 0.0 }).collect();
        assert_eq!(AxisWeights::bicubic(5, 5, PosInterp::Size).weights, identity);
        assert_eq!(AxisWeights::bicubic(5, 5, PosInterp::Antialias).weights, identity);
        assert_eq!(AxisWeights::linear(5, 5).weights, identity);
        assert_ne!(AxisWeights::bicubic(5, 5, PosInterp::Offset).weights, identity);
    }

    #[test]
    fn linear_halves_average_pairs_and_clamp_at_the_border() {
        assert_eq!(AxisWeights::linear(4, 2).weights, [0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.5, 0.5]);
        assert_eq!(AxisWeights::linear(2, 4).weights, [1.0, 0.0, 0.75, 0.25, 0.25, 0.75, 0.0, 1.0]);
    }
}
