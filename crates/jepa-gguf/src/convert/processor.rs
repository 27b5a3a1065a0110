//! `preprocessor_config.json` and `video_preprocessor_config.json`: what happens to the pixels.

use std::path::Path;

use super::config::{Config, shown};
use super::error::ConvertError;
use crate::schema::{PreprocessHparams, Resample, ResizeMode};

/// The statistics of ImageNet.
pub(super) const IMAGENET_MEAN: [f32; 3] = [0.485, 0.456, 0.406];
/// See [`IMAGENET_MEAN`].
pub(super) const IMAGENET_STD: [f32; 3] = [0.229, 0.224, 0.225];
/// From bytes to 0..=1.
pub(super) const RESCALE: f32 = 1.0 / 255.0;

/// Which processor a family has: its file, and the object of `processor_config.json` that replaces the file in folders saved by transformers 5.
#[derive(Clone, Copy, Debug)]
pub(super) enum Processor {
    Image,
    Video,
}

impl Processor {
    fn file(self) -> &'static str {
        match self {
            Self::Image => "preprocessor_config.json",
            Self::Video => "video_preprocessor_config.json",
        }
    }

    fn object(self) -> &'static str {
        match self {
            Self::Image => "image_processor",
            Self::Video => "video_processor",
        }
    }

    /// Reads the processor of a folder.
    pub(super) fn read(self, folder: Option<&Path>) -> Result<PreprocessHparams, ConvertError> {
        let missing = || ConvertError::MissingFile {
            file: self.file().to_owned(),
            why: "it says how pictures are resized and normalised",
        };
        let folder = folder.ok_or_else(missing)?;
        if let Some(config) = Config::open(folder, self.file())? {
            return preprocess(&config);
        }
        let joint = Config::open(folder, "processor_config.json")?;
        let inner = joint.map(|config| config.object_opt(self.object())).transpose()?.flatten();
        preprocess(&inner.ok_or_else(missing)?)
    }
}

/// ImageNet's statistics, one crop size, and the rest from the caller: what checkpoints without a processor were trained with.
pub(super) fn imagenet(
    resize_short: usize,
    crop: usize,
    resample: Resample,
    resize_mode: ResizeMode,
) -> PreprocessHparams {
    PreprocessHparams {
        mean: IMAGENET_MEAN,
        std: IMAGENET_STD,
        resize_short,
        crop,
        resample,
        resize_mode,
        rescale: RESCALE,
    }
}

/// As [`imagenet`] for Meta's video models: the short side is longer than the crop by 256/224.
pub(super) fn meta_video(crop: usize) -> PreprocessHparams {
    imagenet(crop * 256 / 224, crop, Resample::Bilinear, ResizeMode::ShortestEdge)
}

fn preprocess(config: &Config) -> Result<PreprocessHparams, ConvertError> {
    for step in ["do_resize", "do_rescale", "do_normalize"] {
        config.insist(step, true)?;
    }
    let (resize_short, crop, resize_mode) = sizes(config)?;
    let rescale = config.real("rescale_factor")? as f32;
    Ok(PreprocessHparams {
        mean: config.channels("image_mean", false)?,
        std: config.channels("image_std", true)?,
        resize_short,
        crop,
        resample: resample(config)?,
        resize_mode,
        rescale,
    })
}

/// `resize_short`, `crop`, `resize_mode`.
fn sizes(config: &Config) -> Result<(usize, usize, ResizeMode), ConvertError> {
    const SHORT: &str = "jepa.pre.resize_short";
    let crops = config.flag_opt("do_center_crop")?.unwrap_or_else(|| config.has("crop_size"));
    let crop = if crops { Some(square(config, "crop_size", "jepa.pre.crop")?) } else { None };
    let short = match config.raw("size") {
        Some(serde_json::Value::Object(_)) => {
            config.object_opt("size")?.map(|size| size.count_opt("shortest_edge", SHORT)).transpose()?.flatten()
        }
        // A bare number is the short side where a crop follows, else the side of a square.
        Some(_) if crop.is_some() => config.count_opt("size", SHORT)?,
        _ => None,
    };
    match (short, crop) {
        (Some(short), Some(crop)) if crop <= short => Ok((short, crop, ResizeMode::ShortestEdge)),
        (Some(short), Some(crop)) => {
            Err(config.bad("crop_size", crop, format!("at most size.shortest_edge ({short})")))
        }
        (Some(_), None) => Err(config.bad("do_center_crop", "absent or false", "true where size has a shortest_edge")),
        (None, crop) => {
            let side = square(config, "size", SHORT)?;
            match crop {
                Some(crop) if crop != side => Err(config.bad("crop_size", crop, format!("the size ({side})"))),
                _ => Ok((side, side, ResizeMode::Squash)),
            }
        }
    }
}

/// A square given as `{height, width}` or as one number.
fn square(config: &Config, key: &str, of: &'static str) -> Result<usize, ConvertError> {
    let Some(serde_json::Value::Object(_)) = config.raw(key) else { return config.count(key, of) };
    let size = config.object_opt(key)?.ok_or_else(|| config.bad(key, "nothing", "an object"))?;
    let (height, width) = (size.count("height", of)?, size.count("width", of)?);
    if height == width { Ok(height) } else { Err(config.bad(key, format!("{height} x {width}"), "a square")) }
}

/// PIL's number of the filter.
fn resample(config: &Config) -> Result<Resample, ConvertError> {
    match config.raw("resample") {
        Some(value) if value.as_u64() == Some(2) => Ok(Resample::Bilinear),
        Some(value) if value.as_u64() == Some(3) => Ok(Resample::Bicubic),
        Some(other) => Err(config.bad("resample", shown(other), "2 (bilinear) or 3 (bicubic)")),
        None => Err(config.bad("resample", "nothing", "2 (bilinear) or 3 (bicubic)")),
    }
}
