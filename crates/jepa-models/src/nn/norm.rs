use burn::nn::LayerNorm;
use burn::prelude::*;

/// A layer norm: on the kernels where the backend is the CPU's, as a Burn operation everywhere else.
///
/// **Shapes** any → the same. `eps` is the norm's own, which a [`LayerNorm`] does not tell.
#[cfg_attr(not(feature = "cpu"), allow(unused_variables, reason = "only the kernels need to be told eps"))]
pub fn layer_norm<B: Backend, const D: usize>(norm: &LayerNorm<B>, eps: f64, x: Tensor<B, D>) -> Tensor<B, D> {
    #[cfg(feature = "cpu")]
    let x = match crate::cpu::layer_norm(norm, eps, x) {
        Ok(x) => return x,
        Err(x) => x,
    };
    norm.forward(x)
}

/// Layer normalisation without weights over the last axis, with the biased variance.
///
/// **Shapes** any → the same.
pub fn normalise<B: Backend, const D: usize>(x: Tensor<B, D>, eps: f64) -> Tensor<B, D> {
    #[cfg(feature = "cpu")]
    let x = match crate::cpu::normalise(x, eps) {
        Ok(x) => return x,
        Err(x) => x,
    };
    let centred = x.clone() - x.mean_dim(D - 1);
    let variance = centred.clone().powi_scalar(2).mean_dim(D - 1);
    centred / (variance + eps).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn_flex::Flex;

    #[test]
    fn rows_get_mean_zero_and_variance_one_up_to_eps() {
        let x = Tensor::<Flex, 2>::from_floats([[1.0, 3.0], [10.0, 10.0]], &Default::default());
        let y = normalise(x, 3.0).into_data().to_vec::<f32>().unwrap();
        assert_eq!(y, [-0.5, 0.5, 0.0, 0.0]);
    }
}
