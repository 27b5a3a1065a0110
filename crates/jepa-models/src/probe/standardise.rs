//! Features of mean 0 and deviation 1.

use super::Features;

/// Mean and deviation of every feature, over the examples that are learned from.
///
/// A probe learns on standardised features, so that one learning rate serves encoders whose features differ in size by orders of magnitude;
/// [`super::fold`] then puts the scaling into its weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Standardiser {
    pub(super) mean: Vec<f64>,
    /// 1 over the deviation; 0 for a feature that never changes.
    pub(super) inverse: Vec<f64>,
}

impl Standardiser {
    /// Measures the rows `indices`.
    pub fn fit(features: &Features, indices: &[usize]) -> Self {
        Self::over(features.width(), indices.iter().map(|&index| features.row(index).iter().map(|&v| f64::from(v))))
    }

    /// Measures rows of `width` values, in one pass (Welford's).
    pub(super) fn over<R: IntoIterator<Item = f64>>(width: usize, rows: impl Iterator<Item = R>) -> Self {
        let (mut mean, mut squares, mut n) = (vec![0.0; width], vec![0.0; width], 0.0);
        for row in rows {
            n += 1.0;
            for (v, (mean, squares)) in row.into_iter().zip(mean.iter_mut().zip(&mut squares)) {
                let off: f64 = v - *mean;
                *mean += off / n;
                *squares += off * (v - *mean);
            }
        }
        // What rounding alone makes of a feature that never changes is no deviation.
        let inverse = squares.iter().zip(&mean).map(|(squares, mean)| {
            let deviation = (squares / f64::max(n, 1.0)).sqrt();
            if deviation > 1e-6 * mean.abs() && deviation > 1e-12 { 1.0 / deviation } else { 0.0 }
        });
        let inverse = inverse.collect();
        Self { mean, inverse }
    }

    /// Standardises every row.
    pub fn apply(&self, features: &mut Features) {
        for row in features.rows_mut() {
            for (v, (mean, inverse)) in row.iter_mut().zip(self.mean.iter().zip(&self.inverse)) {
                *v = ((f64::from(*v) - mean) * inverse) as f32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_learned_from_get_mean_zero_and_deviation_one() {
        let values = vec![1.0, 5.0, 7.0, 3.0, 5.0, 8.0, 100.0, 5.0, -4.0];
        let mut features = Features::new(values, vec![3], vec![0, 1, 0]).unwrap();
        Standardiser::fit(&features, &[0, 1]).apply(&mut features);
        assert_eq!(features.row(0), [-1.0, 0.0, -1.0]);
        assert_eq!(features.row(1), [1.0, 0.0, 1.0]);
        assert_eq!(features.row(2), [98.0, 0.0, -23.0]);
    }
}
