//! Tiles of AMX: whether they may be used, and their shapes.
//!
//! A thread owns eight tiles, whose shapes it loads before it uses them and gives back when it is done, so that the kernel need not carry 8 KB from
//! one context switch to the next. Rust's own AMX is not stable; the instructions are written out.

use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};
use std::sync::OnceLock;

/// Rows of a tile.
pub(crate) const TILE_ROWS: usize = 16;

/// Bits of CPUID leaf 7, EDX: bf16 products and the tiles themselves.
const CPUID_AMX: u32 = 1 << 22 | 1 << 24;

/// Bit of CPUID leaf 1, ECX: `xgetbv` may be used.
const CPUID_OSXSAVE: u32 = 1 << 27;

/// Bits of XCR0: the kernel saves the shapes and the contents of tiles.
const XCR0_TILES: u64 = 1 << 17 | 1 << 18;

/// Linux's number of `arch_prctl`, its request for a state component, and the component of the contents of tiles.
const ARCH_PRCTL: u64 = 158;
const ARCH_REQ_XCOMP_PERM: u64 = 0x1023;
const XTILEDATA: u64 = 18;

/// Whether the machine has bf16 tiles and Linux lets this process use them. Asked once: the leave is the process's, not the thread's.
pub(crate) fn usable() -> bool {
    static USABLE: OnceLock<bool> = OnceLock::new();
    *USABLE.get_or_init(|| has_tiles() && linux_agrees())
}

fn has_tiles() -> bool {
    #[allow(unused_unsafe, reason = "CPUID is safe in recent Rust, not yet in the oldest that we support")]
    // SAFETY: every x86-64 has CPUID; leaf 7 is asked for only where there is one.
    let reported = unsafe {
        __cpuid(0).eax >= 7 && __cpuid(1).ecx & CPUID_OSXSAVE != 0 && __cpuid_count(7, 0).edx & CPUID_AMX == CPUID_AMX
    };
    if !reported {
        return false;
    }
    #[target_feature(enable = "xsave")]
    fn xcr0() -> u64 {
        // SAFETY: register 0 exists wherever the instruction does.
        unsafe { _xgetbv(0) }
    }
    // SAFETY: CPUID says that the kernel has turned the instruction on.
    unsafe { xcr0() & XCR0_TILES == XCR0_TILES }
}

/// Tiles are large, so that Linux wants to be asked before the first use.
fn linux_agrees() -> bool {
    let result: i64;
    // SAFETY: a system call that changes nothing but what this process may do; it writes no memory of ours, and `rcx` and `r11` are declared.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") ARCH_PRCTL => result,
            in("rdi") ARCH_REQ_XCOMP_PERM,
            in("rsi") XTILEDATA,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result == 0
}

/// What `ldtilecfg` reads.
#[repr(C, align(64))]
struct Config([u8; 64]);

impl Config {
    /// Shapes for up to 32 rows in two tiles: sums in tiles 0 and 1 (the first 16 rows) and 2 and 3, rows in 4 and 5, panels in 6 and 7. A tile is as
    /// many rows high as there are, so that none is read or multiplied for nothing.
    fn of(rows: usize) -> Self {
        let [upper, lower] = [rows.min(TILE_ROWS), rows.saturating_sub(TILE_ROWS)];
        let mut config = [0; 64];
        // The palette, of which there is one.
        config[0] = 1;
        for (tile, rows) in [upper, upper, lower, lower, upper, lower, TILE_ROWS, TILE_ROWS].into_iter().enumerate() {
            if rows > 0 {
                // Bytes of a row, the lower of two bytes, and rows.
                config[16 + 2 * tile] = 64;
                config[48 + tile] = rows as u8;
            }
        }
        Self(config)
    }
}

/// Shapes of this thread's tiles, given back when dropped. Between, this thread runs nothing that may use tiles: no foreign code, no other task.
pub(crate) struct Shapes(());

impl Shapes {
    /// Shapes for tiles of `rows` rows, 1 to 32.
    ///
    /// # Safety
    /// The machine has AMX, or what executes it, and the process may use it.
    pub(crate) unsafe fn of(rows: usize) -> Self {
        assert!((1..=2 * TILE_ROWS).contains(&rows), "tiles: rows");
        let config = Config::of(rows);
        // SAFETY: the caller's promise; the configuration is 64 bytes of a kind that the manual allows. The compiler uses no tiles.
        unsafe {
            asm!(
                "ldtilecfg [{}]", in(reg) &config,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack, preserves_flags, readonly),
            );
        }
        Self(())
    }
}

impl Drop for Shapes {
    fn drop(&mut self) {
        // SAFETY: there is a `Shapes` only where there is AMX.
        unsafe {
            asm!(
                "tilerelease",
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack, preserves_flags, nomem),
            );
        }
    }
}
