//! A whole bundle from an open one, or from hyper-parameters, with modules in it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use burn::tensor::backend::Backend;
use burn_store::{ModuleSnapshot, TensorSnapshot};

use super::save;
use crate::bundle::{Bundle, check_head};
use crate::convert::{head_keys, metadata};
use crate::dtype::GgmlType;
use crate::error::GgufError;
use crate::file::Gguf;
use crate::quantize::copy;
use crate::schema::{HeadHparams, Hparams};
use crate::value::{Metadata, Value};
use crate::writer::{GgufWriter, TensorWriter};

/// A bundle to be: keys and tensors of an open bundle, or the keys of hyper-parameters, and the parameters of modules.
///
/// Tensors of the open bundle keep their type and are copied byte for byte, straight from the file, unless a module replaces them; parameters are
/// written as f32. What is written is checked by the reader before it appears, so that keys and modules that do not belong together leave nothing
/// behind. The output may be the file that is open: it is replaced, not truncated.
///
/// ```no_run
/// use burn::module::Module;
/// use burn::tensor::backend::Backend;
/// use burn_store::ModuleSnapshot;
/// use jepa_gguf::schema::{HeadHparams, HeadKind};
/// use jepa_gguf::{Bundle, BundleWriter, GgufError};
///
/// fn add_head<B: Backend, M: ModuleSnapshot<B>>(bundle: &Bundle, head: &M) -> Result<(), GgufError> {
///     let keys = HeadHparams::new(HeadKind::LinearCls, 8, None);
///     let mut writer = BundleWriter::from_bundle(bundle);
///     writer.set_head(&keys).put_module("head.", head);
///     writer.start("with-a-head.gguf")?.finish()
/// }
/// ```
#[derive(Debug)]
pub struct BundleWriter {
    base: Option<Arc<Gguf>>,
    metadata: Metadata,
    /// Starts of the names of tensors that are not copied.
    dropped: Vec<String>,
    /// Parameters under their tensors' names, in the order in which they came.
    parameters: Vec<(String, TensorSnapshot)>,
    places: HashMap<String, usize>,
}

impl BundleWriter {
    /// Starts with all keys and tensors of a bundle.
    pub fn from_bundle(bundle: &Bundle) -> Self {
        Self::new(Some(Arc::clone(bundle.gguf())), bundle.gguf().metadata().clone())
    }

    /// Starts with the keys of a bundle with these hyper-parameters, and no tensor.
    pub fn from_hparams(hparams: &Hparams) -> Self {
        Self::new(None, metadata(hparams, GgmlType::F32))
    }

    fn new(base: Option<Arc<Gguf>>, metadata: Metadata) -> Self {
        Self { base, metadata, dropped: Vec::new(), parameters: Vec::new(), places: HashMap::new() }
    }

