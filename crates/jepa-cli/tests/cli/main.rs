//! The command line as a user runs it: the built program, files in, files out.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bench;
mod embed;
mod info;
mod judge;
mod pixels;
#[cfg(feature = "train")]
mod probe;
mod quantize;
#[cfg(feature = "train")] // the page has the commands of the default features
mod reference;
mod refusals;
mod session;
#[cfg(feature = "train")]
mod shapes;
mod stops;
mod tasks;
mod worlds;
