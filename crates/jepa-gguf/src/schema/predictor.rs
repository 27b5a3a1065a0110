//! `jepa.pred.*`: reading and cross-checking the predictor's keys.

use super::encoder::{ROPE_REFERENCE_SIDE, only_if};
use super::hparams::{
    AcHparams, Activation, EncoderHparams, Family, LewmHparams, MaskedHparams, PredictorHparams, PredictorKind,
    ProjectorHparams, RopeHparams, RopeLayout,
};
use super::reader::{Reader, bad_value, missing};
use super::tensors::rows_of;
use crate::error::GgufError;
use crate::file::Gguf;

/// Epsilon and activation of AC and LeWM predictors whose file does not say.
const DEFAULT_EPS: f64 = 1e-6;

/// Reads `jepa.pred.*`; `None` when the bundle has no predictor.
pub(super) fn read(
    keys: Reader<'_>,
    file: &Gguf,
    family: Family,
    enc: &EncoderHparams,
) -> Result<Option<PredictorHparams>, GgufError> {
    let Some(kind) = keys.word_opt("jepa.pred.kind")? else {
        // Without a kind nothing says which graph the tensors belong to.
        return match file.tensors().iter().find(|t| t.name().starts_with("pred.")) {
            Some(_) => Err(GgufError::MissingKey { key: "jepa.pred.kind".to_owned(), when: "with pred.* tensors" }),
            None => Ok(None),
        };
    };
    check_family(kind, family)?;
    let embed_dim = keys.count("jepa.pred.embed_dim")?;
    let n_layer = keys.count("jepa.pred.n_layer")?;
    let n_head = keys.count("jepa.pred.n_head")?;
    let head_dim = head_dim(keys, kind, embed_dim, n_head)?;
    let ffn_dim = keys.count("jepa.pred.ffn_dim")?;
    let out_dim = keys.count_opt("jepa.pred.out_dim")?.unwrap_or(enc.embed_dim);
    let (default_eps, default_act) =
        if kind == "masked" { (enc.ln_eps, enc.act) } else { (DEFAULT_EPS, Activation::GeluErf) };
    let kind = match kind {
        "masked" => PredictorKind::Masked(masked(keys, file, family, enc)?),
        "ac" => PredictorKind::Ac(ac(keys, enc)?),
        _ => PredictorKind::Lewm(lewm(keys, file)?),
    };
    if !matches!(kind, PredictorKind::Masked(_)) {
        // World models feed what they predict back in.
        same_as_encoder("jepa.pred.out_dim", out_dim, enc)?;
    }
    if matches!(kind, PredictorKind::Lewm(_)) {
        // LeWM's predictor adds its positions to the encoder's embedding.
        same_as_encoder("jepa.pred.embed_dim", embed_dim, enc)?;
    }
    Ok(Some(PredictorHparams {
        embed_dim,
        n_layer,
        n_head,
        head_dim,
        ffn_dim,
        out_dim,
        ln_eps: keys.real_opt("jepa.pred.ln_eps")?.unwrap_or(default_eps),
        act: keys.word_or("jepa.pred.act", Activation::from_word, default_act)?,
        qkv_bias: keys.flag("jepa.pred.qkv_bias")?,
        kind,
    }))
}

/// Which predictors a family has.
fn check_family(kind: &str, family: Family) -> Result<(), GgufError> {
    let allowed = family.rules().predictors;
    if allowed.contains(&kind) {
        return Ok(());
    }
    let wanted = if allowed.is_empty() { "no predictor".to_owned() } else { allowed.join(" or ") };
    Err(bad_value("jepa.pred.kind", kind, format!("{wanted} for {family}")))
}

fn same_as_encoder(key: &str, found: usize, enc: &EncoderHparams) -> Result<(), GgufError> {
    if found == enc.embed_dim {
        return Ok(());
    }
    Err(bad_value(key, found, format!("jepa.enc.embed_dim ({})", enc.embed_dim)))
}

fn head_dim(keys: Reader<'_>, kind: &str, embed_dim: usize, n_head: usize) -> Result<usize, GgufError> {
    match keys.count_opt("jepa.pred.head_dim")? {
        Some(dim) if kind == "lewm" || dim.checked_mul(n_head) == Some(embed_dim) => Ok(dim),
        Some(dim) => {
            let wanted = format!("jepa.pred.embed_dim / jepa.pred.n_head ({embed_dim} / {n_head})");
            Err(bad_value("jepa.pred.head_dim", dim, wanted))
        }
        None if embed_dim.is_multiple_of(n_head) => Ok(embed_dim / n_head),
        None => Err(bad_value("jepa.pred.n_head", n_head, format!("a divisor of jepa.pred.embed_dim ({embed_dim})"))),
    }
}

