//! Laying out with AVX-512: rows are read as vectors of 16 values, turned to f32, and squares of 16 by 16 words are transposed in registers.

use std::arch::x86_64::{
    __m512, __m512i, _mm512_castpd_ps, _mm512_castps_pd, _mm512_castps_si512, _mm512_castsi512_ps,
    _mm512_castsi512_si256, _mm512_cvtepu16_epi32, _mm512_cvtne2ps_pbh, _mm512_extracti64x4_epi64, _mm512_loadu_ps,
    _mm512_max_ps, _mm512_min_ps, _mm512_set1_ps, _mm512_setzero_ps, _mm512_shuffle_f32x4, _mm512_slli_epi32,
    _mm512_storeu_ps, _mm512_sub_ps, _mm512_unpackhi_pd, _mm512_unpackhi_ps, _mm512_unpacklo_pd, _mm512_unpacklo_ps,
};
use std::ops::Range;

use super::{LARGEST, panel_words};
use crate::source::{BF16, F16, F32, Layout, Q8_0, Source, sixteen};
use crate::tile::{PANEL, Words};

/// Lays out the values `inputs` of 16 rows, whole granules from a multiple of 16 on. `row` is the number of values from one row to the next.
///
/// The caller runs on a machine with AVX-512, and with AVX512-BF16 where words are bf16.
pub(super) fn rows_panel(words: Words, source: Source<'_>, row: usize, inputs: Range<usize>, panel: &mut [f32]) {
    let depth = inputs.len();
    assert!(inputs.end <= row || depth == 0, "panel: inputs");
    assert!(depth.is_multiple_of(words.granule()) && panel.len() >= panel_words(words, depth), "panel: length");
    let Layout { bytes, row_bytes, rows } = source.layout(row);
    assert!(rows >= PANEL && inputs.start.is_multiple_of(PANEL), "panel: rows");
    let start = inputs.start;
    let out = panel.as_mut_ptr();
    let squares = match (source, words) {
        (Source::F32(_), Words::F32) => squares::<F32>,
        (Source::F16(_), Words::F32) => squares::<F16>,
        (Source::Bf16(_), Words::F32) => squares::<BF16>,
        (Source::Q8_0(_), Words::F32) => squares::<Q8_0>,
        (Source::F32(_), Words::Bf16Split) => split_squares::<F32>,
        (Source::F16(_), Words::Bf16Split) => split_squares::<F16>,
        (Source::Bf16(_), Words::Bf16Split) => split_squares::<BF16>,
        (Source::Q8_0(_), Words::Bf16Split) => split_squares::<Q8_0>,
        (Source::F32(_), Words::Bf16Pairs | Words::Bf16SplitRows) => paired_squares::<F32>,
        (Source::F16(_), Words::Bf16Pairs | Words::Bf16SplitRows) => paired_squares::<F16>,
        (Source::Bf16(_), Words::Bf16Pairs | Words::Bf16SplitRows) => paired_squares::<BF16>,
        (Source::Q8_0(_), Words::Bf16Pairs | Words::Bf16SplitRows) => paired_squares::<Q8_0>,
    } as unsafe fn(*const u8, usize, usize, usize, *mut f32);
    // SAFETY: the machine has the instructions (the caller's promise); rows and panel are long enough, as asserted.
    unsafe { squares(bytes, row_bytes, start, depth, out) }
}

/// Turns whole granules into bf16 words. The caller runs on a machine with AVX512-BF16.
pub(super) fn row_words(words: Words, row: &[f32], out: &mut [f32]) {
    assert!(row.len().is_multiple_of(2 * PANEL) && out.len() >= words.of(row.len()), "row: lengths");
    // SAFETY: the machine has the instructions (the caller's promise); both slices are long enough.
    unsafe {
        match words {
            Words::F32 | Words::Bf16Pairs => pairs_of(row, out),
            Words::Bf16Split | Words::Bf16SplitRows => splits_of(row, out),
        }
    }
}

