//! The JEPA vision models as Burn modules, written once, generic over the backend.
//!
//! A [`Jepa`] is one GGUF file: an encoder, and what it takes to bring pictures and clips into the form it was trained on.
//!
//! ```no_run
//! use burn_flex::Flex; // any Burn backend
//! use jepa_models::{Jepa, Pool};
//! use jepa_pixels::Rgb8;
//!
//! let device = Default::default();
//! let model = Jepa::<Flex>::open("vjepa2.gguf", &device)?;
//! let frames = vec![Rgb8::new(640, 480, vec![128; 640 * 480 * 3])?; 16];
//! let clip = model.preprocess().clip(&frames, &device)?; // normalised pixels, a type of its own
//! let out = model.encode(clip)?; // tokens [batch, tokens, dim]
//! let vector = out.pooled(Pool::Auto)?; // [batch, dim]
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Modules are ordinary Burn modules with configs and `init`, usable without any file ([`EncoderConfig`]). Their fields are named after the
//! GGUF schema, so a parameter's path is its tensor's name.

#![deny(missing_docs)]

mod activations;
mod agreement;
mod augment;
mod bundle;
#[cfg(feature = "cpu")]
pub mod cpu;
mod encoder;
mod error;
pub mod families;
mod features;
mod fidelity;
pub mod head;
mod memory;
pub mod nn;
pub mod plan;
pub mod predictor;
mod preprocess;
#[cfg(feature = "train")]
pub mod probe;
mod self_check;
mod shapes;
pub mod tail;
mod trace;
#[cfg(feature = "train")]
pub mod train;
mod walk;
pub mod world;

pub use activations::{ActivationStatistics, ColumnEnergy};
pub use agreement::{Agreement, Bar};
pub use augment::Augment;
pub use bundle::{Head, Jepa, Predictor, mean_probabilities};
pub use encoder::{EncodeOptions, Encoder, EncoderConfig, Entering, Projector};
pub use error::ModelError;
pub use features::{Encoded, HeadReads, LayerSelection, Pool};
pub use fidelity::{Fidelity, RowAgreement, noise};
pub use nn::{Grid, Pixels, TokenIds};
pub use preprocess::{Preprocess, StillImage};
pub use self_check::{WrongOnDevice, self_check};
pub use shapes::SHAPES;
pub use trace::Trace;
