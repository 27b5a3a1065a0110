//! From a bundle to a smaller bundle: which tensor becomes which type, and the writing of it.
//!
//! A [`Plan`] says beforehand what every tensor becomes and why; [`Plan::start`] opens the file and [`Quantization::finish`] streams it to a file on all cores. The result depends on the
//! input and the options alone, not on the number of threads.
//!
//! ```no_run
//! use jepa_gguf::quantize::{Options, Plan};
//! use jepa_gguf::{Bundle, GgmlType};
//!
//! let bundle = Bundle::open("ijepa_vith14_1k-f32.gguf")?;
//! let plan = Plan::new(&bundle, &Options::to(GgmlType::Q4K))?;
//! for tensor in plan.tensors() {
//!     println!("{} {} -> {}", tensor.info.name(), tensor.info.dtype(), tensor.dtype);
//! }
//! plan.start("ijepa_vith14_1k-q4_k.gguf")?.finish(|_| ())?;
//! # Ok::<(), jepa_gguf::GgufError>(())
//! ```

mod error;
mod importance;
mod plan;
mod write;

pub use error::RoundingError;
pub use importance::ImportanceMatrix;
pub use plan::{Options, Plan, PlannedTensor, Reason};
#[cfg(feature = "burn")]
pub(crate) use write::copy;
pub use write::{Quantization, WrittenTensor};
pub(crate) use write::{Rows, pack};
