//! What stands around the first frame of a GIF when it does not cover the canvas.
//!
//! The decoder leaves that area transparent black. Pillow fills it with the frame's transparent colour, or else with the
//! first of the palette, and dropping alpha shows that fill.

/// Fills the uncovered area of a decoded first frame, `[height, width, 3]`, as Pillow does. A file too odd to follow is
/// left as it is.
pub(super) fn fill(bytes: &[u8], width: usize, height: usize, rgb: &mut [u8]) {
    let Some(frame) = FirstFrame::find(bytes) else { return };
    let covers = |x: usize, y: usize| {
        (frame.left..frame.left + frame.width).contains(&x) && (frame.top..frame.top + frame.height).contains(&y)
    };
    if covers(0, 0) && covers(width - 1, height - 1) {
        return;
    }
    for (i, pixel) in rgb.as_chunks_mut::<3>().0.iter_mut().enumerate() {
        if !covers(i % width, i / width) {
            *pixel = frame.fill;
        }
    }
}

struct FirstFrame {
    left: usize,
    top: usize,
    width: usize,
    height: usize,
    fill: [u8; 3],
}

impl FirstFrame {
    fn find(bytes: &[u8]) -> Option<Self> {
        let byte = |at: usize| bytes.get(at).copied();
        let palette = |flags: u8, at: usize| {
            let length = if flags & 0x80 != 0 { 3 << ((flags & 7) + 1) } else { 0 };
            bytes.get(at..at + length)
        };
        let global = palette(byte(10)?, 13)?;
        let mut at = 13 + global.len();
        let mut index = 0;
        while byte(at)? == 0x21 {
            if let Some(&[0x21, 0xF9, 4, flags, _, _, transparent, ..]) = bytes.get(at..) {
                index = if flags & 1 != 0 { transparent } else { 0 };
            }
            at += 2;
            while byte(at)? != 0 {
                at += 1 + usize::from(byte(at)?);
            }
            at += 1;
        }
        let &[0x2C, l0, l1, t0, t1, w0, w1, h0, h1, flags, ..] = bytes.get(at..)? else { return None };
        let size = |low, high| usize::from(u16::from_le_bytes([low, high]));
        let local = palette(flags, at + 10)?;
        let colors = if local.is_empty() { global } else { local };
        // Without any palette an index is a level of gray; one beyond the palette is black.
        let black = if colors.is_empty() { [index; 3] } else { [0; 3] };
        let fill = colors.as_chunks().0.get(usize::from(index)).copied().unwrap_or(black);
        Some(Self { left: size(l0, l1), top: size(t0, t1), width: size(w0, w1), height: size(h0, h1), fill })
    }
}