fn rope(keys: Reader<'_>, enc: &EncoderHparams, of_encoder: RopeHparams) -> Result<RopeHparams, GgufError> {
    Ok(RopeHparams {
        theta: keys.real_opt("jepa.pred.rope_theta")?.unwrap_or(of_encoder.theta),
        layout: keys.word_or("jepa.pred.rope_freq_layout", RopeLayout::from_word, of_encoder.layout)?,
        interpolate: keys.flag("jepa.pred.rope_interpolate")?,
        ref_grid: keys.count_opt("jepa.pred.rope_ref_grid")?.unwrap_or((ROPE_REFERENCE_SIDE / enc.patch_size).max(1)),
    })
}

fn grid_size(keys: Reader<'_>, enc: &EncoderHparams) -> Result<usize, GgufError> {
    Ok(keys.count_opt("jepa.pred.grid_size")?.unwrap_or(enc.img_size / enc.patch_size))
}

fn masked(keys: Reader<'_>, file: &Gguf, family: Family, enc: &EncoderHparams) -> Result<MaskedHparams, GgufError> {
    let n_hier_in = keys.count("jepa.pred.n_hier_in")?;
    let n_hier = enc.hier_layers.len();
    if n_hier_in != 1 && n_hier_in != n_hier {
        let wanted = format!("1 or the number of jepa.enc.hier_layers ({n_hier})");
        return Err(bad_value("jepa.pred.n_hier_in", n_hier_in, wanted));
    }
    let embed_hidden = (n_hier_in > 1)
        .then(|| rows_of(file, "pred.embed.0.weight", "when jepa.pred.n_hier_in is above 1"))
        .transpose()?;
    Ok(MaskedHparams {
        n_mask_tokens: keys.count("jepa.pred.n_mask_tokens")?,
        rope: enc.rope.map(|r| rope(keys, enc, r)).transpose()?,
        grid_size: grid_size(keys, enc)?,
        n_hier_in,
        embed_hidden,
        modality_embed: only_if(family.rules().hierarchical, family, "jepa.pred.modality_embed", keys)?,
        context_proj: only_if(family.rules().hierarchical, family, "jepa.pred.context_proj", keys)?,
    })
}

fn ac(keys: Reader<'_>, enc: &EncoderHparams) -> Result<AcHparams, GgufError> {
    // These two are fixed by the graph; reading them refuses other values.
    keys.count("jepa.pred.n_cond_tokens")?;
    keys.word_opt("jepa.pred.cond_order")?;
    let state_dim = keys.count("jepa.pred.state_dim")?;
    if state_dim == 0 {
        return Err(bad_value("jepa.pred.state_dim", state_dim, "at least 1 for ac"));
    }
    let n_frames = match keys.count_opt("jepa.pred.n_frames")? {
        Some(n) => n,
        None if enc.n_frames >= enc.tubelet_size => enc.n_frames / enc.tubelet_size,
        None => {
            let wanted = format!("at least jepa.enc.tubelet_size ({})", enc.tubelet_size);
            return Err(bad_value("jepa.enc.n_frames", enc.n_frames, wanted));
        }
    };
    let of_encoder = enc.rope.ok_or_else(|| bad_value("jepa.enc.pos_type", enc.pos_type, "rope3d for ac"))?;
    Ok(AcHparams {
        rope: rope(keys, enc, of_encoder)?,
        grid_size: grid_size(keys, enc)?,
        action_dim: keys.count("jepa.pred.action_dim")?,
        state_dim,
        frame_causal: keys.flag("jepa.pred.frame_causal")?,
        n_frames,
        normalize_reps: keys.flag("jepa.pred.normalize_reps")?,
        norm_reps_eps: keys.real("jepa.pred.norm_reps_eps")?,
    })
}

fn lewm(keys: Reader<'_>, file: &Gguf) -> Result<LewmHparams, GgufError> {
    let state_dim = keys.count_opt("jepa.pred.state_dim")?.unwrap_or(0);
    if state_dim != 0 {
        return Err(bad_value("jepa.pred.state_dim", state_dim, "0 for lewm"));
    }
    if !keys.flag("jepa.pred.frame_causal")? {
        return Err(bad_value("jepa.pred.frame_causal", false, "true for lewm"));
    }
    Ok(LewmHparams {
        action_dim: keys.count("jepa.pred.action_dim")?,
        n_frames: keys.count_opt("jepa.pred.n_frames")?.ok_or_else(|| missing("jepa.pred.n_frames"))?,
        adaln_eps: keys.real("jepa.pred.adaln_eps")?,
        action_hidden: rows_of(file, "pred.action_embed.0.weight", "with a lewm predictor")?,
        action_act: keys.word("jepa.pred.action_act", Activation::from_word)?,
        proj: ProjectorHparams {
            hidden: rows_of(file, "pred.proj.0.weight", "with a lewm predictor")?,
            act: keys.word("jepa.pred.proj_act", Activation::from_word)?,
        },
    })
}
