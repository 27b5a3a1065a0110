//! The table of tensors: the one place that knows their names, shapes, types, and when they exist.
//!
//! Checking a file ([`super::check`]) and the documentation page ([`super::page`]) both come from it.

use super::dims::{Dim, attentive, lewm, masked};
use super::hparams::{Hparams, PosType, PredictorKind};
use crate::dtype::GgmlType;
use crate::error::GgufError;
use crate::file::Gguf;

/// Which types a tensor may be stored in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeRule {
    /// f32 only: whatever is added, multiplied or joined as it is.
    Single,
    /// f32, f16 or bf16: a matrix that is never quantised.
    Float,
    /// Any type: a large matrix.
    Any,
}

impl TypeRule {
    /// Whether `dtype` is allowed.
    pub const fn allows(self, dtype: GgmlType) -> bool {
        match self {
            Self::Single => matches!(dtype, GgmlType::F32),
            Self::Float => dtype.is_float(),
            Self::Any => true,
        }
    }

    /// The type in which a file of type `wanted` stores a tensor of floats with rows of `row_len` values: f32 for what is never quantised; q8_0
    /// where the rows are not whole blocks of a K type, and f16 where they are not whole blocks at all.
    pub const fn stored_as(self, wanted: GgmlType, row_len: usize) -> GgmlType {
        match self {
            Self::Single | Self::Float => GgmlType::F32,
            Self::Any if row_len.is_multiple_of(wanted.block_len()) => wanted,
            Self::Any if row_len.is_multiple_of(GgmlType::Q8_0.block_len()) => GgmlType::Q8_0,
            Self::Any => GgmlType::F16,
        }
    }

    /// The allowed types, in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Single => "f32",
            Self::Float => "f32, f16 or bf16",
            Self::Any => "any",
        }
    }
}

/// What stands under one name of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `.weight [out, in]` and `.bias [out]`.
    Linear([Dim; 2], TypeRule),
    /// `.weight [out, in]`, and `.bias [out]` when `jepa.pred.qkv_bias`.
    PredQkv([Dim; 2]),
    /// `.weight [dim]` and `.bias [dim]`.
    Norm(Dim),
    /// The name itself, `[rows, dim]`.
    Table([Dim; 2]),
    /// The name itself, `[dim]`.
    Vector(Dim),
}

/// How often a name of the table stands in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// Once.
    Once,
    /// For `{i}` over the encoder's blocks.
    EncBlocks,
    /// For `{i}` over the hierarchical outputs.
    HierNorms,
    /// For `{i}` over the predictor's blocks.
    PredBlocks,
    /// For `{i}` over the head's blocks.
    HeadBlocks,
}

impl Repeat {
    fn times(self, hp: &Hparams) -> usize {
        match self {
            Self::Once => 1,
            Self::EncBlocks => hp.enc.n_layer,
            Self::HierNorms => hp.enc.hier_layers.len(),
            Self::PredBlocks => hp.pred.as_ref().map_or(0, |p| p.n_layer),
            Self::HeadBlocks => attentive(hp).map_or(0, |(n, _, _)| n),
        }
    }
}

/// When a tensor exists.
#[derive(Clone, Copy, Debug)]
pub struct When {
    /// The condition in the words of the schema.
    pub text: &'static str,
    pub(crate) holds: fn(&Hparams) -> bool,
}

/// One name of the tensor table.
#[derive(Clone, Copy, Debug)]
pub struct TensorSpec {
    /// The name; `{i}` counts from 0.
    pub name: &'static str,
    /// What stands under it.
    pub form: Form,
    /// How often.
    pub repeat: Repeat,
    /// In which files.
    pub when: When,
}

const fn when(text: &'static str, holds: fn(&Hparams) -> bool) -> When {
    When { text, holds }
}

const ALWAYS: When = when("always", |_| true);
const FUSED: When = when("`jepa.enc.qkv_fused`", |hp| hp.enc.qkv_fused);
const SPLIT: When = when("not `jepa.enc.qkv_fused`", |hp| !hp.enc.qkv_fused);
const SCALED: When = when("`jepa.enc.layer_scale`", |hp| hp.enc.layer_scale);
const MODALITY: When = when("`jepa.enc.modality_embed`", |hp| hp.enc.modality_embed);
const PROJECTOR: When = when("lewm", |hp| hp.enc.proj.is_some());
const PRED: When = when("a predictor", |hp| hp.pred.is_some());
const TOKENS: When = when("a masked or ac predictor", |hp| hp.pred.is_some() && lewm(hp).is_none());
const MASKED: When = when("a masked predictor", |hp| masked(hp).is_some());
const ONE_HIER: When =
    when("a masked or ac predictor, `n_hier_in` 1", |hp| (TOKENS.holds)(hp) && !(MANY_HIER.holds)(hp));
