use burn::prelude::*;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

/// Sketched isotropic Gaussian regularisation: how far embeddings are from N(0, I), seen along random directions.
///
/// Along a unit direction the `n` embeddings of a group are numbers, and those of N(0, I) would be N(0, 1), whose characteristic function is
/// `φ(t) = exp(-t²/2)`. The statistic of Epps and Pulley compares it with that of the numbers:
///
/// `n ∫ φ(t) |1/n Σ exp(i t xⱼ) - φ(t)|² dt` over `-t_max..t_max`.
///
/// The integrand is even, so the trapezoidal rule runs over `knots` points of `0..t_max` and counts twice. The result is the mean over groups and
/// directions. Embeddings that collapse to a point give a value that grows with `n`; drawn from N(0, I) they give about 1 whatever `n`.
///
/// **Source** LeJEPA (arXiv 2511.08544) for the idea; the numbers, the half-open range and one group per frame are those of the training code of
/// LeWorldModel (arXiv 2603.19312). LeJEPA's text integrates over -5..5, where LeWorldModel's code stops at 3.
///
/// ```
/// use burn::prelude::*;
/// use burn_flex::Flex;
/// use jepa_models::train::SigReg;
/// use rand::SeedableRng;
/// use rand_chacha::ChaCha8Rng;
///
/// let collapsed = Tensor::<Flex, 3>::zeros([1, 64, 8], &Default::default());
/// let far: f32 = SigReg::default().forward(collapsed, &mut ChaCha8Rng::seed_from_u64(0)).into_scalar();
/// assert!(far > 10.0);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SigReg {
    /// Random directions; new ones in every call.
    pub directions: usize,
    /// Points of the integral over `0..t_max`, both ends included; at least 2.
    pub knots: usize,
    /// End of the integral.
    pub t_max: f64,
}

impl Default for SigReg {
    /// LeWorldModel's: 1024 directions, 17 knots up to 3.
    fn default() -> Self {
        Self { directions: 1024, knots: 17, t_max: 3.0 }
    }
}

impl SigReg {
    /// The statistic, averaged over groups and directions. The directions come from `rng` alone, the same on every backend.
    ///
    /// **Shapes** `[groups, n, dim]` → `[1]`.
    pub fn forward<B: Backend>(&self, embeddings: Tensor<B, 3>, rng: &mut impl Rng) -> Tensor<B, 1> {
        let [groups, n, dim] = embeddings.dims();
        let device = embeddings.device();
        let directions = Tensor::from_data(self.draw_directions(dim, rng), &device); //          [dim, directions]
        let along: Tensor<B, 2> = embeddings.reshape([groups * n, dim]).matmul(directions); //    [g·n, directions]
        let along = along.reshape([groups, n, self.directions, 1]);

        let row = |of: fn(f64) -> f64| -> Vec<f32> { self.points().map(|(t, _)| of(t) as f32).collect() };
        let lay = |values| Tensor::<B, 4>::from_data(TensorData::new(values, [1, 1, 1, self.knots]), &device);
        let (t, phi) = (lay(row(|t| t)), lay(row(|t| (-t * t / 2.0).exp())));
        let weights = lay(self.points().map(|(t, width)| (width * (-t * t / 2.0).exp()) as f32).collect());

        let turned = along * t; //                                                               [g, n, directions, knots]
        let real = turned.clone().cos().mean_dim(1) - phi; //                                    [g, 1, directions, knots]
        let imaginary = turned.sin().mean_dim(1);
        let distance = (real.powi_scalar(2) + imaginary.powi_scalar(2)) * weights;
        distance.sum() * (n as f64 / (groups * self.directions) as f64)
    }

    /// Columns of length 1, `[dim, directions]`.
    fn draw_directions(&self, dim: usize, rng: &mut impl Rng) -> TensorData {
        let mut columns = vec![0.0_f32; dim * self.directions];
        for column in 0..self.directions {
            let drawn: Vec<f64> = (0..dim).map(|_| StandardNormal.sample(rng)).collect();
            let length = drawn.iter().map(|x| x * x).sum::<f64>().sqrt();
            for (row, x) in drawn.iter().enumerate() {
                columns[row * self.directions + column] = (x / length) as f32;
            }
        }
        TensorData::new(columns, [dim, self.directions])
    }

