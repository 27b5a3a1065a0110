//! Which class of transformers a bundle is, and whether the class can be all that the bundle is.

use super::error::ExportError;
use crate::convert::Layout;
use crate::convert::{hfvit, ijepa, vjepa2};
use crate::schema::{Family, HeadKind, HeadPool, Hparams, PosInterp, PredictorKind, RopeLayout};

/// A class of transformers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Ijepa,
    Vit,
    Dinov2,
    Dinov2WithRegisters,
    Vjepa2,
}

impl Class {
    /// The class of a bundle.
    pub(super) fn of(hp: &Hparams) -> Result<Self, ExportError> {
        let class = match hp.family {
            Family::Ijepa => Self::Ijepa,
            Family::Vjepa2 => Self::Vjepa2,
            Family::Hfvit => match (hp.enc.layer_scale, hp.enc.n_registers) {
                (false, 0) => Self::Vit,
                (true, 0) => Self::Dinov2,
                (true, _) => Self::Dinov2WithRegisters,
                (false, _) => {
                    let what = "an encoder with registers and without layer scale".to_owned();
                    return Err(ExportError::NoClass { what });
                }
            },
            family => return Err(ExportError::NoClass { what: format!("family {family}") }),
        };
        class.check(hp)?;
        Ok(class)
    }

    /// `model_type`.
    pub(super) fn model_type(self) -> &'static str {
        match self {
            Self::Ijepa => "ijepa",
            Self::Vit => "vit",
            Self::Dinov2 => "dinov2",
            Self::Dinov2WithRegisters => "dinov2_with_registers",
            Self::Vjepa2 => "vjepa2",
        }
    }

    /// The architecture with or without a head, and the prefix that the first puts before the names of the second.
    pub(super) fn architecture(self, head: bool) -> (&'static str, &'static str) {
        match (self, head) {
            (Self::Ijepa, false) => ("IJepaModel", ""),
            (Self::Ijepa, true) => ("IJepaForImageClassification", "ijepa."),
            (Self::Vit, false) => ("ViTModel", ""),
            (Self::Vit, true) => ("ViTForImageClassification", "vit."),
            (Self::Dinov2, _) => ("Dinov2Model", ""),
            (Self::Dinov2WithRegisters, _) => ("Dinov2WithRegistersModel", ""),
            (Self::Vjepa2, false) => ("VJEPA2Model", ""),
            (Self::Vjepa2, true) => ("VJEPA2ForVideoClassification", "vjepa2."),
        }
    }

    /// The mapping tables that conversion reads such a folder with.
    pub(super) fn layout(self) -> &'static Layout {
        match self {
            Self::Ijepa => &ijepa::HUB,
            Self::Vit => &hfvit::VIT,
            Self::Dinov2 | Self::Dinov2WithRegisters => &hfvit::DINOV2,
            Self::Vjepa2 => &vjepa2::HUB,
        }
    }

    /// How the class resizes its position table.
    pub(super) fn pos_interp(self) -> PosInterp {
        match self {
            Self::Dinov2WithRegisters => PosInterp::Antialias,
            _ => PosInterp::Size,
        }
    }

    fn name(self) -> &'static str {
        self.architecture(false).0
    }

    fn fixed(self, key: &'static str, found: impl ToString, fixed: impl ToString) -> Result<(), ExportError> {
        let (found, fixed) = (found.to_string(), fixed.to_string());
        if found == fixed { Ok(()) } else { Err(ExportError::Fixed { key, found, class: self.name(), fixed }) }
    }

    /// Refuses what the class cannot be told.
    fn check(self, hp: &Hparams) -> Result<(), ExportError> {
        if let (Self::Dinov2 | Self::Dinov2WithRegisters, Some(_)) = (self, &hp.head) {
            return Err(ExportError::NoClass { what: format!("a linear head on the CLS token of {}", self.name()) });
        }
        if let Some(head) = hp.head.as_ref().filter(|head| !head.reads_the_usual()) {
            self.fixed("jepa.head.pool", head.pool, HeadPool::Auto)?;
            let layers = format!("{:?}", head.layers);
            return self.fixed("jepa.head.layers", layers, "the encoder's output");
        }
        if self != Self::Vjepa2 {
            self.fixed("jepa.enc.tubelet_size", hp.enc.tubelet_size, 1)?;
            return self.fixed("jepa.enc.n_frames", hp.enc.n_frames, 1);
        }
        let rope =
            hp.enc.rope.ok_or_else(|| ExportError::NoClass { what: "a video encoder with a table".to_owned() })?;
        self.fixed("jepa.enc.rope_theta", rope.theta, 10_000)?;
        self.fixed("jepa.enc.rope_freq_layout", rope.layout, RopeLayout::Tiled)?;
        self.fixed("jepa.enc.rope_interpolate", rope.interpolate, false)?;
        let Some(pred) = &hp.pred else {
            return Err(ExportError::NoClass { what: "a vjepa2 bundle without predictor".to_owned() });
        };
        let PredictorKind::Masked(masked) = &pred.kind else {
            return Err(ExportError::NoClass {
                what: "the action-conditioned predictor (jepa.pred.kind ac)".to_owned(),
            });
        };
        self.fixed("jepa.pred.out_dim", pred.out_dim, hp.enc.embed_dim)?;
        self.fixed("jepa.pred.ln_eps", pred.ln_eps, hp.enc.ln_eps)?;
        self.fixed("jepa.pred.act", pred.act, hp.enc.act)?;
        self.fixed("jepa.pred.qkv_bias", pred.qkv_bias, true)?;
        self.fixed("jepa.pred.grid_size", masked.grid_size, hp.enc.img_size / hp.enc.patch_size)?;
        match hp.head.as_ref().map(|head| &head.kind) {
            Some(HeadKind::LinearCls) => {
                Err(ExportError::NoClass { what: "a linear head on a vjepa2 encoder".to_owned() })
            }
            Some(&HeadKind::AttentivePool { ffn_dim, xattn_ffn_dim, .. }) => {
                let fixed = hp.enc.embed_dim.saturating_mul(4);
                self.fixed("rows of head.blk.0.ffn_up.weight", ffn_dim, fixed)?;
                self.fixed("rows of head.xattn.ffn_up.weight", xattn_ffn_dim, fixed)
            }
            None => Ok(()),
        }
    }
}
