//! Tiles: a few rows times one or two panels of 16 columns, summed in registers.
//!
//! Rows lie [`STRIDE`] words apart, a constant, so that a kernel reaches all of them from one pointer; the odd 16 words keep rows of a power of two
//! from falling into the same lines of the first-level cache. Every kernel adds the products of an element in one order, first to last (AMX 32 at a
//! time), so the cut into tiles changes no bit.

use crate::isa::{AMX, AVX512, PORTABLE};
use crate::vector::mul_add;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use crate::amx::Shapes;

/// Columns of a panel: one vector of AVX-512.
pub(crate) const PANEL: usize = 16;

/// Most words of a row: the depth that is summed before a result goes back to memory.
pub(crate) const DEPTH: usize = 512;

/// Words from one row to the next.
pub(crate) const STRIDE: usize = DEPTH + 16;

/// Most rows of a tile of any set.
pub(crate) const MOST_ROWS: usize = 32;

/// What the 32 bits of a word are. Rows and panels are kept as `f32` either way: words are only loaded and stored there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Words {
    /// An f32.
    F32,
    /// Two bf16, consecutive in the direction that is summed, the first in the low half.
    Bf16Pairs,
    /// Every value as the bf16 next to it and the bf16 next to what that leaves, on AMX. Of 32 consecutive values come 16 pairs of the former, then 16
    /// of the latter.
    Bf16Split,
    /// Rows as [`Words::Bf16Split`], panels as [`Words::Bf16Pairs`]: weights that are bf16 leave nothing.
    Bf16SplitRows,
}

impl Words {
    /// Values of a row per word.
    pub(crate) fn values(self) -> usize {
        match self {
            Self::F32 | Self::Bf16Split | Self::Bf16SplitRows => 1,
            Self::Bf16Pairs => 2,
        }
    }

    /// Values of an output per word of its panel's column.
    pub(crate) fn panel_values(self) -> usize {
        match self {
            Self::F32 | Self::Bf16Split => 1,
            Self::Bf16Pairs | Self::Bf16SplitRows => 2,
        }
    }

    /// Values that are laid out together: a square of a panel, or two where they are split. Bf16 rows and panels are filled up with 0 to whole ones.
    pub(crate) fn granule(self) -> usize {
        if self == Self::F32 { PANEL } else { 2 * PANEL }
    }

    /// Words of a row that hold `values` values.
    pub(crate) fn of(self, values: usize) -> usize {
        values.div_ceil(self.values())
    }
}

/// Rows of a tile and how many panels it spans: as many as the vector registers hold.
pub(crate) const fn shape<const SET: u8>() -> (usize, usize) {
    match SET {
        // Two by two of the eight tiles are sums.
        AMX => (MOST_ROWS, 2),
        AVX512 => (14, 2),
        _ => (6, 1),
    }
}

/// Rows of a tile's left operand.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    /// The first row, and the others [`STRIDE`] words apart.
    pub(crate) words: &'a [f32],
    /// Their number.
    pub(crate) count: usize,
    /// Words that are summed over, 1 to [`DEPTH`].
    pub(crate) depth: usize,
}

/// Panels: words `[depth][16]` each, where 16 words of a column follow 16 others if they are split.
#[derive(Clone, Copy)]
pub(crate) struct Panels<'a> {
    pub(crate) words: &'a [f32],
    /// Words from one panel to the next.
    pub(crate) stride: usize,
}

impl<'a> Panels<'a> {
    /// What is left from panel `panel` and depth `word` on.
    pub(crate) fn from(self, panel: usize, word: usize) -> Self {
        Self { words: &self.words[panel * self.stride + word * PANEL..], stride: self.stride }
    }
}