    /// Replaces the value of a key where it stands, or adds the key behind the others.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<Value>) -> &mut Self {
        self.metadata.set(key, value);
        self
    }

    /// Replaces the head's keys by those of `head` and leaves the tensors of the head there was behind.
    pub fn set_head(&mut self, head: &HeadHparams) -> &mut Self {
        let keys = self.metadata.iter().map(|(key, _)| key.to_owned());
        for key in keys.filter(|key| key.starts_with("jepa.head.")).collect::<Vec<_>>() {
            self.metadata.remove(&key);
        }
        head_keys(&mut self.metadata, Some(head));
        self.drop_tensors("head.")
    }

    /// Leaves the tensors of the open bundle whose names start with `prefix` behind.
    pub fn drop_tensors(&mut self, prefix: impl Into<String>) -> &mut Self {
        self.dropped.push(prefix.into());
        self
    }

    /// Puts the parameters of `module` below `prefix`, such as `head.` or `enc.`, in place of the tensors with their names or behind the others.
    ///
    /// The values are those of the module at this moment; they are read when they are written.
    pub fn put_module<B: Backend, M: ModuleSnapshot<B>>(&mut self, prefix: &str, module: &M) -> &mut Self {
        for parameter in module.collect(None, None, true) {
            let name = save::tensor_name(prefix, &parameter);
            match self.places.get(&name) {
                Some(&place) => self.parameters[place].1 = parameter,
                None => {
                    self.places.insert(name.clone(), self.parameters.len());
                    self.parameters.push((name, parameter));
                }
            }
        }
        self
    }

    /// Checks keys and tensors against the schema and opens a temporary file beside `path`; [`WritingBundle::finish`] fills it and gives it its name.
    ///
    /// # Errors
    /// Any breach of the schema, [`GgufError::Module`] for a parameter that is no float, or the file cannot be written.
    pub fn start(&self, path: impl AsRef<Path>) -> Result<WritingBundle<'_>, GgufError> {
        let mut head = GgufWriter::new(self.metadata.clone());
        let mut tensors = Vec::new();
        for info in self.base.iter().flat_map(|base| base.tensors()) {
            match self.places.get(info.name()) {
                Some(&place) => {
                    save::declare(&mut head, info.name(), &self.parameters[place].1)?;
                    tensors.push(Source::Parameter(place));
                }
                None if self.dropped.iter().any(|prefix| info.name().starts_with(prefix)) => {}
                None => {
                    head.declare(info.name(), info.shape(), info.dtype())?;
                    tensors.push(Source::File(info.name()));
                }
            }
        }
        let in_file = |name: &str| self.base.as_ref().is_some_and(|base| base.tensor(name).is_some());
        for (place, (name, parameter)) in self.parameters.iter().enumerate().filter(|(_, (name, _))| !in_file(name)) {
            save::declare(&mut head, name, parameter)?;
            tensors.push(Source::Parameter(place));
        }
        let hparams = check_head(self.metadata.clone(), head.tensors().to_vec())?;
        Ok(WritingBundle { writer: self, tensors, hparams, out: head.create(path)? })
    }
}

/// Where the values of a tensor come from.
#[derive(Debug)]
enum Source<'a> {
    /// The tensor of this name in the open bundle.
    File(&'a str),
    /// A parameter, by its place.
    Parameter(usize),
}

/// A bundle whose file has been opened.
///
/// Dropped before [`WritingBundle::finish`] it leaves nothing behind.
#[derive(Debug)]
pub struct WritingBundle<'a> {
    writer: &'a BundleWriter,
    tensors: Vec<Source<'a>>,
    hparams: Hparams,
    out: TensorWriter,
}

impl WritingBundle<'_> {
    /// The temporary file, for who has to remove it when the process is told to end.
    pub fn temporary_path(&self) -> &Path {
        self.out.temporary_path()
    }

    /// Writes all tensors, reads the file back as a bundle, and gives it its name. A file that had the name before is replaced.
    ///
    /// # Errors
    /// [`GgufError::Module`] for a parameter that cannot be read, [`GgufError::ReadBack`], or the file cannot be written. Then nothing appears under
    /// the name.
    pub fn finish(mut self) -> Result<(), GgufError> {
        for source in &self.tensors {
            match (source, &self.writer.base) {
                (Source::Parameter(place), _) => {
                    let (name, parameter) = &self.writer.parameters[*place];
                    save::put(&mut self.out, name, parameter)?;
                }
                (Source::File(name), Some(base)) => {
                    self.out.start(name)?;
                    copy(&base.tensor(name).expect("its name came from this file"), &mut self.out)?;
                    base.release(name);
                }
                (Source::File(_), None) => unreachable!("without an open bundle no tensor comes from one"),
            }
        }
        let planned = self.hparams;
        self.out.finish_checked(|file| match Bundle::from_gguf(file)?.hparams() {
            found if *found == planned => Ok(()),
            _ => Err(GgufError::ReadBack { what: "the hyper-parameters" }),
        })
    }
}
