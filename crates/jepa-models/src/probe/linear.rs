//! The linear probe: logistic regression on pooled features.

use burn::module::Param;
use burn::prelude::*;

use super::{Scores, Standardiser};
use crate::head::{LinearHead, LinearHeadConfig};

/// A linear head that is learned as logistic regression: what is minimised is the mean cross-entropy plus `l2 / 2` times the sum of the squares of
/// the weights (not of the biases).
///
/// That has one minimum, which a training that runs long enough finds from anywhere. With `n` examples and `l2 = 1 / (C · n)` it is the one of
/// scikit-learn's `LogisticRegression(C=C)`.
#[derive(Module, Debug)]
pub struct LinearProbe<B: Backend> {
    /// The layer.
    pub head: LinearHead<B>,
    #[module(skip)]
    l2: f64,
}

impl<B: Backend> LinearProbe<B> {
    /// One that has learned nothing: all weights are 0.
    pub fn new(width: usize, n_classes: usize, l2: f64, device: &B::Device) -> Self {
        let mut head = LinearHeadConfig { embed_dim: width, n_classes }.init(device);
        head.cls.weight = Param::from_tensor(Tensor::zeros([width, n_classes], device));
        head.cls.bias = Some(Param::from_tensor(Tensor::zeros([n_classes], device)));
        Self { head, l2 }
    }
}

impl<B: Backend> Scores<B, 2> for LinearProbe<B> {
    fn scores(&self, inputs: Tensor<B, 2>) -> Tensor<B, 2> {
        self.head.forward(inputs)
    }

    fn penalty(&self) -> Option<Tensor<B, 1>> {
        let weight = self.head.cls.weight.val();
        (self.l2 > 0.0).then(|| weight.powi_scalar(2).sum() * (self.l2 / 2.0))
    }
}

/// The head that gives on raw features what `head` gives on standardised ones. Folded in f64.
pub fn fold<B: Backend>(head: &LinearHead<B>, standardiser: &Standardiser) -> LinearHead<B> {
    let [width, n_classes] = head.cls.weight.dims();
    let device = head.cls.weight.device();
    let mut weight: Vec<f64> = head.cls.weight.val().into_data().iter::<f64>().collect();
    let mut bias: Vec<f64> = match &head.cls.bias {
        Some(bias) => bias.val().into_data().iter::<f64>().collect(),
        None => vec![0.0; n_classes],
    };
    // Rows are features: [width, n_classes].
    for (row, (mean, inverse)) in
        weight.chunks_exact_mut(n_classes).zip(standardiser.mean.iter().zip(&standardiser.inverse))
    {
        for (w, b) in row.iter_mut().zip(&mut bias) {
            *w *= inverse;
            *b -= *w * mean;
        }
    }
    let narrow = |values: Vec<f64>| values.into_iter().map(|v| v as f32).collect::<Vec<f32>>();
    let mut folded = LinearHeadConfig { embed_dim: width, n_classes }.init(&device);
    let weight = TensorData::new(narrow(weight), [width, n_classes]);
    folded.cls.weight = Param::from_tensor(Tensor::from_data(weight, &device));
    folded.cls.bias = Some(Param::from_tensor(Tensor::from_data(TensorData::new(narrow(bias), [n_classes]), &device)));
    folded
}

#[cfg(test)]
mod tests {
    use burn_flex::Flex;

    use super::*;
    use crate::probe::{Examples, Features};

    #[test]
    fn a_folded_head_gives_on_raw_features_what_it_gave_on_standardised_ones() {
        let device = Default::default();
        let raw = Features::new((0..24).map(|i| (i * i % 17) as f32 * 30.0).collect(), vec![4], vec![0; 6]).unwrap();
        let standardiser = Standardiser::fit(&raw, &[0, 1, 2, 3, 4, 5]);
        let mut standard = raw.clone();
        standardiser.apply(&mut standard);
        let mut head = LinearProbe::<Flex>::new(4, 3, 0.0, &device).head;
        let weight: Vec<f32> = (0..12).map(|i| (i as f32 - 5.0) / 7.0).collect();
        head.cls.weight = Param::from_tensor(Tensor::from_data(TensorData::new(weight, [4, 3]), &device));
        let all = [0, 1, 2, 3, 4, 5];
        let scores = |head: &LinearHead<Flex>, features: &Features| {
            head.forward(Tensor::from_data(features.batch(&all).unwrap(), &device)).into_data().to_vec::<f32>().unwrap()
        };
        let (want, got) = (scores(&head, &standard), scores(&fold(&head, &standardiser), &raw));
        assert!(want.iter().zip(&got).all(|(a, b)| (a - b).abs() < 1e-4), "{want:?} {got:?}");
    }
}
