//! Instruction sets: what the machine has, and which one the kernels use.

use std::sync::OnceLock;

/// Variable that forces an instruction set by its name.
const FORCE: &str = "JEPA_KERNELS";

/// An instruction set that this machine has. There is no value for one that it has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Isa(Level);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Level {
    Portable,
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "only x86 has it"))]
    Avx2,
}

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
        }
        all
    }

    /// The one to use: the best, or the one that the variable `JEPA_KERNELS` names. Asked once per process.
    ///
    /// # Errors
    /// [`IsaError`] when the variable names none that the machine has.
    pub fn chosen() -> Result<Self, IsaError> {
        static CHOSEN: OnceLock<Result<Isa, IsaError>> = OnceLock::new();
        CHOSEN.get_or_init(|| Self::named(std::env::var(FORCE).ok().as_deref())).clone()
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

    /// `portable` or `avx2`.
    pub fn name(self) -> &'static str {
        match self.0 {
            Level::Portable => "portable",
            Level::Avx2 => "avx2",
        }
    }

    /// Whether AVX2, FMA and F16C may be used.
    pub(crate) fn has_avx2(self) -> bool {
        self.0 >= Level::Avx2
    }
}

/// Makes `$name(isa, …)` run `$body::<FMA>(…)` compiled for the instruction set: `FMA` says whether `mul_add` is one instruction.
///
/// The body must be `#[inline(always)]`, so that it is compiled anew inside the function that has the instruction set.
macro_rules! compiled_for_each_isa {
    ($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) = $body:ident) => {
        $(#[$doc])*
        #[allow(clippy::too_many_arguments, reason = "a kernel's operands and sizes")]
        fn $name(isa: $crate::isa::Isa, $($arg: $ty),*) {
            #[cfg(target_arch = "x86_64")]
            if isa.has_avx2() {
                #[target_feature(enable = "avx2,fma,f16c")]
                #[allow(clippy::too_many_arguments, reason = "a kernel's operands and sizes")]
                fn avx2($($arg: $ty),*) {
                    $body::<true>($($arg),*);
                }
                // SAFETY: an `Isa` with AVX2 exists only on a machine that has AVX2, FMA and F16C.
                return unsafe { avx2($($arg),*) };
            }
            $body::<false>($($arg),*);
        }
    };
}
pub(crate) use compiled_for_each_isa;

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