    /// Points of the integral and their widths: the half `0..t_max` of an even integrand, counted twice.
    fn points(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let step = self.t_max / (self.knots - 1) as f64;
        (0..self.knots).map(move |i| {
            let is_end = i == 0 || i == self.knots - 1;
            (i as f64 * step, if is_end { step } else { 2.0 * step })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::backend::Autodiff;
    use burn_flex::Flex;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    fn rng(seed: u64) -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(seed)
    }

    fn normal(count: usize, scale: f64, seed: u64) -> Vec<f64> {
        let mut rng = rng(seed);
        (0..count)
            .map(|_| {
                let x: f64 = StandardNormal.sample(&mut rng);
                x * scale
            })
            .collect()
    }

    fn tensor<B: Backend>(values: &[f64], shape: [usize; 3]) -> Tensor<B, 3> {
        let values: Vec<f32> = values.iter().map(|&x| x as f32).collect();
        Tensor::from_data(TensorData::new(values, shape), &Default::default())
    }

    fn statistic(sigreg: &SigReg, values: &[f64], shape: [usize; 3], seed: u64) -> f64 {
        f64::from(sigreg.forward(tensor::<Flex>(values, shape), &mut rng(seed)).into_scalar())
    }

    /// The whole integral in closed form: `n ∫ φ |φ̂ - φ|²` over the real line, by `∫ exp(-a t²/2) cos(t d) dt = √(2π/a) exp(-d²/2a)`.
    fn epps_pulley(x: &[f64]) -> f64 {
        let n = x.len() as f64;
        let gauss = |a: f64, d: f64| (std::f64::consts::TAU / a).sqrt() * (-d * d / (2.0 * a)).exp();
        let pairs: f64 = x.iter().flat_map(|a| x.iter().map(move |b| gauss(1.0, a - b))).sum();
        let cross: f64 = x.iter().map(|a| gauss(2.0, *a)).sum();
        pairs / n - 2.0 * cross + n * gauss(3.0, 0.0)
    }

    #[test]
    fn a_fine_integral_is_the_closed_form_of_epps_and_pulley() {
        let fine = SigReg { directions: 3, knots: 201, t_max: 10.0 };
        for (scale, seed) in [(1.0, 1), (0.3, 2), (2.0, 3)] {
            let x = normal(40, scale, seed);
            // In one dimension every direction is ±1, and the statistic does not see the sign.
            let (found, wanted) = (statistic(&fine, &x, [1, 40, 1], 0), epps_pulley(&x));
            assert!((found - wanted).abs() < 1e-4 * wanted.max(1.0), "scale {scale}: {found}, wanted {wanted}");
        }
    }

    /// LeWorldModel's sum written out in f64, from the same directions.
    fn written_out(sigreg: &SigReg, values: &[f64], [groups, n, dim]: [usize; 3], seed: u64) -> f64 {
        let directions: Vec<f32> = sigreg.draw_directions(dim, &mut rng(seed)).to_vec().unwrap();
        let mut sum = 0.0;
        for group in 0..groups {
            for direction in 0..sigreg.directions {
                let along = |row: usize| -> f64 {
                    (0..dim)
                        .map(|d| {
                            values[(group * n + row) * dim + d]
                                * f64::from(directions[d * sigreg.directions + direction])
                        })
                        .sum()
                };
                let along: Vec<f64> = (0..n).map(along).collect();
                let step = sigreg.t_max / (sigreg.knots - 1) as f64;
                let integrand = |t: f64| {
                    let phi = (-t * t / 2.0).exp();
                    let real = along.iter().map(|x| (x * t).cos()).sum::<f64>() / n as f64 - phi;
                    let imaginary = along.iter().map(|x| (x * t).sin()).sum::<f64>() / n as f64;
                    phi * (real * real + imaginary * imaginary)
                };
                // Trapezoids over the whole range, without making use of symmetry.
                let last = 2 * (sigreg.knots - 1);
                let at = |i: usize| integrand(i as f64 * step - sigreg.t_max);
                sum += n as f64 * step * ((1..last).map(at).sum::<f64>() + (at(0) + at(last)) / 2.0);
            }
        }
        sum / (groups * sigreg.directions) as f64
    }

    #[test]
    fn the_published_sum_comes_out() {
        let shape = [3, 20, 5];
        let sigreg = SigReg { directions: 7, ..SigReg::default() };
        for scale in [0.1, 1.0, 3.0] {
            let x = normal(300, scale, 5);
            let (found, wanted) = (statistic(&sigreg, &x, shape, 9), written_out(&sigreg, &x, shape, 9));
            assert!((found - wanted).abs() < 1e-5 * wanted.max(1.0), "scale {scale}: {found}, wanted {wanted}");
        }
    }

    #[test]
    fn normal_samples_are_near_the_minimum_and_collapsed_ones_far_from_it() {
        let (sigreg, shape) = (SigReg { directions: 64, ..SigReg::default() }, [1, 256, 8]);
        let of = |values: &[f64]| statistic(&sigreg, values, shape, 1);
        let drawn = of(&normal(256 * 8, 1.0, 2));
        let point = of(&vec![0.7; 256 * 8]);
        let line: Vec<f64> = normal(256, 1.0, 3).iter().flat_map(|&x| [x; 8]).collect();
        assert!(drawn < 1.5, "{drawn}");
        assert!(of(&normal(256 * 8, 0.5, 2)) > 10.0 * drawn);
        assert!(of(&normal(256 * 8, 2.0, 2)) > 10.0 * drawn);
        assert!(of(&line) > 10.0 * drawn);
        assert!(point > 50.0 * drawn, "{point}");
    }

    #[test]
    fn the_gradient_is_that_of_central_differences() {
        type Tracked = Autodiff<Flex>;
        let (sigreg, shape) = (SigReg { directions: 16, ..SigReg::default() }, [2, 6, 4]);
        let x = normal(48, 0.6, 4);
        let tracked = tensor::<Tracked>(&x, shape).require_grad();
        let grads = sigreg.forward(tracked.clone(), &mut rng(8)).backward();
        let gradient: Vec<f32> = tracked.grad(&grads).unwrap().into_data().to_vec().unwrap();
        for i in [0, 13, 30, 47] {
            let moved = |by: f64| {
                let mut x = x.clone();
                x[i] += by;
                written_out(&sigreg, &x, shape, 8)
            };
            let slope = (moved(1e-4) - moved(-1e-4)) / 2e-4;
            assert!((f64::from(gradient[i]) - slope).abs() < 1e-4, "{i}: {}, by differences {slope}", gradient[i]);
        }
    }

    #[test]
    fn the_seed_alone_chooses_the_directions() {
        let x = normal(64, 0.5, 6);
        let of = |seed| statistic(&SigReg { directions: 4, ..SigReg::default() }, &x, [1, 16, 4], seed);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }
}
