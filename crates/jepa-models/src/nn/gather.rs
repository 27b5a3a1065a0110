use burn::prelude::*;

use crate::error::ModelError;

/// Token ids to keep of each batch element: one row for the whole batch, or one row per element; all rows equally long.
///
/// Ids count patch tokens (frame slowest, then row, then column), without CLS and registers. Order is kept and ids may repeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenIds {
    rows: Vec<Vec<usize>>,
}

impl TokenIds {
    /// The same ids for every batch element.
    ///
    /// # Errors
    /// [`ModelError::TokenIds`] when `ids` is empty.
    pub fn shared(ids: Vec<usize>) -> Result<Self, ModelError> {
        Self::per_element(vec![ids])
    }

    /// One row of ids per batch element.
    ///
    /// # Errors
    /// [`ModelError::TokenIds`] when there is no row, or rows are empty or of different lengths.
    pub fn per_element(rows: Vec<Vec<usize>>) -> Result<Self, ModelError> {
        let wanted = rows.first().map_or(0, Vec::len);
        if wanted == 0 {
            return Err(ModelError::TokenIds { what: "no token ids given".into() });
        }
        match rows.iter().position(|row| row.len() != wanted) {
            Some(odd) => Err(ModelError::TokenIds {
                what: format!(
                    "row {odd} has {} ids, row 0 has {wanted}; all rows must be equally long",
                    rows[odd].len()
                ),
            }),
            None => Ok(Self { rows }),
        }
    }

    /// The rows, one or one per batch element.
    pub fn rows(&self) -> &[Vec<usize>] {
        &self.rows
    }

    /// Checks the ids against a batch of `batch` elements with `tokens` patch tokens each.
    ///
    /// # Errors
    /// [`ModelError::TokenIds`] for an id off the grid or a row count that is neither 1 nor `batch`.
    pub fn check(&self, batch: usize, tokens: usize) -> Result<(), ModelError> {
        if self.rows.len() != 1 && self.rows.len() != batch {
            return Err(ModelError::TokenIds {
                what: format!(
                    "{} rows of ids for a batch of {batch}; give one row or one per element",
                    self.rows.len()
                ),
            });
        }
        match self.rows.iter().flatten().find(|&&id| id >= tokens) {
            Some(id) => Err(ModelError::TokenIds {
                what: format!("token id {id} is off the grid, which has {tokens} tokens (0 to {})", tokens - 1),
            }),
            None => Ok(()),
        }
    }

    /// How many ids each row has.
    pub fn kept(&self) -> usize {
        self.rows[0].len()
    }

    /// Each row of `self` followed by the row of `other`: one row where both are shared, else one per batch element.
    pub fn followed_by(&self, other: &Self) -> Vec<Vec<usize>> {
        let row = |i: usize| [&self.rows[i % self.rows.len()][..], &other.rows[i % other.rows.len()]].concat();
        (0..self.rows.len().max(other.rows.len())).map(row).collect()
    }

    /// The rows of a table that the ids name. The ids must lie in the table.
    ///
    /// **Shapes** `[positions, dim]` → `[1 or batch, kept, dim]`.
    pub fn look_up<B: Backend>(&self, table: Tensor<B, 2>) -> Tensor<B, 3> {
        let (rows, kept, dim) = (self.rows.len(), self.kept(), table.dims()[1]);
        let flat: Vec<i64> = self.rows.iter().flatten().map(|&id| id as i64).collect();
        let flat = Tensor::<B, 1, Int>::from_data(TensorData::new(flat, [rows * kept]), &table.device());
        table.select(0, flat).reshape([rows, kept, dim])
    }

    /// The kept rows of `x`, in the order of the ids. The ids must have passed [`Self::check`] for `x`.
    ///
    /// **Shapes** `[1 or batch, tokens, dim]` → `[batch, kept, dim]`.
    pub fn gather<B: Backend>(&self, x: Tensor<B, 3>) -> Tensor<B, 3> {
        let [batch, tokens, dim] = x.dims();
        let kept = self.kept();
        let flat: Vec<i64> = (0..batch)
            .flat_map(|b| self.rows[b % self.rows.len()].iter().map(move |id| (b * tokens + id) as i64))
            .collect();
        let flat = Tensor::<B, 1, Int>::from_data(TensorData::new(flat, [batch * kept]), &x.device());
        x.reshape([batch * tokens, dim]).select(0, flat).reshape([batch, kept, dim])
    }
}
