//! GGUF bundles of JEPA vision models: a strict reader, a writer, ggml's block types, and the schema.
//!
//! One file is one model: an encoder, optionally a predictor and a head, with every number needed to run it. [`Bundle::open`] maps such a file and
//! refuses anything that is damaged, missing, misshaped or left over, by name; nothing is allocated out of proportion to the file. The crate knows no
//! graph. Its `burn` feature adds a store that loads and saves Burn modules.
//!
//! ```
//! use jepa_gguf::{GgmlType, Gguf, GgufWriter, Metadata};
//!
//! let mut metadata = Metadata::default();
//! metadata.insert("general.architecture", "jepa")?;
//! let mut writer = GgufWriter::new(metadata);
//! writer.declare("enc.norm.weight", &[2], GgmlType::F32)?;
//!
//! let path = std::env::temp_dir().join("jepa-gguf-example.gguf");
//! let mut data = writer.create(&path)?;
//! data.tensor("enc.norm.weight", &[0, 0, 128, 63, 0, 0, 0, 64])?;
//! data.finish()?;
//!
//! let file = Gguf::open(&path)?;
//! assert_eq!(file.tensor("enc.norm.weight").unwrap().to_f32(), [1.0, 2.0]);
//! # std::fs::remove_file(&path).unwrap();
//! # Ok::<(), jepa_gguf::GgufError>(())
//! ```

mod bundle;
mod bytes;
pub mod checkpoint;
pub mod convert;
mod cursor;
mod dtype;
mod error;
pub mod export;
mod file;
mod header;
pub mod limits;
pub mod quant;
pub mod quantize;
pub mod schema;
#[cfg(feature = "burn")]
mod store;
mod tensor;
mod transpose;
mod value;
mod writer;

pub use bundle::{Bundle, Warning};
pub use bytes::Access;
pub use dtype::GgmlType;
pub use error::GgufError;
pub use file::{Gguf, TypeShare};
#[cfg(feature = "burn")]
pub use store::{BundleWriter, GgufStore, WritingBundle};
pub use tensor::{TensorHandle, TensorInfo, TensorView};
pub use value::{Array, Metadata, Value};
pub use writer::{GgufWriter, TensorWriter};
