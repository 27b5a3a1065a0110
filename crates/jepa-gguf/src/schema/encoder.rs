//! `jepa.enc.*`: reading and cross-checking the encoder's keys.

use super::hparams::{
    Activation, AttnMode, EncoderHparams, Family, PosInterp, PosType, ProjectorHparams, RopeHparams, RopeLayout,
};
use super::reader::{Reader, bad_value};
use super::tensors::rows_of;
use crate::error::GgufError;
use crate::file::Gguf;

/// Pixels along a side of the pictures that V-JEPA 2.1's rotary positions were trained on; `rope_ref_grid` is this in patches.
pub(super) const ROPE_REFERENCE_SIDE: usize = 256;

/// Reads `jepa.enc.*`; the projector's hidden width comes from its tensor.
pub(super) fn read(keys: Reader<'_>, file: &Gguf, family: Family) -> Result<EncoderHparams, GgufError> {
    let embed_dim = keys.count("jepa.enc.embed_dim")?;
    let n_layer = keys.count("jepa.enc.n_layer")?;
    let n_head = keys.count("jepa.enc.n_head")?;
    if embed_dim % n_head != 0 {
        return Err(bad_value("jepa.enc.n_head", n_head, format!("a divisor of jepa.enc.embed_dim ({embed_dim})")));
    }
    let patch_size = keys.count("jepa.enc.patch_size")?;
    let img_size = keys.count("jepa.enc.img_size")?;
    if img_size < patch_size {
        let wanted = format!("at least jepa.enc.patch_size ({patch_size})");
        return Err(bad_value("jepa.enc.img_size", img_size, wanted));
    }
    let tubelet_size = keys.count("jepa.enc.tubelet_size")?;
    let n_frames = keys.count("jepa.enc.n_frames")?;
    let pos_type = pos_type(keys, family)?;
    if pos_type == PosType::Sincos3d && n_frames < tubelet_size {
        let wanted = format!("at least jepa.enc.tubelet_size ({tubelet_size})");
        return Err(bad_value("jepa.enc.n_frames", n_frames, wanted));
    }
    let rules = family.rules();
    let proj = match rules.projector {
        true => Some(ProjectorHparams {
            hidden: rows_of(file, "enc.proj.0.weight", "for a family with a projector")?,
            act: keys.word("jepa.enc.proj_act", Activation::from_word)?,
        }),
        false => None,
    };
    Ok(EncoderHparams {
        embed_dim,
        n_layer,
        n_head,
        ffn_dim: keys.count("jepa.enc.ffn_dim")?,
        patch_size,
        tubelet_size,
        img_size,
        n_frames,
        in_chans: keys.count("jepa.enc.in_chans")?,
        ln_eps: keys.real("jepa.enc.ln_eps")?,
        act: keys.word("jepa.enc.act", Activation::from_word)?,
        pos_type,
        pos_interp: keys.word_or("jepa.enc.pos_interp", PosInterp::from_word, rules.pos_interp)?,
        rope: rope(keys, family, pos_type, patch_size)?,
        cls_token: cls_token(keys, family)?,
        n_registers: n_registers(keys, family)?,
        qkv_fused: keys.flag("jepa.enc.qkv_fused")?,
        modality_embed: only_if(rules.hierarchical, family, "jepa.enc.modality_embed", keys)?,
        image_patch_embed: only_if(rules.hierarchical, family, "jepa.enc.image_patch_embed", keys)?,
        hier_layers: hier_layers(keys, family, n_layer)?,
        layer_scale: keys.flag("jepa.enc.layer_scale")?,
        attn_mode: attn_mode(keys, family)?,
        proj,
    })
}

/// A flag that not every family may raise.
pub(super) fn only_if(allowed: bool, family: Family, key: &'static str, keys: Reader<'_>) -> Result<bool, GgufError> {
    let flag = keys.flag(key)?;
    if flag && !allowed {
        return Err(bad_value(key, flag, format!("false for {family}")));
    }
    Ok(flag)
}

fn pos_type(keys: Reader<'_>, family: Family) -> Result<PosType, GgufError> {
    let found = keys.word("jepa.enc.pos_type", PosType::from_word)?;
    let allowed = family.rules().pos_types;
    if allowed.contains(&found) {
        return Ok(found);
    }
    let wanted: Vec<_> = allowed.iter().map(|kind| kind.word()).collect();
    Err(bad_value("jepa.enc.pos_type", found, format!("{} for {family}", wanted.join(" or "))))
}

fn rope(
    keys: Reader<'_>,
    family: Family,
    pos_type: PosType,
    patch_size: usize,
) -> Result<Option<RopeHparams>, GgufError> {
    let rope = RopeHparams {
        theta: keys.real("jepa.enc.rope_theta")?,
        layout: keys.word_or("jepa.enc.rope_freq_layout", RopeLayout::from_word, family.rules().rope_layout)?,
        interpolate: keys.flag("jepa.enc.rope_interpolate")?,
        ref_grid: keys.count_opt("jepa.enc.rope_ref_grid")?.unwrap_or((ROPE_REFERENCE_SIDE / patch_size).max(1)),
    };
    Ok((pos_type == PosType::Rope3d).then_some(rope))
}

fn cls_token(keys: Reader<'_>, family: Family) -> Result<bool, GgufError> {
    let wanted = family.rules().cls_token;
    let found = keys.flag_opt("jepa.enc.cls_token")?.unwrap_or(wanted);
    if found != wanted {
        return Err(bad_value("jepa.enc.cls_token", found, format!("{wanted} for {family}")));
    }
    Ok(found)
}

fn n_registers(keys: Reader<'_>, family: Family) -> Result<usize, GgufError> {
    let found = keys.count("jepa.enc.n_registers")?;
    if found > 0 && !family.rules().registers {
        return Err(bad_value("jepa.enc.n_registers", found, format!("0 for {family}")));
    }
    Ok(found)
}

fn attn_mode(keys: Reader<'_>, family: Family) -> Result<AttnMode, GgufError> {
    let found = keys.word("jepa.enc.attn_mode", AttnMode::from_word)?;
    if found == AttnMode::BlockCausal && !family.rules().block_causal {
        return Err(bad_value("jepa.enc.attn_mode", found, format!("full for {family}")));
    }
    Ok(found)
}

fn hier_layers(keys: Reader<'_>, family: Family, n_layer: usize) -> Result<Vec<usize>, GgufError> {
    const KEY: &str = "jepa.enc.hier_layers";
    let layers = keys.counts(KEY)?;
    if !family.rules().hierarchical && !layers.is_empty() {
        return Err(bad_value(KEY, format!("{layers:?}"), format!("none for {family}")));
    }
    if let Some(layer) = layers.iter().find(|&&l| l >= n_layer) {
        let wanted = format!("0 to {} (jepa.enc.n_layer is {n_layer})", n_layer - 1);
        return Err(bad_value(KEY, format!("layer {layer}"), wanted));
    }
    if !layers.is_sorted_by(|a, b| a < b) {
        return Err(bad_value(KEY, format!("{layers:?}"), "ascending layers, each once"));
    }
    Ok(layers)
}
