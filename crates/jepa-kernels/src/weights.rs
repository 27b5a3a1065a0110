//! Weight matrices as they lie in memory.

use std::ops::Range;

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use crate::packed::PackedWeights;

/// A weight matrix `[outputs, inputs]` in whatever form it is stored.
///
/// The GEMM asks for it piece by piece and keeps no copy, so a file's f16 or quantised bytes are all that is in memory, unless a place is offered
/// for one: [`WeightRows::packed`].
pub trait WeightRows: Sync {
    /// Rows: values that come out.
    fn outputs(&self) -> usize;

    /// Columns: values that go in.
    fn inputs(&self) -> usize;

    /// Writes the columns `inputs` of row `output` as f32. Of a matrix that is [`Stored::Otherwise`], `inputs` starts at a multiple of 256.
    fn row(&self, output: usize, inputs: Range<usize>, out: &mut [f32]);

    /// The memory itself, where it is of a form that the kernels read without [`WeightRows::row`].
    fn stored(&self) -> Stored<'_> {
        Stored::Otherwise
    }

    /// Where the matrix may be kept as bf16. Without such a place nothing is.
    fn packed(&self) -> Option<&PackedWeights> {
        None
    }
}

/// Memory of a weight matrix.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Stored<'a> {
    /// `[outputs, inputs]`.
    F32(&'a [f32]),
    /// `[outputs, inputs]`.
    F16(&'a [f16]),
    /// `[outputs, inputs]`.
    Bf16(&'a [bf16]),
    /// Blocks `[outputs, inputs / 32]` of 34 bytes: an f16 scale, little endian, and 32 signed bytes.
    Q8_0(&'a [u8]),
    /// `[inputs, outputs]`.
    Columns(&'a [f32]),
    /// Anything else.
    Otherwise,
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

    fn stored(&self) -> Stored<'_> {
        Stored::F32(self.values)
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

    fn stored(&self) -> Stored<'_> {
        Stored::Columns(self.values)
    }
}

/// f16 rows, `[outputs, inputs]`.
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

    fn stored(&self) -> Stored<'_> {
        Stored::F16(self.values)
    }
}

/// bf16 rows, `[outputs, inputs]`.
#[derive(Clone, Copy, Debug)]
pub struct Bf16Rows<'a> {
    /// The values, row after row.
    pub values: &'a [bf16],
    /// Columns.
    pub inputs: usize,
}

impl WeightRows for Bf16Rows<'_> {
    fn outputs(&self) -> usize {
        self.values.len() / self.inputs
    }

    fn inputs(&self) -> usize {
        self.inputs
    }

    fn row(&self, output: usize, inputs: Range<usize>, out: &mut [f32]) {
        self.values[output * self.inputs..][inputs].convert_to_f32_slice(out);
    }

    fn stored(&self) -> Stored<'_> {
        Stored::Bf16(self.values)
    }
}

/// Values of a block of q8_0.
pub(crate) const Q8_0_VALUES: usize = 32;

/// Bytes of a block of q8_0.
pub(crate) const Q8_0_BYTES: usize = 2 + Q8_0_VALUES;

/// Rows of ggml's q8_0, `[outputs, inputs / 32]` blocks: 32 signed bytes behind their common scale, an f16.
#[derive(Clone, Copy, Debug)]
pub struct Q8_0Rows<'a> {
    /// The blocks as they lie in a file, row after row.
    pub bytes: &'a [u8],
    /// Columns: a multiple of 32.
    pub inputs: usize,
}

impl WeightRows for Q8_0Rows<'_> {
    fn outputs(&self) -> usize {
        self.bytes.len() / (self.inputs / Q8_0_VALUES * Q8_0_BYTES)
    }

    fn inputs(&self) -> usize {
        self.inputs
    }

    fn row(&self, output: usize, inputs: Range<usize>, out: &mut [f32]) {
        let row = self.inputs / Q8_0_VALUES * Q8_0_BYTES;
        let (blocks, _) = self.bytes[output * row..][..row].as_chunks::<Q8_0_BYTES>();
        for (k, out) in inputs.zip(out) {
            let block = &blocks[k / Q8_0_VALUES];
            let scale = f16::from_le_bytes([block[0], block[1]]).to_f32();
            *out = scale * f32::from(block[2 + k % Q8_0_VALUES].cast_signed());
        }
    }

    fn stored(&self) -> Stored<'_> {
        Stored::Q8_0(self.bytes)
    }
}
