//! What the schema allows each family and what it takes for granted: one row each.

use super::hparams::{Family, PosInterp, PosType, RopeLayout};

/// The row of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FamilyRules {
    /// Positions that its encoder may have.
    pub(crate) pos_types: &'static [PosType],
    /// How its position table is resized where the file does not say.
    pub(crate) pos_interp: PosInterp,
    /// Order of its rotary frequencies where the file does not say.
    pub(crate) rope_layout: RopeLayout,
    /// Whether a CLS token comes first.
    pub(crate) cls_token: bool,
    /// Whether registers may follow the CLS token.
    pub(crate) registers: bool,
    /// Whether tokens may be kept from seeing later frames.
    pub(crate) block_causal: bool,
    /// Whether it may have patches and vectors of its own for pictures, and outputs of several layers.
    pub(crate) hierarchical: bool,
    /// Whether a projector turns the CLS token into the state of a world.
    pub(crate) projector: bool,
    /// Kinds of predictors (`jepa.pred.kind`) that it may have.
    pub(crate) predictors: &'static [&'static str],
}

/// A plain encoder: no prefix, nothing optional.
const PLAIN: FamilyRules = FamilyRules {
    pos_types: &[PosType::Rope3d],
    pos_interp: PosInterp::Size,
    rope_layout: RopeLayout::Tiled,
    cls_token: false,
    registers: false,
    block_causal: false,
    hierarchical: false,
    projector: false,
    predictors: &[],
};

const TABLE_2D: &[PosType] = &[PosType::Sincos2d, PosType::Learned];

impl Family {
    /// What the schema allows it.
    pub(crate) const fn rules(self) -> FamilyRules {
        match self {
            Self::Ijepa => FamilyRules { pos_types: TABLE_2D, predictors: &["masked"], ..PLAIN },
            Self::Vjepa => FamilyRules { pos_types: &[PosType::Sincos3d], predictors: &["masked"], ..PLAIN },
            Self::Vjepa2 => FamilyRules { predictors: &["masked", "ac"], ..PLAIN },
            Self::Vjepa2_1 => FamilyRules {
                rope_layout: RopeLayout::Interleaved,
                hierarchical: true,
                predictors: &["masked"],
                ..PLAIN
            },
            Self::Levjepa => FamilyRules { cls_token: true, block_causal: true, ..PLAIN },
            Self::Hfvit => FamilyRules {
                pos_types: TABLE_2D,
                pos_interp: PosInterp::Offset,
                cls_token: true,
                registers: true,
                ..PLAIN
            },
            Self::Lewm => {
                FamilyRules { pos_types: TABLE_2D, cls_token: true, projector: true, predictors: &["lewm"], ..PLAIN }
            }
        }
    }
}
