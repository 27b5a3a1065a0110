//! Ctrl-C: unfinished outputs are removed before the program ends.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
/// What the user is told when the program is stopped.
#[cfg(feature = "train")]
static STOPPED: Mutex<Option<String>> = Mutex::new(None);

/// What a shell reports for a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// Installs the handler. Where the system refuses one, Ctrl-C ends the program without cleaning up.
pub(crate) fn clean_up_on_ctrl_c() {
    let _ = ctrlc::set_handler(|| {
        remove_unfinished();
        #[cfg(feature = "train")]
        let _no_more_drawing = leave_training();
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

/// Sets what the user is told when the program is stopped from now on.
#[cfg(feature = "train")]
pub(crate) fn say_when_stopped(line: &str) {
    *STOPPED.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(line.to_owned());
}

/// Lets Ctrl-C stop the program although a dashboard reads every key: raw mode takes the signal away.
#[cfg(feature = "train")]
pub(crate) fn keep_ctrl_c() {
    // The dashboard has a thread of its own, which enters raw mode in its own time.
    for _ in 0..100 {
        if crossterm::terminal::is_raw_mode_enabled().unwrap_or(true) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    #[cfg(unix)]
    if let Ok(mut modes) = rustix::termios::tcgetattr(std::io::stdin()) {
        modes.local_modes |= rustix::termios::LocalModes::ISIG;
        let _ = rustix::termios::tcsetattr(std::io::stdin(), rustix::termios::OptionalActions::Now, &modes);
    }
}

/// Leaves the dashboard's screen, where there is one, and says how the training goes on. The dashboard draws no more while the lock is held.
#[cfg(feature = "train")]
fn leave_training() -> Option<std::io::StdoutLock<'static>> {
    use crossterm::{cursor, execute, terminal};

    // Without a dashboard another thread may hold the lock and wait for a reader of stdout, for ever.
    let dashboard = terminal::is_raw_mode_enabled().unwrap_or(false);
    let stdout = dashboard.then(|| {
        let mut stdout = std::io::stdout().lock();
        let _ = terminal::disable_raw_mode();
        let _ = execute!(stdout, terminal::LeaveAlternateScreen, cursor::Show);
        stdout
    });
    if let Some(line) = STOPPED.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).as_ref() {
        crate::exit::say_on_stderr(line);
    }
    stdout
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
