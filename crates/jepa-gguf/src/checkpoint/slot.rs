//! Where the numbers of a tensor lie, and how they are taken out.

use half::{bf16, f16};

use super::{CheckpointError, SourceType};
use crate::cursor::cut;
use crate::limits::MAX_SOURCE_DIMS;

/// How one number is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    F64,
    F32,
    F16,
    Bf16,
    /// An integer or boolean of so many bytes.
    Integer(u8),
}

impl Stored {
    /// Bytes of one number.
    pub(super) fn width(self) -> u64 {
        match self {
            Self::F64 => 8,
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::Integer(width) => width.into(),
        }
    }

    /// What the caller is told.
    pub(super) fn source_type(self) -> SourceType {
        match self {
            Self::F64 => SourceType::F64,
            Self::F32 => SourceType::F32,
            Self::F16 => SourceType::F16,
            Self::Bf16 => SourceType::Bf16,
            Self::Integer(_) => SourceType::Integer,
        }
    }
}

/// A shape and its number of elements.
pub(super) fn shape(tensor: &str, sizes: &[u64]) -> Result<(Vec<usize>, usize), CheckpointError> {
    if sizes.len() as u64 > MAX_SOURCE_DIMS {
        let what = format!("tensor {tensor}, dimensions");
        return Err(CheckpointError::Limit { what, found: sizes.len() as u64, most: MAX_SOURCE_DIMS });
    }
    let too_many = || CheckpointError::TooManyElements { tensor: tensor.to_owned(), shape: sizes.to_vec() };
    let shape: Vec<usize> =
        sizes.iter().map(|&n| usize::try_from(n)).collect::<Result<_, _>>().map_err(|_| too_many())?;
    let elements = match shape.contains(&0) {
        true => 0,
        false => shape.iter().try_fold(1usize, |product, &n| product.checked_mul(n)).ok_or_else(too_many)?,
    };
    Ok((shape, elements))
}

/// The place of a tensor's numbers in a file.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    stored: Stored,
    /// First byte in the file.
    at: u64,
    elements: usize,
    /// Numbers from the first to the last that the tensor shows, both included.
    span: usize,
    /// Steps between neighbours along each axis, in numbers; `None` when they follow one another in row-major order. Axes of size 1 have step 0.
    strides: Option<Vec<usize>>,
}

impl Slot {
    /// Numbers that follow one another from byte `at`. The range has been compared with the file.
    pub(super) fn row_major(stored: Stored, at: u64, elements: usize) -> Self {
        Self { stored, at, elements, span: elements, strides: None }
    }

    /// A view into a storage of `room` numbers that starts at byte `at` of the file; `None` when the view reaches past its end.
    pub(super) fn view(
        (stored, at, room): (Stored, u64, u64),
        offset: u64,
        shape: &[usize],
        elements: usize,
        strides: &[u64],
    ) -> Option<Self> {
        if elements == 0 {
            return Some(Self::row_major(stored, at, 0));
        }
        let strides: Vec<u64> = shape.iter().zip(strides).map(|(&n, &step)| if n == 1 { 0 } else { step }).collect();
        let last = shape
            .iter()
            .zip(&strides)
            .try_fold(0u64, |last, (&n, &step)| last.checked_add(step.checked_mul(n as u64 - 1)?))?;
        if offset.checked_add(last)? >= room {
            return None;
        }
        let mut wanted = 1;
        let in_order = shape.iter().zip(&strides).rev().all(|(&n, &step)| {
            let fits = n == 1 || step == wanted;
            wanted = wanted.saturating_mul(n as u64);
            fits
        });
        let steps = strides.iter().map(|&step| usize::try_from(step).ok()).collect::<Option<_>>()?;
        Some(Self {
            stored,
            at: at.checked_add(offset.checked_mul(stored.width())?)?,
            elements,
            span: usize::try_from(last).ok()?.checked_add(1)?,
            strides: (!in_order).then_some(steps),
        })
    }

    /// The numbers in row-major order, each made by `from` out of its exact f64.
    ///
    /// Every stored float is exact in f64, so nothing is rounded but by `from`.
    pub(super) fn read<T>(
        &self,
        tensor: &str,
        shape: &[usize],
        file: &[u8],
        from: impl Fn(f64) -> T,
    ) -> Result<Vec<T>, CheckpointError> {
        let (elements, stored) = (self.elements, self.span);
        if elements > stored {
            return Err(CheckpointError::Expanded { tensor: tensor.to_owned(), elements, stored });
        }
        let bytes = cut(file, self.at, stored as u64 * self.stored.width())
            .expect("the range was compared with the file when it was opened");
        let mut out = Vec::new();
        out.try_reserve_exact(elements).map_err(|_| CheckpointError::Memory {
            what: format!("tensor {tensor}"),
            wanted: (elements as u64).saturating_mul(size_of::<T>() as u64),
        })?;
        match self.stored {
            Stored::F64 => self.gather(bytes, shape, &mut out, |b| from(f64::from_le_bytes(b))),
            Stored::F32 => self.gather(bytes, shape, &mut out, |b| from(f32::from_le_bytes(b).into())),
            Stored::F16 => self.gather(bytes, shape, &mut out, |b| from(f16::from_le_bytes(b).into())),
            Stored::Bf16 => self.gather(bytes, shape, &mut out, |b| from(bf16::from_le_bytes(b).into())),
            Stored::Integer(_) => {
                let found = self.stored.source_type();
                return Err(CheckpointError::NotFloats { tensor: tensor.to_owned(), found });
            }
        }
        Ok(out)
    }

    fn gather<T, const N: usize>(
        &self,
        bytes: &[u8],
        shape: &[usize],
        out: &mut Vec<T>,
        convert: impl Fn([u8; N]) -> T,
    ) {
        let (numbers, _) = bytes.as_chunks::<N>();
        let Some(strides) = &self.strides else {
            return out.extend(numbers.iter().map(|&b| convert(b)));
        };
        let mut index = vec![0; shape.len()];
        let mut at = 0;
        while let Some(&number) = numbers.get(at) {
            out.push(convert(number));
            // One step along the last axis that has one left; the axes behind it go back to their start.
            let mut axes = (0..shape.len()).rev();
            loop {
                let Some(axis) = axes.next() else { return };
                index[axis] += 1;
                if index[axis] < shape[axis] {
                    at += strides[axis];
                    break;
                }
                at -= strides[axis] * (shape[axis] - 1);
                index[axis] = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_must_end_inside_its_storage() {
        let storage = (Stored::F32, 100, 6);
        let view = |offset, shape: &[usize], strides: &[u64]| {
            Slot::view(storage, offset, shape, shape.iter().product(), strides)
        };
        assert!(view(0, &[2, 3], &[3, 1]).unwrap().strides.is_none());
        assert!(view(0, &[3, 2], &[1, 3]).unwrap().strides.is_some());
        assert!(view(1, &[2, 3], &[3, 1]).is_none());
        assert!(view(0, &[2, 2], &[u64::MAX, 1]).is_none());
        assert!(view(u64::MAX, &[2], &[1]).is_none());
        assert!(view(5, &[1, 1], &[u64::MAX, u64::MAX]).is_some(), "an axis of size 1 takes no step");
    }
}