/// A tile: `out = rows · panels`, or `out += …` where `add` says so.
///
/// **Shapes** `panels` one or two as [`shape`] allows; `out` rows of `16 · panels` values, `out_stride` apart.
///
/// # Panics
/// When a slice is too short or the tile too large.
#[inline(always)]
pub(crate) fn tile<const SET: u8>(
    words: Words,
    rows: Rows<'_>,
    panels: Panels<'_>,
    count: usize,
    out: &mut [f32],
    out_stride: usize,
    add: bool,
) {
    let (most_rows, most_panels) = const { shape::<SET>() };
    let Rows { words: x, count: n, depth } = rows;
    assert!((1..=most_rows).contains(&n) && (1..=most_panels).contains(&count), "tile: size");
    assert!((1..=DEPTH).contains(&depth), "tile: depth");
    let (row, panel) = if SET == AMX {
        let values = (depth * words.values()).next_multiple_of(words.granule());
        (values / words.values(), values / words.panel_values() * PANEL)
    } else {
        (depth, depth * PANEL)
    };
    assert!(x.len() >= (n - 1) * STRIDE + row, "tile: rows");
    assert!(panels.words.len() >= (count - 1) * panels.stride + panel, "tile: panels");
    assert!(out.len() >= (n - 1) * out_stride + count * PANEL, "tile: result");
    #[cfg(target_arch = "x86_64")]
    if SET != PORTABLE {
        let operands = x86::Operands {
            x: x.as_ptr(),
            panels: panels.words.as_ptr(),
            panel_stride: panels.stride,
            depth,
            out: out.as_mut_ptr(),
            out_stride,
            add,
        };
        let kernel = match (SET, words) {
            #[cfg(target_os = "linux")]
            (AMX, _) => amx::kernel(words, n, count),
            (AVX512, Words::F32) => x86::AVX512[count - 1][n - 1],
            (AVX512, _) => x86::BF16[count - 1][n - 1],
            _ => x86::AVX2[n - 1],
        };
        // SAFETY: bodies of a set run on machines that have it, bf16 words are made only where `Precision::words` finds that the set multiplies them,
        // and on AMX `each_tile` has loaded the shapes for `n` rows; the assertions above are what a kernel reads and writes.
        return unsafe { kernel(&operands) };
    }
    let _ = words;
    plain::<SET>(rows, panels, out, out_stride, add);
}

/// One panel without any instruction set, row by row.
#[inline(always)]
fn plain<const SET: u8>(rows: Rows<'_>, panels: Panels<'_>, out: &mut [f32], out_stride: usize, add: bool) {
    let (columns, _) = panels.words[..rows.depth * PANEL].as_chunks::<PANEL>();
    for (x, out) in rows.words.chunks(STRIDE).zip(out.chunks_mut(out_stride)).take(rows.count) {
        let out = &mut out[..PANEL];
        let mut sums = [0.0f32; PANEL];
        if add {
            sums.copy_from_slice(out);
        }
        for (&v, weights) in x.iter().zip(columns) {
            for (sum, &w) in sums.iter_mut().zip(weights) {
                *sum = mul_add::<SET>(v, w, *sum);
            }
        }
        out.copy_from_slice(&sums);
    }
}

/// Runs `f(first row, rows)` over tiles of `rows` rows, as even as they get: a tile of one row costs nearly what a full one does. On AMX they are as
/// high as possible, since a tile's shapes are loaded for its height: here, for all full ones and for the last. `f` runs nothing but our own code, which
/// lets go of no thread in between.
#[inline(always)]
pub(crate) fn each_tile<const SET: u8>(rows: usize, mut f: impl FnMut(usize, usize)) {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    if SET == AMX {
        let full = rows / MOST_ROWS * MOST_ROWS;
        for rows in [0..full, full..rows] {
            if !rows.is_empty() {
                let height = rows.len().min(MOST_ROWS);
                // SAFETY: a body of this set runs only where there is AMX.
                let _shapes = unsafe { Shapes::of(height) };
                rows.step_by(height).for_each(|first| f(first, height));
            }
        }
        return;
    }
    let tiles = rows.div_ceil(const { shape::<SET>() }.0);
    for tile in 0..tiles {
        let (start, end) = (rows * tile / tiles, rows * (tile + 1) / tiles);
        f(start, end - start);
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod amx;
#[cfg(target_arch = "x86_64")]
mod x86;
