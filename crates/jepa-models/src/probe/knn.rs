//! Nearest neighbours: an evaluation of features that trains nothing.

use burn::prelude::*;

use super::{Evaluation, Examples, Features, Split};
use crate::error::ModelError;

/// Divides similarities before they are weighed, as in the reference.
const TEMPERATURE: f64 = 0.07;
/// Similarities that exist at one time.
const SIMILARITIES: usize = 1 << 22;

/// Classifies the held-out examples by the `k` most similar ones that are learned from.
///
/// Similarity is the cosine; a neighbour's vote weighs `exp(similarity / 0.07)`.
///
/// **Source** the weighted k-NN evaluation of DINO.
///
/// # Errors
/// [`ModelError::Probe`] when nothing is learned from or `k` is 0.
pub fn nearest_neighbours<B: Backend>(
    features: &Features,
    split: &Split,
    n_classes: usize,
    k: usize,
    device: &B::Device,
) -> Result<Evaluation, ModelError> {
    if split.train.is_empty() || k == 0 {
        return Err(ModelError::Probe { what: format!("{k} neighbours among {} examples", split.train.len()) });
    }
    let unit = |indices: &[usize]| -> Result<Tensor<B, 2>, ModelError> {
        let rows: Tensor<B, 2> = Tensor::from_data(features.batch(indices)?, device);
        let length = rows.clone().powi_scalar(2).sum_dim(1).sqrt().clamp_min(1e-12);
        Ok(rows / length)
    };
    let bank = unit(&split.train)?.transpose(); //                              [dim, train]
    let mut judged = Evaluation::new(n_classes);
    for queries in split.held_out.chunks((SIMILARITIES / split.train.len()).max(1)) {
        let similar = unit(queries)?.matmul(bank.clone()); //                   [queries, train]
        let similar: Vec<f32> = similar.into_data().iter::<f32>().collect();
        for (&query, row) in queries.iter().zip(similar.chunks_exact(split.train.len())) {
            judged.add(features.classes()[query], &votes(features, &split.train, row, n_classes, k));
        }
    }
    Ok(judged)
}

/// The votes for every class, as logarithms of their sums.
fn votes(features: &Features, train: &[usize], similar: &[f32], n_classes: usize, k: usize) -> Vec<f32> {
    let mut order: Vec<usize> = (0..train.len()).collect();
    let k = k.min(order.len());
    // Of equally similar examples the first one is nearer, so that the order of memory decides nothing.
    let nearer = |a: &usize, b: &usize| similar[*b].total_cmp(&similar[*a]).then(a.cmp(b));
    if k < order.len() {
        order.select_nth_unstable_by(k - 1, nearer);
    }
    order.truncate(k);
    order.sort_by(nearer);
    let mut sums = vec![0.0_f64; n_classes];
    for &near in &order {
        sums[features.classes()[train[near]]] += ((f64::from(similar[near]) - 1.0) / TEMPERATURE).exp();
    }
    sums.iter().map(|sum| sum.max(f64::from(f32::MIN_POSITIVE)).ln() as f32).collect()
}

#[cfg(test)]
mod tests {
    use burn_flex::Flex;

    use super::*;

    #[test]
    fn neighbours_in_direction_decide_not_those_in_length() {
        let values = vec![1.0, 0.0, 9.0, 1.0, 0.0, 2.0, 0.1, 0.9, 90.0, 5.0, 0.0, 0.01];
        let features = Features::new(values, vec![2], vec![0, 0, 1, 1, 0, 1]).unwrap();
        let split = Split { train: vec![0, 1, 2, 3], held_out: vec![4, 5] };
        let judged = nearest_neighbours::<Flex>(&features, &split, 2, 3, &Default::default()).unwrap();
        assert_eq!((judged.total(), judged.correct()), (2, 2));
        let none = Split { train: vec![], held_out: vec![0] };
        assert!(nearest_neighbours::<Flex>(&features, &none, 2, 3, &Default::default()).is_err());
    }
}
