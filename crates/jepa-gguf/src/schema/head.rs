//! `jepa.head.*`: reading and cross-checking the head's keys.

use super::hparams::{EncoderHparams, HeadHparams, HeadKind, HeadPool};
use super::reader::{Reader, bad_value};
use super::tensors::rows_of;
use crate::error::GgufError;
use crate::file::Gguf;

/// Reads `jepa.head.*`; `None` when the bundle has no head.
pub(super) fn read(keys: Reader<'_>, file: &Gguf, enc: &EncoderHparams) -> Result<Option<HeadHparams>, GgufError> {
    let kind = match keys.word_opt("jepa.head.kind")? {
        Some("attentive_pool") => {
            let n_pool_layers = keys.count("jepa.head.n_pool_layers")?;
            let when = "with an attentive_pool head";
            let xattn_ffn_dim = rows_of(file, "head.xattn.ffn_up.weight", when)?;
            let ffn_dim = match n_pool_layers {
                0 => xattn_ffn_dim,
                _ => rows_of(file, "head.blk.0.ffn_up.weight", when)?,
            };
            HeadKind::AttentivePool { n_pool_layers, ffn_dim, xattn_ffn_dim }
        }
        Some("linear_cls") => HeadKind::LinearCls,
        _ => return Ok(None),
    };
    let n_classes = keys.count("jepa.head.n_classes")?;
    let labels = keys.texts("jepa.head.labels")?;
    if let Some(n) = labels.as_ref().map(Vec::len).filter(|&n| n != n_classes) {
        let wanted = format!("{n_classes} (jepa.head.n_classes)");
        return Err(bad_value("jepa.head.labels", format!("{n} labels"), wanted));
    }
    let pool = keys.word("jepa.head.pool", HeadPool::from_word)?;
    let lacks = match pool {
        HeadPool::Auto | HeadPool::Mean => None,
        HeadPool::Cls => (!enc.cls_token).then_some("an encoder with a CLS token"),
        HeadPool::State => enc.proj.is_none().then_some("an encoder with a projector"),
    };
    if let Some(lacks) = lacks {
        return Err(bad_value("jepa.head.pool", pool, format!("{lacks}, or another pooling")));
    }
    let layers = keys.counts("jepa.head.layers")?;
    if let Some(layer) = layers.iter().find(|&&layer| layer >= enc.n_layer) {
        return Err(bad_value("jepa.head.layers", layer, format!("0 to {} (jepa.enc.n_layer)", enc.n_layer - 1)));
    }
    Ok(Some(HeadHparams { kind, n_classes, labels, pool, layers }))
}
