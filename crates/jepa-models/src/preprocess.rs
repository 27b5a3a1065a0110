//! From decoded pictures to the normalised pixels of one model.

use burn::prelude::*;
use jepa_gguf::schema::{EncoderHparams, Family, Hparams, Resample, ResizeMode};
use jepa_pixels::{Filter, Pipeline, Resize, Rgb8};

use crate::error::ModelError;
use crate::families;
use crate::nn::Pixels;

/// What a single picture becomes for a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StillImage {
    /// It stays one frame.
    AsIs,
    /// It is repeated to one tubelet (V-JEPA, V-JEPA 2).
    OneTubelet,
    /// It is repeated to a clip of the training length (LeVJEPA).
    WholeClip,
}

/// Brings pictures and clips into the form a model was trained on.
#[derive(Clone, Debug, PartialEq)]
pub struct Preprocess {
    pipeline: Pipeline,
    family: Family,
    patch_size: usize,
    tubelet_size: usize,
    still_frames: usize,
    clip_frames: usize,
}

impl Preprocess {
    /// What the bundle's `jepa.pre.*` says.
    pub fn new(hparams: &Hparams) -> Self {
        let (pre, enc) = (&hparams.pre, &hparams.enc);
        let resize = match pre.resize_mode {
            ResizeMode::ShortestEdge => {
                Resize::ShortestEdge { short: pre.resize_short, crop_h: pre.crop, crop_w: pre.crop }
            }
            ResizeMode::Squash => Resize::Squash { height: pre.crop, width: pre.crop },
        };
        let filter = match pre.resample {
            Resample::Bilinear => Filter::Bilinear,
            Resample::Bicubic => Filter::Bicubic,
        };
        Self {
            pipeline: Pipeline { resize, filter, rescale: pre.rescale, mean: pre.mean, std: pre.std },
            family: hparams.family,
            patch_size: enc.patch_size,
            tubelet_size: enc.tubelet_size,
            still_frames: still_frames(hparams.family, enc),
            clip_frames: enc.n_frames,
        }
    }

    /// The same for another size: the crop becomes `height` × `width`, the short side of the resize grows with it.
    ///
    /// # Errors
    /// [`ModelError::Size`] when a side is no multiple of the patch.
    pub fn with_size(self, height: usize, width: usize) -> Result<Self, ModelError> {
        let patch = self.patch_size;
        if height == 0 || width == 0 || !height.is_multiple_of(patch) || !width.is_multiple_of(patch) {
            let fit = |up: usize| {
                let side = |n: usize| (n / patch + usize::from(up == 1 && !n.is_multiple_of(patch))).max(1) * patch;
                format!("{}x{}", side(height), side(width))
            };
            return Err(ModelError::Size { height, width, patch, down: fit(0), up: fit(1) });
        }
        Ok(Self { pipeline: self.pipeline.with_size(height, width), ..self })
    }

    /// Resize, crop and normalisation of one frame.
    pub fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// Rows and columns of the pixels that enter the encoder.
    pub fn output_size(&self) -> (usize, usize) {
        self.pipeline.output_size()
    }

    /// Family of the model.
    pub fn family(&self) -> Family {
        self.family
    }

    /// Frames in one token.
    pub fn tubelet_size(&self) -> usize {
        self.tubelet_size
    }

    /// Frames of a training clip; 1 for models of pictures.
    pub fn clip_frames(&self) -> usize {
        self.clip_frames
    }

    /// Frames that a single picture is repeated to.
    pub fn still_frames(&self) -> usize {
        self.still_frames
    }

    /// Whether the model takes more than one frame.
    pub fn takes_clips(&self) -> bool {
        self.clip_frames > 1
    }

    /// The pixels of one frame after resize and crop, 8 bits each.
    ///
    /// # Errors
    /// [`ModelError::Pixels`] for a picture whose resized form is beyond the limits.
    pub fn frame_u8(&self, picture: &Rgb8) -> Result<Rgb8, ModelError> {
        Ok(self.pipeline.resize_and_crop(picture)?)
    }

    /// The pixels of one frame after resize and crop, cut `views` times along its long side; see [`Pipeline::view_plans`].
    ///
    /// # Errors
    /// As [`Self::frame_u8`]; [`ModelError::Pixels`] when this model's pictures have no several views.
    pub fn views_u8(&self, picture: &Rgb8, views: usize) -> Result<Vec<Rgb8>, ModelError> {
        let plans = self.pipeline.view_plans(picture.width(), picture.height(), views)?;
        Ok(plans.iter().map(|plan| plan.apply(picture)).collect::<Result<_, _>>()?)
    }

    /// Normalises frames that have been resized and cropped: `[chans, frames, height, width]` as one vector.
    ///
    /// # Errors
    /// [`ModelError::Frames`] without frames or with frames of another size than [`Self::output_size`].
    pub fn normalise(&self, frames: &[Rgb8]) -> Result<Vec<f32>, ModelError> {
        let (height, width) = self.output_size();
        if frames.is_empty() {
            return Err(ModelError::Frames { what: "there is none".into() });
        }
        if let Some(odd) = frames.iter().find(|f| (f.height(), f.width()) != (height, width)) {
            let what = format!("one has {}×{} pixels, wanted {height}×{width}", odd.height(), odd.width());
            return Err(ModelError::Frames { what });
        }
        let plane = height * width;
        let mut frame_planes = vec![0.0; 3 * plane];
        let mut clip = vec![0.0; 3 * frames.len() * plane];
        for (t, frame) in frames.iter().enumerate() {
            self.pipeline.normalise_into(frame, &mut frame_planes)?;
            for (c, values) in frame_planes.chunks_exact(plane).enumerate() {
                let at = (c * frames.len() + t) * plane;
                clip[at..at + plane].copy_from_slice(values);
            }
        }
        Ok(clip)
    }

    /// One picture as a batch of one, repeated where the family repeats still pictures.
    ///
    /// **Shapes** → `[1, 3, still_frames, height, width]`.
    ///
    /// # Errors
    /// [`ModelError::Pixels`], see [`Self::frame_u8`].
    pub fn image<B: Backend>(&self, picture: &Rgb8, device: &B::Device) -> Result<Pixels<B>, ModelError> {
        let frame = self.frame_u8(picture)?;
        self.batch(&vec![frame; self.still_frames], device)
    }

    /// A clip as a batch of one.
    ///
    /// **Shapes** → `[1, 3, frames, height, width]`.
    ///
    /// # Errors
    /// [`ModelError::Frames`] without frames, [`ModelError::ClipForImageModel`] for a model of pictures.
    pub fn clip<B: Backend>(&self, frames: &[Rgb8], device: &B::Device) -> Result<Pixels<B>, ModelError> {
        if frames.len() > 1 && !self.takes_clips() {
            return Err(ModelError::ClipForImageModel { frames: frames.len(), family: self.family });
        }
        let frames = frames.iter().map(|frame| self.frame_u8(frame)).collect::<Result<Vec<_>, _>>()?;
        self.batch(&frames, device)
    }

    fn batch<B: Backend>(&self, frames: &[Rgb8], device: &B::Device) -> Result<Pixels<B>, ModelError> {
        let (height, width) = self.output_size();
        let data = TensorData::new(self.normalise(frames)?, [1, 3, frames.len(), height, width]);
        Ok(Pixels::from_normalised_clips(Tensor::from_data(data, device)))
    }
}

fn still_frames(family: Family, enc: &EncoderHparams) -> usize {
    match families::about(family).still {
        StillImage::AsIs => 1,
        StillImage::OneTubelet => enc.tubelet_size,
        StillImage::WholeClip => enc.n_frames,
    }
}
