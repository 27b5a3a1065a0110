//! Planning: actions that bring a world model to a goal.

mod cem;

pub use cem::{Cem, FreeAction, Noise, Plan};
