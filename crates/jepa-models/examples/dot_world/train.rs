//! From random play to a model.

use burn::backend::Autodiff;
use burn::grad_clipping::GradientClippingConfig;
use burn::module::AutodiffModule;
use burn::optim::{AdamWConfig, GradientsParams, Optimizer};
use burn::prelude::*;
use burn_flex::Flex;
use jepa_models::train::{LewmLoss, LewmTrainee, SigReg};
use jepa_models::world::LewmWorld;
use jepa_models::{ModelError, Pixels, Preprocess};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::model::{WINDOW, fresh, hparams, pixels};
use crate::world::{SIDE, play};

type Tracked = Autodiff<Flex>;

/// How a model is trained.
#[derive(Clone, Debug)]
pub(crate) struct Training {
    /// Steps of the optimiser, each on clips that were never seen before.
    pub(crate) steps: usize,
    /// Clips in a step.
    pub(crate) batch: usize,
    /// Largest learning rate; it rises to it over the first twentieth of the steps and falls as a cosine does.
    pub(crate) rate: f64,
    /// The loss.
    pub(crate) loss: LewmLoss,
    /// Seed of the first weights, of the play and of the directions.
    pub(crate) seed: u64,
}

impl Default for Training {
    /// What the model in the repository was made with.
    fn default() -> Self {
        // Fewer directions than published, for states that are six times as narrow. And a ninth of the published weight: the world has two dimensions, and the
        // more its states must fill thirty-two, the finer they fold it, until beyond a short way off every place is as far from the goal as any other.
        let loss = LewmLoss { sigreg: SigReg { directions: 64, ..SigReg::default() }, weight: 0.01 };
        Self { steps: 1500, batch: 64, rate: 1e-3, loss, seed: 0 }
    }
}

/// The losses of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Losses {
    /// Mean squared error of the next embedding.
    pub(crate) prediction: f32,
    /// Distance of the embeddings from N(0, I).
    pub(crate) sigreg: f32,
    /// What was minimised.
    pub(crate) total: f32,
}

impl Training {
    /// Trains a model from nothing. `report` sees every step, counted from 1.
    pub(crate) fn run(&self, mut report: impl FnMut(usize, Losses)) -> Result<LewmWorld<Flex>, ModelError> {
        let device = Default::default();
        let preprocess = Preprocess::new(&hparams());
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let mut trainee = LewmTrainee::new(fresh::<Tracked>(self.seed, &device))?;
        let mut optimizer = AdamWConfig::new()
            .with_weight_decay(1e-3)
            .with_epsilon(1e-8)
            .with_grad_clipping(Some(GradientClippingConfig::Norm(1.0)))
            .init();
        for step in 1..=self.steps {
            let (clips, pushes) = self.draw(&preprocess, &mut rng)?;
            let terms = self.loss.forward(&trainee, clips, pushes, &mut rng)?;
            let value = |term: &Tensor<Tracked, 1>| term.clone().into_scalar();
            let losses = Losses {
                prediction: value(&terms.prediction),
                sigreg: value(&terms.sigreg),
                total: value(&terms.total),
            };
            let gradients = GradientsParams::from_grads(terms.total.backward(), &trainee);
            trainee = optimizer.step(self.rate_at(step), trainee, gradients);
            report(step, losses);
        }
        Ok(trainee.valid().finish())
    }

    /// Clips of random play, and the pushes between their frames.
    ///
    /// **Shapes** → `[batch, 3, WINDOW + 1, SIDE, SIDE]`, `[batch, WINDOW, 2]`.
    fn draw(
        &self,
        preprocess: &Preprocess,
        rng: &mut ChaCha8Rng,
    ) -> Result<(Pixels<Tracked>, Tensor<Tracked, 3>), ModelError> {
        let device = Default::default();
        let (places, pushes): (Vec<_>, Vec<_>) = (0..self.batch).map(|_| play(WINDOW + 1, rng)).unzip();
        let clips: Vec<Vec<_>> = places.iter().map(|clip| clip.iter().map(|dot| dot.picture(SIDE)).collect()).collect();
        let pushes: Vec<f32> = pushes.into_iter().flatten().flatten().collect();
        let pushes = Tensor::from_data(TensorData::new(pushes, [self.batch, WINDOW, 2]), &device);
        Ok((pixels(&clips, preprocess, &device)?, pushes))
    }

    fn rate_at(&self, step: usize) -> f64 {
        let (step, steps) = (step as f64, self.steps as f64);
        let rise = (steps / 20.0).max(1.0);
        if step < rise {
            return self.rate * step / rise;
        }
        let done = (step - rise) / (steps - rise).max(1.0);
        self.rate * (1.0 + (std::f64::consts::PI * done).cos()) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(seed: u64) -> Vec<f32> {
        let mut losses = Vec::new();
        let training = Training { steps: 40, batch: 16, seed, ..Training::default() };
        training.run(|_, of_step| losses.push(of_step.total)).unwrap();
        losses
    }

    // One test, since Burn's generator of first weights is one for the whole process.
    #[test]
    fn a_short_training_lowers_the_loss_and_its_seed_decides_everything() {
        let first = losses(1);
        assert_eq!(first, losses(1));
        assert_ne!(first, losses(2));
        let mean = |part: &[f32]| part.iter().sum::<f32>() / part.len() as f32;
        assert!(mean(&first[35..]) < 0.7 * mean(&first[..5]), "{first:?}");
    }
}
