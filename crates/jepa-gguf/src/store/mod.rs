//! `GgufStore`: Burn modules from and to GGUF files, as a store beside Burn's own.

mod bundle_writer;
mod load;
mod names;
mod save;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use burn::tensor::{DType, backend::Backend};
use burn_store::{ApplyResult, ModuleSnapshot, ModuleStore, PathFilter, TensorSnapshot};

pub use bundle_writer::{BundleWriter, WritingBundle};

use crate::bundle::Bundle;
use crate::error::GgufError;
use crate::file::Gguf;
use crate::value::Metadata;

/// Where a store gets its tensors from or puts them.
#[derive(Clone, Debug)]
enum Side {
    Load(Arc<Gguf>),
    Save { path: PathBuf, metadata: Metadata },
}

/// Loads modules from a GGUF file, or saves one to it.
///
/// Fields of a module are named after the schema, so that a parameter's path is its tensor's name. Three things differ between the two and are
/// taken care of: a matrix called `….weight` is stored `[out, in]` while Burn's linear layers have `[in, out]`; a norm's `weight` and `bias` are
/// Burn's `gamma` and `beta`; and a store with a [`prefix`](Self::prefix) serves the module below that name.
///
/// Loading reads one tensor at a time, straight from the file, as the module asks for it; quantised tensors are unpacked. Saving writes f32.
///
/// ```no_run
/// use burn::module::Module;
/// use burn::tensor::backend::Backend;
/// use burn_store::ModuleSnapshot;
/// use jepa_gguf::{Bundle, GgufError, GgufStore};
///
/// fn load<B: Backend, M: ModuleSnapshot<B>>(encoder: &mut M, bundle: &Bundle) -> Result<(), GgufError> {
///     encoder.load_from(&mut GgufStore::from_bundle(bundle).prefix("enc."))?;
///     Ok(())
/// }
/// ```
pub struct GgufStore {
    side: Side,
    prefix: String,
    allow_partial: bool,
    skip_enum_variants: bool,
    wanted: Option<fn(&str, &str) -> bool>,
    dtype: DType,
    /// Built on first use, dropped when an option changes.
    snapshots: Option<BTreeMap<String, TensorSnapshot>>,
}

impl GgufStore {
    /// A store that loads from a bundle.
    pub fn from_bundle(bundle: &Bundle) -> Self {
        Self::from_gguf(Arc::clone(bundle.gguf()))
    }

    /// A store that loads from an open file, which need not be a bundle.
    pub fn from_gguf(file: Arc<Gguf>) -> Self {
        Self::new(Side::Load(file))
    }

    /// A store that loads from a file, which need not be a bundle.
    ///
    /// # Errors
    /// As [`Gguf::open`].
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, GgufError> {
        Gguf::open(path).map(Arc::new).map(Self::from_gguf)
    }

    /// A store that saves to a file, which appears when a module has been saved completely.
    pub fn to_file(path: impl AsRef<Path>) -> Self {
        Self::new(Side::Save { path: path.as_ref().to_owned(), metadata: Metadata::default() })
    }

    fn new(side: Side) -> Self {
        let prefix = String::new();
        Self {
            side,
            prefix,
            allow_partial: false,
            skip_enum_variants: false,
            wanted: None,
            dtype: DType::F32,
            snapshots: None,
        }
    }

    /// Serves the module whose tensors start with `prefix`, such as `enc.`; other tensors of the file are left alone.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self.snapshots = None;
        self
    }

    /// Whether parameters without a tensor keep their values, and tensors without a parameter are left alone. Otherwise both are errors.
    #[must_use]
    pub fn allow_partial(mut self, allow: bool) -> Self {
        self.allow_partial = allow;
        self
    }

    /// Whether the variants of enums are left out of the parameters' paths.
    #[must_use]
    pub fn skip_enum_variants(mut self, skip: bool) -> Self {
        self.skip_enum_variants = skip;
        self
    }

    /// Loads only the parameters for which `wanted` holds, given their path (`blk.0.ln1.gamma`) and the types of the modules around them. The others
    /// keep their values, or stay uninitialised, and are no error.
    #[must_use]
    pub fn only(mut self, wanted: fn(&str, &str) -> bool) -> Self {
        self.wanted = Some(wanted);
        self
    }

    /// The type of the parameters of linear layers: f32 (the default), f16 or bf16. Norms, tables and tokens are f32 whatever is asked for: they are
    /// small, and what they are added to or multiplied with is f32.
    ///
    /// # Errors
    /// None here; loading with another type fails.
    #[must_use]
    pub fn dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self.snapshots = None;
        self
    }

    /// The keys of a file that is saved, `general.architecture` and all. No effect on a store that loads.
    #[must_use]
    pub fn metadata(mut self, keys: Metadata) -> Self {
        if let Side::Save { metadata, .. } = &mut self.side {
            *metadata = keys;
        }
        self
    }

    fn snapshots(&mut self) -> Result<&BTreeMap<String, TensorSnapshot>, GgufError> {
        let Side::Load(file) = &self.side else {
            return Err(GgufError::StoreDirection { can: "save", asked: "load" });
        };
        if self.snapshots.is_none() {
            self.snapshots = Some(load::snapshots(file, &self.prefix, self.dtype)?);
        }
        Ok(self.snapshots.as_ref().expect("it was built just before"))
    }
}

impl std::fmt::Debug for GgufStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GgufStore")
            .field("side", &self.side)
            .field("prefix", &self.prefix)
            .field("dtype", &self.dtype)
            .field("allow_partial", &self.allow_partial)
            .finish_non_exhaustive()
    }
}

impl ModuleStore for GgufStore {
    type Error = GgufError;

    fn collect_from<B: Backend, M: ModuleSnapshot<B>>(&mut self, module: &M) -> Result<(), GgufError> {
        let Side::Save { path, metadata } = &self.side else {
            return Err(GgufError::StoreDirection { can: "load", asked: "save" });
        };
        let snapshots = module.collect(None, None, self.skip_enum_variants);
        save::write(&snapshots, &self.prefix, metadata.clone(), path)
    }

    fn apply_to<B: Backend, M: ModuleSnapshot<B>>(&mut self, module: &mut M) -> Result<ApplyResult, GgufError> {
        let snapshots = self.snapshots()?.values().cloned().collect();
        let filter = self.wanted.map(|wanted| PathFilter::new().with_predicate(wanted));
        let result = module.apply(snapshots, filter, None, self.skip_enum_variants);
        load::verdict(&result, &self.prefix, self.allow_partial)?;
        Ok(result)
    }

    fn get_snapshot(&mut self, name: &str) -> Result<Option<&TensorSnapshot>, GgufError> {
        Ok(self.snapshots()?.get(name))
    }

    fn get_all_snapshots(&mut self) -> Result<&BTreeMap<String, TensorSnapshot>, GgufError> {
        self.snapshots()
    }

    fn keys(&mut self) -> Result<Vec<String>, GgufError> {
        Ok(self.snapshots()?.keys().cloned().collect())
    }
}
