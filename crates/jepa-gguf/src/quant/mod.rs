//! ggml's block formats: from blocks to f32 and back, bit for bit as ggml does it.
//!
//! Each format has a file of its own with one function that unpacks one block and one that packs it. A row is a whole number of blocks and rows
//! are independent.

mod fit_scale;
mod fit_scale_min;
mod float;
mod groups_of_32;
mod k_scales;
mod nearest;
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

/// Version of the block formats, as `general.quantization_version` says it.
pub const VERSION: u32 = 2;

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

/// Packs `values`, whole rows of `row_len`, into blocks of type `dtype`: the bits that ggml's `quantize_<type>` gives.
///
/// `importance` has one weight per column of a row, the mean square of what flows in there; the formats of 32 and 256 values but q8_0 then place
/// their scales where the important columns gain. Values are finite; NaN and infinities give blocks without meaning.
///
/// # Errors
/// [`GgufError::BufferLength`] when rows are not whole blocks, or `out` has another length than the blocks; [`GgufError::Importance`] when the
/// importance has another length than a row.
pub fn quantize(
    dtype: GgmlType,
    values: &[f32],
    row_len: usize,
    importance: Option<&[f32]>,
    out: &mut [u8],
) -> Result<(), GgufError> {
    let (block, bytes) = (dtype.block_len(), dtype.block_bytes());
    let whole = row_len > 0 && values.len().is_multiple_of(row_len) && row_len.is_multiple_of(block);
    if !whole || out.len() != values.len() / block * bytes {
        return Err(GgufError::BufferLength {
            dtype,
            bytes: out.len(),
            wanted: out.len() / bytes * block,
            found: values.len(),
        });
    }
    if let Some(weights) = importance.filter(|weights| weights.len() != row_len) {
        return Err(GgufError::Importance { found: weights.len(), wanted: row_len });
    }
    let rows = values.chunks_exact(row_len).zip(out.chunks_exact_mut(row_len / block * bytes));
    match dtype {
        GgmlType::F32 => float::put_f32s(values, out),
        GgmlType::F16 => float::put_f16s(values, out),
        GgmlType::Bf16 => float::put_bf16s(values, out),
        GgmlType::Q8_0 => rows.for_each(|(x, out)| each_packed(x, None, out, |x, _, block| q8_0::pack(x, block))),
        GgmlType::Q4_0 => rows.for_each(|(x, out)| each_packed(x, importance, out, q4_0::pack)),
        GgmlType::Q4_1 => rows.for_each(|(x, out)| each_packed(x, importance, out, q4_1::pack)),
        GgmlType::Q5_0 => rows.for_each(|(x, out)| each_packed(x, importance, out, q5_0::pack)),
        GgmlType::Q5_1 => rows.for_each(|(x, out)| each_packed(x, importance, out, q5_1::pack)),
        GgmlType::Q2K => rows.for_each(|(x, out)| each_packed(x, importance, out, q2_k::pack)),
        GgmlType::Q3K => rows.for_each(|(x, out)| each_packed(x, importance, out, q3_k::pack)),
        GgmlType::Q4K => rows.for_each(|(x, out)| each_packed(x, importance, out, q4_k::pack)),
        GgmlType::Q5K => rows.for_each(|(x, out)| each_packed(x, importance, out, q5_k::pack)),
        GgmlType::Q6K => rows.for_each(|(x, out)| each_packed(x, importance, out, q6_k::pack)),
    }
    Ok(())
}

/// The largest magnitude that `dtype` holds. Scales of blocks are f16, and no value of a block is larger than its scale can make it.
const fn most(dtype: GgmlType) -> f32 {
    match dtype {
        GgmlType::F32 => f32::MAX,
        // What is nearer to infinity than to the largest bf16 becomes infinity.
        GgmlType::Bf16 => f32::from_bits(0x7f7f_7fff),
        _ => 65504.0,
    }
}

/// The first value, with its place, that `dtype` cannot hold: NaN, infinite, or too large.
pub(crate) fn out_of_range(dtype: GgmlType, values: &[f32]) -> Option<(usize, f32)> {
    let most = most(dtype);
    values.iter().copied().enumerate().find(|(_, v)| v.is_nan() || v.abs() > most)
}

/// What tells a block which of its values matter.
#[derive(Clone, Copy)]
struct Weighted<'a, const VALUES: usize> {
    /// Importance of the block's columns.
    importance: &'a [f32; VALUES],
    /// Mean square of the whole row.
    row_energy: f32,
}

impl<const VALUES: usize> Weighted<'_, VALUES> {
    /// Weights of a block's values against the energy of its row.
    fn in_row(&self, x: &[f32; VALUES]) -> [f32; VALUES] {
        std::array::from_fn(|i| self.importance[i] * (self.row_energy + x[i] * x[i]).sqrt())
    }
}

/// Packs one row, block after block.
fn each_packed<const BYTES: usize, const VALUES: usize>(
    row: &[f32],
    importance: Option<&[f32]>,
    out: &mut [u8],
    pack: impl Fn(&[f32; VALUES], Option<Weighted<'_, VALUES>>, &mut [u8; BYTES]),
) {
    let (values, _) = row.as_chunks::<VALUES>();
    let (blocks, _) = out.as_chunks_mut::<BYTES>();
    match importance {
        None => values.iter().zip(blocks).for_each(|(values, block)| pack(values, None, block)),
        Some(importance) => {
            let row_energy = row.iter().fold(0.0, |sum, v| sum + v * v) / row.len() as f32;
            let (importance, _) = importance.as_chunks::<VALUES>();
            for ((values, importance), block) in values.iter().zip(importance).zip(blocks) {
                pack(values, Some(Weighted { importance, row_energy }), block);
            }
        }
    }
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

/// Writes `value` as an f16 to bytes `at` and `at + 1` of a block.
#[inline]
fn put_scale<const BYTES: usize>(block: &mut [u8; BYTES], at: usize, value: f32) {
    block[at..at + 2].copy_from_slice(&f16::from_f32(value).to_le_bytes());
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
