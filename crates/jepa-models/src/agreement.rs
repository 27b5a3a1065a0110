//! How well two arrays agree: the measures that parity is judged by.

/// Agreement of an array with a wanted one.
///
/// ```
/// use jepa_models::Agreement;
///
/// let agreement = Agreement::of(&[3.0, 4.0, 1.0, 0.0], &[3.0, 4.0, 0.0, 1.0], 2);
/// assert_eq!(agreement.cos_median, 0.5);
/// assert_eq!((agreement.cos_min, agreement.max_abs, agreement.rel_max), (0.0, 1.0, 0.25));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    /// Mean cosine of a row with the wanted row.
    pub cos_mean: f64,
    /// Median cosine.
    pub cos_median: f64,
    /// Smallest cosine.
    pub cos_min: f64,
    /// Largest absolute difference.
    pub max_abs: f64,
    /// Largest absolute difference over the largest absolute wanted value.
    pub rel_max: f64,
}

/// The bar an [`Agreement`] must clear.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// Smallest cosine that is good enough.
    pub cos_min: f64,
    /// Largest relative difference that is good enough.
    pub rel_max: f64,
}

impl Agreement {
    /// Compares rows of `row` values. Both slices must be equally long and hold whole rows; NaN anywhere gives NaN, which clears no bar.
    pub fn of(got: &[f64], want: &[f64], row: usize) -> Self {
        let mut cosines: Vec<f64> =
            got.chunks_exact(row.max(1)).zip(want.chunks_exact(row.max(1))).map(|(a, b)| cosine(a, b)).collect();
        cosines.sort_by(f64::total_cmp);
        let n = cosines.len();
        let largest = |values: &mut dyn Iterator<Item = f64>| {
            values.fold(0.0, |most: f64, x| if x.is_nan() || most.is_nan() { f64::NAN } else { most.max(x.abs()) })
        };
        let max_abs = largest(&mut got.iter().zip(want).map(|(a, b)| a - b));
        let scale = largest(&mut want.iter().copied());
        let (cos_mean, cos_median, cos_min) = match n {
            0 => (1.0, 1.0, 1.0),
            _ if cosines.iter().any(|c| c.is_nan()) => (f64::NAN, f64::NAN, f64::NAN),
            _ => (cosines.iter().sum::<f64>() / n as f64, (cosines[(n - 1) / 2] + cosines[n / 2]) / 2.0, cosines[0]),
        };
        let rel_max = if max_abs == 0.0 { 0.0 } else { max_abs / scale };
        Self { cos_mean, cos_median, cos_min, max_abs, rel_max }
    }

    /// Whether the bar is cleared; never with NaN.
    pub fn clears(&self, bar: Bar) -> bool {
        self.cos_min >= bar.cos_min && self.rel_max <= bar.rel_max
    }
}

/// Two zero rows are the same direction, a zero row and another are not.
fn cosine(a: &[f64], b: &[f64]) -> f64 {
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let norms = (dot(a, a) * dot(b, b)).sqrt();
    if norms == 0.0 {
        return f64::from(u8::from(a == b));
    }
    dot(a, b) / norms
}

#[cfg(test)]
mod tests {
    use super::*;

    const BAR: Bar = Bar { cos_min: 0.99999, rel_max: 1e-4 };

    #[test]
    fn equal_arrays_clear_any_bar() {
        let values = [0.0, 0.0, 1.0, -2.0];
        assert!(Agreement::of(&values, &values, 2).clears(Bar { cos_min: 1.0, rel_max: 0.0 }));
    }

    #[test]
    fn nan_clears_no_bar() {
        assert!(!Agreement::of(&[f64::NAN, 1.0], &[1.0, 1.0], 2).clears(BAR));
        assert!(!Agreement::of(&[1.0, 1.0], &[f64::NAN, 1.0], 2).clears(BAR));
    }

    #[test]
    fn one_bad_row_misses_the_bar() {
        let want = vec![1.0; 200];
        let mut got = want.clone();
        got[150] = -1.0;
        assert!(!Agreement::of(&got, &want, 2).clears(BAR));
    }
}
