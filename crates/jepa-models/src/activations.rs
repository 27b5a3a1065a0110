//! What flows into the matrices of an encoder: which columns a quantiser should take care of.

use std::collections::BTreeMap;

use burn::prelude::*;

use crate::bundle::Jepa;
use crate::encoder::EncodeOptions;
use crate::error::ModelError;
use crate::nn::Pixels;
use crate::trace::Trace;

/// Energy of the rows that entered one matrix, column by column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnEnergy {
    /// Per column, the sum of its squares over all rows.
    pub sum_of_squares: Vec<f64>,
    /// Rows seen: tokens of every input.
    pub rows: u64,
}

/// Energies of everything that enters the encoder's large matrices, gathered over pictures or clips.
///
/// **Source** llama.cpp's importance matrix: the error of a weight counts as much as its column carries on average.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActivationStatistics {
    matrices: BTreeMap<String, ColumnEnergy>,
}

impl ActivationStatistics {
    /// Encodes a batch and adds what it sees.
    ///
    /// **Shapes** `[batch, chans, frames, height, width]`.
    ///
    /// # Errors
    /// As [`crate::Encoder::encode`].
    pub fn add<B: Backend>(&mut self, model: &Jepa<B>, pixels: Pixels<B>) -> Result<(), ModelError> {
        let file = model.bundle().gguf();
        let mut sink = |name: &str, x: &Tensor<B, 3>| {
            let entered = entered_by(name);
            let entered = entered.iter().filter(|matrix| file.tensor(matrix).is_some()).peekable();
            // Only CLS goes into the projector.
            let x = if name == "enc.norm" { x.clone().narrow(1, 0, 1) } else { x.clone() };
            let mut energy = None;
            for matrix in entered {
                let energy = energy.get_or_insert_with(|| energies(x.clone()));
                self.matrices.entry(matrix.clone()).or_default().add(energy);
            }
        };
        model.encoder().encode_with(pixels, EncodeOptions::default(), &mut Trace::to(&mut sink))?;
        Ok(())
    }

    /// Every matrix by its tensor name, `enc.blk.0.attn_qkv.weight`, with the energy of its columns.
    pub fn matrices(&self) -> impl Iterator<Item = (&str, &ColumnEnergy)> {
        self.matrices.iter().map(|(name, energy)| (name.as_str(), energy))
    }
}

impl ColumnEnergy {
    fn add(&mut self, other: &Self) {
        self.sum_of_squares.resize(other.sum_of_squares.len(), 0.0);
        self.sum_of_squares.iter_mut().zip(&other.sum_of_squares).for_each(|(sum, new)| *sum += new);
        self.rows += other.rows;
    }
}

/// The matrices that the intermediate tensor `name` enters, whichever of them the bundle has.
fn entered_by(name: &str) -> Vec<String> {
    let matrices = |at: &str, parts: &[&str]| parts.iter().map(|part| format!("{at}.{part}.weight")).collect();
    match name.rsplit_once('.') {
        Some((at, "ln1")) => matrices(at, &["attn_qkv", "attn_q", "attn_k", "attn_v"]),
        Some((at, "attn")) => matrices(at, &["attn_out"]),
        Some((at, "ln2")) => matrices(at, &["ffn_up"]),
        Some((at, "ffn_act")) => matrices(at, &["ffn_down"]),
        Some(("enc", "norm")) => matrices("enc.proj", &["0"]),
        Some((at @ "enc.proj", "act")) => matrices(at, &["2"]),
        _ => Vec::new(),
    }
}

/// Sums over one batch. A column is summed token by token in f32, and the sums of the tokens in f64.
fn energies<B: Backend>(x: Tensor<B, 3>) -> ColumnEnergy {
    let [batch, tokens, dim] = x.dims();
    let sums: Vec<f32> = x.powi_scalar(2).sum_dim(1).into_data().iter::<f32>().collect(); // [b, 1, dim]
    let mut energy = ColumnEnergy { sum_of_squares: vec![0.0; dim], rows: (batch * tokens) as u64 };
    for row in sums.chunks_exact(dim) {
        energy.sum_of_squares.iter_mut().zip(row).for_each(|(sum, &new)| *sum += f64::from(new));
    }
    energy
}
