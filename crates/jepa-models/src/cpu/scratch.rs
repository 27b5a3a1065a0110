//! Memory between the layers of a block, kept from one block and one forward pass to the next.

use std::cell::RefCell;

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Buffers of one thread.
#[derive(Default)]
pub(super) struct Scratch {
    /// Normalised tokens, then joined heads: `[rows, widest of dim and heads · head_dim]`.
    narrow: Vec<f32>,
    /// Queries, keys and values, then the hidden layer: `[rows, widest of 3 · heads · head_dim and ffn_dim]`.
    wide: Vec<f32>,
}

/// Runs `work` with two buffers of these lengths. What is in them is left over from before.
pub(super) fn with<R>(narrow: usize, wide: usize, work: impl FnOnce(&mut [f32], &mut [f32]) -> R) -> R {
    SCRATCH.with(|scratch| {
        // A thread that waits inside a kernel may be given another block of work: that one brings its own memory.
        let mut own = Scratch::default();
        let mut borrowed = scratch.try_borrow_mut();
        let scratch = borrowed.as_deref_mut().unwrap_or(&mut own);
        for (buffer, len) in [(&mut scratch.narrow, narrow), (&mut scratch.wide, wide)] {
            if buffer.len() < len {
                buffer.resize(len, 0.0);
            }
        }
        work(&mut scratch.narrow[..narrow], &mut scratch.wide[..wide])
    })
}
