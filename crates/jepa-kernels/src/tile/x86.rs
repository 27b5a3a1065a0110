//! Tiles of x86, with the sums in vector registers, which the compiler does not manage by itself.

use std::arch::x86_64::{
    __m512, __m512bh, _mm256_broadcast_ss, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_setzero_ps, _mm256_storeu_ps,
    _mm512_dpbf16_ps, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_set1_ps, _mm512_setzero_ps, _mm512_storeu_ps,
};

use super::{PANEL, STRIDE};

/// What a tile reads and writes; see [`super::tile`] for the lengths.
pub(super) struct Operands {
    pub(super) x: *const f32,
    pub(super) panels: *const f32,
    pub(super) panel_stride: usize,
    pub(super) depth: usize,
    pub(super) out: *mut f32,
    pub(super) out_stride: usize,
    pub(super) add: bool,
}

/// A kernel. It asks for a machine that has its instruction set, and for operands of the lengths that its numbers of rows and panels imply.
pub(super) type Kernel = unsafe fn(&Operands);

/// By number of rows less 1.
pub(super) const AVX2: [Kernel; 6] = [avx2::<1>, avx2::<2>, avx2::<3>, avx2::<4>, avx2::<5>, avx2::<6>];

macro_rules! kernels_of_14 {
    ($kernel:ident, $panels:literal) => {
        [
            $kernel::<1, $panels>,
            $kernel::<2, $panels>,
            $kernel::<3, $panels>,
            $kernel::<4, $panels>,
            $kernel::<5, $panels>,
            $kernel::<6, $panels>,
            $kernel::<7, $panels>,
            $kernel::<8, $panels>,
            $kernel::<9, $panels>,
            $kernel::<10, $panels>,
            $kernel::<11, $panels>,
            $kernel::<12, $panels>,
            $kernel::<13, $panels>,
            $kernel::<14, $panels>,
        ]
    };
}

/// By number of panels and of rows, each less 1.
pub(super) const AVX512: [[Kernel; 14]; 2] = [kernels_of_14!(avx512, 1), kernels_of_14!(avx512, 2)];

/// As [`AVX512`], on bf16 pairs.
pub(super) const BF16: [[Kernel; 14]; 2] = [kernels_of_14!(bf16, 1), kernels_of_14!(bf16, 2)];

/// # Safety
/// The machine has AVX2 and FMA; the operands are as long as [`super::tile`] says, for `ROWS` rows and one panel.
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2<const ROWS: usize>(o: &Operands) {
    let mut sums = [[_mm256_setzero_ps(); 2]; ROWS];
    // SAFETY: `r` is below the number of rows and `k` below the depth; a row of the result is one panel wide.
    unsafe {
        if o.add {
            for (r, [low, high]) in sums.iter_mut().enumerate() {
                *low = _mm256_loadu_ps(o.out.add(r * o.out_stride));
                *high = _mm256_loadu_ps(o.out.add(r * o.out_stride + 8));
            }
        }
        for k in 0..o.depth {
            let low = _mm256_loadu_ps(o.panels.add(k * PANEL));
            let high = _mm256_loadu_ps(o.panels.add(k * PANEL + 8));
            for (r, sums) in sums.iter_mut().enumerate() {
                let v = _mm256_broadcast_ss(&*o.x.add(r * STRIDE + k));
                *sums = [_mm256_fmadd_ps(v, low, sums[0]), _mm256_fmadd_ps(v, high, sums[1])];
            }
        }
        for (r, &[low, high]) in sums.iter().enumerate() {
            _mm256_storeu_ps(o.out.add(r * o.out_stride), low);
            _mm256_storeu_ps(o.out.add(r * o.out_stride + 8), high);
        }
    }
}

/// The loop of both AVX-512 kernels; they differ in what `$step` does with a word of a row and one of a panel.
macro_rules! sums_of_14 {
    ($o:ident, $step:expr) => {{
        let mut sums = [[_mm512_setzero_ps(); PANELS]; ROWS];
        // SAFETY: `r` is below the number of rows, `p` below that of panels and `k` below the depth; a row of the result is `PANELS` panels wide.
        unsafe {
            if $o.add {
                for (r, sums) in sums.iter_mut().enumerate() {
                    for (p, sum) in sums.iter_mut().enumerate() {
                        *sum = _mm512_loadu_ps($o.out.add(r * $o.out_stride + p * PANEL));
                    }
                }
            }
            for k in 0..$o.depth {
                let mut columns = [_mm512_setzero_ps(); PANELS];
                for (p, column) in columns.iter_mut().enumerate() {
                    *column = _mm512_loadu_ps($o.panels.add(p * $o.panel_stride + k * PANEL));
                }
                for (r, sums) in sums.iter_mut().enumerate() {
                    let v = _mm512_set1_ps(*$o.x.add(r * STRIDE + k));
                    for (sum, &column) in sums.iter_mut().zip(&columns) {
                        *sum = $step(*sum, v, column);
                    }
                }
            }
            for (r, sums) in sums.iter().enumerate() {
                for (p, &sum) in sums.iter().enumerate() {
                    _mm512_storeu_ps($o.out.add(r * $o.out_stride + p * PANEL), sum);
                }
            }
        }
    }};
}

/// # Safety
/// The machine has AVX-512 F; the operands are as long as [`super::tile`] says, for `ROWS` rows and `PANELS` panels.
#[target_feature(enable = "avx512f")]
unsafe fn avx512<const ROWS: usize, const PANELS: usize>(o: &Operands) {
    sums_of_14!(o, |sum: __m512, v, column| _mm512_fmadd_ps(v, column, sum));
}

/// # Safety
/// As [`avx512`], and the machine has AVX512-BF16.
#[target_feature(enable = "avx512f,avx512bf16")]
unsafe fn bf16<const ROWS: usize, const PANELS: usize>(o: &Operands) {
    sums_of_14!(o, |sum: __m512, v: __m512, column: __m512| {
        // Vectors of 512 bits, any bits are valid in either.
        let [v, column] = [v, column].map(|v| std::mem::transmute::<__m512, __m512bh>(v));
        _mm512_dpbf16_ps(sum, v, column)
    });
}