const MANY_HIER: When =
    when("a masked predictor, `n_hier_in` above 1", |hp| masked(hp).is_some_and(|m| m.n_hier_in > 1));
const PRED_MODALITY: When = when("`jepa.pred.modality_embed`", |hp| masked(hp).is_some_and(|m| m.modality_embed));
const CONTEXT: When = when("`jepa.pred.context_proj`", |hp| masked(hp).is_some_and(|m| m.context_proj));
const PRED_TABLE: When = when("lewm, or a masked predictor without rotary positions", |hp| {
    lewm(hp).is_some() || masked(hp).is_some_and(|m| m.rope.is_none())
});
const PRED_FUSED: When =
    when("lewm, or a predictor and `jepa.enc.qkv_fused`", |hp| lewm(hp).is_some() || hp.enc.qkv_fused);
const PRED_SPLIT: When = when("a predictor, not `jepa.enc.qkv_fused`, not lewm", |hp| !(PRED_FUSED.holds)(hp));
const AC: When = when("an ac predictor", |hp| matches!(hp.pred.as_ref().map(|p| &p.kind), Some(PredictorKind::Ac(_))));
const LEWM: When = when("a lewm predictor", |hp| lewm(hp).is_some());
const HEAD: When = when("a head", |hp| hp.head.is_some());
const ATTENTIVE: When = when("an attentive_pool head", |hp| attentive(hp).is_some());

const fn row(name: &'static str, form: Form, repeat: Repeat, when: When) -> TensorSpec {
    TensorSpec { name, form, repeat, when }
}

use Dim as D;
use Form::{Linear, Norm, PredQkv, Table, Vector};
use Repeat::{EncBlocks, HeadBlocks, HierNorms, Once, PredBlocks};
use TypeRule::{Any, Float};

