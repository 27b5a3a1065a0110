//! What `torch.save` writes, read and never executed: a zip archive with one pickle, or, before PyTorch 1.6, pickles one behind the other.

mod archive;
mod flatten;
mod globals;
mod legacy;
mod machine;
mod node;
mod numpy;

pub(super) use archive::read as read_archive;
pub(super) use legacy::read as read_legacy;
