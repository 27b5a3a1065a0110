use super::*;
use crate::isa::{Isa, compiled_for_each_isa};
use crate::tile::DEPTH;
use crate::weights::{Bf16Rows, F16Rows, F32Columns, F32Rows, Q8_0Rows};
use half::{bf16, f16};

compiled_for_each_isa!(
    fn panel_of(words: Words, weights: &dyn WeightRows, first: usize, inputs: Range<usize>, panel: &mut [f32]) = panel_body
);

#[inline(always)]
fn panel_body<const SET: u8>(
    words: Words,
    weights: &dyn WeightRows,
    first: usize,
    inputs: Range<usize>,
    panel: &mut [f32],
) {
    let mut piece = vec![f32::NAN; PANEL * PIECE];
    let stride = panel.len();
    weights_panels::<SET>(
        words,
        weights,
        first..weights.outputs().min(first + PANEL),
        inputs,
        panel,
        stride,
        &mut piece,
    );
}

/// A matrix that is known by its rows alone.
struct Hidden<'a>(F32Rows<'a>);

impl WeightRows for Hidden<'_> {
    fn outputs(&self) -> usize {
        self.0.outputs()
    }

    fn inputs(&self) -> usize {
        self.0.inputs
    }

    fn row(&self, output: usize, inputs: Range<usize>, out: &mut [f32]) {
        assert!(inputs.start.is_multiple_of(256));
        self.0.row(output, inputs, out);
    }
}

/// A panel of every form holds the same numbers, and zeros behind the last row.
#[test]
fn panels_are_the_transposed_rows() {
    let (outputs, inputs) = (37, 352);
    // Small whole numbers, which every form holds exactly, q8_0 with scales of 1 and 2.
    let values: Vec<f32> = (0..outputs * inputs)
        .map(|i| ((i * 7919 % 251) as f32 - 125.0) * if i / 32 % 2 == 0 { 1.0 } else { 2.0 })
        .collect();
    let halves: Vec<f16> = values.iter().map(|&v| f16::from_f32(v)).collect();
    let brains: Vec<bf16> = values.iter().map(|&v| bf16::from_f32(v)).collect();
    let columns: Vec<f32> = (0..inputs * outputs).map(|i| values[i % outputs * inputs + i / outputs]).collect();
    let mut bytes = Vec::new();
    for (i, block) in values.chunks(32).enumerate() {
        let scale = if i % 2 == 0 { 1.0 } else { 2.0 };
        bytes.extend(f16::from_f32(scale).to_le_bytes());
        bytes.extend(block.iter().map(|v| ((v / scale) as i8).cast_unsigned()));
    }
    let rows = F32Rows { values: &values, inputs };
    let forms: [&dyn WeightRows; 6] = [
        &rows,
        &F16Rows { values: &halves, inputs },
        &Bf16Rows { values: &brains, inputs },
        &F32Columns { values: &columns, outputs },
        &Q8_0Rows { bytes: &bytes, inputs },
        &Hidden(rows),
    ];
    for isa in Isa::all() {
        for form in forms {
            assert_eq!((form.outputs(), form.inputs()), (outputs, inputs));
            for (first, range) in [(0, 0..256), (16, 256..352), (16, 0..33), (32, 0..101), (32, 256..257)] {
                let mut panel = vec![f32::NAN; panel_words(Words::F32, DEPTH)];
                panel_of(isa, Words::F32, form, first, range.clone(), &mut panel);
                let wanted = |j: usize, k: usize| match first + j < outputs && k < range.len() {
                    true => values[(first + j) * inputs + range.start + k],
                    false => 0.0,
                };
                for (k, column) in panel.chunks(PANEL).enumerate().take(range.len()) {
                    for (j, &value) in column.iter().enumerate() {
                        assert_eq!(value, wanted(j, k), "{isa:?} row {} column {k}", first + j);
                    }
                }
                if !isa.has_bf16() {
                    continue;
                }
                panel_of(isa, Words::Bf16Pairs, form, first, range.clone(), &mut panel);
                for (k, column) in panel.chunks(PANEL).enumerate().take(range.len().div_ceil(2)) {
                    for (j, &word) in column.iter().enumerate() {
                        let bits = word.to_bits();
                        let pair = [f32::from_bits(bits << 16), f32::from_bits(bits & 0xffff_0000)];
                        assert_eq!(pair, [wanted(j, 2 * k), wanted(j, 2 * k + 1)], "row {} pair {k}", first + j);
                    }
                }
            }
        }
    }
}

#[test]
fn bf16_is_rounded_to_nearest_even() {
    for bits in (0..=u32::MAX).step_by(65_521) {
        let x = f32::from_bits(bits);
        let wanted = bf16::from_f32(x);
        let found = bf16::from_bits((bf16_bits(x) >> 16) as u16);
        assert!(found == wanted || x.is_nan() && found.is_nan(), "{x}: {found} {wanted}");
    }
}

compiled_for_each_isa!(fn row_of(words: Words, row: &[f32], out: &mut [f32]) = row_words);

/// Split values are what the plain functions say, 16 pairs of one kind and then of the other, and 0 behind the last.
#[test]
fn rows_are_split_in_granules() {
    let awkward = [f32::MAX, -f32::MAX, 3.395e38, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 0.0, -0.0, 1.0 / 3.0];
    let values: Vec<f32> = awkward.into_iter().chain((1..64).map(|i| (i as f32).powi(5) / 7.0)).chain([1.1]).collect();
    for isa in Isa::all().into_iter().filter(|isa| isa.has_bf16()) {
        for len in [1, 31, 32, 33, values.len()] {
            let mut out = vec![f32::NAN; len.next_multiple_of(32)];
            row_of(isa, Words::Bf16Split, &values[..len], &mut out);
            for k in 0..out.len() {
                let of = |part: usize| {
                    let word = out[k / 32 * 32 + part * 16 + k % 32 / 2].to_bits();
                    f32::from_bits(if k % 2 == 0 { word << 16 } else { word & 0xffff_0000 })
                };
                let x = if k < len { values[k] } else { 0.0 };
                let wanted = [nearest(x), f32::from_bits(bf16_bits(rest(x)))];
                for (found, wanted) in [of(0), of(1)].into_iter().zip(wanted) {
                    assert!(found == wanted || found.is_nan() && wanted.is_nan(), "{x}: {found} {wanted}");
                }
                let off = (f64::from(of(0)) + f64::from(of(1)) - f64::from(x)).abs();
                assert!(!x.is_finite() || off <= f64::from(x.abs()) / f64::from(1 << 17), "{x}: {off}");
            }
        }
    }
}
