//! Memory between the layers of a block, kept from one block and one forward pass to the next.

use std::cell::RefCell;

thread_local! {
    static SCRATCH: RefCell<Vec<Vec<f32>>> = RefCell::default();
}

/// Runs `work` with buffers of these lengths. What is in them is left over from before.
pub(super) fn with<R, const N: usize>(lengths: [usize; N], work: impl FnOnce([&mut [f32]; N]) -> R) -> R {
    SCRATCH.with(|scratch| {
        // A thread that waits inside a kernel may be given another block of work: that one brings its own memory.
        let mut own = Vec::new();
        let mut borrowed = scratch.try_borrow_mut();
        let buffers = borrowed.as_deref_mut().unwrap_or(&mut own);
        buffers.resize_with(buffers.len().max(N), Vec::new);
        let mut buffers = buffers.iter_mut();
        work(lengths.map(|length| {
            let buffer = buffers.next().expect("there are as many buffers as lengths");
            buffer.resize(buffer.len().max(length), 0.0);
            &mut buffer[..length]
        }))
    })
}
