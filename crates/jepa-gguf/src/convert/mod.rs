//! From published checkpoints to bundles.
//!
//! A [`Conversion`] is planned first: the family is found in the names of the tensors and in `config.json`, every number of the schema is read and
//! cross-checked, and every tensor of the checkpoint is either mapped, left out with a reason, or refused by name. Then the bundle is written tensor
//! by tensor. The bytes depend on the checkpoint and the options alone.
//!
//! ```no_run
//! use jepa_gguf::convert::{Conversion, Options};
//!
//! let conversion = Conversion::plan("vjepa2-vitl-fpc64-256".as_ref(), &Options::default())?;
//! println!("{}, {} tensors", conversion.hparams().family, conversion.tensors().len());
//! conversion.start("vjepa2-vitl-fpc64-256-f16.gguf".as_ref())?.finish(|_| ())?;
//! # Ok::<(), jepa_gguf::convert::ConvertError>(())
//! ```

mod blocks;
mod card;
mod config;
mod error;
pub(crate) mod hfvit;
mod hints;
pub(crate) mod ijepa;
pub(crate) mod labels;
mod levjepa;
mod lewm;
mod metadata;
mod names;
mod processor;
mod published;
mod recipe;
mod registry;
mod rows;
mod sizes;
mod source;
mod vjepa;
pub(crate) mod vjepa2;
mod vjepa2_1;
mod vjepa2_ac;
mod write;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

pub use error::ConvertError;
pub use hints::{Hint, Hints};
pub use names::{Dropped, EncoderChoice};
pub use registry::{LayoutInfo, layouts};
pub use write::Writing;

use crate::bundle::check_head;
use crate::checkpoint::Checkpoint;
use crate::dtype::GgmlType;
use crate::schema::{Family, Hparams, expected_tensors};
use crate::value::Metadata;
use crate::writer::GgufWriter;
pub(crate) use card::OWN_OBJECT;
#[cfg(feature = "burn")]
pub(crate) use metadata::{head_keys, metadata};
pub(crate) use registry::Layout;
pub(crate) use rows::{Take, fill, find};

use card::Card;
use config::Config;
use names::Names;
use published::PublishedFile;
use recipe::Recipe;
use source::Source;

/// What to make of a checkpoint.
#[derive(Clone, Debug)]
pub struct Options {
    /// The family, where the content is not to decide.
    pub family: Option<Family>,
    /// The encoder of a training checkpoint; `None` for the one that the family's reference uses.
    pub encoder: Option<EncoderChoice>,
    /// What the checkpoint does not say.
    pub hints: Hints,
    /// Type of the large matrices.
    pub dtype: GgmlType,
}

impl Default for Options {
    fn default() -> Self {
        Self { family: None, encoder: None, hints: Hints::default(), dtype: GgmlType::F16 }
    }
}

/// One tensor of a bundle to be.
#[derive(Clone, Debug)]
pub struct ConvertedTensor {
    name: String,
    shape: Vec<usize>,
    dtype: GgmlType,
    recipe: Recipe,
}

impl ConvertedTensor {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its shape, rows first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// How it will be stored.
    pub fn dtype(&self) -> GgmlType {
        self.dtype
    }

    /// The tensors of the checkpoint that it is made of.
    pub fn sources(&self) -> Vec<&str> {
        self.recipe.sources()
    }
}

/// A checkpoint whose every tensor has a place.
#[derive(Debug)]
pub struct Conversion {
    path: PathBuf,
    checkpoint: Checkpoint,
    layout: &'static Layout,
    hparams: Hparams,
    dtype: GgmlType,
    tensors: Vec<ConvertedTensor>,
    dropped: Vec<Dropped>,
}

impl Conversion {
    /// Opens a checkpoint, a file or a folder, and decides what becomes of it. No weights are read, except where a table has to tell two families
    /// apart.
    ///
    /// # Errors
    /// See [`ConvertError`]: the checkpoint is damaged, unknown, incomplete, has more than its layout, or is at odds with its configuration or the
    /// hints.
    pub fn plan(path: &Path, options: &Options) -> Result<Self, ConvertError> {
        let checkpoint = Checkpoint::open(path)?;
        let folder = folder_of(path);
        let config = folder.map(|folder| Config::open(folder, "config.json")).transpose()?.flatten();
        let (layout, names) = registry::recognise(&checkpoint, config.as_ref(), options.family, options.encoder)?;
        let published = path.file_name().and_then(|name| name.to_str()).and_then(PublishedFile::by_name);
        let published = published.filter(|file| file.family == layout.family);
        let source = Source { names: &names, config: config.as_ref(), hints: &options.hints, folder, published };
        let Card { name, license, source_url } = Card::read(folder, config.as_ref(), published)?;
        let hparams = Hparams { name, license, source_url, ..(layout.read)(&source)? };
        options.hints.check(&hparams)?;
        let (tensors, dropped) = map(layout, &names, &hparams, options.dtype)?;
        let conversion =
            Conversion { path: path.to_owned(), layout, hparams, dtype: options.dtype, tensors, dropped, checkpoint };
        conversion.check()?;
        Ok(conversion)
    }

