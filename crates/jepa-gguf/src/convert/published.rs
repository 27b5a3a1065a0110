//! Meta's published training checkpoints: what their files do not say and their configurations do.

use super::hints::Hint;
use crate::schema::Family;

/// A published file, known by its name; used only where its family fits what is in the file.
#[derive(Debug)]
pub(super) struct PublishedFile {
    /// Its name.
    pub(super) file: &'static str,
    pub(super) family: Family,
    /// Name for `general.name`.
    pub(super) name: &'static str,
    pub(super) license: &'static str,
    pub(super) url: &'static str,
    img_size: usize,
    n_frames: usize,
}

impl PublishedFile {
    /// The published file called `file`.
    pub(super) fn by_name(file: &str) -> Option<&'static Self> {
        FILES.iter().find(|known| known.file == file)
    }

    pub(super) fn hint(&self, hint: Hint) -> Option<usize> {
        match hint {
            Hint::ImgSize => Some(self.img_size),
            Hint::NFrames => Some(self.n_frames),
            _ => None,
        }
    }
}

const fn file(
    file: &'static str,
    family: Family,
    name: &'static str,
    license: &'static str,
    url: &'static str,
    [img_size, n_frames]: [usize; 2],
) -> PublishedFile {
    PublishedFile { file, family, name, license, url, img_size, n_frames }
}

const BY_NC: &str = "cc-by-nc-4.0";

#[rustfmt::skip]
const FILES: &[PublishedFile] = &[
    file("IN1K-vit.h.14-300e.pth.tar", Family::Ijepa, "ijepa_vith14_1k", BY_NC, "https://dl.fbaipublicfiles.com/ijepa/IN1K-vit.h.14-300e.pth.tar", [224, 1]),
    file("IN1K-vit.h.16-448px-300e.pth.tar", Family::Ijepa, "ijepa_vith16_1k", BY_NC, "https://dl.fbaipublicfiles.com/ijepa/IN1K-vit.h.16-448px-300e.pth.tar", [448, 1]),
    file("IN22K-vit.h.14-900e.pth.tar", Family::Ijepa, "ijepa_vith14_22k", BY_NC, "https://dl.fbaipublicfiles.com/ijepa/IN22K-vit.h.14-900e.pth.tar", [224, 1]),
    file("IN22K-vit.g.16-600e.pth.tar", Family::Ijepa, "ijepa_vitg16_22k", BY_NC, "https://dl.fbaipublicfiles.com/ijepa/IN22K-vit.g.16-600e.pth.tar", [224, 1]),
    file("vitl16.pth.tar", Family::Vjepa, "vjepa-vitl16", BY_NC, "https://dl.fbaipublicfiles.com/jepa/vitl16/vitl16.pth.tar", [224, 16]),
    file("vith16.pth.tar", Family::Vjepa, "vjepa-vith16", BY_NC, "https://dl.fbaipublicfiles.com/jepa/vith16/vith16.pth.tar", [224, 16]),
    file("vith16-384.pth.tar", Family::Vjepa, "vjepa-vith16-384", BY_NC, "https://dl.fbaipublicfiles.com/jepa/vith16-384/vith16-384.pth.tar", [384, 16]),
    file("vitl.pt", Family::Vjepa2, "vjepa2-vitl-fpc64-256", "mit", "https://dl.fbaipublicfiles.com/vjepa2/vitl.pt", [256, 64]),
    file("vith.pt", Family::Vjepa2, "vjepa2-vith-fpc64-256", "mit", "https://dl.fbaipublicfiles.com/vjepa2/vith.pt", [256, 64]),
    file("vitg.pt", Family::Vjepa2, "vjepa2-vitg-fpc64-256", "mit", "https://dl.fbaipublicfiles.com/vjepa2/vitg.pt", [256, 64]),
    file("vitg-384.pt", Family::Vjepa2, "vjepa2-vitg-fpc64-384", "mit", "https://dl.fbaipublicfiles.com/vjepa2/vitg-384.pt", [384, 64]),
    file("vjepa2-ac-vitg.pt", Family::Vjepa2, "vjepa2-ac-vitg", "mit", "https://dl.fbaipublicfiles.com/vjepa2/vjepa2-ac-vitg.pt", [256, 64]),
    file("vjepa2_1_vitb_dist_vitG_384.pt", Family::Vjepa2_1, "vjepa2_1_vitb_dist_vitG_384", "mit", "https://dl.fbaipublicfiles.com/vjepa2/vjepa2_1_vitb_dist_vitG_384.pt", [384, 64]),
    file("vjepa2_1_vitl_dist_vitG_384.pt", Family::Vjepa2_1, "vjepa2_1_vitl_dist_vitG_384", "mit", "https://dl.fbaipublicfiles.com/vjepa2/vjepa2_1_vitl_dist_vitG_384.pt", [384, 64]),
    file("vjepa2_1_vitg_384.pt", Family::Vjepa2_1, "vjepa2_1_vitg_384", "mit", "https://dl.fbaipublicfiles.com/vjepa2/vjepa2_1_vitg_384.pt", [384, 64]),
    file("vjepa2_1_vitG_384.pt", Family::Vjepa2_1, "vjepa2_1_vitG_384", "mit", "https://dl.fbaipublicfiles.com/vjepa2/vjepa2_1_vitG_384.pt", [384, 64]),
];

/// Attention heads of the published encoders of a width. I-JEPA and V-JEPA 1 kept 16 heads where V-JEPA 2 keeps a head of 64.
pub(super) fn encoder_heads(family: Family, width: usize) -> Option<usize> {
    match (family, width) {
        (_, 1024 | 1280) | (Family::Ijepa | Family::Vjepa, 1408) => Some(16),
        (_, 768) => Some(12),
        (Family::Vjepa2 | Family::Vjepa2_1, 1408) => Some(22),
        (Family::Vjepa2_1, 1664) => Some(26),
        _ => None,
    }
}

/// Attention heads of the published predictors. I-JEPA's and V-JEPA 1's took the encoder's number.
pub(super) fn predictor_heads(family: Family, width: usize, encoder: usize) -> Option<usize> {
    match (family, width) {
        (Family::Ijepa | Family::Vjepa, 384) => Some(encoder),
        (Family::Vjepa2 | Family::Vjepa2_1, 384) => Some(12),
        (Family::Vjepa2, 1024) => Some(16),
        _ => None,
    }
}