/// Every tensor of the schema.
#[rustfmt::skip]
pub const TENSORS: &[TensorSpec] = &[
    row("enc.patch_embed", Linear([D::Enc, D::Patch], Float), Once, ALWAYS),
    row("enc.patch_embed_img", Linear([D::Enc, D::ImagePatch], Float), Once, when("`jepa.enc.image_patch_embed`", |hp| hp.enc.image_patch_embed)),
    row("enc.pos_embed", Table([D::Positions, D::Enc]), Once, when("`jepa.enc.pos_type` is a table", |hp| hp.enc.pos_type != PosType::Rope3d)),
    row("enc.cls_token", Vector(D::Enc), Once, when("`jepa.enc.cls_token`", |hp| hp.enc.cls_token)),
    row("enc.reg_tokens", Table([D::Registers, D::Enc]), Once, when("`jepa.enc.n_registers` above 0", |hp| hp.enc.n_registers > 0)),
    row("enc.mod_embed_img", Vector(D::Enc), Once, MODALITY),
    row("enc.mod_embed_video", Vector(D::Enc), Once, MODALITY),
    row("enc.blk.{i}.ln1", Norm(D::Enc), EncBlocks, ALWAYS),
    row("enc.blk.{i}.attn_qkv", Linear([D::Enc3, D::Enc], Any), EncBlocks, FUSED),
    row("enc.blk.{i}.attn_q", Linear([D::Enc, D::Enc], Any), EncBlocks, SPLIT),
    row("enc.blk.{i}.attn_k", Linear([D::Enc, D::Enc], Any), EncBlocks, SPLIT),
    row("enc.blk.{i}.attn_v", Linear([D::Enc, D::Enc], Any), EncBlocks, SPLIT),
    row("enc.blk.{i}.attn_out", Linear([D::Enc, D::Enc], Any), EncBlocks, ALWAYS),
    row("enc.blk.{i}.ln2", Norm(D::Enc), EncBlocks, ALWAYS),
    row("enc.blk.{i}.ffn_up", Linear([D::EncFfn, D::Enc], Any), EncBlocks, ALWAYS),
    row("enc.blk.{i}.ffn_down", Linear([D::Enc, D::EncFfn], Any), EncBlocks, ALWAYS),
    row("enc.blk.{i}.ls1", Vector(D::Enc), EncBlocks, SCALED),
    row("enc.blk.{i}.ls2", Vector(D::Enc), EncBlocks, SCALED),
    row("enc.hier_norm.{i}", Norm(D::Enc), HierNorms, ALWAYS),
    row("enc.norm", Norm(D::Enc), Once, ALWAYS),
    row("enc.proj.0", Linear([D::EncProjHidden, D::Enc], Any), Once, PROJECTOR),
    row("enc.proj.2", Linear([D::Enc, D::EncProjHidden], Any), Once, PROJECTOR),

    row("pred.embed", Linear([D::Pred, D::Enc], Any), Once, ONE_HIER),
    row("pred.embed.0", Linear([D::PredEmbedHidden, D::PredIn], Any), Once, MANY_HIER),
    row("pred.embed.2", Linear([D::Pred, D::PredEmbedHidden], Any), Once, MANY_HIER),
    row("pred.mask_tokens", Table([D::MaskTokens, D::Pred]), Once, MASKED),
    row("pred.pos_embed", Table([D::PredPositions, D::Pred]), Once, PRED_TABLE),
    row("pred.mod_embed_img", Vector(D::Pred), Once, PRED_MODALITY),
    row("pred.mod_embed_video", Vector(D::Pred), Once, PRED_MODALITY),
    row("pred.action_embed", Linear([D::Pred, D::Action], Float), Once, AC),
    row("pred.state_embed", Linear([D::Pred, D::State], Float), Once, AC),
    row("pred.action_embed.0", Linear([D::ActionHidden, D::Action], Float), Once, LEWM),
    row("pred.action_embed.2", Linear([D::Pred, D::ActionHidden], Float), Once, LEWM),
    row("pred.blk.{i}.adaln", Linear([D::Pred6, D::Pred], Float), PredBlocks, LEWM),
    row("pred.blk.{i}.ln1", Norm(D::Pred), PredBlocks, PRED),
    row("pred.blk.{i}.attn_qkv", PredQkv([D::PredHeads3, D::Pred]), PredBlocks, PRED_FUSED),
    row("pred.blk.{i}.attn_q", PredQkv([D::PredHeads, D::Pred]), PredBlocks, PRED_SPLIT),
    row("pred.blk.{i}.attn_k", PredQkv([D::PredHeads, D::Pred]), PredBlocks, PRED_SPLIT),
    row("pred.blk.{i}.attn_v", PredQkv([D::PredHeads, D::Pred]), PredBlocks, PRED_SPLIT),
    row("pred.blk.{i}.attn_out", Linear([D::Pred, D::PredHeads], Any), PredBlocks, PRED),
    row("pred.blk.{i}.ln2", Norm(D::Pred), PredBlocks, PRED),
    row("pred.blk.{i}.ffn_up", Linear([D::PredFfn, D::Pred], Any), PredBlocks, PRED),
    row("pred.blk.{i}.ffn_down", Linear([D::Pred, D::PredFfn], Any), PredBlocks, PRED),
    row("pred.norm", Norm(D::Pred), Once, PRED),
    row("pred.proj", Linear([D::PredOut, D::Pred], Any), Once, TOKENS),
    row("pred.proj_context", Linear([D::PredOut, D::Pred], Any), Once, CONTEXT),
    row("pred.proj.0", Linear([D::PredProjHidden, D::Pred], Any), Once, LEWM),
    row("pred.proj.2", Linear([D::PredOut, D::PredProjHidden], Any), Once, LEWM),

    row("head.blk.{i}.ln1", Norm(D::Enc), HeadBlocks, ATTENTIVE),
    row("head.blk.{i}.attn_qkv", Linear([D::Enc3, D::Enc], Any), HeadBlocks, FUSED),
    row("head.blk.{i}.attn_q", Linear([D::Enc, D::Enc], Any), HeadBlocks, SPLIT),
    row("head.blk.{i}.attn_k", Linear([D::Enc, D::Enc], Any), HeadBlocks, SPLIT),
    row("head.blk.{i}.attn_v", Linear([D::Enc, D::Enc], Any), HeadBlocks, SPLIT),
    row("head.blk.{i}.attn_out", Linear([D::Enc, D::Enc], Any), HeadBlocks, ATTENTIVE),
    row("head.blk.{i}.ln2", Norm(D::Enc), HeadBlocks, ATTENTIVE),
    row("head.blk.{i}.ffn_up", Linear([D::HeadFfn, D::Enc], Any), HeadBlocks, ATTENTIVE),
    row("head.blk.{i}.ffn_down", Linear([D::Enc, D::HeadFfn], Any), HeadBlocks, ATTENTIVE),
    row("head.query", Table([D::One, D::Enc]), Once, ATTENTIVE),
    row("head.xattn.ln_kv", Norm(D::Enc), Once, ATTENTIVE),
    row("head.xattn.q", Linear([D::Enc, D::Enc], Any), Once, ATTENTIVE),
    row("head.xattn.k", Linear([D::Enc, D::Enc], Any), Once, ATTENTIVE),
    row("head.xattn.v", Linear([D::Enc, D::Enc], Any), Once, ATTENTIVE),
    row("head.xattn.ln2", Norm(D::Enc), Once, ATTENTIVE),
    row("head.xattn.ffn_up", Linear([D::XattnFfn, D::Enc], Any), Once, ATTENTIVE),
    row("head.xattn.ffn_down", Linear([D::Enc, D::XattnFfn], Any), Once, ATTENTIVE),
    row("head.cls", Linear([D::Classes, D::HeadIn], Any), Once, HEAD),
];

