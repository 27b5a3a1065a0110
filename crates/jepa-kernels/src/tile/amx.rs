//! Tiles of AMX: up to 32 rows by two panels, the sums in four tiles, rows in two and panels in two. Written after Intel's manual and run under an
//! emulation of the instructions; how fast they are was not measured.
//!
//! A step multiplies 32 values of every row. Each tile of a row or panel is loaded once for the products that it is in; split values take three
//! products, two of them with what the first bf16 leaves, in an order in which weights that leave nothing change no bit.

use std::arch::asm;

use super::x86::{Kernel, Operands};
use super::{STRIDE, Words};
use crate::amx::TILE_ROWS;

/// The kernel for `rows` rows and `panels` panels, which [`crate::amx::Shapes`] of as many rows must have preceded.
pub(super) fn kernel(words: Words, rows: usize, panels: usize) -> Kernel {
    let kernels = match words {
        // F32 words have bodies of their own.
        Words::F32 | Words::Bf16Pairs => [[pairs_11, pairs_12], [pairs_21, pairs_22]] as [[Kernel; 2]; 2],
        Words::Bf16Split => [[split_11, split_12], [split_21, split_22]],
        Words::Bf16SplitRows => [[split_rows_11, split_rows_12], [split_rows_21, split_rows_22]],
    };
    kernels[usize::from(rows > TILE_ROWS)][usize::from(panels > 1)]
}

/// A tile's load: the first or second 16 `rows`, or one of the panels, in `first` bf16 or what these leave, the `rest`.
macro_rules! load {
    (rows 0 first) => {
        "tileloadd tmm4, [{x0} + {row}]"
    };
    (rows 1 first) => {
        "tileloadd tmm5, [{x1} + {row}]"
    };
    (rows 0 rest) => {
        "tileloadd tmm4, [{x0} + {row} + 64]"
    };
    (rows 1 rest) => {
        "tileloadd tmm5, [{x1} + {row} + 64]"
    };
    (panel 0 first) => {
        "tileloadd tmm6, [{p0} + {pair}]"
    };
    (panel 1 first) => {
        "tileloadd tmm7, [{p1} + {pair}]"
    };
    (panel 0 rest) => {
        "tileloadd tmm6, [{p0} + {pair} + 1024]"
    };
    (panel 1 rest) => {
        "tileloadd tmm7, [{p1} + {pair} + 1024]"
    };
}

/// The sums of 16 rows and a panel grow by the products of what is loaded of them.
macro_rules! multiply {
    (0 0) => {
        "tdpbf16ps tmm0, tmm4, tmm6"
    };
    (0 1) => {
        "tdpbf16ps tmm1, tmm4, tmm7"
    };
    (1 0) => {
        "tdpbf16ps tmm2, tmm5, tmm6"
    };
    (1 1) => {
        "tdpbf16ps tmm3, tmm5, tmm7"
    };
}

/// A kernel: the tiles of sums that it has, its products of a step, and the bytes that a step moves along a row and a panel.
macro_rules! kernel {
    ($name:ident, $sums:tt, $row:literal, $panel:literal, [$($step:expr),+ $(,)?]) => {
        /// # Safety
        /// The machine has AMX and the shapes for these rows are loaded; the operands are as long as [`super::tile`] says, filled up to whole steps.
        unsafe fn $name(o: &Operands) {
            kernel!(@body o, $sums, $row, $panel, [$($step),+]);
        }
    };
    (@body $o:ident, [$(($sum:literal, $at:literal)),+], $row:literal, $panel:literal, [$($step:expr),+]) => {
        // Words of a step: 16, or 32 where rows are split.
        let steps = $o.depth.div_ceil($row / 4);
        // SAFETY: the caller's promise. Rows are `STRIDE` words apart, and the second 16 of rows and sums exist wherever a tile is shaped for them. The
        // compiler uses no tiles; nothing but the sums is written.
        unsafe {
            asm!(
                "mov {y1}, {y_row}",
                "shl {y1}, 4",
                "add {y1}, {y0}",
                "test {add:e}, {add:e}",
                "jz 2f",
                $(concat!("tileloadd ", $sum, ", ", $at),)+
                "jmp 3f",
                "2:",
                $(concat!("tilezero ", $sum),)+
                "3:",
                $($step,)+
                concat!("add {x0}, ", $row),
                concat!("add {x1}, ", $row),
                concat!("add {p0}, ", $panel),
                concat!("add {p1}, ", $panel),
                "dec {steps}",
                "jnz 3b",
                $(concat!("tilestored ", $at, ", ", $sum),)+
                x0 = inout(reg) $o.x => _,
                x1 = inout(reg) $o.x.wrapping_add(TILE_ROWS * STRIDE) => _,
                row = in(reg) STRIDE * size_of::<f32>(),
                p0 = inout(reg) $o.panels => _,
                p1 = inout(reg) $o.panels.wrapping_add($o.panel_stride) => _,
                pair = in(reg) 64usize,
                y0 = in(reg) $o.out,
                y1 = out(reg) _,
                y_row = in(reg) $o.out_stride * size_of::<f32>(),
                add = in(reg) u32::from($o.add),
                steps = inout(reg) steps => _,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack),
            );
        }
    };
}

