//! Ctrl-C: unfinished outputs are removed before the program ends.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// What a shell reports for a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// Installs the handler. Where the system refuses one, Ctrl-C ends the program without cleaning up.
pub(crate) fn clean_up_on_ctrl_c() {
    let _ = ctrlc::set_handler(|| {
        remove_unfinished();
        std::process::exit(INTERRUPTED);
    });
}

/// Removes what is unfinished, before the process ends in mid-work.
pub(crate) fn remove_unfinished() {
    let unfinished = UNFINISHED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    for path in unfinished.iter() {
        let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    }
}

/// Remembers an unfinished file or folder for as long as the guard lives.
#[derive(Debug)]
pub(crate) struct Unfinished(PathBuf);

impl Unfinished {
    pub(crate) fn new(path: &Path) -> Self {
        UNFINISHED.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(path.to_owned());
        Self(path.to_owned())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        UNFINISHED.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).retain(|path| *path != self.0);
    }
}