    /// Every number of the bundle.
    pub fn hparams(&self) -> &Hparams {
        &self.hparams
    }

    /// The layout that was recognised.
    pub fn layout(&self) -> LayoutInfo {
        LayoutInfo { family: self.layout.family, name: self.layout.name, repositories: self.layout.repositories }
    }

    /// The keys that the file will have.
    pub fn metadata(&self) -> Metadata {
        metadata::metadata(&self.hparams, self.dtype)
    }

    /// Every tensor, in the order that the file will have.
    pub fn tensors(&self) -> &[ConvertedTensor] {
        &self.tensors
    }

    /// The tensors of the checkpoint that are left out.
    pub fn dropped(&self) -> &[Dropped] {
        &self.dropped
    }

    /// Type of the large matrices.
    pub fn dtype(&self) -> GgmlType {
        self.dtype
    }

    /// Length in bytes of the file that will be written.
    ///
    /// # Errors
    /// [`ConvertError::Schema`] for a file that cannot be.
    pub fn file_len(&self) -> Result<u64, ConvertError> {
        self.head()?.file_len().map_err(|source| ConvertError::Schema { source })
    }

    /// The keys and the tensor table of the file.
    fn head(&self) -> Result<GgufWriter, ConvertError> {
        let mut head = GgufWriter::new(self.metadata());
        for tensor in &self.tensors {
            let declared = head.declare(&tensor.name, &tensor.shape, tensor.dtype);
            declared.map_err(|source| ConvertError::Schema { source })?;
        }
        Ok(head)
    }

    /// Reads the file to be as a reader will, before any weight is converted.
    fn check(&self) -> Result<(), ConvertError> {
        let read = check_head(self.metadata(), self.head()?.tensors().to_vec());
        let read = read.map_err(|source| ConvertError::Schema { source })?;
        if read == self.hparams {
            return Ok(());
        }
        Err(ConvertError::Schema { source: crate::GgufError::ReadBack { what: "the hyper-parameters" } })
    }
}

/// The folder whose other files belong to a checkpoint: the one that was given, or the one around a file that such folders keep their weights in.
fn folder_of(path: &Path) -> Option<&Path> {
    if path.is_dir() {
        return Some(path);
    }
    let name = path.file_name()?.to_str()?;
    let kept =
        matches!(name, "model.safetensors" | "model.safetensors.index.json" | "pytorch_model.bin" | "weights.pt");
    kept.then(|| path.parent()).flatten()
}

/// A place for every tensor of the bundle and of the checkpoint.
fn map(
    layout: &'static Layout,
    names: &Names<'_>,
    hp: &Hparams,
    dtype: GgmlType,
) -> Result<(Vec<ConvertedTensor>, Vec<Dropped>), ConvertError> {
    let last = hp.enc.hier_layers.len().saturating_sub(1);
    let mut tensors = Vec::new();
    for expected in expected_tensors(hp) {
        let recipe = recipe::resolve(names, layout.rows, &expected, last)?;
        let row = expected.shape.last().copied().unwrap_or(1);
        let dtype = expected.types.stored_as(dtype, row);
        tensors.push(ConvertedTensor { name: expected.name, shape: expected.shape, dtype, recipe });
    }
    let used: HashSet<String> = tensors.iter().flat_map(|t| t.sources()).map(str::to_owned).collect();
    let mut dropped = names.set_aside().to_vec();
    for (name, tensor) in names.iter().filter(|(_, tensor)| !used.contains(&tensor.name)) {
        match layout.drops.iter().find(|drop| drop.covers(name)) {
            Some(drop) => dropped.push(Dropped { tensor: tensor.name.clone(), why: drop.1 }),
            None => {
                return Err(ConvertError::SurplusTensor {
                    tensor: tensor.name.clone(),
                    shape: tensor.shape.clone(),
                    family: layout.family.word(),
                    layout: layout.name,
                });
            }
        }
    }
    block_by_block(&mut tensors);
    Ok((tensors, dropped))
}

/// Brings tensors from the order of the schema's table, which goes name by name through all blocks, into that of the published files.
fn block_by_block(tensors: &mut [ConvertedTensor]) {
    let mut first: HashMap<String, usize> = HashMap::new();
    let place = |name: &str| match name.split_once(".blk.") {
        Some((stack, rest)) => {
            let block = rest.split('.').next().and_then(|n| n.parse().ok()).unwrap_or(0);
            (format!("{stack}.blk"), block)
        }
        None => (name.to_owned(), 0),
    };
    for (at, tensor) in tensors.iter().enumerate() {
        first.entry(place(&tensor.name).0).or_insert(at);
    }
    tensors.sort_by_key(|tensor| {
        let (stack, block) = place(&tensor.name);
        (first.get(&stack).copied(), block)
    });
}
