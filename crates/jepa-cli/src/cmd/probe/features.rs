//! Features of a dataset: computed once, then read back from the user's cache folder.

use std::collections::{HashMap, VecDeque};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use burn::prelude::*;
use jepa_models::{EncodeOptions, Entering, HeadReads, Jepa, ModelError, Pixels, Trace};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::dataset::Dataset;
use crate::args::{InputArgs, Shared};
use crate::cmd::memory::refuse_too_big;
use crate::cmd::model::model_error;
use crate::cmd::stream::{Consumer, Tally, Through};
use crate::exit::{CliError, say_on_stderr};
use crate::inputs::Cuts;
use crate::output::PartialFile;

/// The rows of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// One vector.
    Pooled,
    /// All tokens.
    Tokens,
    /// The tokens that enter a block.
    Entering(usize),
}

/// What is taken of every input.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// Pooling and layers.
    pub(super) reads: HeadReads,
    pub(super) takes: Takes,
    /// Random crops and mirror images besides.
    pub(super) augmented: usize,
    /// What these are drawn from.
    pub(super) seed: u64,
    /// Inputs encoded at once.
    pub(super) batch: usize,
}

/// Rows of features: for every input that could be read its plain view, then its random ones.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) values: Vec<f32>,
    pub(super) about: About,
}

/// What the rows are.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct About {
    pub(super) row_shape: Vec<usize>,
    /// The places in the dataset of the inputs that have rows, in the order of the rows.
    pub(super) places: Vec<usize>,
    /// Inputs that failed, and why.
    pub(super) failed: Vec<(String, String)>,
    /// Where tokens that enter a block stand.
    pub(super) entered: Option<Entered>,
    /// SHA-256 of the values: a disk may give back other bytes than it was given.
    pub(super) hash: Vec<u8>,
}

/// The grid of tokens that enter a block, and how many stand before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entered {
    /// Tubelets, rows and columns.
    pub(super) grid: [usize; 3],
    pub(super) prefix: usize,
}

/// The features of every input of `dataset`, and the name they are cached under.
///
/// # Errors
/// [`CliError::Model`] for a model whose features are no numbers, [`CliError::TooBig`] for features that no memory holds.
pub(super) fn extract<B: Backend>(
    model: &Jepa<B>,
    path: &Path,
    dataset: &Dataset,
    wanted: &Wanted,
    device: &B::Device,
    shared: &Shared,
) -> Result<(Rows, String), CliError> {
    let key = key(model, dataset, wanted, shared);
    let cached = cache_file(&key);
    if let Some(rows) = cached.as_deref().and_then(read) {
        if !shared.quiet {
            say_on_stderr(&format!("features: {} inputs, from the cache", rows.about.places.len()));
        }
        rows.about.failed.iter().for_each(|(name, error)| say_on_stderr(&format!("error: {name}: {error}")));
        return Ok((rows, key));
    }
    refuse_too_big::<B>(
        "the features of all inputs",
        bytes(model, dataset, wanted),
        "give fewer inputs, or train a linear probe",
    )?;
    let none = InputArgs::default();
    let refuse = |error| model_error(path, error);
    let through =
        Through::new(model, &none, wanted.reads.layers.len(), wanted.batch, device, shared).map_err(refuse)?;
    let cuts = Cuts { augmented: wanted.augmented, seed: wanted.seed, ..Cuts::WHOLE };
    let mut sink = Sink { model, path, wanted, places: dataset.places(), clips: cuts.clips(), rows: Rows::default() };
    let Tally { .. } = through.cut(cuts)?.run_inputs(&dataset.inputs, &mut sink)?;
    let mut rows = sink.rows;
    if let Some(cached) = cached {
        rows.about.hash = hash(pieces(&rows.values));
        // Features that cannot be kept are computed again the next time.
        let kept = write(&cached, &rows);
        if !shared.quiet {
            match kept {
                Ok(()) => say_on_stderr(&format!(
                    "features: {} inputs, kept in {}",
                    rows.about.places.len(),
                    cached.display()
                )),
                Err(error) => say_on_stderr(&format!("note: the features are not kept: {error}")),
            }
        }
    }
    Ok((rows, key))
}

/// About how many bytes the features take.
fn bytes<B: Backend>(model: &Jepa<B>, dataset: &Dataset, wanted: &Wanted) -> u64 {
    let config = model.encoder().config();
    let h = &config.hparams;
    let tokens = if wanted.takes == Takes::Pooled {
        1
    } else {
        config.native_grid().tokens() + usize::from(h.cls_token) + h.n_registers
    };
    let factors =
        [dataset.inputs.len(), 1 + wanted.augmented, wanted.reads.layers.len().max(1), tokens, h.embed_dim, 4];
    factors.iter().fold(1, |product: u64, &n| product.saturating_mul(n as u64))
}

struct Sink<'a, B: Backend> {
    model: &'a Jepa<B>,
    path: &'a Path,
    wanted: &'a Wanted,
    places: HashMap<&'a str, VecDeque<usize>>,
    clips: usize,
    rows: Rows,
}

impl<B: Backend> Sink<'_, B> {
    fn place_of(&mut self, name: &str) -> usize {
        self.places.get_mut(name).and_then(VecDeque::pop_front).expect("every input comes back once, by its name")
    }
}

impl<B: Backend> Sink<'_, B> {
    /// **Shapes** `[batch, chans, frames, height, width]` → `[batch, ..]`.
    fn features(&mut self, pixels: Pixels<B>) -> Result<TensorData, ModelError> {
        let Wanted { reads, takes, .. } = self.wanted;
        let encoder = self.model.encoder();
        if let Takes::Entering(first) = takes {
            let Entering { tokens, grid, prefix } = encoder.encode_until(pixels, *first)?;
            self.rows.about.entered = Some(Entered { grid: [grid.frames, grid.rows, grid.cols], prefix });
            return Ok(tokens.into_data());
        }
        let options = EncodeOptions { layers: &reads.layers, ..Default::default() };
        let out = encoder.encode_with(pixels, options, &mut Trace::none())?;
        Ok(if *takes == Takes::Pooled { out.pooled_for(reads)?.into_data() } else { out.joined_layers().into_data() })
    }
}

