//! Instruction sets: what the machine has, and which one the kernels use.

use std::sync::OnceLock;

/// Variable that forces an instruction set by its name.
const FORCE: &str = "JEPA_KERNELS";

/// What [`Isa::chosen`] gives in this process.
static CHOSEN: OnceLock<Result<Isa, IsaError>> = OnceLock::new();

/// An instruction set that this machine has. There is no value for one that it has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Isa(Level);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Level {
    Portable,
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "only x86 has it"))]
    Avx2,
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "only x86 has it"))]
    Avx512,
    #[cfg_attr(not(all(target_arch = "x86_64", target_os = "linux")), allow(dead_code, reason = "only x86 has it"))]
    Amx,
}

/// Value of the parameter `SET` of a body that is compiled for the baseline of the target.
pub(crate) const PORTABLE: u8 = 0;

/// `SET` of a body compiled for AVX2, FMA and F16C.
pub(crate) const AVX2: u8 = 1;

/// `SET` of a body compiled for AVX-512 F, BW, DQ and VL besides.
pub(crate) const AVX512: u8 = 2;

/// `SET` of a body whose matrix products run on the tiles of AMX, and the rest on AVX-512 with AVX512-BF16.
pub(crate) const AMX: u8 = 3;

/// `JEPA_KERNELS` names no instruction set of this machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("JEPA_KERNELS is `{found}`, this machine has {available}")]
pub struct IsaError {
    /// What the variable says.
    pub found: String,
    /// Names that it may say.
    pub available: String,
}

impl Isa {
    /// What every machine has: no instruction set is asked for, the compiler's baseline is used.
    pub const PORTABLE: Self = Self(Level::Portable);

    /// All that this machine has, the plainest first.
    pub fn all() -> Vec<Self> {
        let mut all = vec![Self::PORTABLE];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c") {
            all.push(Self(Level::Avx2));
            // Set apart, the parts of AVX-512 are found on no machine that is worth a kernel of its own.
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
            {
                all.push(Self(Level::Avx512));
                #[cfg(target_os = "linux")]
                if is_x86_feature_detected!("avx512bf16") && crate::amx::usable() {
                    all.push(Self(Level::Amx));
                }
            }
        }
        all
    }

    /// The one to use: the best, or the one that the variable `JEPA_KERNELS` names. Asked once per process.
    ///
    /// # Errors
    /// [`IsaError`] when the variable names none that the machine has.
    pub fn chosen() -> Result<Self, IsaError> {
        CHOSEN.get_or_init(|| Self::named(std::env::var(FORCE).ok().as_deref())).clone()
    }

    /// Makes it the one to use, unless one has been asked for already, and gives the one that is.
    pub fn choose(self) -> Result<Self, IsaError> {
        CHOSEN.get_or_init(|| Ok(self)).clone()
    }

    fn named(name: Option<&str>) -> Result<Self, IsaError> {
        let all = Self::all();
        let best = *all.last().expect("the portable set is always there");
        let Some(found) = name.filter(|name| !name.is_empty()) else { return Ok(best) };
        all.iter().copied().find(|isa| isa.name() == found).ok_or_else(|| IsaError {
            found: found.to_owned(),
            available: all.iter().map(|isa| isa.name()).collect::<Vec<_>>().join(", "),
        })
    }

    /// AMX without asking whether the machine has it, for a program that executes the instructions of AMX in their place.
    ///
    /// # Safety
    /// The machine has the four parts of AVX-512 that [`Isa::all`] asks for, and AVX512-BF16. It has AMX and the kernel's leave to use it, or a
    /// handler of `SIGILL` executes `ldtilecfg`, `tileloadd`, `tilezero`, `tdpbf16ps`, `tilestored` and `tilerelease`.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    #[doc(hidden)]
    pub unsafe fn amx_unchecked() -> Self {
        Self(Level::Amx)
    }

    /// `portable`, `avx2`, `avx512` or `amx`.
    pub fn name(self) -> &'static str {
        match self.0 {
            Level::Portable => "portable",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
            Level::Amx => "amx",
        }
    }

    /// Whether two bf16 products at a time may be asked for, and are worth it.
    pub(crate) fn has_bf16(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return self.0 >= Level::Avx512 && is_x86_feature_detected!("avx512bf16");
        #[cfg(not(target_arch = "x86_64"))]
        false
    }

    /// Whether bf16 products run on tiles.
    pub(crate) fn has_tiles(self) -> bool {
        self.0 == Level::Amx
    }

    /// The value of `SET` for [`compiled_for_each_isa`]: of bodies without bf16 products AMX takes those of AVX-512.
    pub(crate) fn set(self) -> u8 {
        match self.0 {
            Level::Portable => PORTABLE,
            Level::Avx2 => AVX2,
            Level::Avx512 | Level::Amx => AVX512,
        }
    }
}

/// Makes `$name(isa, …)` run `$body::<SET>(…)` compiled for the instruction set that `SET` names.
///
/// The body must be `#[inline(always)]`, so that it is compiled anew inside the function that has the instruction set.
macro_rules! compiled_for_each_isa {
    ($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) = $body:ident) => {
        $(#[$doc])*
        fn $name(isa: $crate::isa::Isa, $($arg: $ty),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma,f16c")]
                fn avx2($($arg: $ty),*) {
                    $body::<{ $crate::isa::AVX2 }>($($arg),*);
                }
                #[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl")]
                fn avx512($($arg: $ty),*) {
                    $body::<{ $crate::isa::AVX512 }>($($arg),*);
                }
                match isa.set() {
                    // SAFETY: an `Isa` of this set exists only on a machine that has AVX2, FMA and F16C.
                    $crate::isa::AVX2 => return unsafe { avx2($($arg),*) },
                    // SAFETY: an `Isa` of this set exists only on a machine that has the four parts of AVX-512 and all of the above.
                    $crate::isa::AVX512 => return unsafe { avx512($($arg),*) },
                    _ => {}
                }
            }
            #[cfg(not(target_arch = "x86_64"))]
            let _ = isa;
            $body::<{ $crate::isa::PORTABLE }>($($arg),*);
        }
    };
}
pub(crate) use compiled_for_each_isa;

/// Makes `$name(…)` run `$body::<AMX>(…)`, on words that are bf16. Where there is no AMX, no `Isa` asks for it.
///
/// The body must be `#[inline(always)]`, as above.
macro_rules! compiled_for_amx {
    ($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) = $body:ident) => {
        $(#[$doc])*
        fn $name(isa: $crate::isa::Isa, $($arg: $ty),*) {
            assert!(isa.has_tiles(), "tiles: not of this instruction set");
            #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
            {
                #[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
                fn amx($($arg: $ty),*) {
                    $body::<{ $crate::isa::AMX }>($($arg),*);
                }
                // SAFETY: an `Isa` that has tiles exists only on a machine that has AVX-512 and AVX512-BF16.
                unsafe { amx($($arg),*) }
            }
            #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
            let _ = ($($arg),*);
        }
    };
}
pub(crate) use compiled_for_amx;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_found_by_its_name_and_others_are_refused() {
        for isa in Isa::all() {
            assert_eq!(Isa::named(Some(isa.name())), Ok(isa));
        }
        assert_eq!(Isa::named(None), Isa::named(Some("")));
        let error = Isa::named(Some("sse9")).unwrap_err().to_string();
        assert!(error.contains("sse9") && error.contains("portable"), "{error}");
    }
}
