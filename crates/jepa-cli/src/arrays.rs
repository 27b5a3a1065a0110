//! Arrays that come in: `.npy` and `.safetensors`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use npyz::{DType, NpyFile, Order, TypeChar};
use safetensors::{Dtype, SafeTensors};

/// Why an array could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArrayError {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("not an .npy file: {0}")]
    NotNpy(String),
    #[error("not a .safetensors file: {0}")]
    NotSafetensors(String),
    #[error("{promised} bytes of values promised by the header, {found} in the file")]
    Length { promised: String, found: u64 },
    #[error("values of type {0} are not supported; wanted f32, f64, u8, i32 or i64")]
    Type(String),
    #[error("unknown extension; wanted .npy or .safetensors")]
    Extension,
    #[error("holds {found}, wanted f32")]
    NotF32 { found: &'static str },
}

/// Numbers in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Array {
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Values,
}

/// The numbers, widened to one of three types.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Values {
    F32(Vec<f32>),
    F64(Vec<f64>),
    U8(Vec<u8>),
    I64(Vec<i64>),
}

impl Values {
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::F32(_) => "f32",
            Self::F64(_) => "f64",
            Self::U8(_) => "u8",
            Self::I64(_) => "integers",
        }
    }

    /// Every value as f64.
    pub(crate) fn to_f64(&self) -> Vec<f64> {
        match self {
            Self::F32(v) => v.iter().map(|&x| x.into()).collect(),
            Self::F64(v) => v.clone(),
            Self::U8(v) => v.iter().map(|&x| x.into()).collect(),
            Self::I64(v) => v.iter().map(|&x| x as f64).collect(),
        }
    }
}

impl Array {
    /// Reads a `.npy` file.
    pub(crate) fn read_npy(path: &Path) -> Result<Self, ArrayError> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        let npy = NpyFile::new(BufReader::new(file)).map_err(|error| ArrayError::NotNpy(error.to_string()))?;
        let DType::Plain(plain) = npy.dtype() else { return Err(ArrayError::Type("a record".into())) };
        let promised = npy.shape().iter().try_fold(plain.size_field(), |product, &n| product.checked_mul(n));
        if promised.is_none_or(|promised| promised > bytes) {
            return Err(ArrayError::Length {
                promised: promised.map_or("more than 2^64".into(), |n| n.to_string()),
                found: bytes,
            });
        }
        let shape: Vec<usize> = npy.shape().iter().map(|&n| n as usize).collect();
        let order = npy.order();
        let read = |error: std::io::Error| ArrayError::NotNpy(error.to_string());
        let values = match (plain.type_char(), plain.size_field()) {
            (TypeChar::Float, 4) => Values::F32(row_major(npy.into_vec().map_err(read)?, &shape, order)),
            (TypeChar::Float, 8) => Values::F64(row_major(npy.into_vec().map_err(read)?, &shape, order)),
            (TypeChar::Uint, 1) => Values::U8(row_major(npy.into_vec().map_err(read)?, &shape, order)),
            (TypeChar::Int, 4) => {
                let values: Vec<i32> = npy.into_vec().map_err(read)?;
                Values::I64(row_major(values, &shape, order).into_iter().map(i64::from).collect())
            }
            (TypeChar::Int, 8) => Values::I64(row_major(npy.into_vec().map_err(read)?, &shape, order)),
            _ => return Err(ArrayError::Type(plain.to_string())),
        };
        Ok(Self { shape, values })
    }

    /// The values, which must be f32.
    pub(crate) fn into_f32(self) -> Result<Vec<f32>, ArrayError> {
        match self.values {
            Values::F32(values) => Ok(values),
            other => Err(ArrayError::NotF32 { found: other.type_name() }),
        }
    }
}

fn row_major<T: Clone>(values: Vec<T>, shape: &[usize], order: Order) -> Vec<T> {
    match order {
        Order::C => values,
        Order::Fortran => {
            let strides: Vec<usize> =
                shape.iter().scan(1, |product, &n| Some(std::mem::replace(product, *product * n))).collect();
            let mut index = vec![0; shape.len()];
            (0..values.len())
                .map(|_| {
                    let value = values[index.iter().zip(&strides).map(|(i, s)| i * s).sum::<usize>()].clone();
                    for axis in (0..shape.len()).rev() {
                        index[axis] += 1;
                        if index[axis] < shape[axis] {
                            break;
                        }
                        index[axis] = 0;
                    }
                    value
                })
                .collect()
        }
    }
}

/// Named arrays of a `.safetensors` file.
pub(crate) fn read_safetensors(path: &Path) -> Result<BTreeMap<String, Array>, ArrayError> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(ArrayError::NotSafetensors("it is no regular file".into()));
    }
    let bytes = std::fs::read(path)?;
    let tensors = SafeTensors::deserialize(&bytes).map_err(|error| ArrayError::NotSafetensors(error.to_string()))?;
    tensors
        .iter()
        .map(|(name, view)| {
            let data = view.data();
            let values = match view.dtype() {
                Dtype::F32 => Values::F32(
                    data.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().expect("four bytes"))).collect(),
                ),
                Dtype::F64 => Values::F64(
                    data.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().expect("eight bytes"))).collect(),
                ),
                Dtype::U8 => Values::U8(data.to_vec()),
                Dtype::I32 => Values::I64(
                    data.chunks_exact(4)
                        .map(|b| i32::from_le_bytes(b.try_into().expect("four bytes")).into())
                        .collect(),
                ),
                Dtype::I64 => Values::I64(
                    data.chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().expect("eight bytes"))).collect(),
                ),
                other => return Err(ArrayError::Type(format!("{other:?}"))),
            };
            Ok((name.to_owned(), Array { shape: view.shape().to_vec(), values }))
        })
        .collect()
}

/// Named arrays of a file; the one of a `.npy` file has an empty name.
pub(crate) fn read_named(path: &Path) -> Result<BTreeMap<String, Array>, ArrayError> {
    match path.extension().and_then(|e| e.to_str()) {
        Some("npy") => Ok(BTreeMap::from([(String::new(), Array::read_npy(path)?)])),
        Some("safetensors") => read_safetensors(path),
        _ => Err(ArrayError::Extension),
    }
}
