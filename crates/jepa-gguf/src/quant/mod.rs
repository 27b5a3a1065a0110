//! ggml's block formats: from blocks to f32, bit for bit as ggml does it.
//!
//! Each format has a file of its own with one function that unpacks one block. A row is a whole number of blocks and rows are independent.

mod float;
mod k_scales;
mod q2_k;
mod q3_k;
mod q4_0;
mod q4_1;
mod q4_k;
mod q5_0;
mod q5_1;
mod q5_k;
mod q6_k;
mod q8_0;

use half::f16;

use crate::dtype::GgmlType;
use crate::error::GgufError;

/// Unpacks `bytes`, whole blocks of type `dtype`, into exactly as many values as they hold.
///
/// # Errors
/// [`GgufError::BufferLength`] when `bytes` is not a whole number of blocks or `out` has another length than they hold values.
pub fn dequantize(dtype: GgmlType, bytes: &[u8], out: &mut [f32]) -> Result<(), GgufError> {
    let wanted = bytes.len() / dtype.block_bytes() * dtype.block_len();
    if !bytes.len().is_multiple_of(dtype.block_bytes()) || out.len() != wanted {
        return Err(GgufError::BufferLength { dtype, bytes: bytes.len(), wanted, found: out.len() });
    }
    match dtype {
        GgmlType::F32 => float::f32s(bytes, out),
        GgmlType::F16 => float::f16s(bytes, out),
        GgmlType::Bf16 => float::bf16s(bytes, out),
        GgmlType::Q4_0 => each(bytes, out, q4_0::unpack),
        GgmlType::Q4_1 => each(bytes, out, q4_1::unpack),
        GgmlType::Q5_0 => each(bytes, out, q5_0::unpack),
        GgmlType::Q5_1 => each(bytes, out, q5_1::unpack),
        GgmlType::Q8_0 => each(bytes, out, q8_0::unpack),
        GgmlType::Q2K => each(bytes, out, q2_k::unpack),
        GgmlType::Q3K => each(bytes, out, q3_k::unpack),
        GgmlType::Q4K => each(bytes, out, q4_k::unpack),
        GgmlType::Q5K => each(bytes, out, q5_k::unpack),
        GgmlType::Q6K => each(bytes, out, q6_k::unpack),
    }
    Ok(())
}

/// Unpacks block after block.
fn each<const BYTES: usize, const VALUES: usize>(
    bytes: &[u8],
    out: &mut [f32],
    unpack: impl Fn(&[u8; BYTES], &mut [f32; VALUES]),
) {
    let (blocks, _) = bytes.as_chunks::<BYTES>();
    let (values, _) = out.as_chunks_mut::<VALUES>();
    for (block, values) in blocks.iter().zip(values) {
        unpack(block, values);
    }
}

/// The f16 in bytes `at` and `at + 1` of a block.
#[inline]
fn scale<const BYTES: usize>(block: &[u8; BYTES], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_half_blocks_and_wrong_buffers() {
        for &t in GgmlType::ALL {
            let bytes = vec![0; t.block_bytes() * 2];
            let mut out = vec![1.0; t.block_len() * 2];
            dequantize(t, &bytes, &mut out).unwrap();
            assert!(out.iter().all(|&v| v == 0.0), "{t}: zero bytes are zero values");
            assert!(dequantize(t, &bytes[1..], &mut out).is_err(), "{t}");
            assert!(dequantize(t, &bytes, &mut out[1..]).is_err(), "{t}");
        }
    }
}
