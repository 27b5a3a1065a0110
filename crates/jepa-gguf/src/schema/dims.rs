//! The sizes that tensor shapes are made of.

use super::hparams::{EncoderHparams, HeadKind, Hparams, LewmHparams, MaskedHparams, PosType, PredictorKind};

/// A size that follows from the hyper-parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dim {
    /// 1.
    One,
    /// Width of an encoder token.
    Enc,
    /// Three times the width of an encoder token.
    Enc3,
    /// Hidden width of the encoder's MLPs.
    EncFfn,
    /// Pixels of a tubelet.
    Patch,
    /// Pixels of a patch of a picture.
    ImagePatch,
    /// Rows of the encoder's position table.
    Positions,
    /// Register tokens.
    Registers,
    /// Hidden width of `enc.proj`.
    EncProjHidden,
    /// Width of a predictor token.
    Pred,
    /// Six times the width of a predictor token.
    Pred6,
    /// All heads of the predictor side by side.
    PredHeads,
    /// Three times that.
    PredHeads3,
    /// Hidden width of the predictor's MLPs.
    PredFfn,
    /// Width of the predictor's input.
    PredIn,
    /// Hidden width of `pred.embed`.
    PredEmbedHidden,
    /// Width of the predictor's output.
    PredOut,
    /// Mask tokens.
    MaskTokens,
    /// Rows of the predictor's position table.
    PredPositions,
    /// Width of an action.
    Action,
    /// Hidden width of `pred.action_embed`.
    ActionHidden,
    /// Width of a state.
    State,
    /// Hidden width of `pred.proj`.
    PredProjHidden,
    /// Classes.
    Classes,
    /// What `head.cls` reads.
    HeadIn,
    /// Hidden width of the MLPs of the head's blocks.
    HeadFfn,
    /// Hidden width of the MLP behind the head's cross-attention.
    XattnFfn,
}

