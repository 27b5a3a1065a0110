//! What a parity case says: `case.json`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jepa_models::Bar;
use serde::Deserialize;
use serde_json::Value;

use super::ParityError;

/// Largest `case.json` that is read.
const MAX_JSON_BYTES: u64 = 64 << 20;

/// A parity case.
#[derive(Debug, Deserialize)]
pub struct Case {
    /// Its name.
    pub name: String,
    #[serde(skip)]
    folder: PathBuf,
    models: BTreeMap<String, String>,
    tolerance: Tolerance,
    tests: Vec<Test>,
    quant: Option<Quant>,
    /// `expect`, `expect_f16`, …: the file of outputs for each model type.
    #[serde(flatten)]
    other: BTreeMap<String, Value>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct Tolerance {
    cos_min: f64,
    rel_max: f64,
}

/// One test of a case.
#[derive(Clone, Debug, Deserialize)]
pub struct Test {
    /// Its id, unique in the case.
    pub id: String,
    /// What is computed.
    pub kind: String,
    /// Tensor names of the inputs, by role.
    #[serde(default)]
    pub inputs: BTreeMap<String, String>,
    /// Tensor names of the expected outputs, by role.
    #[serde(default)]
    pub outputs: BTreeMap<String, String>,
    /// How it is computed.
    #[serde(default)]
    pub options: Options,
    /// Outputs that follow another convention.
    #[serde(default)]
    pub optional_outputs: Vec<String>,
}

/// Options of a test.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Options {
    /// `mean` or `cls`: how `pooled` was made.
    pub pooling: Option<String>,
    /// Rule by which a stored position table is resized: `bicubic_offset01`, `bicubic_size`, `bicubic_antialias`, `trilinear`.
    pub pos_interp: Option<String>,
    /// Which mask token stands for the targets.
    pub mask_index: Option<usize>,
    /// `image` or `video`: what the predictor is told.
    pub modality: Option<String>,
    /// The planner's settings, in the words of the reference's function.
    #[serde(flatten)]
    pub planner: Option<PlannerOptions>,
}

/// The planner's settings.
#[derive(Clone, Copy, Debug, Deserialize)]
#[allow(missing_docs, reason = "the names are those of the reference's function")]
pub struct PlannerOptions {
    pub rollout: usize,
    pub samples: usize,
    pub topk: usize,
    pub cem_steps: usize,
    pub momentum_mean: f64,
    pub momentum_std: f64,
    pub momentum_mean_gripper: f64,
    pub momentum_std_gripper: f64,
    pub maxnorm: f64,
    pub close_gripper: Option<usize>,
}

#[derive(Debug, Deserialize)]
struct Quant {
    expect: String,
    #[serde(default)]
    inputs: Vec<String>,
    variants: Vec<QuantVariant>,
    #[serde(default)]
    tolerance: QuantTolerance,
}

#[derive(Debug, Deserialize)]
struct QuantTolerance {
    weights_dequantised: Tolerance,
}

/// What every quantised file must reach when its weights are dequantised and its activations are not quantised.
impl Default for QuantTolerance {
    fn default() -> Self {
        Self { weights_dequantised: Tolerance { cos_min: 0.9999, rel_max: 1e-3 } }
    }
}

#[derive(Debug, Deserialize)]
struct QuantVariant {
    #[serde(rename = "type")]
    model_type: String,
    file: String,
    outputs: BTreeMap<String, String>,
}

/// One model file of a case with what is expected of it.
#[derive(Clone, Debug)]
pub struct Variant {
    /// `f32`, `f16`, `q8_0` …
    pub model_type: String,
    /// The model file.
    pub model: PathBuf,
    /// File of the inputs.
    pub inputs: PathBuf,
    /// File of the expected outputs.
    pub expect: PathBuf,
    /// What every output must reach.
    pub bar: Bar,
    /// The tests.
    pub tests: Vec<Test>,
}

impl Case {
    /// Reads `folder/case.json`.
    ///
    /// # Errors
    /// [`ParityError::File`] when it is not there or not a case.
    pub fn read(folder: &Path) -> Result<Self, ParityError> {
        let path = folder.join("case.json");
        let fail = |what: String| ParityError::File { file: path.display().to_string(), what };
        let bytes = std::fs::metadata(&path).map_err(|error| fail(error.to_string()))?.len();
        if bytes > MAX_JSON_BYTES {
            return Err(fail(format!("{bytes} bytes, wanted at most {MAX_JSON_BYTES}")));
        }
        let text = std::fs::read_to_string(&path).map_err(|error| fail(error.to_string()))?;
        let case: Self = serde_json::from_str(&text).map_err(|error| fail(error.to_string()))?;
        Ok(Self { folder: folder.to_owned(), ..case })
    }

    /// The variants of type `wanted`, or all of them.
    ///
    /// # Errors
    /// [`ParityError::Type`] when there is none of that type, [`ParityError::File`] when a model has no file of expected outputs.
    pub fn variants(&self, wanted: Option<&str>) -> Result<Vec<Variant>, ParityError> {
        let mut variants = self
            .models
            .iter()
            .map(|(model_type, file)| self.variant(model_type, file))
            .collect::<Result<Vec<_>, _>>()?;
        if let Some(quant) = &self.quant {
            variants.extend(quant.variants.iter().map(|variant| self.quantised(quant, variant)));
        }
        let Some(wanted) = wanted else { return Ok(variants) };
        let found: Vec<_> = variants.iter().map(|variant| variant.model_type.clone()).collect();
        variants.retain(|variant| variant.model_type == wanted);
        if variants.is_empty() {
            return Err(ParityError::Type { wanted: wanted.to_owned(), found: found.join(", ") });
        }
        Ok(variants)
    }

    fn variant(&self, model_type: &str, file: &str) -> Result<Variant, ParityError> {
        let file_of = |key: String| match self.other.get(&key).and_then(Value::as_str) {
            Some(file) => Ok(self.folder.join(file)),
            None => Err(ParityError::File {
                file: self.folder.join("case.json").display().to_string(),
                what: format!("there is no `{key}` for the {model_type} model"),
            }),
        };
        Ok(Variant {
            model_type: model_type.to_owned(),
            model: self.folder.join(file),
            inputs: file_of("expect".into())?,
            expect: file_of(if model_type == "f32" { "expect".into() } else { format!("expect_{model_type}") })?,
            bar: self.tolerance.into(),
            tests: self.tests.clone(),
        })
    }

    /// A quantised file has one test: its outputs for the case's quantisation inputs.
    fn quantised(&self, quant: &Quant, variant: &QuantVariant) -> Variant {
        let expect = self.folder.join(&quant.expect);
        let test = Test {
            id: "quant".into(),
            kind: "quant".into(),
            inputs: quant.inputs.iter().map(|name| (name.clone(), name.clone())).collect(),
            outputs: variant.outputs.clone(),
            options: Options::default(),
            optional_outputs: Vec::new(),
        };
        Variant {
            model_type: variant.model_type.clone(),
            model: self.folder.join(&variant.file),
            inputs: expect.clone(),
            expect,
            bar: quant.tolerance.weights_dequantised.into(),
            tests: vec![test],
        }
    }
}

impl From<Tolerance> for Bar {
    fn from(Tolerance { cos_min, rel_max }: Tolerance) -> Self {
        Self { cos_min, rel_max }
    }
}
