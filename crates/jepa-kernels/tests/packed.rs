//! Matrices that are kept as bf16 beside where they lie.

use std::ops::Range;

use half::{bf16, f16};
use jepa_kernels::{Bf16Rows, F16Rows, F32Columns, F32Rows, PackedWeights, Precision, Stored, WeightRows};

#[allow(dead_code, reason = "shared by several tests")]
mod emulated;
#[allow(dead_code, reason = "shared by several tests")]
mod plain;
use emulated::sets;
use plain::{noise, product};

/// A matrix with a place to be kept.
struct Kept<'a> {
    matrix: &'a dyn WeightRows,
    place: PackedWeights,
}

impl WeightRows for Kept<'_> {
    fn outputs(&self) -> usize {
        self.matrix.outputs()
    }

    fn inputs(&self) -> usize {
        self.matrix.inputs()
    }

    fn row(&self, output: usize, inputs: Range<usize>, out: &mut [f32]) {
        self.matrix.row(output, inputs, out);
    }

    fn stored(&self) -> Stored<'_> {
        self.matrix.stored()
    }

    fn packed(&self) -> Option<&PackedWeights> {
        Some(&self.place)
    }
}

#[test]
fn what_is_kept_gives_the_same_bits_and_only_bf16_is_kept() {
    for (rows, inputs, outputs) in [(9, 40, 33), (23, 1024, 16), (15, 2100, 600)] {
        let mut random = noise(3);
        let mut values = |n: usize| (0..n).map(|_| random()).collect::<Vec<f32>>();
        let (x, w) = (values(rows * inputs), values(outputs * inputs));
        let halves: Vec<f16> = w.iter().map(|&v| f16::from_f32(v)).collect();
        let brains: Vec<bf16> = w.iter().map(|&v| bf16::from_f32(v)).collect();
        let forms: [&dyn WeightRows; 4] = [
            &F32Rows { values: &w, inputs },
            &F16Rows { values: &halves, inputs },
            &Bf16Rows { values: &brains, inputs },
            &F32Columns { values: &w, outputs },
        ];
        for (isa, matrix) in sets().into_iter().flat_map(|isa| forms.map(|form| (isa, form))) {
            for precision in [Precision::Highest, Precision::High, Precision::Medium] {
                let kept = Kept { matrix, place: PackedWeights::default() };
                let wanted = product(isa, precision, &x, matrix);
                for _ in 0..2 {
                    assert_eq!(product(isa, precision, &x, &kept), wanted, "{isa:?} {precision:?}");
                    // Of weights that are bf16 themselves AMX takes the same words at `High`.
                    let exact = isa.name() == "amx" && matches!(matrix.stored(), Stored::Bf16(_));
                    let rounded = wanted != product(isa, Precision::Highest, &x, matrix);
                    let bf16 = rounded && (precision == Precision::Medium || exact);
                    assert_eq!(kept.place.is_filled(), bf16, "{isa:?} {precision:?}");
                }
                // Other rows, another precision, and rows so few that the matrix itself is read.
                for (precision, rows) in [(Precision::Highest, rows), (Precision::Medium, 1), (Precision::Medium, 8)] {
                    let x = &x[..rows * inputs];
                    assert_eq!(product(isa, precision, x, &kept), product(isa, precision, x, matrix), "{isa:?}");
                }
            }
        }
    }
}

#[test]
fn threads_that_meet_it_together_agree() {
    let (x, w) = (vec![0.5; 64 * 96], (0..96 * 80).map(|i| i as f32 / 1e3).collect::<Vec<f32>>());
    let matrix = F32Rows { values: &w, inputs: 96 };
    for isa in sets() {
        let kept = Kept { matrix: &matrix, place: PackedWeights::default() };
        let wanted = product(isa, Precision::Medium, &x, &matrix);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert_eq!(product(isa, Precision::Medium, &x, &kept), wanted, "{isa:?}"));
            }
        });
    }
}
