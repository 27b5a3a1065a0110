//! Weight matrices as they lie in memory, and how a panel of one is laid out for the GEMM.

use std::ops::Range;

use half::f16;
use half::slice::HalfFloatSliceExt;

/// Outputs of a panel: the width of the register tile.
pub(crate) const PANEL: usize = 16;

/// A weight matrix `[outputs, inputs]` in whatever form it is stored.
///
/// The GEMM asks for it piece by piece and keeps no copy, so a file's f16 or quantised bytes are all that is in memory.
pub trait WeightRows: Sync {
    /// Rows: values that come out.
    fn outputs(&self) -> usize;

    /// Columns: values that go in.
    fn inputs(&self) -> usize;

    /// Writes the columns `inputs` of row `output` as f32.
    fn row(&self, output: usize, inputs: Range<usize>, out: &mut [f32]);

    /// Writes a panel: `panel[k · 16 + j]` is the weight of row `first + j`, column `inputs.start + k`; rows behind the last are 0.
    fn panel(&self, first: usize, inputs: Range<usize>, panel: &mut [f32]) {
        let (depth, rows) = (inputs.len(), (self.outputs() - first).min(PANEL));
        let mut piece = [[0.0f32; PIECE]; PANEL];
        for start in (0..depth).step_by(PIECE) {
            let len = PIECE.min(depth - start);
            for (j, row) in piece.iter_mut().enumerate().take(rows) {
                self.row(first + j, inputs.start + start..inputs.start + start + len, &mut row[..len]);
            }
            transpose(&piece, len, &mut panel[start * PANEL..(start + len) * PANEL]);
        }
    }
}

/// Columns that are transposed at a time: a piece stays in the first-level cache. Blocks of quantised types are at most this long.
pub(crate) const PIECE: usize = 256;

fn transpose(piece: &[[f32; PIECE]; PANEL], len: usize, panel: &mut [f32]) {
    let (columns, _) = panel.as_chunks_mut::<PANEL>();
    for (k, column) in columns.iter_mut().enumerate().take(len) {
        for (j, value) in column.iter_mut().enumerate() {
            *value = piece[j][k];
        }
    }
}

/// f32 rows, `[outputs, inputs]`: a matrix of a file as it is.
#[derive(Clone, Copy, Debug)]
pub struct F32Rows<'a> {
    /// The values, row after row.
    pub values: &'a [f32],
    /// Columns.
    pub inputs: usize,
}

impl WeightRows for F32Rows<'_> {
    fn outputs(&self) -> usize {
        self.values.len() / self.inputs
    }

    fn inputs(&self) -> usize {
        self.inputs
    }

    fn row(&self, output: usize, inputs: Range<usize>, out: &mut [f32]) {
        out.copy_from_slice(&self.values[output * self.inputs..][inputs]);
    }
}

/// f32 columns, `[inputs, outputs]`: a Burn parameter.
#[derive(Clone, Copy, Debug)]
pub struct F32Columns<'a> {
    /// The values, one input's weights after another's.
    pub values: &'a [f32],
    /// Values that come out.
    pub outputs: usize,
}

impl WeightRows for F32Columns<'_> {
    fn outputs(&self) -> usize {
        self.outputs
    }

    fn inputs(&self) -> usize {
        self.values.len() / self.outputs
    }

    fn row(&self, output: usize, inputs: Range<usize>, out: &mut [f32]) {
        for (k, out) in inputs.zip(out) {
            *out = self.values[k * self.outputs + output];
        }
    }

    fn panel(&self, first: usize, inputs: Range<usize>, panel: &mut [f32]) {
        let width = (self.outputs - first).min(PANEL);
        let (columns, _) = panel.as_chunks_mut::<PANEL>();
        for (k, column) in inputs.zip(columns) {
            let values = &self.values[k * self.outputs + first..][..width];
            column[..width].copy_from_slice(values);
            column[width..].fill(0.0);
        }
    }
}

/// f16 rows, `[outputs, inputs]`, as their bits.
#[derive(Clone, Copy, Debug)]
pub struct F16Rows<'a> {
    /// The values, row after row.
    pub values: &'a [f16],
    /// Columns.
    pub inputs: usize,
}

impl WeightRows for F16Rows<'_> {
    fn outputs(&self) -> usize {
        self.values.len() / self.inputs
    }

    fn inputs(&self) -> usize {
        self.inputs
    }

    fn row(&self, output: usize, inputs: Range<usize>, out: &mut [f32]) {
        self.values[output * self.inputs..][inputs].convert_to_f32_slice(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A panel of every form holds the same numbers, and zeros behind the last row.
    #[test]
    fn panels_are_the_transposed_rows() {
        let (outputs, inputs) = (21, 300);
        let values: Vec<f32> = (0..outputs * inputs).map(|i| (i % 1000) as f32 - 500.0).collect();
        let halves: Vec<f16> = values.iter().map(|&v| f16::from_f32(v)).collect();
        let columns: Vec<f32> = (0..inputs * outputs).map(|i| values[i % outputs * inputs + i / outputs]).collect();
        let forms: [&dyn WeightRows; 3] = [
            &F32Rows { values: &values, inputs },
            &F16Rows { values: &halves, inputs },
            &F32Columns { values: &columns, outputs },
        ];
        for form in forms {
            assert_eq!((form.outputs(), form.inputs()), (outputs, inputs));
            for (first, range) in [(0, 0..300), (16, 7..299), (16, 3..4)] {
                let mut panel = vec![f32::NAN; range.len() * PANEL];
                form.panel(first, range.clone(), &mut panel);
                for (k, column) in range.clone().zip(panel.chunks(PANEL)) {
                    for (j, &value) in column.iter().enumerate() {
                        let wanted = if first + j < outputs { values[(first + j) * inputs + k] } else { 0.0 };
                        assert_eq!(value, wanted, "row {} column {k}", first + j);
                    }
                }
            }
        }
    }
}
