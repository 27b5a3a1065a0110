//! Every checkpoint layout there is, and how the one of a checkpoint is found in its content.

use super::config::Config;
use super::error::ConvertError;
use super::names::{EncoderChoice, Names, Naming};
use super::rows::Row;
use super::source::Source;
use super::{hfvit, ijepa, levjepa, lewm, vjepa, vjepa2, vjepa2_1, vjepa2_ac};
use crate::checkpoint::Checkpoint;
use crate::schema::{Family, Hparams};

/// Tensors that a layout leaves out: one name, or all names that start with it when it ends with a dot; and why.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drop(pub(super) &'static str, pub(super) &'static str);

impl Drop {
    pub(super) fn covers(self, name: &str) -> bool {
        if self.0.ends_with('.') { name.starts_with(self.0) } else { name == self.0 }
    }
}

/// One way in which checkpoints of a family are stored.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(super) family: Family,
    /// Its name, for messages.
    pub(super) name: &'static str,
    /// The published repositories it was made for.
    pub(super) repositories: &'static [&'static str],
    /// `model_type` in `config.json`, where there is one; empty for any.
    pub(super) model_types: &'static [&'static str],
    pub(super) naming: Naming,
    /// Tensors that are always there.
    pub(super) marks: &'static [&'static str],
    /// Tensors that are never there.
    pub(super) without: &'static [&'static str],
    /// What else tells it from others: says what is in the way.
    pub(super) fits: Option<fn(&Names<'_>) -> Option<&'static str>>,
    /// The mapping tables; the first row for a tensor counts.
    pub(crate) rows: &'static [&'static [Row]],
    pub(super) drops: &'static [Drop],
    /// Reads the hyper-parameters.
    pub(super) read: fn(&Source<'_>) -> Result<Hparams, ConvertError>,
}

/// Every layout. Of two that fit, one that names the checkpoint's `model_type` is taken before one that does not, then the first.
static LAYOUTS: &[Layout] = &[
    ijepa::HUB,
    ijepa::MEMORY,
    ijepa::META,
    hfvit::LITE_SSL,
    hfvit::DINOV2,
    hfvit::VIT,
    hfvit::VIT_MEMORY,
    levjepa::HUB,
    lewm::WEIGHTS,
    vjepa2::HUB,
    vjepa2_1::META,
    vjepa2_ac::META,
    vjepa::META,
    vjepa2::META,
];

/// A layout as documentation shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayoutInfo {
    /// The family.
    pub family: Family,
    /// Name of the layout.
    pub name: &'static str,
    /// The published repositories it was made for.
    pub repositories: &'static [&'static str],
}

/// Every checkpoint layout that can be converted.
pub fn layouts() -> impl Iterator<Item = LayoutInfo> {
    LAYOUTS.iter().map(|l| LayoutInfo { family: l.family, name: l.name, repositories: l.repositories })
}

/// Finds the layout of a checkpoint; `family` forces the family.
pub(super) fn recognise<'a>(
    checkpoint: &'a Checkpoint,
    config: Option<&Config>,
    family: Option<Family>,
    choice: Option<EncoderChoice>,
) -> Result<(&'static Layout, Names<'a>), ConvertError> {
    let model_type = config.map(|c| c.text_opt("model_type")).transpose()?.flatten();
    let mut closest: Option<(usize, &'static Layout, String)> = None;
    let (named, others): (Vec<&Layout>, Vec<&Layout>) = LAYOUTS
        .iter()
        .filter(|layout| family.is_none_or(|f| f == layout.family))
        .partition(|layout| model_type.is_some_and(|found| layout.model_types.contains(&found)));
    for layout in named.into_iter().chain(others) {
        let names = match Names::new(checkpoint, layout.naming, choice, true) {
            Ok(names) => names,
            // Where two names become one, the prefixes of this layout are none.
            Err(_) if family.is_none() => continue,
            Err(error) => return Err(error),
        };
        let Some((missing, what)) = misfit(layout, &names, model_type) else {
            if family.is_none() && !is_likely(layout, &names, checkpoint)? {
                continue;
            }
            return Ok((layout, Names::new(checkpoint, layout.naming, choice, false)?));
        };
        if closest.as_ref().is_none_or(|(fewest, ..)| missing < *fewest) {
            closest = Some((missing, layout, what));
        }
    }
    match (family, closest) {
        (Some(family), Some((_, layout, what))) => {
            Err(ConvertError::WrongFamily { family: family.word(), what, layout: layout.name })
        }
        _ => Err(ConvertError::Unrecognised {
            tensors: checkpoint.tensors().len(),
            first: checkpoint.tensors().first().map_or_else(|| "none".to_owned(), |t| t.name.clone()),
            known: Family::WORDS.join(", "),
        }),
    }
}

/// How many things keep a checkpoint from having a layout, and the first of them.
fn misfit(layout: &Layout, names: &Names<'_>, model_type: Option<&str>) -> Option<(usize, String)> {
    let mut misfits = Vec::new();
    let missing = layout.marks.iter().filter(|mark| names.get(mark).is_none());
    misfits.extend(missing.map(|mark| format!("tensor {mark} is missing")));
    let there = layout.without.iter().filter(|mark| names.get(mark).is_some());
    misfits.extend(there.map(|mark| format!("tensor {mark} is there and should not be")));
    misfits.extend(layout.fits.and_then(|fits| fits(names)).map(str::to_owned));
    if let Some(found) =
        model_type.filter(|found| !layout.model_types.is_empty() && !layout.model_types.contains(found))
    {
        misfits.push(format!("config.json: model_type is {found:.40?}, wanted {}", layout.model_types.join(" or ")));
    }
    let count = misfits.len();
    misfits.into_iter().next().map(|first| (count, first))
}

/// V-JEPA 1 and V-JEPA 2 checkpoints have the same names: the second may carry the position tables of the first without using them. Their
/// mask tokens tell them apart, ten in every released V-JEPA 2, and so does a table that was never filled. Who forces the family is not asked.
fn is_likely(layout: &Layout, names: &Names<'_>, checkpoint: &Checkpoint) -> Result<bool, ConvertError> {
    const V2_MASK_TOKENS: usize = 10;
    if layout.family != Family::Vjepa {
        return Ok(true);
    }
    if names.groups("predictor.mask_tokens.") >= V2_MASK_TOKENS {
        return Ok(false);
    }
    let table = names.get("encoder.pos_embed").map(|t| checkpoint.read(&t.name)).transpose()?;
    Ok(table.is_some_and(|values| values.iter().any(|&v| v != 0.0)))
}

fn patch_rank(names: &Names<'_>) -> usize {
    names.get("encoder.patch_embed.proj.weight").map_or(0, |t| t.shape.len())
}

/// For layouts of pictures.
pub(super) fn picture_patches(names: &Names<'_>) -> Option<&'static str> {
    (patch_rank(names) != 4).then_some("its patches are not cut out of pictures (a convolution of 4 dimensions)")
}

/// For layouts of clips.
pub(super) fn clip_patches(names: &Names<'_>) -> Option<&'static str> {
    (patch_rank(names) != 5).then_some("its patches are not cut out of clips (a convolution of 5 dimensions)")
}
