//! Probes: small heads that are trained on the features of a frozen encoder, and how good they are.
//!
//! The features are computed once, on the plain backend, and stay on the host ([`Features`]). A [`Training`] then runs epoch by epoch on
//! `Autodiff<B>`: the caller owns the loop, and with it the progress shown, the files written and the moment to stop. What is trained is anything
//! that [`Scores`] a batch, a module with blocks of the encoder in it too.
//!
//! Everything follows from the data, the options and the seed. The draws of an epoch come from the seed and the number of the epoch alone, so a
//! training that is resumed from [`Training::save`] ends with the same bits as one that was never stopped.
//!
//! ```
//! use burn::backend::Autodiff;
//! use burn_flex::Flex;
//! use jepa_models::probe::{Features, LinearProbe, Method, Split, Training, TrainingOptions, evaluate};
//!
//! // Two classes on a line, the second one on the right.
//! let values: Vec<f32> = (0..20).map(|i| i as f32 - 9.5).collect();
//! let features = Features::new(values, vec![1], (0..20).map(|i| i / 10).collect())?;
//! let split = Split::new(features.classes(), 0.2, 7);
//! let options = TrainingOptions { epochs: 20, method: Method::Lbfgs, batch: 8, accumulate: 1, seed: 7, patience: 20 };
//! let mut training = Training::new(LinearProbe::<Autodiff<Flex>>::new(1, 2, 0.0, &Default::default()), options);
//! while !training.is_over() {
//!     training.run_epoch(&features, &split)?;
//! }
//! let judged = evaluate(&training.best(), &features, &split.held_out, 2, 8)?;
//! assert_eq!(judged.accuracy(), 1.0);
//! # Ok::<(), jepa_models::ModelError>(())
//! ```

mod attentive;
mod evaluation;
mod examples;
mod fine_tuned;
mod knn;
mod linear;
mod split;
mod standardise;
mod training;

pub use attentive::{attentive_config, attentive_probe, standardise_tokens};
pub use evaluation::{ClassScore, Evaluation};
pub use examples::{Examples, Features};
pub use fine_tuned::FineTuned;
pub use knn::nearest_neighbours;
pub use linear::{LinearProbe, fold};
pub use split::Split;
pub use standardise::Standardiser;
pub use training::{EpochReport, Held, Method, Scores, Training, TrainingOptions, evaluate};
