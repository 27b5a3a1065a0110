//! Training: the losses that the models are made with, over any backend that tracks gradients.
//!
//! A loss takes modules and gives scalars; the loop around it, its optimiser and its data are Burn's and the caller's. `examples/dot_world` is
//! a whole one, from drawing pictures to the finished file.

mod lewm;
mod sigreg;

pub use lewm::{LewmLoss, LewmTerms, LewmTrainee};
pub use sigreg::SigReg;
