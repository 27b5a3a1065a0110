//! The commands, one file each.

pub(crate) mod bench;
pub(crate) mod classify;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod devices;
pub(crate) mod doctor;
pub(crate) mod embed;
pub(crate) mod export;
pub(crate) mod imatrix;
pub(crate) mod info;
mod memory;
mod model;
pub(crate) mod plan;
pub(crate) mod predict;
pub(crate) mod preprocess;
#[cfg(feature = "train")]
pub(crate) mod probe;
pub(crate) mod quantize;
pub(crate) mod rollout;
mod stream;
pub(crate) mod trace;
pub(crate) mod verify;
mod world;