#[target_feature(enable = "avx512f,avx512bf16")]
unsafe fn pairs_of(row: &[f32], out: &mut [f32]) {
    for (row, out) in row.chunks_exact(32).zip(out.chunks_exact_mut(PANEL)) {
        // SAFETY: 32 values are read and 16 words written, as long as the chunks are.
        unsafe {
            let words = pair(_mm512_loadu_ps(row.as_ptr()), _mm512_loadu_ps(row.as_ptr().add(PANEL)));
            _mm512_storeu_ps(out.as_mut_ptr(), words);
        }
    }
}

#[target_feature(enable = "avx512f,avx512bf16")]
unsafe fn splits_of(row: &[f32], out: &mut [f32]) {
    for (row, out) in row.chunks_exact(32).zip(out.chunks_exact_mut(2 * PANEL)) {
        // SAFETY: 32 values are read and 32 words written, as long as the chunks are.
        unsafe {
            let words = split(_mm512_loadu_ps(row.as_ptr()), _mm512_loadu_ps(row.as_ptr().add(PANEL)));
            _mm512_storeu_ps(out.as_mut_ptr(), words[0]);
            _mm512_storeu_ps(out.as_mut_ptr().add(PANEL), words[1]);
        }
    }
}

/// 32 values as words of pairs: of the bf16 next to them, and of those next to what these leave. See [`super::nearest`].
#[target_feature(enable = "avx512f,avx512bf16")]
#[inline]
fn split(first: __m512, second: __m512) -> [__m512; 2] {
    // NaN is what the second operand is, in both.
    let within = |v| {
        let below = _mm512_min_ps(_mm512_set1_ps(LARGEST), v);
        _mm512_max_ps(_mm512_set1_ps(-LARGEST), below)
    };
    let nearest = pair(within(first), within(second));
    let bits = _mm512_castps_si512(nearest);
    let halves = [_mm512_castsi512_si256(bits), _mm512_extracti64x4_epi64::<1>(bits)];
    let [low, high] = halves.map(|half| _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(half))));
    [nearest, pair(_mm512_sub_ps(first, low), _mm512_sub_ps(second, high))]
}

/// 32 values as words of pairs.
#[target_feature(enable = "avx512f,avx512bf16")]
#[inline]
fn pair(first: __m512, second: __m512) -> __m512 {
    let both = _mm512_cvtne2ps_pbh(second, first);
    // SAFETY: vectors of 512 bits, any bits are valid in either.
    _mm512_castsi512_ps(unsafe { std::mem::transmute::<std::arch::x86_64::__m512bh, __m512i>(both) })
}

/// # Safety
/// 16 rows hold the values from `start` to `start + depth`, the panel as many words.
#[target_feature(enable = "avx512f,f16c")]
unsafe fn squares<const FORM: u8>(rows: *const u8, row_bytes: usize, start: usize, depth: usize, panel: *mut f32) {
    for k in (0..depth).step_by(PANEL) {
        let mut square = [_mm512_setzero_ps(); PANEL];
        for (j, row) in square.iter_mut().enumerate() {
            // SAFETY: `depth` is a multiple of 16.
            *row = unsafe { sixteen::<FORM>(rows.add(j * row_bytes), start + k) };
        }
        for (i, column) in transposed(square).into_iter().enumerate() {
            // SAFETY: as above.
            unsafe { _mm512_storeu_ps(panel.add((k + i) * PANEL), column) };
        }
    }
}

