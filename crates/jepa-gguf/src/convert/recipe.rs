//! From a row of a mapping table to numbers: which tensors to read, checked against the shape wanted, and how to join them.

use super::error::ConvertError;
use super::names::Names;
use super::rows::{Row, Take, fill, find};
use crate::checkpoint::{Checkpoint, SourceTensor, SourceType};
use crate::schema::ExpectedTensor;

/// Epsilon of torch's BatchNorm, which no checkpoint states.
const BATCH_NORM_EPS: f64 = 1e-5;

/// How one tensor of the bundle is made. Names are those of the checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Recipe {
    /// Tensors one behind the other, as they are.
    Join(Vec<String>),
    /// Weight of a linear layer with a BatchNorm folded in: every row times `γ/√(var + eps)`.
    NormedWeight { weight: String, gamma: String, var: String },
    /// Its bias: `(b - mean)·γ/√(var + eps) + β`.
    NormedBias { bias: String, gamma: String, var: String, mean: String, beta: String },
    /// Product of two matrices: `outer [H, S]` times `inner [S, A]`.
    Product { outer: String, inner: String },
    /// `outer · inner + bias`, with `inner [S]`.
    Through { outer: String, inner: String, bias: String },
}

impl Recipe {
    /// The tensors it reads.
    pub(super) fn sources(&self) -> Vec<&str> {
        match self {
            Self::Join(parts) => parts.iter().map(String::as_str).collect(),
            Self::NormedWeight { weight, gamma, var } => vec![weight, gamma, var],
            Self::NormedBias { bias, gamma, var, mean, beta } => vec![bias, gamma, var, mean, beta],
            Self::Product { outer, inner } => vec![outer, inner],
            Self::Through { outer, inner, bias } => vec![outer, inner, bias],
        }
    }

    /// The numbers, row-major. Folds are computed in f64 and rounded once.
    pub(super) fn values(&self, checkpoint: &Checkpoint) -> Result<Vec<f32>, ConvertError> {
        let read = |name: &str| checkpoint.read(name);
        match self {
            Self::Join(parts) => match parts.as_slice() {
                [only] => Ok(read(only)?),
                parts => {
                    let mut all = Vec::new();
                    for part in parts {
                        all.append(&mut read(part)?);
                    }
                    Ok(all)
                }
            },
            Self::NormedWeight { weight, gamma, var } => {
                let mut weight = read(weight)?;
                let scales = scales(&read(gamma)?, &read(var)?);
                let columns = weight.len() / scales.len();
                for (row, scale) in weight.chunks_exact_mut(columns).zip(&scales) {
                    row.iter_mut().for_each(|w| *w = (f64::from(*w) * scale) as f32);
                }
                Ok(weight)
            }
            Self::NormedBias { bias, gamma, var, mean, beta } => {
                let scales = scales(&read(gamma)?, &read(var)?);
                let (mean, beta) = (read(mean)?, read(beta)?);
                let shifted = read(bias)?.into_iter().zip(mean).map(|(b, m)| f64::from(b) - f64::from(m));
                let scaled = shifted.zip(scales).map(|(b, s)| b * s);
                Ok(scaled.zip(beta).map(|(b, shift)| (b + f64::from(shift)) as f32).collect())
            }
            Self::Product { outer, inner } => {
                let (outer, inner) = (read(outer)?, read(inner)?);
                Ok(product(&outer, &inner, columns_between(checkpoint, self)))
            }
            Self::Through { outer, inner, bias } => {
                let (outer, inner, bias) = (read(outer)?, read(inner)?, read(bias)?);
                let dot = |row: &[f32]| row.iter().zip(&inner).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
                Ok(outer.chunks_exact(inner.len()).zip(bias).map(|(row, b)| (dot(row) + f64::from(b)) as f32).collect())
            }
        }
    }
}

/// Columns of the outer matrix of a [`Recipe::Product`].
fn columns_between(checkpoint: &Checkpoint, recipe: &Recipe) -> usize {
    let Recipe::Product { outer, .. } = recipe else { return 1 };
    let tensor = checkpoint.tensors().iter().find(|t| t.name == *outer);
    tensor.and_then(|t| t.shape.last().copied()).unwrap_or(1)
}

