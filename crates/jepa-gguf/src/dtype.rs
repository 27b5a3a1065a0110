//! ggml's tensor types: numbers, names, block sizes.

use std::fmt;

macro_rules! types {
    ($($(#[$doc:meta])* $variant:ident = $id:literal, $name:literal, $values:literal values in $bytes:literal bytes;)+) => {
        /// A tensor type this crate can read.
        ///
        /// A row is a whole number of blocks; a block of the float types is one value.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum GgmlType { $($(#[$doc])* $variant),+ }

        impl GgmlType {
            /// Every type, in the order of ggml's numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// ggml's number for this type.
            pub const fn id(self) -> u32 { match self { $(Self::$variant => $id),+ } }

            /// The type with ggml's number `id`; `None` for one this crate cannot read.
            pub const fn from_id(id: u32) -> Option<Self> { match id { $($id => Some(Self::$variant),)+ _ => None } }

            /// ggml's name in lower case, as it stands in file names.
            pub const fn name(self) -> &'static str { match self { $(Self::$variant => $name),+ } }

            /// The type called `name`, in any case.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|t| t.name().eq_ignore_ascii_case(name))
            }

            /// Values in one block.
            pub const fn block_len(self) -> usize { match self { $(Self::$variant => $values),+ } }

            /// Bytes of one block.
            pub const fn block_bytes(self) -> usize { match self { $(Self::$variant => $bytes),+ } }
        }
    };
}

types! {
    /// IEEE single precision.
    F32 = 0, "f32", 1 values in 4 bytes;
    /// IEEE half precision.
    F16 = 1, "f16", 1 values in 2 bytes;
    /// 4 bits, one scale for 32 values.
    Q4_0 = 2, "q4_0", 32 values in 18 bytes;
    /// 4 bits, scale and minimum for 32 values.
    Q4_1 = 3, "q4_1", 32 values in 20 bytes;
    /// 5 bits, one scale for 32 values.
    Q5_0 = 6, "q5_0", 32 values in 22 bytes;
    /// 5 bits, scale and minimum for 32 values.
    Q5_1 = 7, "q5_1", 32 values in 24 bytes;
    /// 8 bits, one scale for 32 values.
    Q8_0 = 8, "q8_0", 32 values in 34 bytes;
    /// 2 bits in 16 groups of 16 with 4-bit scales and minima.
    Q2K = 10, "q2_k", 256 values in 84 bytes;
    /// 3 bits in 16 groups of 16 with 6-bit scales.
    Q3K = 11, "q3_k", 256 values in 110 bytes;
    /// 4 bits in 8 groups of 32 with 6-bit scales and minima.
    Q4K = 12, "q4_k", 256 values in 144 bytes;
    /// 5 bits in 8 groups of 32 with 6-bit scales and minima.
    Q5K = 13, "q5_k", 256 values in 176 bytes;
    /// 6 bits in 16 groups of 16 with 8-bit scales.
    Q6K = 14, "q6_k", 256 values in 210 bytes;
    /// The upper half of an IEEE single.
    Bf16 = 30, "bf16", 1 values in 2 bytes;
}

impl GgmlType {
    /// Whether a value stands for itself: f32, f16, bf16.
    pub const fn is_float(self) -> bool {
        self.block_len() == 1
    }

    /// Bytes of a row of `len` values; `None` when the row is not a whole number of blocks or the size overflows.
    pub fn row_bytes(self, len: u64) -> Option<u64> {
        let block = self.block_len() as u64;
        if !len.is_multiple_of(block) {
            return None;
        }
        (len / block).checked_mul(self.block_bytes() as u64)
    }

    /// The number ggml's `ftype` has for a file whose large matrices are of this type (`general.file_type`).
    pub const fn file_type(self) -> u32 {
        match self {
            Self::F32 => 0,
            Self::F16 => 1,
            Self::Q4_0 => 2,
            Self::Q4_1 => 3,
            Self::Q8_0 => 7,
            Self::Q5_0 => 8,
            Self::Q5_1 => 9,
            Self::Q2K => 10,
            Self::Q3K => 11,
            Self::Q4K => 12,
            Self::Q5K => 13,
            Self::Q6K => 14,
            Self::Bf16 => 24,
        }
    }
}

impl fmt::Display for GgmlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// ggml's name of a type this crate cannot read, for the message that refuses it.
pub(crate) const fn foreign_name(id: u32) -> Option<&'static str> {
    Some(match id {
        9 => "q8_1",
        15 => "q8_k",
        16 => "iq2_xxs",
        17 => "iq2_xs",
        18 => "iq3_xxs",
        19 => "iq1_s",
        20 => "iq4_nl",
        21 => "iq3_s",
        22 => "iq2_s",
        23 => "iq4_xs",
        24 => "i8",
        25 => "i16",
        26 => "i32",
        27 => "i64",
        28 => "f64",
        29 => "iq1_m",
        34 => "tq1_0",
        35 => "tq2_0",
        39 => "mxfp4",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_lead_back_to_the_type() {
        for &t in GgmlType::ALL {
            assert_eq!(GgmlType::from_id(t.id()), Some(t));
            assert_eq!(GgmlType::from_name(&t.name().to_uppercase()), Some(t));
            assert_eq!(foreign_name(t.id()), None);
        }
        assert_eq!(GgmlType::from_id(28), None);
    }

    #[test]
    fn row_bytes_wants_whole_blocks_and_does_not_wrap() {
        assert_eq!(GgmlType::Q4K.row_bytes(512), Some(288));
        assert_eq!(GgmlType::Q4K.row_bytes(16), None);
        assert_eq!(GgmlType::F32.row_bytes(1 << 62), None);
    }
}
