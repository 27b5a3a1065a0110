//! A folder of its own for every test, and the program run in it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use npyz::NpyFile;
use tempfile::TempDir;

pub(crate) struct Session {
    folder: TempDir,
    /// What the program keeps for the user.
    cache: TempDir,
}

/// What a run left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Session {
    pub(crate) fn new() -> Self {
        let folder = || tempfile::tempdir().expect("a temporary folder");
        Self { folder: folder(), cache: folder() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The only file of features that the program keeps for the user.
    pub(crate) fn cached_features(&self) -> PathBuf {
        let folder = self.cache.path().join("jepa-cli/features");
        let files: Vec<_> =
            std::fs::read_dir(folder).expect("a cache").map(|entry| entry.expect("an entry").path()).collect();
        let [only] = &files[..] else { panic!("{files:?}") };
        only.clone()
    }

    /// The program, in this folder.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.here(env!("CARGO_BIN_EXE_jepa-cli"));
        command.args(args);
        command
    }

    /// Runs the program where no file may grow past so many blocks of 512 bytes: a disk that is full.
    #[cfg(unix)]
    pub(crate) fn on_a_full_disk(&self, blocks: u32, args: &[&str]) -> Ran {
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let mut command = self.here("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_jepa-cli")]).args(args);
        Ran::from(command.output().expect("the program starts"))
    }

    fn here(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        // Without it Mesa's Vulkan driver complains on stderr when it is asked for adapters.
        command.current_dir(self.folder.path()).env("XDG_RUNTIME_DIR", self.folder.path());
        command.env("XDG_CACHE_HOME", self.cache.path());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::from(self.command(args).output().expect("the program starts"))
    }

    /// Runs and expects code 0.
    pub(crate) fn good(&self, args: &[&str]) -> Ran {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "{args:?}: {ran:?}");
        ran
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).expect("a writable temporary folder");
    }

    /// An f32 array of a `.npy` file: shape and values.
    pub(crate) fn npy(&self, name: &str) -> (Vec<u64>, Vec<f32>) {
        let npy = NpyFile::new(File::open(self.path(name)).expect(name)).expect("an .npy file");
        (npy.shape().to_vec(), npy.into_vec().expect("f32 values"))
    }

    /// A u8 array of a `.npy` file: shape and values.
    pub(crate) fn npy_u8(&self, name: &str) -> (Vec<u64>, Vec<u8>) {
        let npy = NpyFile::new(File::open(self.path(name)).expect(name)).expect("an .npy file");
        (npy.shape().to_vec(), npy.into_vec().expect("u8 values"))
    }

    /// Names of everything in the folder, hidden files too.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).expect("a readable folder");
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// A committed fixture.
pub(crate) fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(name);
    assert!(path.exists(), "{} is committed", path.display());
    path.to_string_lossy().into_owned()
}

/// A committed f32 model.
pub(crate) fn model(case: &str) -> String {
    fixture(&format!("cases/{case}/model-f32.gguf"))
}

pub(crate) fn picture() -> String {
    fixture("quickstart/picture.png")
}

pub(crate) fn clip() -> String {
    fixture("quickstart/clip")
}

/// Writes a `.npy` file of f32.
pub(crate) fn npy_bytes(shape: &[usize], values: &[f32]) -> Vec<u8> {
    let axes: String = shape.iter().map(|n| format!("{n},")).collect();
    let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({axes}), }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.bytes());
    bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    bytes
}

pub(crate) fn assert_close(a: &[f32], b: &[f32], bar: f32) {
    assert_eq!(a.len(), b.len());
    let scale = b.iter().fold(0.0f32, |most, v| most.max(v.abs()));
    let worst = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst <= bar * scale, "{worst} of {scale}");
}
