//! Turning matrices around: files keep `[out, in]`, Burn's linear layers `[in, out]`.

use crate::tensor::TensorView;

/// Rows that are unpacked together: what is written of one column is then four cache lines long.
const BAND: usize = 64;
/// Columns of one tile: what is read of one row is then one cache line.
const TILE: usize = 16;

impl TensorView<'_> {
    /// All values of a matrix as f32 with rows and columns exchanged: a stored `[out, in]` becomes `[in, out]`.
    ///
    /// A tensor of another rank is taken as the matrix of its rows. Besides the result this needs memory for 64 rows.
    ///
    /// ```no_run
    /// # let file = jepa_gguf::Gguf::open("model.gguf")?;
    /// let weight = file.tensor("enc.blk.0.ffn_up.weight").expect("every encoder has one");
    /// let for_burn: Vec<f32> = weight.to_f32_transposed();
    /// # Ok::<(), jepa_gguf::GgufError>(())
    /// ```
    pub fn to_f32_transposed(&self) -> Vec<f32> {
        let (rows, columns) = (self.info().row_count(), self.info().row_len());
        let mut out = vec![0.0; rows * columns];
        let mut band = vec![0.0; BAND.min(rows) * columns];
        for start in (0..rows).step_by(BAND) {
            let end = (start + BAND).min(rows);
            let band = &mut band[..(end - start) * columns];
            self.dequantize_rows(start..end, band).expect("the band has the size of these rows");
            scatter(band, columns, &mut out, rows, start);
        }
        out
    }
}

/// `values`, a matrix of `columns` columns, with rows and columns exchanged.
#[cfg(any(feature = "burn", test))]
pub(crate) fn transposed(values: &[f32], columns: usize) -> Vec<f32> {
    let rows = values.len() / columns;
    let mut out = vec![0.0; values.len()];
    for (i, band) in values.chunks(BAND * columns).enumerate() {
        scatter(band, columns, &mut out, rows, i * BAND);
    }
    out
}

/// Writes the rows of `band` as columns `start..` of `out`, which has `rows` columns.
fn scatter(band: &[f32], columns: usize, out: &mut [f32], rows: usize, start: usize) {
    let height = band.len() / columns;
    let mut tile = [[0.0_f32; BAND]; TILE];
    for left in (0..columns).step_by(TILE) {
        let width = TILE.min(columns - left);
        for (r, row) in band.chunks_exact(columns).enumerate() {
            for (column, &v) in tile.iter_mut().zip(&row[left..left + width]) {
                column[r] = v;
            }
        }
        for (c, column) in tile[..width].iter().enumerate() {
            let at = (left + c) * rows + start;
            out[at..at + height].copy_from_slice(&column[..height]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exchanges_rows_and_columns_at_every_remainder() {
        for (rows, columns) in [(1, 1), (1, 33), (65, 1), (64, 16), (67, 19), (130, 40)] {
            let values: Vec<f32> = (0..rows * columns).map(|v| v as f32).collect();
            let turned = transposed(&values, columns);
            for r in 0..rows {
                for c in 0..columns {
                    assert_eq!(turned[c * rows + r], values[r * columns + c], "{rows} x {columns} at {r}, {c}");
                }
            }
        }
    }
}
