use jepa_gguf::schema::Family;

use crate::features::Pool;
use crate::preprocess::StillImage;

/// What the rest of the product must know about a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// Its name as people write it.
    pub name: &'static str,
    /// The published repository it was made for.
    pub repository: &'static str,
    /// What [`Pool::Auto`] means.
    pub pool: Pool,
    /// What a single picture becomes.
    pub still: StillImage,
}

/// The row of `family`.
pub const fn about(family: Family) -> About {
    match family {
        Family::Ijepa => {
            About { name: "I-JEPA", repository: "facebook/ijepa_vith14_1k", pool: Pool::Mean, still: StillImage::AsIs }
        }
        Family::Vjepa => About {
            name: "V-JEPA",
            repository: "facebookresearch/jepa",
            pool: Pool::Mean,
            still: StillImage::OneTubelet,
        },
        Family::Vjepa2 => About {
            name: "V-JEPA 2",
            repository: "facebook/vjepa2-vitl-fpc64-256",
            pool: Pool::Mean,
            still: StillImage::OneTubelet,
        },
        Family::Vjepa2_1 => About {
            name: "V-JEPA 2.1",
            repository: "facebookresearch/vjepa2",
            pool: Pool::Mean,
            still: StillImage::AsIs,
        },
        Family::Levjepa => About {
            name: "LeVJEPA",
            repository: "galilai-group/LeVJEPA-VideoMix-Large",
            pool: Pool::Cls,
            still: StillImage::WholeClip,
        },
        Family::Hfvit => About {
            name: "LeJEPA and DINOv2-style ViTs",
            repository: "OK-AI/lejepa-vits16-pretrain-in1k",
            pool: Pool::Cls,
            still: StillImage::AsIs,
        },
        Family::Lewm => About {
            name: "LeWorldModel",
            repository: "quentinll/lewm-pusht",
            pool: Pool::State,
            still: StillImage::AsIs,
        },
    }
}
