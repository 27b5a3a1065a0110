//! What is learned from.

use burn::tensor::TensorData;

use crate::error::ModelError;

/// Inputs of known classes.
pub trait Examples {
    /// The class of every example, counted from 0.
    fn classes(&self) -> &[usize];

    /// The inputs of some examples.
    ///
    /// **Shapes** → `[indices, ..]`.
    ///
    /// # Errors
    /// Whatever keeps an input from being had.
    fn batch(&self, indices: &[usize]) -> Result<TensorData, ModelError>;
}

/// Features in the memory of the host, one row an example: pooled vectors, or token maps.
#[derive(Clone, Debug, PartialEq)]
pub struct Features {
    values: Vec<f32>,
    row_shape: Vec<usize>,
    classes: Vec<usize>,
}

impl Features {
    /// Wraps the rows of `classes.len()` examples.
    ///
    /// **Shapes** `values` `[examples, row_shape..]`.
    ///
    /// # Errors
    /// [`ModelError::Shape`] for values of another number, [`ModelError::NoNumbers`] for NaN or infinity among them.
    pub fn new(values: Vec<f32>, row_shape: Vec<usize>, classes: Vec<usize>) -> Result<Self, ModelError> {
        let width: usize = row_shape.iter().product();
        if values.len() != width * classes.len() || width == 0 {
            let wanted = format!("{} examples of {row_shape:?}", classes.len());
            return Err(ModelError::Shape { name: "features", found: vec![values.len()], wanted });
        }
        if let Some(at) = values.iter().position(|v| !v.is_finite()) {
            return Err(ModelError::NoNumbers { what: format!("features of example {}", at / width) });
        }
        Ok(Self { values, row_shape, classes })
    }

    /// The classes of the examples.
    pub fn classes(&self) -> &[usize] {
        &self.classes
    }

    /// Shape of a row.
    pub fn row_shape(&self) -> &[usize] {
        &self.row_shape
    }

    /// Values in a row.
    pub fn width(&self) -> usize {
        self.row_shape.iter().product()
    }

    /// One row.
    pub fn row(&self, index: usize) -> &[f32] {
        let width = self.width();
        &self.values[index * width..(index + 1) * width]
    }

    /// All rows, to change them.
    pub(super) fn rows_mut(&mut self) -> impl Iterator<Item = &mut [f32]> {
        let width = self.width();
        self.values.chunks_exact_mut(width)
    }
}

impl Examples for Features {
    fn classes(&self) -> &[usize] {
        &self.classes
    }

    fn batch(&self, indices: &[usize]) -> Result<TensorData, ModelError> {
        let mut values = Vec::with_capacity(indices.len() * self.width());
        for &index in indices {
            values.extend_from_slice(self.row(index));
        }
        let shape: Vec<usize> = std::iter::once(indices.len()).chain(self.row_shape.iter().copied()).collect();
        Ok(TensorData::new(values, shape))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_no_numbers_or_of_another_length_are_refused() {
        let nan = Features::new(vec![0.0, 1.0, f32::NAN, 2.0], vec![2], vec![0, 1]).unwrap_err();
        assert!(nan.to_string().contains("features of example 1"), "{nan}");
        assert!(matches!(Features::new(vec![0.0; 5], vec![2], vec![0, 1]), Err(ModelError::Shape { .. })));
    }

    #[test]
    fn a_batch_holds_the_rows_asked_for_in_their_order() {
        let features = Features::new((0..12).map(|i| i as f32).collect(), vec![2, 2], vec![0, 1, 0]).unwrap();
        let batch = features.batch(&[2, 0]).unwrap();
        assert_eq!(&batch.shape[..], [2, 2, 2]);
        assert_eq!(batch.to_vec::<f32>().unwrap(), [8.0, 9.0, 10.0, 11.0, 0.0, 1.0, 2.0, 3.0]);
    }
}
