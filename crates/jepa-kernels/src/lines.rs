//! Memory that begins where a cache line does. Operands are read in whole lines, each of which would otherwise be two.

use std::ops::{Deref, DerefMut};

/// Values of a line.
const LINE: usize = 16;

/// A cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; LINE]);

/// Values in whole lines.
#[derive(Default)]
pub(crate) struct Lines(Vec<Line>);

impl Lines {
    /// Makes room for `len` values at least; what is added is 0.
    pub(crate) fn grow(&mut self, len: usize) {
        self.0.resize(self.0.len().max(len.div_ceil(LINE)), Line([0.0; LINE]));
    }
}

impl Deref for Lines {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        // SAFETY: lines are arrays of values without anything between.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() * LINE) }
    }
}

impl DerefMut for Lines {
    fn deref_mut(&mut self) -> &mut [f32] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), self.0.len() * LINE) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_begin_at_a_line_and_are_kept() {
        let mut lines = Lines::default();
        for len in [1, 16, 100_000] {
            lines.grow(len);
            assert!(lines.len() >= len && lines.as_ptr().addr().is_multiple_of(64));
            assert!(lines[1..].iter().all(|&v| v == 0.0) && [0.0, 3.0].contains(&lines[0]));
            lines[0] = 3.0;
        }
        lines.grow(1);
        assert_eq!((lines.len(), lines[0]), (100_000, 3.0));
    }
}
