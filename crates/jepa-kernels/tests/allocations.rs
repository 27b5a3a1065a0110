//! A second product or attention of the same shape allocates nothing large.

#![allow(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use jepa_kernels::{Epilogue, F32Rows, Heads, Isa, Mask, Precision, Tokens, attention, layer_norm, linear};

#[allow(dead_code, reason = "shared by several tests")]
mod plain;

struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator, and a number beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// One test in this file: others would allocate at the same time.
#[test]
fn a_second_run_allocates_nothing_large() {
    let (tokens, heads, head_dim) = (197, 3, 64);
    let width = heads * head_dim;
    let mut random = plain::noise(1);
    let mut values = |n: usize| (0..n).map(|_| random()).collect::<Vec<f32>>();
    let (qkv, x, w, gamma) = (values(tokens * 3 * width), values(tokens * width), values(width * width), values(width));
    let mut out = vec![0.0; tokens * width];
    let part = |i: usize| Tokens { values: &qkv, stride: 3 * width, first: i * width };
    let size = Heads { batch: 1, tokens, heads, head_dim };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| {
        for isa in Isa::all() {
            for precision in [Precision::Highest, Precision::Medium] {
                let mut forward = || {
                    layer_norm(isa, &x, &gamma, &gamma, 1e-6, &mut out);
                    let weights = F32Rows { values: &w, inputs: width };
                    linear(isa, precision, &x, &weights, Epilogue::default(), &mut out);
                    attention(isa, precision, size, [part(0), part(1), part(2)], None, Mask::Full, &mut out);
                };
                forward();
                let before = BYTES.load(Ordering::Relaxed);
                forward();
                let bytes = BYTES.load(Ordering::Relaxed) - before;
                assert!(bytes < 1024, "{isa:?} {precision:?}: {bytes} bytes");
            }
        }
    });
    assert!(BYTES.load(Ordering::Relaxed) > 4 * qkv.len(), "the counter counts");
}
