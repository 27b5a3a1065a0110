//! Every instruction set that can be tested here: those of the machine, and AMX by executing its instructions one by one where they are missing.
//!
//! A processor without AMX raises SIGILL; the handler decodes the six instructions that the kernels use and does what Intel's manual says they do, on
//! eight tiles per thread. Anything else ends the process as it would have without the handler.

#![allow(unsafe_code, reason = "a processor is done for what it cannot do")]

use jepa_kernels::Isa;

/// The sets of this machine, and AMX.
pub(crate) fn sets() -> Vec<Isa> {
    let mut all = Isa::all();
    all.extend(amx().filter(|amx| !all.contains(amx)));
    all
}

/// AMX, by the machine or in its place. Nothing where it cannot be had, for a reason that the second function tells.
pub(crate) fn amx() -> Option<Isa> {
    Isa::all().into_iter().find(|isa| isa.name() == "amx").or_else(emulated)
}

/// Why there is no AMX here.
pub(crate) const WITHOUT: &str = "needs Linux on x86-64 with AVX-512 and AVX512-BF16";

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn emulated() -> Option<Isa> {
    None
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use machine::emulated;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) mod machine {
    use std::cell::UnsafeCell;
    use std::ffi::{c_int, c_void};
    use std::sync::Once;

    use jepa_kernels::Isa;

    /// AMX by the handler, where the rest is there.
    pub(super) fn emulated() -> Option<Isa> {
        let has_rest = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512bf16");
        if !has_rest {
            return None;
        }
        static INSTALLED: Once = Once::new();
        // SAFETY: the handler has the signature that SA_SIGINFO asks for and touches nothing but the thread's own tiles and registers.
        INSTALLED.call_once(|| unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            assert_eq!(libc::sigaction(libc::SIGILL, &action, std::ptr::null_mut()), 0);
        });
        // SAFETY: AVX-512 is there, and the handler executes the rest.
        Some(unsafe { Isa::amx_unchecked() })
    }

    /// Products of tiles that this thread has executed.
    pub(crate) fn multiplied() -> usize {
        // SAFETY: the thread's own, and no handler runs while it is read.
        TILES.with(|tiles| unsafe { (*tiles.get()).products })
    }

    /// Whether this thread holds no shapes.
    pub(crate) fn given_back() -> bool {
        // SAFETY: as above.
        TILES.with(|tiles| unsafe { !(*tiles.get()).configured })
    }

    struct Tiles {
        configured: bool,
        rows: [usize; 8],
        /// Bytes of a row.
        bytes: [usize; 8],
        words: [[[u32; 16]; 16]; 8],
        products: usize,
    }

    thread_local! {
        static TILES: UnsafeCell<Tiles> = const {
            UnsafeCell::new(Tiles {
                configured: false, rows: [0; 8], bytes: [0; 8], words: [[[0; 16]; 16]; 8], products: 0,
            })
        };
    }

    extern "C" fn handler(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
        // SAFETY: the kernel passes the registers of the instruction that failed, which lies in memory that was executed.
        unsafe {
            let registers = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
            let at = registers[libc::REG_RIP as usize] as *const u8;
            match TILES.with(|tiles| execute(&mut *tiles.get(), at, registers)) {
                Some(length) => registers[libc::REG_RIP as usize] += length as i64,
                // The instruction runs again, and ends the process.
                None => _ = libc::signal(libc::SIGILL, libc::SIG_DFL),
            }
        }
    }

    /// Executes the instruction at `at` and gives its length; nothing when it is none of the six or faults.
    ///
    /// # Safety
    /// An instruction and what it points to are there.
    unsafe fn execute(tiles: &mut Tiles, at: *const u8, registers: &[i64; 23]) -> Option<usize> {
        // SAFETY: an instruction of five bytes at least, if the first is C4.
        let byte = |i: usize| unsafe { *at.add(i) };
        // Three bytes of VEX: inverted register bits and the map 0F38, then W = 0, the inverted second source, L = 0 and the prefix.
        if byte(0) != 0xc4 || byte(1) & 0x1f != 2 || byte(2) & 0x84 != 0 {
            return None;
        }
        let [r, x, b] = [7, 6, 5].map(|bit| usize::from(!byte(1) >> bit & 1) * 8);
        let (source, prefix) = (usize::from(!byte(2) >> 3 & 15), byte(2) & 3);
        let [mode, reg, rm] = [byte(4) >> 6, byte(4) >> 3 & 7, byte(4) & 7].map(usize::from);
        if (byte(3), prefix) == (0x5c, 2) {
            let valid = mode == 3 && r == 0 && b == 0 && source < 8;
            return valid.then(|| tiles.multiply(reg, rm, source)).flatten().map(|()| 5);
        }
        if (byte(3), mode) == (0x49, 3) {
            return match (prefix, reg, rm, source, r) {
                // tilerelease
                (0, 0, 0, 0, 0) => {
                    tiles.release();
                    Some(5)
                }
                // tilezero
                (3, tile, 0, 0, 0) => tiles.shape(tile).map(|_| {
                    tiles.words[tile] = [[0; 16]; 16];
                    5
                }),
                _ => None,
            };
        }
        if mode == 3 || source != 0 {
            return None;
        }
        // SAFETY: as above; the bytes of an address belong to the instruction.
        let (address, stride, length) = unsafe { address(at.add(5), mode, rm, x, b, registers) }?;
        match (byte(3), prefix, stride) {
            // ldtilecfg
            (0x49, 0, _) if reg == 0 => {
                // SAFETY: the instruction reads 64 bytes.
                let config = unsafe { address.cast::<[u8; 64]>().read_unaligned() };
                tiles.configure(&config)?;
            }
            // tileloadd
            (0x4b, 3, Some(stride)) if r == 0 => {
                let (rows, bytes) = tiles.shape(reg)?;
                tiles.words[reg] = [[0; 16]; 16];
                for (i, row) in tiles.words[reg].iter_mut().enumerate().take(rows) {
                    // SAFETY: the instruction reads as many bytes of a row.
                    unsafe {
                        let from = address.wrapping_offset(i as isize * stride);
                        std::ptr::copy_nonoverlapping(from, row.as_mut_ptr().cast(), bytes);
                    }
                }
            }
            // tilestored
            (0x4b, 2, Some(stride)) if r == 0 => {
                let (rows, bytes) = tiles.shape(reg)?;
                for (i, row) in tiles.words[reg].iter().enumerate().take(rows) {
                    // SAFETY: the instruction writes as many bytes of a row.
                    unsafe {
                        let to = address.wrapping_offset(i as isize * stride).cast_mut();
                        std::ptr::copy_nonoverlapping(row.as_ptr().cast(), to, bytes);
                    }
                }
            }
            _ => return None,
        }
        Some(5 + length)
    }

    /// An operand in memory, behind its ModRM byte: the address of the base, the index where there is a SIB byte, and the length of what was read.
    ///
    /// # Safety
    /// The instruction is there.
    unsafe fn address(
        at: *const u8,
        mode: usize,
        rm: usize,
        x: usize,
        b: usize,
        registers: &[i64; 23],
    ) -> Option<(*const u8, Option<isize>, usize)> {
        use libc::{
            REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RAX, REG_RBP, REG_RBX, REG_RCX,
            REG_RDI, REG_RDX, REG_RSI, REG_RSP,
        };
        const ORDER: [c_int; 16] = [
            REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI, REG_R8, REG_R9, REG_R10, REG_R11,
            REG_R12, REG_R13, REG_R14, REG_R15,
        ];
        let register = |i: usize| registers[ORDER[i] as usize];
        // SAFETY: the caller's promise.
        unsafe {
            let (base, index, mut length) = if rm == 4 {
                let sib = *at;
                let [scale, index, base] = [sib >> 6, sib >> 3 & 7, sib & 7].map(usize::from);
                let index = if index + x == 4 { 0 } else { register(index + x) << scale };
                (base, Some(index as isize), 1)
            } else {
                (rm, None, 0)
            };
            // Without a displacement, 5 is no register.
            if mode == 0 && base == 5 {
                return None;
            }
            let displacement = match mode {
                1 => i64::from(*at.add(length).cast::<i8>()),
                2 => i64::from(at.add(length).cast::<i32>().read_unaligned()),
                _ => 0,
            };
            length += [0, 1, 4][mode];
            Some(((register(base + b) + displacement) as *const u8, index, length))
        }
    }

    impl Tiles {
        fn release(&mut self) {
            self.configured = false;
            (self.rows, self.bytes) = ([0; 8], [0; 8]);
        }

        /// Rows and bytes of a row, of a tile that has a shape.
        fn shape(&self, tile: usize) -> Option<(usize, usize)> {
            (self.configured && self.rows[tile] > 0).then_some((self.rows[tile], self.bytes[tile]))
        }

        /// Palette 1: 8 tiles of up to 16 rows of up to 64 bytes; what is reserved is 0.
        fn configure(&mut self, config: &[u8; 64]) -> Option<()> {
            let reserved = config[1..16].iter().chain(&config[32..48]).chain(&config[56..]);
            if config[0] != 1 || reserved.into_iter().any(|&byte| byte != 0) {
                return None;
            }
            for tile in 0..8 {
                let bytes = usize::from(u16::from_le_bytes([config[16 + 2 * tile], config[17 + 2 * tile]]));
                let rows = usize::from(config[48 + tile]);
                if rows > 16 || bytes > 64 || (rows == 0) != (bytes == 0) {
                    return None;
                }
                (self.rows[tile], self.bytes[tile]) = (rows, bytes);
            }
            self.configured = true;
            self.words = [[[0; 16]; 16]; 8];
            Some(())
        }

        /// tdpbf16ps: `sums += rows · pairs`.
        fn multiply(&mut self, sums: usize, rows: usize, pairs: usize) -> Option<()> {
            let [(height, width), (rows_height, depth), (pairs_height, pairs_width)] =
                [self.shape(sums)?, self.shape(rows)?, self.shape(pairs)?];
            let fits = height == rows_height && width == pairs_width && depth == 4 * pairs_height;
            if !fits || width % 4 != 0 || sums == rows || rows == pairs || sums == pairs {
                return None;
            }
            let [sums, rows, pairs] = self.words.get_disjoint_mut([sums, rows, pairs]).ok()?;
            for (sums, row) in sums.iter_mut().zip(rows).take(height) {
                // SAFETY: there is no emulated AMX without AVX-512.
                unsafe { row_of_products(&row[..depth / 4], pairs, sums) };
            }
            self.products += 1;
            Some(())
        }
    }

    /// A row of sums: products of the first values of the pairs and of the second are summed apart, with one rounding each, then together, then with
    /// what was there. Denormals are 0 on the way in and out.
    #[target_feature(enable = "avx512f,fma")]
    fn row_of_products(row: &[u32], pairs: &[[u32; 16]; 16], sums: &mut [u32; 16]) {
        let (mut even, mut odd) = ([0.0f32; 16], [0.0f32; 16]);
        for (&a, pairs) in row.iter().zip(pairs) {
            let (low, high) = (flushed(f32::from_bits(a << 16)), flushed(f32::from_bits(a & 0xffff_0000)));
            for n in 0..16 {
                let b = pairs[n];
                even[n] = flushed(low.mul_add(flushed(f32::from_bits(b << 16)), even[n]));
                odd[n] = flushed(high.mul_add(flushed(f32::from_bits(b & 0xffff_0000)), odd[n]));
            }
        }
        for n in 0..16 {
            let both = flushed(even[n] + odd[n]);
            sums[n] = flushed(flushed(f32::from_bits(sums[n])) + both).to_bits();
        }
    }

    #[inline(always)]
    fn flushed(x: f32) -> f32 {
        if x.is_subnormal() { 0.0f32.copysign(x) } else { x }
    }
}