fn scales(gamma: &[f32], var: &[f32]) -> Vec<f64> {
    gamma.iter().zip(var).map(|(g, v)| f64::from(*g) / (f64::from(*v) + BATCH_NORM_EPS).sqrt()).collect()
}

/// `[H, S]` times `[S, A]`.
fn product(outer: &[f32], inner: &[f32], between: usize) -> Vec<f32> {
    let columns = inner.len() / between;
    let mut out = Vec::with_capacity(outer.len() / between * columns);
    for row in outer.chunks_exact(between) {
        let mut sums = vec![0.0_f64; columns];
        for (weight, values) in row.iter().zip(inner.chunks_exact(columns)) {
            sums.iter_mut().zip(values).for_each(|(sum, v)| *sum += f64::from(*weight) * f64::from(*v));
        }
        out.extend(sums.into_iter().map(|sum| sum as f32));
    }
    out
}

/// Finds the row for `expected` and checks the tensors it names. `last` is the number of the last hierarchical output.
pub(super) fn resolve(
    names: &Names<'_>,
    rows: &[&'static [Row]],
    expected: &ExpectedTensor,
    last: usize,
) -> Result<Recipe, ConvertError> {
    let Some((take, block, suffix)) = find(rows, &expected.name) else {
        return Err(ConvertError::Unsupported { what: expected.name.clone(), why: "this layout has no such tensor" });
    };
    let look = Look { names, expected, suffix, fill: &|name| fill(name, block, last) };
    match take {
        Take::Layer(layer) => look.one(layer, suffix, &expected.shape),
        Take::Conv(layer) => look.conv(layer),
        Take::Stack(layers) => look.stack(layers),
        Take::Table(name) => look.table(name),
        Take::Rows(pattern) => look.numbered(pattern),
        Take::Normed { linear, norm } => look.normed(linear, norm),
        Take::After { conv, linear } => look.after(conv, linear),
    }
}

/// The search for the sources of one tensor.
struct Look<'a> {
    names: &'a Names<'a>,
    expected: &'a ExpectedTensor,
    suffix: &'static str,
    fill: &'a dyn Fn(&str) -> String,
}

