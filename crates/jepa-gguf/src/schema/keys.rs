//! The table of keys: the one place that knows their types, ranges, words and defaults.
//!
//! Reading ([`super::reader`]) and the documentation page ([`super::page`]) both come from it.

use super::hparams::{
    Activation, AttnMode, Family, HeadPool, Modality, PosInterp, PosType, Resample, ResizeMode, RopeLayout,
};
use crate::limits::{
    MAX_CHANNELS, MAX_CLASSES, MAX_FRAMES, MAX_HEADS, MAX_LAYERS, MAX_SIDE, MAX_SPECIAL_TOKENS, MAX_WIDTH,
};

/// What values a key may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KeyKind {
    /// An integer of any width in an inclusive range.
    Count {
        /// Smallest value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// A finite f32 or f64; above 0 when `positive`.
    Real {
        /// Whether 0 and below are refused.
        positive: bool,
    },
    /// A bool.
    Flag,
    /// One of these strings.
    Word(&'static [&'static str]),
    /// Any string.
    Text,
    /// An array of integers of any width in an inclusive range.
    Counts {
        /// Smallest element.
        min: u64,
        /// Largest element.
        max: u64,
    },
    /// An array of three finite f32 or f64, one per colour channel; above 0 when `positive`.
    Channels {
        /// Whether 0 and below are refused.
        positive: bool,
    },
    /// An array of strings.
    Texts,
}

