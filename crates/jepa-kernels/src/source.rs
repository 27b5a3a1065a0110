//! Rows of weights in memory, read as vectors of 16 values.

use std::arch::x86_64::{
    __m128i, __m256i, __m512, _mm_cvtph_ps, _mm_cvtsi32_si128, _mm_loadu_si128, _mm256_loadu_si256,
    _mm512_broadcastss_ps, _mm512_castsi512_ps, _mm512_cvtepi8_epi32, _mm512_cvtepi32_ps, _mm512_cvtepu16_epi32,
    _mm512_cvtph_ps, _mm512_loadu_ps, _mm512_mul_ps, _mm512_slli_epi32,
};
use std::ops::Range;

use half::{bf16, f16};

use crate::weights::{Q8_0_BYTES, Q8_0_VALUES, Stored, WeightRows};

/// Rows of one form.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    F32(&'a [f32]),
    F16(&'a [f16]),
    Bf16(&'a [bf16]),
    /// Whole blocks.
    Q8_0(&'a [u8]),
}

pub(crate) const F32: u8 = 0;
pub(crate) const F16: u8 = 1;
pub(crate) const BF16: u8 = 2;
pub(crate) const Q8_0: u8 = 3;

/// Where rows lie.
pub(crate) struct Layout {
    pub(crate) bytes: *const u8,
    pub(crate) row_bytes: usize,
    /// Whole rows that are there.
    pub(crate) rows: usize,
}

impl<'a> Source<'a> {
    /// The rows `outputs` of a matrix, if all of them are there and of a form that can be read.
    pub(crate) fn of(weights: &'a dyn WeightRows, outputs: Range<usize>) -> Option<Self> {
        let row = weights.inputs();
        let at = |row: usize| outputs.start * row..outputs.end * row;
        match weights.stored() {
            Stored::F32(values) => values.get(at(row)).map(Self::F32),
            Stored::F16(values) => values.get(at(row)).map(Self::F16),
            Stored::Bf16(values) => values.get(at(row)).map(Self::Bf16),
            Stored::Q8_0(bytes) if row.is_multiple_of(Q8_0_VALUES) => {
                bytes.get(at(row / Q8_0_VALUES * Q8_0_BYTES)).map(Self::Q8_0)
            }
            _ => None,
        }
    }

    /// Where rows of `row` values lie.
    pub(crate) fn layout(self, row: usize) -> Layout {
        let (bytes, len, row_bytes) = match self {
            Self::F32(v) => (v.as_ptr().cast(), size_of_val(v), row * size_of::<f32>()),
            Self::F16(v) => (v.as_ptr().cast(), size_of_val(v), row * size_of::<f16>()),
            Self::Bf16(v) => (v.as_ptr().cast(), size_of_val(v), row * size_of::<bf16>()),
            Self::Q8_0(v) => {
                assert!(row.is_multiple_of(Q8_0_VALUES), "rows of q8_0: whole blocks");
                (v.as_ptr(), v.len(), row / Q8_0_VALUES * Q8_0_BYTES)
            }
        };
        Layout { bytes, row_bytes, rows: len.checked_div(row_bytes).unwrap_or(0) }
    }
}

/// 16 values of a row, from value `k` on.
///
/// # Safety
/// They are there.
#[target_feature(enable = "avx512f,f16c")]
#[inline]
pub(crate) unsafe fn sixteen<const FORM: u8>(row: *const u8, k: usize) -> __m512 {
    // SAFETY: the caller's promise; a block of q8_0 is a scale and 32 bytes, of which `k` names the first or the second 16.
    unsafe {
        match FORM {
            F32 => _mm512_loadu_ps(row.cast::<f32>().add(k)),
            F16 => _mm512_cvtph_ps(_mm256_loadu_si256(row.cast::<u16>().add(k).cast::<__m256i>())),
            BF16 => {
                let bits = _mm256_loadu_si256(row.cast::<u16>().add(k).cast::<__m256i>());
                _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(bits)))
            }
            _ => {
                let block = row.add(k / Q8_0_VALUES * Q8_0_BYTES);
                let scale = i32::from(block.cast::<u16>().read_unaligned());
                let scale = _mm512_broadcastss_ps(_mm_cvtph_ps(_mm_cvtsi32_si128(scale)));
                let bytes = _mm_loadu_si128(block.add(2 + k % Q8_0_VALUES).cast::<__m128i>());
                _mm512_mul_ps(scale, _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes)))
            }
        }
    }
}