impl<'a> Look<'a> {
    /// The tensor `base` + `suffix`, a tensor of floats.
    fn tensor(&self, base: &str, suffix: &str) -> Result<&'a SourceTensor, ConvertError> {
        let name = format!("{}{suffix}", (self.fill)(base));
        let tensor = self.names.get(&name).ok_or_else(|| ConvertError::MissingTensor {
            tensor: name,
            target: self.expected.name.clone(),
            wanted: self.expected.shape.clone(),
        })?;
        if tensor.dtype == SourceType::Integer {
            return Err(ConvertError::NotFloats { tensor: tensor.name.clone() });
        }
        Ok(tensor)
    }

    fn checked(&self, tensor: &SourceTensor, fits: bool, wanted: String) -> Result<String, ConvertError> {
        if fits {
            return Ok(tensor.name.clone());
        }
        let (tensor, found) = (tensor.name.clone(), tensor.shape.clone());
        Err(ConvertError::TensorShape { tensor, found, wanted, reason: self.expected.reason() })
    }

    /// A tensor of exactly the shape `wanted`.
    fn exact(&self, base: &str, suffix: &str, wanted: &[usize]) -> Result<String, ConvertError> {
        let tensor = self.tensor(base, suffix)?;
        self.checked(tensor, tensor.shape == wanted, format!("{wanted:?}"))
    }

    fn one(&self, base: &str, suffix: &str, wanted: &[usize]) -> Result<Recipe, ConvertError> {
        Ok(Recipe::Join(vec![self.exact(base, suffix, wanted)?]))
    }

    fn conv(&self, layer: &str) -> Result<Recipe, ConvertError> {
        let [rows, columns] = self.expected.shape[..] else {
            return self.one(layer, self.suffix, &self.expected.shape);
        };
        let tensor = self.tensor(layer, self.suffix)?;
        let fits = tensor.shape.split_first().is_some_and(|(&first, rest)| {
            first == rows && rest.iter().try_fold(1_usize, |n, &d| n.checked_mul(d)) == Some(columns)
        });
        let name = self.checked(tensor, fits, format!("[{rows}, …] with {columns} values in a row"))?;
        Ok(Recipe::Join(vec![name]))
    }

    fn stack(&self, layers: &[&str]) -> Result<Recipe, ConvertError> {
        let mut wanted = self.expected.shape.clone();
        wanted[0] /= layers.len();
        let parts: Result<Vec<_>, _> = layers.iter().map(|layer| self.exact(layer, self.suffix, &wanted)).collect();
        Ok(Recipe::Join(parts?))
    }

    fn table(&self, name: &str) -> Result<Recipe, ConvertError> {
        let tensor = self.tensor(name, "")?;
        let fits = without_ones(&tensor.shape) == without_ones(&self.expected.shape);
        let wanted = format!("{:?}, sizes of 1 aside", self.expected.shape);
        Ok(Recipe::Join(vec![self.checked(tensor, fits, wanted)?]))
    }

    fn numbered(&self, pattern: &str) -> Result<Recipe, ConvertError> {
        let mut parts = Vec::new();
        let row = &self.expected.shape[1..];
        for number in 0..self.expected.shape[0] {
            let tensor = self.tensor(&pattern.replace("{j}", &number.to_string()), "")?;
            let fits = without_ones(&tensor.shape) == without_ones(row);
            parts.push(self.checked(tensor, fits, format!("{row:?}, sizes of 1 aside"))?);
        }
        Ok(Recipe::Join(parts))
    }

    fn normed(&self, linear: &str, norm: &str) -> Result<Recipe, ConvertError> {
        let rows = &self.expected.shape[..1];
        let gamma = self.exact(norm, ".weight", rows)?;
        let var = self.exact(norm, ".running_var", rows)?;
        match self.suffix {
            ".weight" => {
                let weight = self.exact(linear, ".weight", &self.expected.shape)?;
                Ok(Recipe::NormedWeight { weight, gamma, var })
            }
            _ => {
                let bias = self.exact(linear, ".bias", rows)?;
                let mean = self.exact(norm, ".running_mean", rows)?;
                let beta = self.exact(norm, ".bias", rows)?;
                Ok(Recipe::NormedBias { bias, gamma, var, mean, beta })
            }
        }
    }

    fn after(&self, conv: &str, linear: &str) -> Result<Recipe, ConvertError> {
        let rows = self.expected.shape[0];
        let outer = self.tensor(linear, ".weight")?;
        let between = outer.shape.get(1).copied().unwrap_or(0);
        let outer = self.checked(outer, outer.shape == [rows, between] && between > 0, format!("[{rows}, n]"))?;
        match self.suffix {
            ".weight" => {
                let columns = self.expected.shape[1];
                let inner = self.tensor(conv, ".weight")?;
                let fits = matches!(*inner.shape, [s, a] | [s, a, 1] if s == between && a == columns);
                let inner = self.checked(inner, fits, format!("[{between}, {columns}, 1]"))?;
                Ok(Recipe::Product { outer, inner })
            }
            _ => {
                let inner = self.exact(conv, ".bias", &[between])?;
                let bias = self.exact(linear, ".bias", &[rows])?;
                Ok(Recipe::Through { outer, inner, bias })
            }
        }
    }
}

fn without_ones(shape: &[usize]) -> Vec<usize> {
    shape.iter().copied().filter(|&size| size != 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_of_matrices_is_one() {
        let outer = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let inner = [1.0, 0.0, 0.0, 1.0];
        assert_eq!(product(&outer, &inner, 2), outer);
        assert_eq!(product(&[2.0, 1.0], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2), [6.0, 9.0, 12.0]);
    }

    #[test]
    fn scales_of_a_batch_norm() {
        let found = scales(&[2.0], &[4.0]);
        assert!((found[0] - 2.0 / 4.00001_f64.sqrt()).abs() < 1e-15);
    }
}
