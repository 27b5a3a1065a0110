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
        let n = indices.len().max(1) as f64;
        let mut mean = vec![0.0; features.width()];
        for &index in indices {
            mean.iter_mut().zip(features.row(index)).for_each(|(mean, &v)| *mean += f64::from(v) / n);
        }
        let mut variance = vec![0.0; features.width()];
        for &index in indices {
            let row = features.row(index).iter().zip(&mean);
            variance.iter_mut().zip(row).for_each(|(sum, (&v, mean))| *sum += (f64::from(v) - mean).powi(2) / n);
        }
        // What rounding alone makes of a feature that never changes is no deviation.
        let inverse = variance.iter().zip(&mean).map(|(variance, mean)| {
            let deviation = variance.sqrt();
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
