//! The other programs: how they are built, started and called.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process::{cargo, root, step};

/// A program with what it is asked for.
pub(super) struct Other {
    pub(super) program: &'static str,
    /// What is written to it for a pass, and shown as its products.
    pub(super) word: &'static str,
    /// Type of the file that it reads.
    pub(super) weights: &'static str,
    kind: Kind,
}

enum Kind {
    Torch { python: PathBuf },
    Candle { program: PathBuf },
    Ggml { program: PathBuf, source: PathBuf },
}

impl Other {
    pub(super) fn torch(python: &Path, word: &'static str) -> Self {
        Self { program: "PyTorch", word, weights: "f32", kind: Kind::Torch { python: python.to_owned() } }
    }

    /// Compiles candle's program for this machine.
    pub(super) fn candle() -> Result<Self, Box<dyn Error>> {
        let folder = root().join("xtask/peers/candle");
        let mut build = cargo(&["build", "--release"]);
        build.current_dir(&folder).env("RUSTFLAGS", "-C target-cpu=native").env_remove("CARGO_TARGET_DIR");
        step("candle", &mut build)?;
        let program = folder.join("target/release/candle-vit");
        Ok(Self { program: "candle", word: "f32", weights: "f32", kind: Kind::Candle { program } })
    }

    /// Compiles ggml for this machine, once as it comes and once with llamafile's products, and the program with each.
    pub(super) fn ggml(source: &Path) -> Result<Vec<Self>, Box<dyn Error>> {
        let mut others = Vec::new();
        for (name, llamafile) in [("ggml", "OFF"), ("ggml, llamafile", "ON")] {
            let build = source.join(format!("build-llamafile-{}", llamafile.to_lowercase()));
            let mut configure = Command::new("cmake");
            configure.arg("-S").arg(source).arg("-B").arg(&build).args([
                "-DCMAKE_BUILD_TYPE=Release",
                "-DGGML_NATIVE=ON",
                "-DBUILD_SHARED_LIBS=OFF",
                "-DGGML_BUILD_TESTS=OFF",
                "-DGGML_BUILD_EXAMPLES=OFF",
                &format!("-DGGML_LLAMAFILE={llamafile}"),
            ]);
            step(&format!("{name}: configure"), &mut configure)?;
            step(&format!("{name}: build"), Command::new("cmake").arg("--build").arg(&build).args(["-j", "2"]))?;
            let program = build.join("ggml_vit");
            let mut link = Command::new("c++");
            link.args(["-O2", "-std=c++17", "-fopenmp", "-o"]).arg(&program);
            link.arg(root().join("xtask/peers/ggml_vit.cpp")).arg("-I").arg(source.join("include"));
            link.arg("-L").arg(build.join("src")).args(["-lggml", "-lggml-cpu", "-lggml-base", "-lpthread", "-ldl"]);
            step(&format!("{name}: ggml_vit"), &mut link)?;
            for weights in ["f16", "q8_0"] {
                let kind = Kind::Ggml { program: program.clone(), source: source.to_owned() };
                others.push(Self { program: name, word: weights, weights, kind });
            }
        }
        Ok(others)
    }

    /// The program with `threads` threads; it writes the tokens of `input` to `tokens` before it answers.
    pub(super) fn command(&self, model: &Path, input: &Path, threads: usize, tokens: &Path) -> Command {
        let threads = threads.to_string();
        let start = |program: &Path| {
            let mut command = Command::new(program);
            if let Kind::Torch { .. } = self.kind {
                command.arg(root().join("xtask/peers/torch_vit.py"));
            }
            command.arg(model).arg(input);
            command
        };
        match &self.kind {
            Kind::Torch { python } => {
                let mut command = start(python);
                command.args(["--threads", &threads, "--precision", self.word, "--tokens"]).arg(tokens);
                command
            }
            Kind::Candle { program } => {
                let mut command = start(program);
                command.arg(tokens).env("RAYON_NUM_THREADS", threads);
                command
            }
            Kind::Ggml { program, .. } => {
                let mut command = start(program);
                command.arg(threads).arg(tokens);
                command
            }
        }
    }

    /// What it calls its version.
    pub(super) fn version(&self) -> Result<String, Box<dyn Error>> {
        match &self.kind {
            Kind::Torch { python } => {
                first_line(Command::new(python).args(["-c", "import torch; print(torch.__version__)"]))
            }
            Kind::Candle { .. } => {
                let lock = std::fs::read_to_string(root().join("xtask/peers/candle/Cargo.lock"))?;
                let after = lock.split("name = \"candle-core\"\nversion = \"").nth(1);
                Ok(after.and_then(|rest| rest.split('"').next()).unwrap_or("unknown").to_owned())
            }
            Kind::Ggml { source, .. } => {
                first_line(Command::new("git").arg("-C").arg(source).args(["describe", "--always"]))
            }
        }
    }
}

fn first_line(command: &mut Command) -> Result<String, Box<dyn Error>> {
    let ran = command.stdin(Stdio::null()).output()?;
    let text = String::from_utf8_lossy(&ran.stdout).trim().to_owned();
    if ran.status.success() { Ok(text) } else { Err(format!("{command:?} ended with {}", ran.status).into()) }
}
