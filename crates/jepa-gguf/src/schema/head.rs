//! `jepa.head.*`: reading and cross-checking the head's keys.

use super::hparams::{HeadHparams, HeadKind};
use super::reader::{Reader, bad_value};
use super::tensors::rows_of;
use crate::error::GgufError;
use crate::file::Gguf;

/// Reads `jepa.head.*`; `None` when the bundle has no head.
pub(super) fn read(keys: Reader<'_>, file: &Gguf) -> Result<Option<HeadHparams>, GgufError> {
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
    Ok(Some(HeadHparams { kind, n_classes, labels }))
}
