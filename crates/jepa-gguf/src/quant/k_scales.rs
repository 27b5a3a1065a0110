//! The 12 bytes in which q4_k and q5_k pack eight 6-bit scales and eight 6-bit minima.
//!
//! Bytes 0..4 hold scales 0..4 and bytes 4..8 minima 0..4 in their low six bits. Bytes 8..12 hold the low four bits of scales 4..8 (low half) and
//! of minima 4..8 (high half), whose upper two bits fill up bytes 0..4 and 4..8.

/// Scale and minimum of group `group`, 0 to 7.
#[inline]
pub(super) fn scale_and_min(packed: &[u8], group: usize) -> (f32, f32) {
    let (scale, min) = if group < 4 {
        (packed[group] & 63, packed[group + 4] & 63)
    } else {
        let (scale_top, min_top, low) = (packed[group - 4] >> 6, packed[group] >> 6, packed[group + 4]);
        ((low & 15) | (scale_top << 4), (low >> 4) | (min_top << 4))
    };
    (f32::from(scale), f32::from(min))
}

/// Packs eight scales and eight minima of six bits.
pub(super) fn pack(scales: &[u8; 8], mins: &[u8; 8]) -> [u8; 12] {
    let mut packed = [0; 12];
    for j in 0..4 {
        packed[j] = (scales[j] & 63) | (scales[j + 4] >> 4 << 6);
        packed[j + 4] = (mins[j] & 63) | (mins[j + 4] >> 4 << 6);
        packed[j + 8] = (scales[j + 4] & 15) | ((mins[j + 4] & 15) << 4);
    }
    packed
}
