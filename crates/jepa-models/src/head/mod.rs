//! The heads: from an encoder's tokens to classes.

mod attentive;
mod linear;

pub use attentive::{AttentiveHead, AttentiveHeadConfig, CrossAttention};
pub use linear::{LinearHead, LinearHeadConfig};
