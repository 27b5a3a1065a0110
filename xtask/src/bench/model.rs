//! Models and inputs that every peer runs: the sizes that benches are named after, with random weights of a realistic scale.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use jepa_gguf::{GgmlType, GgufWriter, Metadata};

use crate::checkpoint::triangular;

/// Encoders with a position table, which every peer can run without a line about rotary positions.
pub(super) const SIZES: [Size; 3] = [
    Size {
        name: "vit-s",
        title: "ViT-S/16",
        family: "hfvit",
        sizes: [384, 12, 6, 1536],
        patch: 16,
        img: 224,
        clip: None,
    },
    Size {
        name: "vit-h",
        title: "ViT-H/14",
        family: "ijepa",
        sizes: [1280, 32, 16, 5120],
        patch: 14,
        img: 224,
        clip: None,
    },
    Size {
        name: "vit-l",
        title: "ViT-L/16",
        family: "vjepa",
        sizes: [1024, 24, 16, 4096],
        patch: 16,
        img: 256,
        clip: Some((16, 2)),
    },
];

/// The size of an encoder.
pub(super) struct Size {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    family: &'static str,
    /// Width, layers, heads, hidden width.
    sizes: [usize; 4],
    patch: usize,
    img: usize,
    /// Frames and frames of a tubelet.
    clip: Option<(usize, usize)>,
}

impl Size {
    pub(super) fn layers(&self) -> usize {
        self.sizes[1]
    }

    /// Tokens of one input, CLS included.
    pub(super) fn tokens(&self) -> usize {
        let (frames, tubelet) = self.clip.unwrap_or((1, 1));
        (self.img / self.patch).pow(2) * (frames / tubelet) + usize::from(self.has_cls())
    }

    fn has_cls(&self) -> bool {
        self.family == "hfvit"
    }

    /// Writes the bundle. The same bytes every time.
    pub(super) fn write_model(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        let mut writer = GgufWriter::new(self.metadata());
        let tensors = self.tensors();
        for (name, shape) in &tensors {
            writer.declare(name, shape, GgmlType::F32)?;
        }
        let mut out = writer.create(path)?;
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for (name, shape) in &tensors {
            // Rows of unit length in the mean, as an initialised or a trained layer has them; norms around 1; the rest small.
            let (middle, spread) = match (shape.len(), name.ends_with("weight")) {
                (1, true) => (1.0, 0.1),
                (2, true) => (0.0, (6.0 / shape[1] as f32).sqrt()),
                _ => (0.0, 0.1),
            };
            let values = (0..shape.iter().product()).map(|_| middle + spread * triangular(&mut state));
            out.tensor(name, &values.flat_map(f32::to_le_bytes).collect::<Vec<_>>())?;
        }
        Ok(out.finish()?)
    }

    /// Writes normalised pixels `[1, chans, (frames,) height, width]` as an `.npy` file.
    pub(super) fn write_input(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        let mut shape = vec![1, 3, self.img, self.img];
        if let Some((frames, _)) = self.clip {
            shape.insert(2, frames);
        }
        let words: Vec<_> = shape.iter().map(usize::to_string).collect();
        let mut header =
            format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}), }}", words.join(", ")).into_bytes();
        // The header ends with a line feed, and the values begin at a multiple of 64 bytes.
        header.resize((10 + header.len() + 1).next_multiple_of(64) - 11, b' ');
        header.push(b'\n');
        let mut out = BufWriter::new(File::create(path)?);
        out.write_all(b"\x93NUMPY\x01\x00")?;
        out.write_all(&u16::try_from(header.len())?.to_le_bytes())?;
        out.write_all(&header)?;
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        for _ in 0..shape.iter().product() {
            out.write_all(&(2.0 * triangular(&mut state)).to_le_bytes())?;
        }
        Ok(out.flush()?)
    }

    fn metadata(&self) -> Metadata {
        let [dim, layers, heads, hidden] = self.sizes.map(|size| size as u32);
        let (frames, tubelet) = self.clip.unwrap_or((1, 1));
        let mut metadata = Metadata::default();
        let mut put = |key: &str, value: jepa_gguf::Value| metadata.set(key, value);
        put("general.architecture", "jepa".into());
        put("general.name", format!("{}, random", self.title).as_str().into());
        put("jepa.schema_version", 1_u32.into());
        put("jepa.family", self.family.into());
        put("jepa.modality", if self.clip.is_some() { "video" } else { "image" }.into());
        for (key, value) in [
            ("embed_dim", dim),
            ("n_layer", layers),
            ("n_head", heads),
            ("ffn_dim", hidden),
            ("patch_size", self.patch as u32),
            ("tubelet_size", tubelet as u32),
            ("img_size", self.img as u32),
            ("n_frames", frames as u32),
            ("in_chans", 3),
            ("n_registers", 0),
        ] {
            put(&format!("jepa.enc.{key}"), value.into());
        }
        let table = match self.family {
            "hfvit" => "learned",
            "ijepa" => "sincos2d",
            _ => "sincos3d",
        };
        put("jepa.enc.ln_eps", 1e-6_f32.into());
        put("jepa.enc.act", "gelu_erf".into());
        put("jepa.enc.pos_type", table.into());
        put("jepa.enc.cls_token", self.has_cls().into());
        put("jepa.enc.qkv_fused", true.into());
        put("jepa.enc.layer_scale", false.into());
        put("jepa.head.kind", "none".into());
        put("jepa.pre.mean", vec![0.5_f32; 3].into());
        put("jepa.pre.std", vec![0.5_f32; 3].into());
        put("jepa.pre.resize_short", (self.img as u32).into());
        put("jepa.pre.crop", (self.img as u32).into());
        put("jepa.pre.resample", "bilinear".into());
        put("jepa.pre.rescale", (1.0_f32 / 255.0).into());
        metadata
    }

    fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let [dim, layers, _, hidden] = self.sizes;
        let (_, tubelet) = self.clip.unwrap_or((1, 1));
        let mut tensors = Vec::new();
        let mut pair = |name: String, rows: usize, columns: Option<usize>| {
            tensors.push((format!("{name}.weight"), std::iter::once(rows).chain(columns).collect()));
            tensors.push((format!("{name}.bias"), vec![rows]));
        };
        pair("enc.patch_embed".into(), dim, Some(3 * tubelet * self.patch.pow(2)));
        for i in 0..layers {
            pair(format!("enc.blk.{i}.ln1"), dim, None);
            pair(format!("enc.blk.{i}.attn_qkv"), 3 * dim, Some(dim));
            pair(format!("enc.blk.{i}.attn_out"), dim, Some(dim));
            pair(format!("enc.blk.{i}.ln2"), dim, None);
            pair(format!("enc.blk.{i}.ffn_up"), hidden, Some(dim));
            pair(format!("enc.blk.{i}.ffn_down"), dim, Some(hidden));
        }
        pair("enc.norm".into(), dim, None);
        tensors.push(("enc.pos_embed".into(), vec![self.tokens(), dim]));
        if self.has_cls() {
            tensors.push(("enc.cls_token".into(), vec![dim]));
        }
        tensors
    }
}
