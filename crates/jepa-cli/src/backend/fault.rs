//! Panics of device threads. Burn does not hand them back: calls behind one fail, or go on and give wrong numbers.

#[cfg(feature = "cuda")]
use std::cell::Cell;
use std::panic;
use std::sync::Once;

use crate::exit::say_on_stderr;
use crate::interrupt::remove_unfinished;

/// What scripts see of a device that failed in mid-work.
const DEVICE_FAULT: i32 = 3;

#[cfg(feature = "cuda")]
thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Ends the process with code 3 and one line as soon as a device thread panics.
pub(super) fn end_on_device_fault() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let other = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            // Burn's device threads, by the names it gives them.
            if std::thread::current().name().is_some_and(|name| name.starts_with("DS")) {
                let what = info.payload_as_str().unwrap_or("no reason was given").lines().next().unwrap_or_default();
                say_on_stderr(&format!(
                    "error: the device failed: {what}; try a smaller --batch, --frames or --size, or `--backend cpu`"
                ));
                remove_unfinished();
                std::process::exit(DEVICE_FAULT);
            }
            #[cfg(feature = "cuda")]
            if QUIET.get() {
                return;
            }
            other(info);
        }));
    });
}

/// Runs `work`, whose panics on this thread say nothing.
#[cfg(feature = "cuda")]
pub(super) fn quietly<R>(work: impl FnOnce() -> R) -> R {
    end_on_device_fault();
    QUIET.set(true);
    let result = work();
    QUIET.set(false);
    result
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Set for the copy of the test program in which a device thread panics.
    const DYING: &str = "JEPA_TEST_DEVICE_FAULT";

    #[test]
    fn a_panic_of_a_device_thread_ends_the_process_with_one_line() {
        if std::env::var_os(DYING).is_some() {
            end_on_device_fault();
            let thread = std::thread::Builder::new().name("DSD-4-0".into());
            let _ = thread.spawn(|| panic!("can't allocate buffer of size: 1\nand more")).expect("a thread").join();
            // Never reached: the process has ended.
            return;
        }
        let mut program = Command::new(std::env::current_exe().expect("this program"));
        program.args([
            "--exact",
            "--nocapture",
            "backend::fault::tests::a_panic_of_a_device_thread_ends_the_process_with_one_line",
        ]);
        let ran = program.env(DYING, "1").output().expect("it starts");
        let stderr = String::from_utf8_lossy(&ran.stderr);
        let lines: Vec<_> = stderr.lines().filter(|line| line.starts_with("error: ")).collect();
        assert_eq!(ran.status.code(), Some(DEVICE_FAULT), "{stderr}");
        assert!(matches!(lines[..], [line] if line.contains("can't allocate buffer of size: 1; try")), "{stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
    }
}
