//! How far stored values are from what they stand for.

/// Sums over the values of a tensor, from which its error follows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RoundingError {
    /// Sum of the squared differences.
    pub difference: f64,
    /// Sum of the squared values.
    pub energy: f64,
    /// Largest absolute difference.
    pub max_abs: f32,
}

impl RoundingError {
    /// Compares values with what they were rounded to.
    pub(super) fn of(values: &[f32], rounded: &[f32]) -> Self {
        let mut sums = Self::default();
        for (&v, &r) in values.iter().zip(rounded) {
            sums.difference += (f64::from(v) - f64::from(r)).powi(2);
            sums.energy += f64::from(v).powi(2);
            sums.max_abs = sums.max_abs.max((v - r).abs());
        }
        sums
    }

    /// The errors of two sets of values together.
    pub fn and(self, other: Self) -> Self {
        Self {
            difference: self.difference + other.difference,
            energy: self.energy + other.energy,
            max_abs: self.max_abs.max(other.max_abs),
        }
    }

    /// Root of the squared differences over the squared values; 0 where nothing differs.
    pub fn relative(&self) -> f64 {
        if self.difference == 0.0 { 0.0 } else { (self.difference / self.energy).sqrt() }
    }
}
