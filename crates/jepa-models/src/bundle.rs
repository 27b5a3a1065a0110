//! One GGUF file as a model that runs.

use std::path::Path;

use burn::prelude::*;
use burn_store::ModuleSnapshot;
use jepa_gguf::schema::Hparams;
use jepa_gguf::{Bundle, GgufStore};

use crate::encoder::{Encoder, EncoderConfig};
use crate::error::ModelError;
use crate::features::Encoded;
use crate::nn::Pixels;
use crate::preprocess::Preprocess;

/// A bundle on a device: the encoder and the preprocessing it was trained with.
#[derive(Debug)]
pub struct Jepa<B: Backend> {
    hparams: Hparams,
    encoder: Encoder<B>,
    preprocess: Preprocess,
}

impl<B: Backend> Jepa<B> {
    /// Opens a GGUF file, checks it whole and loads the encoder onto `device`, one tensor at a time.
    ///
    /// # Errors
    /// [`ModelError::File`] when the file is not there or not a valid bundle.
    pub fn open(path: impl AsRef<Path>, device: &B::Device) -> Result<Self, ModelError> {
        Self::from_bundle(&Bundle::open(path)?, device)
    }

    /// Loads the encoder of a bundle that has been opened already.
    ///
    /// # Errors
    /// [`ModelError::File`] when a tensor cannot be read.
    pub fn from_bundle(bundle: &Bundle, device: &B::Device) -> Result<Self, ModelError> {
        let hparams = bundle.hparams().clone();
        let mut encoder = EncoderConfig { family: hparams.family, hparams: hparams.enc.clone() }.init(device);
        encoder.load_from(&mut GgufStore::from_bundle(bundle).prefix("enc."))?;
        Ok(Self { preprocess: Preprocess::new(&hparams), encoder, hparams })
    }

    /// What the file says about itself.
    pub fn hparams(&self) -> &Hparams {
        &self.hparams
    }

    /// The encoder.
    pub fn encoder(&self) -> &Encoder<B> {
        &self.encoder
    }

    /// The encoder, to change it.
    pub fn encoder_mut(&mut self) -> &mut Encoder<B> {
        &mut self.encoder
    }

    /// How pictures and clips become the encoder's input.
    pub fn preprocess(&self) -> &Preprocess {
        &self.preprocess
    }

    /// How pictures and clips become the encoder's input, to change it.
    pub fn preprocess_mut(&mut self) -> &mut Preprocess {
        &mut self.preprocess
    }

    /// Encodes a batch; see [`Encoder::encode`].
    ///
    /// # Errors
    /// As [`Encoder::encode`].
    pub fn encode(&self, pixels: Pixels<B>) -> Result<Encoded<B>, ModelError> {
        self.encoder.encode(pixels)
    }
}