/// An instruction of a step, when the rows are loaded in their first bf16 or what these leave, and the panels too.
macro_rules! instruction {
    ((rows $i:tt) $rows:tt $panels:tt) => {
        load!(rows $i $rows)
    };
    ((panel $i:tt) $rows:tt $panels:tt) => {
        load!(panel $i $panels)
    };
    (($r:tt x $p:tt) $rows:tt $panels:tt) => {
        multiply!($r $p)
    };
}

/// The three kinds of words for one shape of a tile, from the instructions of a product whose operands are both loaded, and of one where the rows or the
/// panels are those of the product before.
macro_rules! kernels {
    (
        [$pairs:ident, $split:ident, $split_rows:ident], $sums:tt,
        both [$($both:tt),+], rows [$($rows:tt),+], panels [$($panels:tt),+]
    ) => {
        kernel!($pairs, $sums, 64, 1024, [$(instruction!($both first first)),+]);
        kernel!($split, $sums, 128, 2048, [
            $(instruction!($both rest first),)+
            $(instruction!($rows first first),)+
            $(instruction!($panels first rest)),+
        ]);
        kernel!($split_rows, $sums, 128, 1024, [
            $(instruction!($both rest first),)+
            $(instruction!($rows first first)),+
        ]);
    };
}

kernels!(
    [pairs_11, split_11, split_rows_11],
    [("tmm0", "[{y0} + {y_row}]")],
    both [(rows 0), (panel 0), (0 x 0)],
    rows [(rows 0), (0 x 0)],
    panels [(panel 0), (0 x 0)]
);
kernels!(
    [pairs_12, split_12, split_rows_12],
    [("tmm0", "[{y0} + {y_row}]"), ("tmm1", "[{y0} + {y_row} + 64]")],
    both [(rows 0), (panel 0), (0 x 0), (panel 1), (0 x 1)],
    rows [(rows 0), (0 x 0), (0 x 1)],
    panels [(panel 0), (0 x 0), (panel 1), (0 x 1)]
);
kernels!(
    [pairs_21, split_21, split_rows_21],
    [("tmm0", "[{y0} + {y_row}]"), ("tmm2", "[{y1} + {y_row}]")],
    both [(rows 0), (panel 0), (0 x 0), (rows 1), (1 x 0)],
    rows [(rows 0), (0 x 0), (rows 1), (1 x 0)],
    panels [(panel 0), (0 x 0), (1 x 0)]
);
kernels!(
    [pairs_22, split_22, split_rows_22],
    [
        ("tmm0", "[{y0} + {y_row}]"),
        ("tmm1", "[{y0} + {y_row} + 64]"),
        ("tmm2", "[{y1} + {y_row}]"),
        ("tmm3", "[{y1} + {y_row} + 64]")
    ],
    both [(rows 0), (panel 0), (0 x 0), (panel 1), (0 x 1), (rows 1), (1 x 0), (1 x 1)],
    rows [(rows 0), (0 x 0), (0 x 1), (rows 1), (1 x 0), (1 x 1)],
    panels [(panel 0), (0 x 0), (1 x 0), (panel 1), (0 x 1), (1 x 1)]
);
