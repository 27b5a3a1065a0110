//! Parity cases: stored inputs, the outputs that a reference gave, and how a model of ours compares.
//!
//! A case is a folder with a `case.json`, model files, and `.safetensors` of inputs and expected outputs. Cases know no device: the same replay
//! runs on every backend.

mod case;
mod kinds;
mod replay;
mod tier;

use std::collections::BTreeMap;

use serde::Serialize;

pub use case::{Case, Options, PlannerOptions, Test, Variant};
pub use replay::{Replay, replay};
pub use tier::Tier;

/// Outputs that were got, by the expected tensor's name: shape and values.
pub type Dump = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

/// Why a case cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ParityError {
    /// A file of the case cannot be read.
    #[error("{file}: {what}")]
    File {
        /// The file.
        file: String,
        /// What is wrong with it.
        what: String,
    },
    /// A model type that the case does not have.
    #[error("--type {wanted}: the case has {found}")]
    Type {
        /// The type asked for.
        wanted: String,
        /// The types that are there.
        found: String,
    },
    /// A test that contradicts itself or its files.
    #[error("test {test}: {what}")]
    Test {
        /// Its id.
        test: String,
        /// What is wrong with it.
        what: String,
    },
}

/// What became of one expected output, or of a whole test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Within the bar.
    Pass,
    /// Outside the bar.
    Miss,
    /// Another convention than ours; shown, not judged.
    Optional,
    /// Not replayed; the note says why.
    Skip,
}

/// One line of a verdict.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// Name of the case.
    pub case: String,
    /// Type of its model file.
    #[serde(rename = "type")]
    pub model_type: String,
    /// Id of the test.
    pub test: String,
    /// Kind of the test.
    pub kind: String,
    /// Role of the output; none for a test that was skipped whole.
    pub output: Option<String>,
    /// What became of it.
    pub outcome: Outcome,
    /// Smallest cosine of a row.
    pub cos_min: Option<f64>,
    /// Largest difference over the largest wanted value.
    pub rel_max: Option<f64>,
    /// Anything else worth saying.
    pub note: Option<String>,
}
