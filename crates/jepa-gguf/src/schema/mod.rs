//! The schema, version 1: which keys and tensors a bundle has.
//!
//! [`KEYS`] and [`TENSORS`] are the schema. Reading a file, the messages that refuse one, and the documentation page all come from these two.

mod check;
mod dims;
mod encoder;
mod families;
mod head;
mod hparams;
mod keys;
mod page;
mod predictor;
mod preprocess;
mod reader;
mod tensors;

pub use dims::Dim;
pub use keys::{Absent, KEYS, KeyKind, KeySpec, key_spec};
pub use page::schema_page;
pub use tensors::{ExpectedTensor, Form, Repeat, TENSORS, TensorSpec, TypeRule, When, expected_tensors};

pub use hparams::{
    AcHparams, Activation, AttnMode, EncoderHparams, Family, HeadHparams, HeadKind, HeadPool, Hparams, LewmHparams,
    MaskedHparams, Modality, PosInterp, PosType, PredictorHparams, PredictorKind, PreprocessHparams, ProjectorHparams,
    Resample, ResizeMode, RopeHparams, RopeLayout,
};
use reader::Reader;

pub(crate) use check::check_tensors;

use crate::error::GgufError;
use crate::file::Gguf;

/// Reads and cross-checks every key of the schema; hidden widths that no key states come from the tensors.
pub(crate) fn read_hparams(file: &Gguf) -> Result<Hparams, GgufError> {
    let keys = Reader::new(file.metadata());
    if keys.word_opt("general.architecture")?.is_none() {
        return Err(reader::missing("general.architecture"));
    }
    keys.count("jepa.schema_version")?;
    let family = keys.word("jepa.family", Family::from_word)?;
    let modality = keys.word("jepa.modality", Modality::from_word)?;
    let enc = encoder::read(keys, file, family)?;
    let source_url = keys.text("general.source_url")?;
    Ok(Hparams {
        name: keys.text("general.name")?,
        license: keys.text("general.license")?,
        source_url: source_url.or(keys.text("general.source.url")?),
        family,
        modality,
        pred: predictor::read(keys, file, family, &enc)?,
        head: head::read(keys, file, &enc)?,
        pre: preprocess::read(keys, &enc)?,
        enc,
    })
}
