//! f32, f16 and bf16: values that stand for themselves.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

/// Values per round of [`f16s`]: enough for the processor's own conversion to pay, small enough for the stack.
const ROUND: usize = 1024;

/// Copies little-endian f32 values.
pub(super) fn f32s(bytes: &[u8], out: &mut [f32]) {
    let (values, _) = bytes.as_chunks::<4>();
    for (out, &v) in out.iter_mut().zip(values) {
        *out = f32::from_le_bytes(v);
    }
}

/// Widens little-endian f16 values; exact.
pub(super) fn f16s(bytes: &[u8], out: &mut [f32]) {
    // The bytes need not be aligned for f16, and only whole slices are converted by the processor.
    let mut round = [f16::ZERO; ROUND];
    for (bytes, out) in bytes.chunks(2 * ROUND).zip(out.chunks_mut(ROUND)) {
        let (values, _) = bytes.as_chunks::<2>();
        for (r, &v) in round.iter_mut().zip(values) {
            *r = f16::from_le_bytes(v);
        }
        round[..out.len()].convert_to_f32_slice(out);
    }
}

/// Widens little-endian bf16 values; exact.
pub(super) fn bf16s(bytes: &[u8], out: &mut [f32]) {
    let (values, _) = bytes.as_chunks::<2>();
    for (out, &v) in out.iter_mut().zip(values) {
        *out = bf16::from_le_bytes(v).to_f32();
    }
}

/// Copies f32 values, little endian.
pub(super) fn put_f32s(values: &[f32], out: &mut [u8]) {
    let (bytes, _) = out.as_chunks_mut::<4>();
    for (bytes, v) in bytes.iter_mut().zip(values) {
        *bytes = v.to_le_bytes();
    }
}

/// Rounds to f16, ties to even; what is too large becomes infinite.
pub(super) fn put_f16s(values: &[f32], out: &mut [u8]) {
    let mut round = [f16::ZERO; ROUND];
    for (values, out) in values.chunks(ROUND).zip(out.chunks_mut(2 * ROUND)) {
        let round = &mut round[..values.len()];
        round.convert_from_f32_slice(values);
        let (bytes, _) = out.as_chunks_mut::<2>();
        for (bytes, v) in bytes.iter_mut().zip(round) {
            *bytes = v.to_le_bytes();
        }
    }
}

/// Rounds to bf16, ties to even.
pub(super) fn put_bf16s(values: &[f32], out: &mut [u8]) {
    let (bytes, _) = out.as_chunks_mut::<2>();
    for (bytes, &v) in bytes.iter_mut().zip(values) {
        *bytes = bf16::from_f32(v).to_le_bytes();
    }
}
