use std::path::PathBuf;

use clap::Args;

use super::ModelArgs;

#[derive(Args, Debug)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Picture of what is
    #[arg(long, value_name = "IMG")]
    pub(crate) observation: PathBuf,
    /// Picture of what shall be
    #[arg(long, value_name = "IMG")]
    pub(crate) goal: PathBuf,
    /// Pose to start from: f32 .npy of [values] (V-JEPA 2-AC)
    #[arg(long, value_name = "S.npy")]
    pub(crate) state: Option<PathBuf>,
    /// Actions in the plan
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) horizon: usize,
    /// Sequences drawn in each round
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub(crate) samples: usize,
    /// Sequences kept of them
    #[arg(long, value_name = "K", default_value_t = 10)]
    pub(crate) top_k: usize,
    /// Rounds
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) iterations: usize,
    /// Seed of the draws: the same seed gives the same plan
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Standard deviation of the first draws [default: V-JEPA 2-AC 0.05 and 1 for the gripper, LeWM 1]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub(crate) action_std: Option<f64>,
    /// Largest absolute action value [default: V-JEPA 2-AC 0.05 and 0.75 for the gripper, LeWM none]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub(crate) action_bound: Option<f64>,
}
