//! Encoders of the published sizes, by name: what benches run when they have no file.

use jepa_gguf::schema::{Activation, AttnMode, EncoderHparams, Family, PosInterp, PosType, RopeHparams, RopeLayout};

use crate::encoder::EncoderConfig;

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

fn vit(
    family: Family,
    [embed_dim, n_layer, n_head, ffn_dim]: [usize; 4],
    (img_size, patch_size, n_frames, tubelet_size): (usize, usize, usize, usize),
) -> EncoderConfig {
    let rope = RopeHparams { theta: 10000.0, layout: RopeLayout::Tiled, interpolate: false, ref_grid: 16 };
    let pos_type = match family {
        Family::Hfvit => PosType::Learned,
        Family::Ijepa => PosType::Sincos2d,
        _ => PosType::Rope3d,
    };
    let hparams = EncoderHparams {
        embed_dim,
        n_layer,
        n_head,
        ffn_dim,
        patch_size,
        tubelet_size,
        img_size,
        n_frames,
        in_chans: 3,
        ln_eps: 1e-6,
        act: Activation::GeluErf,
        pos_type,
        pos_interp: PosInterp::Size,
        rope: (pos_type == PosType::Rope3d).then_some(rope),
        cls_token: family == Family::Hfvit,
        n_registers: 0,
        qkv_fused: true,
        modality_embed: false,
        image_patch_embed: false,
        hier_layers: Vec::new(),
        layer_scale: false,
        attn_mode: AttnMode::Full,
        proj: None,
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
