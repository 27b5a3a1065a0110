//! Checks the tensors of a file against the tensor table.

use std::collections::HashSet;

use super::hparams::Hparams;
use super::tensors::visit_expected;
use crate::error::GgufError;
use crate::file::Gguf;

/// Checks that the file has exactly the tensors of a bundle with hyper-parameters `hp`, each in its shape and in a type it may have.
///
/// Leading sizes of 1 make no difference to where the values stand (ggml itself counts its fastest dimension first and cannot tell them apart),
/// so a stored `[1, 1, D]` is taken for the table's `[D]`; afterwards the file reports the table's shapes.
pub(crate) fn check_tensors(file: &mut Gguf, hp: &Hparams) -> Result<(), GgufError> {
    let mut seen = HashSet::new();
    visit_expected(hp, |expected| {
        let Some(index) = file.index_of(&expected.name) else {
            let reason = expected.reason();
            return Err(GgufError::MissingTensor { tensor: expected.name, wanted: expected.shape, reason });
        };
        let found = &file.tensors()[index];
        if without_leading_ones(found.shape()) != without_leading_ones(&expected.shape) {
            let (found, reason) = (found.shape().to_vec(), expected.reason());
            return Err(GgufError::TensorShape { tensor: expected.name, found, wanted: expected.shape, reason });
        }
        if !expected.types.allows(found.dtype()) {
            let (found, wanted) = (found.dtype(), expected.types.words());
            return Err(GgufError::TensorType { tensor: expected.name, found, wanted });
        }
        seen.insert(index);
        file.reshape(index, expected.shape);
        Ok(())
    })?;
    match (0..file.tensors().len()).find(|i| !seen.contains(i)) {
        Some(left) => {
            Err(GgufError::SurplusTensor { tensor: file.tensors()[left].name().to_owned(), family: hp.family.word() })
        }
        None => Ok(()),
    }
}

/// The sizes from the first one that is not 1.
fn without_leading_ones(shape: &[usize]) -> &[usize] {
    let ones = shape.iter().take_while(|&&d| d == 1).count();
    &shape[ones..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_leading_ones_are_dropped() {
        assert_eq!(without_leading_ones(&[1, 1, 5, 1]), [5, 1]);
        assert_eq!(without_leading_ones(&[1, 1]), [0_usize; 0]);
        assert_eq!(without_leading_ones(&[5]), [5]);
    }
}
