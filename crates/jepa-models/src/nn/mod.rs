//! The vocabulary that the families share: what a ViT is made of, with the shape on every line that changes one.
//!
//! A part lives here when two families use it or when it is a paper's named part. Fields are named after the schema, so the path of a
//! parameter inside a module is its name in the file.

mod activation;
mod adaln;
mod attention;
mod block;
mod gather;
mod linear;
mod linears_as;
mod norm;
mod patch_embed;
mod pieces;
mod pos_table;
mod rope3d;
mod stored;

pub use activation::Act;
pub use adaln::{AdaLnBlock, AdaLnBlockConfig};
pub use attention::{SCORES_PER_BLOCK, Visibility, attention, multi_head};
pub use block::{Block, BlockConfig};
pub use gather::TokenIds;
pub use linear::linear;
pub(crate) use linear::{as_type, is_reduced, linear_in_burn};
pub use linears_as::with_linears_as;
pub use norm::{layer_norm, normalise};
pub use patch_embed::{Grid, Pixels, tubelets};
pub(crate) use pieces::fits;
pub use pieces::set_largest_tensor;
pub use pos_table::{AxisWeights, resize_table_2d, resize_table_3d};
pub use rope3d::{Rope, RopeAngles, TokenPosition};
#[cfg(all(test, feature = "cpu"))]
pub(crate) use stored::StoredMatrices;
#[cfg(feature = "cpu")]
pub(crate) use stored::StoredMatrix;
pub(crate) use stored::is_loaded_at_once;
