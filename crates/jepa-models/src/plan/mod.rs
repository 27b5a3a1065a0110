//! Planning: actions that bring a world model to a goal.

mod cem;
mod receding;

pub use cem::{Cem, FreeAction, Noise, Plan};
pub use receding::Observation;
