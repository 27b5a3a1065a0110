//! Models of the published sizes, by name: what benches run when they have no file.

use jepa_gguf::schema::{
    AcHparams, EncoderHparams, Family, MaskedHparams, PosType, PredictorHparams, PredictorKind, RopeHparams, RopeLayout,
};

use crate::encoder::EncoderConfig;
use crate::head::AttentiveHeadConfig;
use crate::predictor::{AcPredictorConfig, MaskedPredictorConfig};

/// Classes of Something-Something v2.
const CLASSES: usize = 174;

/// The names that [`EncoderConfig::of_shape`] knows, small to large.
pub const SHAPES: [&str; 5] = ["vit-s", "vit-b", "vit-l", "vit-h", "vit-g"];

impl EncoderConfig {
    /// The encoder called `name`, one of [`SHAPES`]; `None` for another.
    ///
    /// | name | tokens of one input | width × layers, heads, hidden | like |
    /// |---|---|---|---|
    /// | `vit-s` | 197: CLS and a picture of 224², patches of 16 | 384 × 12, 6, 1536 | LeJEPA |
    /// | `vit-b` | 576: a picture of 384², patches of 16 | 768 × 12, 12, 3072 | I-JEPA |
    /// | `vit-l` | 2048: 16 frames of 256², tubelets of 2 × 16 × 16 | 1024 × 24, 16, 4096 | V-JEPA 2 |
    /// | `vit-h` | 256: a picture of 224², patches of 14 | 1280 × 32, 16, 5120 | I-JEPA |
    /// | `vit-g` | 2048: 16 frames of 256², tubelets of 2 × 16 × 16 | 1408 × 40, 22, 6144 | V-JEPA 2 |
    pub fn of_shape(name: &str) -> Option<Self> {
        let picture = |img_size, patch_size| (img_size, patch_size, 1, 1);
        let clip = (256, 16, 16, 2);
        Some(match name {
            "vit-s" => vit(Family::Hfvit, [384, 12, 6, 1536], picture(224, 16)),
            "vit-b" => vit(Family::Ijepa, [768, 12, 12, 3072], picture(384, 16)),
            "vit-l" => vit(Family::Vjepa2, [1024, 24, 16, 4096], clip),
            "vit-h" => vit(Family::Ijepa, [1280, 32, 16, 5120], picture(224, 14)),
            "vit-g" => vit(Family::Vjepa2, [1408, 40, 22, 6144], clip),
            _ => return None,
        })
    }
}

impl MaskedPredictorConfig {
    /// The predictor that V-JEPA 2 trains (384 × 12, 12 heads, hidden 1536) behind the encoder called `name`, one of [`SHAPES`]; `None` for another.
    /// Behind an encoder with a position table it has one too.
    pub fn of_shape(name: &str) -> Option<Self> {
        let EncoderConfig { hparams: enc, .. } = EncoderConfig::of_shape(name)?;
        let masked = MaskedHparams {
            n_mask_tokens: 1,
            rope: enc.rope,
            grid_size: enc.img_size / enc.patch_size,
            n_hier_in: 1,
            embed_hidden: None,
            modality_embed: false,
            context_proj: false,
        };
        let hparams = predictor([384, 12, 12], &enc, PredictorKind::Masked(masked.clone()));
        let table_rows = EncoderConfig::of_shape(name)?.native_grid().tokens();
        Some(Self { hparams, masked, enc_dim: enc.embed_dim, table_rows, qkv_fused: true })
    }
}

impl AcPredictorConfig {
    /// The predictor of V-JEPA 2-AC (1024 × 24, 16 heads, hidden 4096) on the frames of the encoder called `name`, one of [`SHAPES`]; `None` for
    /// another.
    pub fn of_shape(name: &str) -> Option<Self> {
        let EncoderConfig { hparams: enc, .. } = EncoderConfig::of_shape(name)?;
        let ac = AcHparams {
            rope: ROPE,
            grid_size: enc.img_size / enc.patch_size,
            action_dim: 7,
            state_dim: 7,
            frame_causal: true,
            n_frames: 8,
            normalize_reps: true,
            norm_reps_eps: 1e-5,
        };
        let hparams = predictor([1024, 24, 16], &enc, PredictorKind::Ac(ac.clone()));
        Some(Self { hparams, ac, enc_dim: enc.embed_dim, qkv_fused: true })
    }
}

impl AttentiveHeadConfig {
    /// The probe of V-JEPA 2 (3 blocks, one query) on the encoder called `name`, one of [`SHAPES`]; `None` for another.
    pub fn of_shape(name: &str) -> Option<Self> {
        let EncoderConfig { hparams: enc, .. } = EncoderConfig::of_shape(name)?;
        let ffn_dim = enc.ffn_dim;
        Some(Self { enc, n_pool_layers: 3, ffn_dim, xattn_ffn_dim: ffn_dim, n_classes: CLASSES })
    }
}

const ROPE: RopeHparams = RopeHparams { theta: 10000.0, layout: RopeLayout::Tiled, interpolate: false, ref_grid: 16 };

fn predictor([embed_dim, n_layer, n_head]: [usize; 3], enc: &EncoderHparams, kind: PredictorKind) -> PredictorHparams {
    PredictorHparams {
        embed_dim,
        n_layer,
        n_head,
        head_dim: embed_dim / n_head,
        ffn_dim: 4 * embed_dim,
        out_dim: enc.embed_dim,
        ln_eps: enc.ln_eps,
        act: enc.act,
        qkv_bias: true,
        kind,
    }
}

fn vit(
    family: Family,
    sizes: [usize; 4],
    (img_size, patch_size, n_frames, tubelet_size): (usize, usize, usize, usize),
) -> EncoderConfig {
    let pos_type = match family {
        Family::Hfvit => PosType::Learned,
        Family::Ijepa => PosType::Sincos2d,
        _ => PosType::Rope3d,
    };
    let hparams = EncoderHparams {
        tubelet_size,
        n_frames,
        pos_type,
        rope: (pos_type == PosType::Rope3d).then_some(ROPE),
        cls_token: family == Family::Hfvit,
        ..EncoderHparams::vit(sizes, patch_size, img_size)
    };
    EncoderConfig { family, hparams }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_the_tokens_it_promises() {
        let tokens = SHAPES.map(|name| {
            let config = EncoderConfig::of_shape(name).unwrap();
            config.native_grid().tokens() + usize::from(config.hparams.cls_token)
        });
        assert_eq!(tokens, [197, 576, 2048, 256, 2048]);
        assert_eq!(EncoderConfig::of_shape("vit-x"), None);
    }
}