/// What the absence of a key means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Absent {
    /// The file is refused, in the circumstances given.
    Refused(&'static str),
    /// Nothing.
    Nothing,
    /// This number.
    Count(u64),
    /// This number.
    Real(f64),
    /// This answer.
    Flag(bool),
    /// This word.
    Word(&'static str),
    /// A value that follows from others, in words.
    Derived(&'static str),
}

/// One key of the schema.
#[derive(Clone, Copy, Debug)]
pub struct KeySpec {
    /// The key.
    pub name: &'static str,
    /// Its values.
    pub kind: KeyKind,
    /// What its absence means.
    pub absent: Absent,
    /// What it is, in one line.
    pub doc: &'static str,
}

const fn key(name: &'static str, kind: KeyKind, absent: Absent, doc: &'static str) -> KeySpec {
    KeySpec { name, kind, absent, doc }
}

const fn count(max: u64) -> KeyKind {
    KeyKind::Count { min: 1, max }
}

const ALWAYS: Absent = Absent::Refused("in every file");
const WITH_PRED: Absent = Absent::Refused("with a predictor");
const WITH_MASKED: Absent = Absent::Refused("with a masked predictor");
const WITH_ACTIONS: Absent = Absent::Refused("with an ac or lewm predictor");
const ACTIVATIONS: KeyKind = KeyKind::Word(Activation::WORDS);
const POSITIVE: KeyKind = KeyKind::Real { positive: true };

/// Every key of the schema, in the order of its text.
#[rustfmt::skip]
pub const KEYS: &[KeySpec] = &[
    key("general.architecture", KeyKind::Word(&["jepa"]), ALWAYS, "marks a bundle of this schema"),
    key("general.name", KeyKind::Text, Absent::Nothing, "name of the model"),
    key("general.license", KeyKind::Text, Absent::Nothing, "licence of the weights"),
    key("general.source_url", KeyKind::Text, Absent::Nothing, "where the weights come from"),
    key("general.source.url", KeyKind::Text, Absent::Nothing, "alias of `general.source_url`"),
    key("jepa.schema_version", KeyKind::Count { min: 1, max: 1 }, ALWAYS, "version of this schema"),
    key("jepa.family", KeyKind::Word(Family::WORDS), ALWAYS, "the graph"),
    key("jepa.modality", KeyKind::Word(Modality::WORDS), ALWAYS, "what the encoder was trained on"),

    key("jepa.enc.embed_dim", count(MAX_WIDTH), ALWAYS, "width of a token"),
    key("jepa.enc.n_layer", count(MAX_LAYERS), ALWAYS, "blocks"),
    key("jepa.enc.n_head", count(MAX_HEADS), ALWAYS, "attention heads; divides `embed_dim`"),
    key("jepa.enc.ffn_dim", count(MAX_WIDTH), ALWAYS, "hidden width of a block's MLP"),
    key("jepa.enc.patch_size", count(MAX_SIDE), ALWAYS, "side of a patch in pixels"),
    key("jepa.enc.tubelet_size", count(MAX_FRAMES), Absent::Count(1), "frames in one token"),
    key("jepa.enc.img_size", count(MAX_SIDE), Absent::Count(224), "side of the training crop in pixels; at least a patch"),
    key("jepa.enc.n_frames", count(MAX_FRAMES), Absent::Count(1), "frames of a training clip"),
    key("jepa.enc.in_chans", count(MAX_CHANNELS), Absent::Count(3), "colour channels"),
    key("jepa.enc.ln_eps", POSITIVE, Absent::Real(1e-6), "epsilon of the encoder's LayerNorms"),
    key("jepa.enc.act", ACTIVATIONS, Absent::Word("gelu_erf"), "activation of the MLPs"),
    key("jepa.enc.pos_type", KeyKind::Word(PosType::WORDS), ALWAYS, "position scheme"),
    key("jepa.enc.pos_interp", KeyKind::Word(PosInterp::WORDS), Absent::Derived("`offset` for hfvit, else `size`"),
        "how a 2-D table is resized to another grid (an extension of jepa-burn)"),
    key("jepa.enc.rope_theta", POSITIVE, Absent::Real(1e4), "base of the rotary frequencies"),
    key("jepa.enc.rope_interpolate", KeyKind::Flag, Absent::Flag(false), "rows and columns are rescaled to `rope_ref_grid`"),
    key("jepa.enc.rope_freq_layout", KeyKind::Word(RopeLayout::WORDS), Absent::Derived("`interleaved` for vjepa2_1, else `tiled`"),
        "frequencies over the lanes of an axis"),
    key("jepa.enc.rope_ref_grid", count(MAX_SIDE), Absent::Derived("256 div `patch_size`"), "grid that positions are rescaled to"),
    key("jepa.enc.cls_token", KeyKind::Flag, Absent::Derived("true for hfvit, levjepa and lewm"), "a CLS token comes first"),
    key("jepa.enc.n_registers", KeyKind::Count { min: 0, max: MAX_SPECIAL_TOKENS }, Absent::Count(0), "register tokens (hfvit)"),
    key("jepa.enc.qkv_fused", KeyKind::Flag, Absent::Flag(true), "`attn_qkv`, or `attn_q`, `attn_k`, `attn_v`; in every stack of the bundle"),
    key("jepa.enc.modality_embed", KeyKind::Flag, Absent::Flag(false), "modality vectors (vjepa2_1)"),
    key("jepa.enc.image_patch_embed", KeyKind::Flag, Absent::Flag(false), "a patch embedding of its own for pictures (vjepa2_1)"),
    key("jepa.enc.hier_layers", KeyKind::Counts { min: 0, max: MAX_LAYERS - 1 }, Absent::Derived("none"),
        "blocks whose output has a norm of its own, ascending (vjepa2_1)"),
    key("jepa.enc.layer_scale", KeyKind::Flag, Absent::Flag(false), "`ls1` and `ls2` in every block"),
    key("jepa.enc.attn_mode", KeyKind::Word(AttnMode::WORDS), Absent::Word("full"), "which tokens see which; `block_causal` for levjepa only"),
    key("jepa.enc.proj_act", ACTIVATIONS, Absent::Word("gelu_erf"), "activation inside `enc.proj` (lewm)"),

    key("jepa.pred.kind", KeyKind::Word(&["masked", "ac", "lewm"]), Absent::Derived("no predictor"), "what the predictor predicts"),
    key("jepa.pred.embed_dim", count(MAX_WIDTH), WITH_PRED, "width of a predictor token"),
    key("jepa.pred.n_layer", count(MAX_LAYERS), WITH_PRED, "blocks"),
    key("jepa.pred.n_head", count(MAX_HEADS), WITH_PRED, "attention heads"),
    key("jepa.pred.head_dim", count(MAX_WIDTH), Absent::Derived("`embed_dim` / `n_head`"),
        "width of a head; `n_head · head_dim` may differ from `embed_dim` for lewm only"),
    key("jepa.pred.ffn_dim", count(MAX_WIDTH), WITH_PRED, "hidden width of a block's MLP"),
    key("jepa.pred.n_mask_tokens", count(MAX_SPECIAL_TOKENS), WITH_MASKED, "rows of `pred.mask_tokens`"),
    key("jepa.pred.out_dim", count(MAX_WIDTH), Absent::Derived("`jepa.enc.embed_dim`"), "predicted width per hierarchical output"),
    key("jepa.pred.rope_theta", POSITIVE, Absent::Derived("`jepa.enc.rope_theta`"), "base of the rotary frequencies"),
    key("jepa.pred.rope_freq_layout", KeyKind::Word(RopeLayout::WORDS), Absent::Derived("the encoder's"), "frequencies over the lanes of an axis"),
    key("jepa.pred.rope_interpolate", KeyKind::Flag, Absent::Flag(false), "rows and columns are rescaled to `rope_ref_grid`"),
    key("jepa.pred.rope_ref_grid", count(MAX_SIDE), Absent::Derived("256 div `patch_size`"), "grid that positions are rescaled to"),
    key("jepa.pred.grid_size", count(MAX_SIDE), Absent::Derived("`img_size` div `patch_size`"), "side of the grid that token ids are decoded on"),
    key("jepa.pred.n_hier_in", count(MAX_LAYERS), Absent::Count(1), "hierarchical outputs joined at the input: 1 or all (vjepa2_1)"),
    key("jepa.pred.modality_embed", KeyKind::Flag, Absent::Flag(false), "modality vectors (vjepa2_1)"),
    key("jepa.pred.context_proj", KeyKind::Flag, Absent::Flag(false), "`pred.proj_context` for the context rows (vjepa2_1)"),
    key("jepa.pred.action_dim", count(MAX_WIDTH), WITH_ACTIONS, "width of an action"),
    key("jepa.pred.state_dim", KeyKind::Count { min: 0, max: MAX_WIDTH }, Absent::Refused("with an ac predictor"), "width of a state; 0 for lewm"),
    key("jepa.pred.frame_causal", KeyKind::Flag, Absent::Flag(true), "a frame sees earlier frames only (ac; always so for lewm)"),
    key("jepa.pred.n_frames", count(MAX_FRAMES), Absent::Derived("`jepa.enc.n_frames` div `tubelet_size` for ac; required for lewm"), "frames in one call"),
    key("jepa.pred.ln_eps", POSITIVE, Absent::Derived("the encoder's for masked, 1e-6 for ac and lewm"), "epsilon of the affine LayerNorms"),
    key("jepa.pred.adaln_eps", POSITIVE, Absent::Real(1e-6), "epsilon of the norms without weights (lewm)"),
    key("jepa.pred.act", ACTIVATIONS, Absent::Derived("the encoder's for masked, `gelu_erf` for ac and lewm"), "activation of the MLPs"),
    key("jepa.pred.qkv_bias", KeyKind::Flag, Absent::Flag(true), "`attn_qkv` has a bias"),
    key("jepa.pred.action_act", ACTIVATIONS, Absent::Word("silu"), "activation inside `pred.action_embed` (lewm)"),
    key("jepa.pred.proj_act", ACTIVATIONS, Absent::Word("gelu_erf"), "activation inside `pred.proj` (lewm)"),
    key("jepa.pred.n_cond_tokens", KeyKind::Count { min: 2, max: 2 }, Absent::Count(2), "condition rows per frame (ac)"),
    key("jepa.pred.cond_order", KeyKind::Word(&["action,state"]), Absent::Word("action,state"), "order of the condition rows (ac)"),
    key("jepa.pred.normalize_reps", KeyKind::Flag, Absent::Flag(true), "latents are normalised before and between steps (ac)"),
    key("jepa.pred.norm_reps_eps", POSITIVE, Absent::Real(1e-5), "epsilon of that norm (ac)"),

    key("jepa.head.kind", KeyKind::Word(&["attentive_pool", "linear_cls", "none"]), Absent::Word("none"), "what the head is"),
    key("jepa.head.n_classes", count(MAX_CLASSES), Absent::Refused("with a head"), "classes"),
    key("jepa.head.n_pool_layers", KeyKind::Count { min: 0, max: MAX_LAYERS }, Absent::Refused("with an attentive_pool head"),
        "self-attention blocks before the pooling"),
    key("jepa.head.labels", KeyKind::Texts, Absent::Nothing, "names of the classes, one each"),
    key("jepa.head.pool", KeyKind::Word(HeadPool::WORDS), Absent::Word("auto"),
        "what a linear_cls head reads; `auto` is the family's pooling (an extension of jepa-burn)"),
    key("jepa.head.layers", KeyKind::Counts { min: 0, max: MAX_LAYERS - 1 }, Absent::Derived("the encoder's output"),
        "blocks whose normalised outputs the head reads: pooled and joined (linear_cls), or joined as tokens (attentive_pool) (an extension of jepa-burn)"),

    key("jepa.pre.mean", KeyKind::Channels { positive: false }, ALWAYS, "mean of each channel after `rescale`"),
    key("jepa.pre.std", KeyKind::Channels { positive: true }, ALWAYS, "standard deviation of each channel after `rescale`"),
    key("jepa.pre.resize_short", count(MAX_SIDE), Absent::Derived("`crop`"), "length of the short side after the resize"),
    key("jepa.pre.crop", count(MAX_SIDE), Absent::Derived("`jepa.enc.img_size`"), "side of the centre crop"),
    key("jepa.pre.resample", KeyKind::Word(Resample::WORDS), Absent::Word("bilinear"), "resampling filter"),
    key("jepa.pre.resize_mode", KeyKind::Word(ResizeMode::WORDS), Absent::Word("shortest_edge"), "what the resize keeps"),
    key("jepa.pre.rescale", POSITIVE, Absent::Real(1.0 / 255.0), "scale of the pixels before `mean` and `std`"),
];

/// The entry of [`KEYS`] for `name`.
pub fn key_spec(name: &str) -> Option<&'static KeySpec> {
    KEYS.iter().find(|k| k.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique_and_defaults_are_values_the_key_may_have() {
        for (i, k) in KEYS.iter().enumerate() {
            assert!(KEYS[..i].iter().all(|other| other.name != k.name), "{}", k.name);
            match (k.kind, k.absent) {
                (KeyKind::Count { min, max }, Absent::Count(d)) => assert!((min..=max).contains(&d), "{}", k.name),
                (KeyKind::Word(words), Absent::Word(d)) => assert!(words.contains(&d), "{}", k.name),
                (KeyKind::Real { .. }, Absent::Real(_)) | (KeyKind::Flag, Absent::Flag(_)) => {}
                (_, Absent::Refused(_) | Absent::Nothing | Absent::Derived(_)) => {}
                (kind, absent) => panic!("{}: {kind:?} cannot default to {absent:?}", k.name),
            }
        }
    }
}
