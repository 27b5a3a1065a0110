//! CPU kernels for vision transformers, on plain slices.
//!
//! No tensor library: a kernel takes `&[f32]` and sizes, and knows nothing of models or files. Each is tested against a plain version of itself in
//! f64. Instruction sets are chosen at run time ([`Isa`]): AMX, AVX-512, AVX2, or what every machine has. Matrix products are f32, bf16 or, at nearly
//! f32's accuracy, sums of bf16 products ([`Precision`]), as asked for and as the machine can.
//!
//! AMX (Linux on Intel's Sapphire Rapids and later) was run under an emulation of its instructions and nowhere else: its results are tested, its speed
//! was not measured.
//!
//! Work is dealt out to the threads of the current rayon pool; results are the same for any number of them. With one thread nothing leaves the
//! caller's. With more, a caller that runs many kernels does so inside [`rayon::ThreadPool::install`], which saves waking the pool for each. Scratch
//! memory is kept per thread from call to call: about 0.9 MB for products (1.1 MB on AMX), rows of a large product as bf16 (64 MB at most), and the keys and
//! values of one head for attention.

#![allow(unsafe_code, reason = "the crate that exists for it; every block says why it is sound")]

mod activation;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod amx;
mod attention;
#[cfg(target_arch = "x86_64")]
mod few;
mod flash;
mod gemm;
mod isa;
mod layer_norm;
mod lines;
mod pack;
mod packed;
mod precision;
#[cfg(target_arch = "x86_64")]
mod source;
mod threads;
mod tile;
mod vector;
mod weights;

pub use activation::Act;
pub use attention::{Heads, Mask, Tokens, Turns, attention};
pub use gemm::{Epilogue, linear};
pub use isa::{Isa, IsaError};
pub use layer_norm::layer_norm;
pub use packed::PackedWeights;
pub use precision::Precision;
pub use weights::{Bf16Rows, F16Rows, F32Columns, F32Rows, Q8_0Rows, Stored, WeightRows};
