use std::path::PathBuf;

use clap::Args;

use super::ModelArgs;

#[derive(Args, Debug)]
pub(crate) struct RolloutArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Pictures to start from, in order of time
    #[arg(long, value_name = "IMG", num_args = 1.., required_unless_present = "input_tensor")]
    pub(crate) context: Vec<PathBuf>,
    /// Normalised frames instead of pictures: f32 .npy of [1,C,T,H,W] or [1,C,H,W]
    #[arg(long, value_name = "X.npy", conflicts_with = "context")]
    pub(crate) input_tensor: Option<PathBuf>,
    /// Actions, f32 .npy of [steps, values] or [candidates, steps, values]; the first ones lead from context frame to context frame
    #[arg(long, value_name = "A.npy")]
    pub(crate) actions: PathBuf,
    /// Start pose [values], or the poses of all context frames [frames, values]: f32 .npy (V-JEPA 2-AC, which needs it)
    #[arg(long, value_name = "S.npy")]
    pub(crate) states: Option<PathBuf>,
    /// Picture to measure the distance to, after every step; a .safetensors output and --json hold the distances
    #[arg(long, value_name = "IMG")]
    pub(crate) goal: Option<PathBuf>,
    /// File to write: .npy with the predicted latents, or .safetensors with `pred`, `states` and `energy`
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: PathBuf,
}