impl<B: Backend> Consumer<B> for Sink<'_, B> {
    fn push(&mut self, names: &[String], pixels: Pixels<B>) -> Result<Vec<(String, String)>, CliError> {
        let features = self.features(pixels);
        let all_failed = |error: String| Ok(names.iter().map(|name| (name.clone(), error.clone())).collect());
        let data = match features {
            Ok(data) => data,
            Err(error) => return all_failed(error.to_string()),
        };
        let shape = data.shape[1..].to_vec();
        let about = &mut self.rows.about;
        if about.row_shape.is_empty() {
            about.row_shape.clone_from(&shape);
        }
        if about.row_shape != shape {
            let wanted = &about.row_shape;
            return all_failed(format!(
                "features of shape {shape:?}, those before have {wanted:?}; clips must have equally many frames"
            ));
        }
        let values: Vec<f32> = data.iter::<f32>().collect();
        let width = self.clips * shape.iter().product::<usize>();
        for (name, row) in names.iter().zip(values.chunks_exact(width)) {
            if row.iter().any(|v| !v.is_finite()) {
                return Err(model_error(self.path, ModelError::NoNumbers { what: format!("features of {name}") }));
            }
            let place = self.place_of(name);
            self.rows.about.places.push(place);
            self.rows.values.extend_from_slice(row);
        }
        Ok(Vec::new())
    }

    fn failed(&mut self, name: &str, error: &str) -> Result<(), CliError> {
        self.place_of(name);
        self.rows.about.failed.push((name.to_owned(), error.to_owned()));
        Ok(())
    }
}

/// The name under which features are kept: a hash of all that they depend on. The encoder's weights and the keys of encoder and preprocessing count,
/// the head does not; of an input its name, length and time of change count.
fn key<B: Backend>(model: &Jepa<B>, dataset: &Dataset, wanted: &Wanted, shared: &Shared) -> String {
    let mut hash = Sha256::new();
    let Wanted { reads, takes, augmented, seed, .. } = wanted;
    let seed = if *augmented > 0 { *seed } else { 0 };
    hash.update(format!(
        "jepa-cli {} {} {} {} {reads:?} {takes:?} {augmented} {seed}\n",
        env!("CARGO_PKG_VERSION"),
        std::any::type_name::<B>(),
        shared.precision.word(),
        shared.dtype.dtype().name()
    ));
    let file = model.bundle().gguf();
    for (key, value) in file.metadata().iter() {
        if ["jepa.family", "jepa.enc.", "jepa.pre."].iter().any(|part| key.starts_with(part)) {
            hash.update(format!("{key} {value:?}\n"));
        }
    }
    for info in file.tensors().iter().filter(|info| info.name().starts_with("enc.")) {
        hash.update(format!("{} {:?} {}\n", info.name(), info.shape(), info.dtype()));
        hash.update(file.tensor(info.name()).expect("its name came from this file").bytes());
    }
    for input in &dataset.inputs {
        hash.update(format!("{:?}\n", input.name));
        for path in input.files() {
            let found = fs::metadata(path).ok();
            let changed = found.as_ref().and_then(|found| found.modified().ok()?.duration_since(UNIX_EPOCH).ok());
            hash.update(format!("{path:?} {:?} {changed:?}\n", found.map(|found| found.len())));
        }
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn cache_file(key: &str) -> Option<PathBuf> {
    Some(dirs::cache_dir()?.join("jepa-cli").join("features").join(format!("{key}.features")))
}

/// A file of features: length of what is said about them, that as JSON, the values. `None` for one that is not there or not whole.
fn read(path: &Path) -> Option<Rows> {
    let mut file = File::open(path).ok()?;
    let mut length = [0; 8];
    file.read_exact(&mut length).ok()?;
    let all = file.metadata().ok()?.len();
    let length = u64::from_le_bytes(length);
    let rest = all.checked_sub(8)?.checked_sub(length)?;
    let mut about = vec![0; length as usize];
    file.read_exact(&mut about).ok()?;
    let about: About = serde_json::from_slice(&about).ok()?;
    let mut bytes = Vec::with_capacity(rest as usize);
    file.read_to_end(&mut bytes).ok()?;
    let whole = bytes.len() as u64 == rest && bytes.len() % 4 == 0 && hash(bytes.chunks(1 << 16)) == about.hash;
    let values = bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    whole.then_some(Rows { values, about })
}

fn hash(parts: impl Iterator<Item: AsRef<[u8]>>) -> Vec<u8> {
    parts.fold(Sha256::new(), |hash, part| hash.chain_update(part)).finalize().to_vec()
}

/// Values as they lie in the file, piece by piece.
fn pieces(values: &[f32]) -> impl Iterator<Item = Vec<u8>> {
    values.chunks(1 << 16).map(|values| values.iter().flat_map(|v| v.to_le_bytes()).collect())
}

fn write(path: &Path, rows: &Rows) -> Result<(), CliError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| CliError::output(folder, error))?;
    }
    let about = serde_json::to_vec(&rows.about).expect("names and numbers have a form in JSON");
    let mut file = PartialFile::create(path)?;
    file.write(&(about.len() as u64).to_le_bytes())?;
    file.write(&about)?;
    for bytes in pieces(&rows.values) {
        file.write(&bytes)?;
    }
    file.finish()
}