/// A tensor that a bundle with given hyper-parameters has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedTensor {
    /// Its name.
    pub name: String,
    /// Its shape, rows first.
    pub shape: Vec<usize>,
    /// The types it may be stored in.
    pub types: TypeRule,
    pub(crate) dims: &'static [Dim],
}

impl ExpectedTensor {
    /// Where the shape comes from, for messages.
    pub(crate) fn reason(&self) -> String {
        self.dims.iter().map(|d| d.source()).collect::<Vec<_>>().join(", ")
    }
}

/// One tensor of a [`Form`]: suffix of its name, sizes, types.
pub(crate) type Part = (&'static str, &'static [Dim], TypeRule);

impl Form {
    /// The tensors under one name; `qkv_bias` says whether [`Form::PredQkv`] has a bias.
    pub(crate) fn parts(&'static self, qkv_bias: bool) -> impl Iterator<Item = Part> {
        use TypeRule::Single;
        use std::slice::from_ref;
        let (first, bias): (Part, Option<&'static Dim>) = match self {
            Self::Linear(dims, types) => ((".weight", dims, *types), Some(&dims[0])),
            Self::PredQkv(dims) => ((".weight", dims, Any), qkv_bias.then_some(&dims[0])),
            Self::Norm(dim) => ((".weight", from_ref(dim), Single), Some(dim)),
            Self::Table(dims) => (("", dims, Single), None),
            Self::Vector(dim) => (("", from_ref(dim), Single), None),
        };
        std::iter::once(first).chain(bias.map(|dim| (".bias", from_ref(dim), Single)))
    }
}

/// Calls `visit` for every tensor that a bundle with hyper-parameters `hp` has, in the order of the table and of the blocks, until it fails.
///
/// Nothing is collected, so that a damaged layer count costs no memory.
pub(crate) fn visit_expected<E>(hp: &Hparams, mut visit: impl FnMut(ExpectedTensor) -> Result<(), E>) -> Result<(), E> {
    let qkv_bias = hp.pred.as_ref().is_none_or(|p| p.qkv_bias);
    for spec in TENSORS.iter().filter(|spec| (spec.when.holds)(hp)) {
        for i in 0..spec.repeat.times(hp) {
            let base = spec.name.replace("{i}", &i.to_string());
            for (suffix, dims, types) in spec.form.parts(qkv_bias) {
                let shape = dims.iter().map(|d| d.value(hp)).collect();
                visit(ExpectedTensor { name: format!("{base}{suffix}"), shape, types, dims })?;
            }
        }
    }
    Ok(())
}

/// Every tensor that a bundle with hyper-parameters `hp` has: what a converter has to write.
pub fn expected_tensors(hp: &Hparams) -> Vec<ExpectedTensor> {
    let mut all = Vec::new();
    let Ok(()) = visit_expected(hp, |t| {
        all.push(t);
        Ok::<(), std::convert::Infallible>(())
    });
    all
}

/// Rows of a matrix that a hidden width is read off.
pub(super) fn rows_of(file: &Gguf, tensor: &'static str, when: &'static str) -> Result<usize, GgufError> {
    let missing = || GgufError::MissingSizedTensor { tensor: tensor.to_owned(), when };
    let index = file.index_of(tensor).ok_or_else(missing)?;
    Ok(file.tensors()[index].row_count())
}