impl Dim {
    /// Where the size comes from, in the words of the schema.
    pub const fn source(self) -> &'static str {
        match self {
            Self::One => "1",
            Self::Enc => "jepa.enc.embed_dim",
            Self::Enc3 => "3 jepa.enc.embed_dim",
            Self::EncFfn => "jepa.enc.ffn_dim",
            Self::Patch => "jepa.enc.in_chans * tubelet_size * patch_size^2",
            Self::ImagePatch => "jepa.enc.in_chans * patch_size^2",
            Self::Positions => "patches of jepa.enc.img_size (and n_frames) + cls_token",
            Self::Registers => "jepa.enc.n_registers",
            Self::EncProjHidden => "rows of enc.proj.0.weight",
            Self::Pred => "jepa.pred.embed_dim",
            Self::Pred6 => "6 jepa.pred.embed_dim",
            Self::PredHeads => "jepa.pred.n_head * head_dim",
            Self::PredHeads3 => "3 jepa.pred.n_head * head_dim",
            Self::PredFfn => "jepa.pred.ffn_dim",
            Self::PredIn => "jepa.pred.n_hier_in * jepa.enc.embed_dim",
            Self::PredEmbedHidden => "rows of pred.embed.0.weight",
            Self::PredOut => "jepa.pred.n_hier_in * out_dim",
            Self::MaskTokens => "jepa.pred.n_mask_tokens",
            Self::PredPositions => "jepa.pred.grid_size^2 (and frames), or jepa.pred.n_frames for lewm",
            Self::Action => "jepa.pred.action_dim",
            Self::ActionHidden => "rows of pred.action_embed.0.weight",
            Self::State => "jepa.pred.state_dim",
            Self::PredProjHidden => "rows of pred.proj.0.weight",
            Self::Classes => "jepa.head.n_classes",
            Self::HeadIn => "jepa.enc.embed_dim * jepa.head.layers (linear_cls)",
            Self::HeadFfn => "rows of head.blk.0.ffn_up.weight",
            Self::XattnFfn => "rows of head.xattn.ffn_up.weight",
        }
    }

    /// The size in a bundle with hyper-parameters `hp`; 0 where the bundle has no such part. A product that does not fit is `usize::MAX`, which
    /// no tensor of a file has.
    pub(crate) fn value(self, hp: &Hparams) -> usize {
        let enc = &hp.enc;
        let pred = hp.pred.as_ref();
        let heads = pred.map_or(0, |p| p.n_head.saturating_mul(p.head_dim));
        let n_hier_in = masked(hp).map_or(1, |m| m.n_hier_in);
        match self {
            Self::One => 1,
            Self::Enc => enc.embed_dim,
            Self::Enc3 => enc.embed_dim.saturating_mul(3),
            Self::EncFfn => enc.ffn_dim,
            Self::Patch => image_patch(enc).saturating_mul(enc.tubelet_size),
            Self::ImagePatch => image_patch(enc),
            Self::Positions => {
                let grid = enc.img_size / enc.patch_size;
                table_rows(enc, grid).saturating_add(usize::from(enc.cls_token))
            }
            Self::Registers => enc.n_registers,
            Self::EncProjHidden => enc.proj.map_or(0, |p| p.hidden),
            Self::Pred => pred.map_or(0, |p| p.embed_dim),
            Self::Pred6 => pred.map_or(0, |p| p.embed_dim.saturating_mul(6)),
            Self::PredHeads => heads,
            Self::PredHeads3 => heads.saturating_mul(3),
            Self::PredFfn => pred.map_or(0, |p| p.ffn_dim),
            Self::PredIn => n_hier_in.saturating_mul(enc.embed_dim),
            Self::PredEmbedHidden => masked(hp).and_then(|m| m.embed_hidden).unwrap_or(0),
            Self::PredOut => pred.map_or(0, |p| n_hier_in.saturating_mul(p.out_dim)),
            Self::MaskTokens => masked(hp).map_or(0, |m| m.n_mask_tokens),
            Self::PredPositions => {
                lewm(hp).map_or_else(|| masked(hp).map_or(0, |m| table_rows(enc, m.grid_size)), |l| l.n_frames)
            }
            Self::Action => match pred.map(|p| &p.kind) {
                Some(PredictorKind::Ac(ac)) => ac.action_dim,
                Some(PredictorKind::Lewm(lewm)) => lewm.action_dim,
                _ => 0,
            },
            Self::ActionHidden => lewm(hp).map_or(0, |l| l.action_hidden),
            Self::State => match pred.map(|p| &p.kind) {
                Some(PredictorKind::Ac(ac)) => ac.state_dim,
                _ => 0,
            },
            Self::PredProjHidden => lewm(hp).map_or(0, |l| l.proj.hidden),
            Self::Classes => hp.head.as_ref().map_or(0, |h| h.n_classes),
            Self::HeadIn => match &hp.head {
                Some(head) if head.kind == HeadKind::LinearCls => {
                    enc.embed_dim.saturating_mul(head.layers.len().max(1))
                }
                _ => enc.embed_dim,
            },
            Self::HeadFfn => attentive(hp).map_or(0, |(_, ffn, _)| ffn),
            Self::XattnFfn => attentive(hp).map_or(0, |(_, _, ffn)| ffn),
        }
    }
}

/// Patches in a table over a `grid` × `grid` picture or the training clip.
fn table_rows(enc: &EncoderHparams, grid: usize) -> usize {
    let frames = if enc.pos_type == PosType::Sincos3d { enc.n_frames / enc.tubelet_size } else { 1 };
    grid.saturating_mul(grid).saturating_mul(frames)
}

fn image_patch(enc: &EncoderHparams) -> usize {
    enc.in_chans.saturating_mul(enc.patch_size).saturating_mul(enc.patch_size)
}

/// The masked predictor's own numbers.
pub(super) fn masked(hp: &Hparams) -> Option<&MaskedHparams> {
    match hp.pred.as_ref().map(|p| &p.kind) {
        Some(PredictorKind::Masked(masked)) => Some(masked),
        _ => None,
    }
}

/// The LeWM predictor's own numbers.
pub(super) fn lewm(hp: &Hparams) -> Option<&LewmHparams> {
    match hp.pred.as_ref().map(|p| &p.kind) {
        Some(PredictorKind::Lewm(lewm)) => Some(lewm),
        _ => None,
    }
}

/// Pool layers and the two MLP widths of an attentive head.
pub(super) fn attentive(hp: &Hparams) -> Option<(usize, usize, usize)> {
    match hp.head.as_ref().map(|h| &h.kind) {
        Some(&HeadKind::AttentivePool { n_pool_layers, ffn_dim, xattn_ffn_dim }) => {
            Some((n_pool_layers, ffn_dim, xattn_ffn_dim))
        }
        _ => None,
    }
}