/// As [`squares`], of pairs.
///
/// # Safety
/// 16 rows hold the values from `start` to `start + depth`, the panel half as many words.
#[target_feature(enable = "avx512f,f16c,avx512bf16")]
unsafe fn paired_squares<const FORM: u8>(
    rows: *const u8,
    row_bytes: usize,
    start: usize,
    depth: usize,
    panel: *mut f32,
) {
    for k in (0..depth).step_by(2 * PANEL) {
        let mut square = [_mm512_setzero_ps(); PANEL];
        for (j, row) in square.iter_mut().enumerate() {
            // SAFETY: `depth` is a multiple of 32.
            *row = unsafe {
                let row = rows.add(j * row_bytes);
                pair(sixteen::<FORM>(row, start + k), sixteen::<FORM>(row, start + k + PANEL))
            };
        }
        for (i, column) in transposed(square).into_iter().enumerate() {
            // SAFETY: as above.
            unsafe { _mm512_storeu_ps(panel.add((k / 2 + i) * PANEL), column) };
        }
    }
}

/// As [`squares`], of split values: a square of their first bf16, then one of what these leave.
///
/// # Safety
/// 16 rows hold the values from `start` to `start + depth`, the panel as many words.
#[target_feature(enable = "avx512f,f16c,avx512bf16")]
unsafe fn split_squares<const FORM: u8>(
    rows: *const u8,
    row_bytes: usize,
    start: usize,
    depth: usize,
    panel: *mut f32,
) {
    for k in (0..depth).step_by(2 * PANEL) {
        let [mut nearest, mut rest] = [[_mm512_setzero_ps(); PANEL]; 2];
        for (j, (nearest, rest)) in nearest.iter_mut().zip(&mut rest).enumerate() {
            // SAFETY: `depth` is a multiple of 32.
            [*nearest, *rest] = unsafe {
                let row = rows.add(j * row_bytes);
                split(sixteen::<FORM>(row, start + k), sixteen::<FORM>(row, start + k + PANEL))
            };
        }
        for (part, square) in [nearest, rest].into_iter().enumerate() {
            for (i, column) in transposed(square).into_iter().enumerate() {
                // SAFETY: as above.
                unsafe { _mm512_storeu_ps(panel.add((k + part * PANEL + i) * PANEL), column) };
            }
        }
    }
}

/// Rows become columns.
#[target_feature(enable = "avx512f")]
#[inline]
fn transposed(rows: [__m512; PANEL]) -> [__m512; PANEL] {
    // Squares of 4 by 4 within each quarter of a vector: first words in pairs, then pairs.
    let mut fours = [_mm512_setzero_ps(); PANEL];
    for i in (0..PANEL).step_by(4) {
        let [a, b, c, d] = [rows[i], rows[i + 1], rows[i + 2], rows[i + 3]];
        let low = [_mm512_unpacklo_ps(a, b), _mm512_unpacklo_ps(c, d)].map(|v| _mm512_castps_pd(v));
        let high = [_mm512_unpackhi_ps(a, b), _mm512_unpackhi_ps(c, d)].map(|v| _mm512_castps_pd(v));
        fours[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(low[0], low[1]));
        fours[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low[0], low[1]));
        fours[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(high[0], high[1]));
        fours[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(high[0], high[1]));
    }
    // Quarter q of `fours[4g + c]` is column `4q + c` of the rows 4g to 4g + 3: quarters are transposed in the same way.
    let mut columns = [_mm512_setzero_ps(); PANEL];
    for c in 0..4 {
        let [a, b, d, e] = [fours[c], fours[4 + c], fours[8 + c], fours[12 + c]];
        let even = [_mm512_shuffle_f32x4::<0b10_00_10_00>(a, b), _mm512_shuffle_f32x4::<0b10_00_10_00>(d, e)];
        let odd = [_mm512_shuffle_f32x4::<0b11_01_11_01>(a, b), _mm512_shuffle_f32x4::<0b11_01_11_01>(d, e)];
        columns[c] = _mm512_shuffle_f32x4::<0b10_00_10_00>(even[0], even[1]);
        columns[8 + c] = _mm512_shuffle_f32x4::<0b11_01_11_01>(even[0], even[1]);
        columns[4 + c] = _mm512_shuffle_f32x4::<0b10_00_10_00>(odd[0], odd[1]);
        columns[12 + c] = _mm512_shuffle_f32x4::<0b11_01_11_01>(odd[0], odd[1]);
    }
    columns
}
