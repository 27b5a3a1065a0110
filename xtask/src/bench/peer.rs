//! Who is timed: this workspace's command line, and other programs that hold the model and run one pass when asked.

use std::error::Error;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::{Deserialize, Serialize};

/// Milliseconds of one pass.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Pass {
    pub(crate) wall: f64,
    pub(crate) cpu: f64,
}

/// A program that answers each line on stdin with the two times of a pass.
pub(super) struct Peer {
    child: Child,
    ask: ChildStdin,
    answer: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts it.
    pub(super) fn start(mut command: Command) -> Result<Self, Box<dyn Error>> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (ask, answer) = (child.stdin.take(), child.stdout.take());
        let ask = ask.expect("stdin was asked for");
        let answer = BufReader::new(answer.expect("stdout was asked for"));
        Ok(Self { child, ask, answer })
    }

    /// The best of some passes.
    pub(super) fn best(&mut self, word: &str, passes: usize) -> Result<Pass, Box<dyn Error>> {
        let mut best = Pass { wall: f64::INFINITY, cpu: f64::INFINITY };
        for _ in 0..passes {
            let pass = self.pass(word)?;
            best = Pass { wall: best.wall.min(pass.wall), cpu: best.cpu.min(pass.cpu) };
        }
        Ok(best)
    }

    /// One pass.
    pub(super) fn pass(&mut self, word: &str) -> Result<Pass, Box<dyn Error>> {
        writeln!(self.ask, "{word}")?;
        self.ask.flush()?;
        let mut line = String::new();
        self.answer.read_line(&mut line)?;
        let times: Vec<f64> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        match times[..] {
            [wall, cpu] => Ok(Pass { wall, cpu }),
            _ => Err(format!("a peer answered `{}`, wanted two times", line.trim()).into()),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // A peer that has ended already is as good as one that is stopped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Our command line, as it was built for release beside this program.
pub(super) struct Cli(PathBuf);

impl Cli {
    pub(super) fn built() -> Result<Self, Box<dyn Error>> {
        let own = std::env::current_exe()?;
        let target = own.ancestors().nth(2).ok_or("xtask does not lie in a target folder")?;
        Ok(Self(target.join("release").join(format!("jepa-cli{}", std::env::consts::EXE_SUFFIX))))
    }

    /// Runs it and gives what it prints.
    pub(super) fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Result<Vec<u8>, Box<dyn Error>> {
        let ran = Command::new(&self.0).args(args).stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
        if ran.status.success() { Ok(ran.stdout) } else { Err(format!("jepa-cli ended with {}", ran.status).into()) }
    }
}
