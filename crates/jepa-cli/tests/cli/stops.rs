//! Outputs that cannot be written, readers that go away, and Ctrl-C.

#![cfg(unix)]

use std::fs::File;
use std::process::{Command, Stdio};

use crate::session::{Ran, Session, model, picture};

#[test]
fn a_target_that_cannot_be_written_is_known_before_any_work() {
    let s = Session::new();
    for out in ["absent/out.npy", "/proc/out.npy"] {
        let ran = s.run(&["embed", "-m", &model("ijepa"), &picture(), "-o", out]);
        assert_eq!(ran.code, 3, "{ran:?}");
        let wanted = format!("error: output {out}: No such file or directory (os error 2)");
        assert_eq!(ran.stderr.trim_end().lines().last(), Some(wanted.as_str()));
    }
    for args in [
        ["export", "-m", &model("ijepa"), "-o", "absent/out"],
        ["quantize", &model("ijepa"), "absent/out", "--type", "q8_0"],
    ] {
        let ran = s.run(&args);
        assert_eq!(ran.code, 3, "{ran:?}");
        assert_eq!(
            ran.stderr.trim_end().lines().last(),
            Some("error: output absent/out: No such file or directory (os error 2)")
        );
    }
    std::fs::create_dir(s.path("out.npy")).unwrap();
    let ran = s.run(&["embed", "-m", &model("ijepa"), &picture(), "-o", "out.npy"]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("folder"), "{}", ran.stderr);
}

#[test]
fn a_full_disk_leaves_nothing_behind() {
    let s = Session::new();
    let ran =
        s.on_a_full_disk(2, &["embed", "-q", "-m", &model("vjepa2"), &picture(), "--pool", "none", "-o", "out.npy"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert_eq!(ran.stderr.trim_end(), "error: output out.npy: File too large (os error 27)");
    assert!(s.files().is_empty(), "{:?}", s.files());
}

#[test]
fn a_full_stdout_is_an_error_and_a_closed_one_is_not() {
    let s = Session::new();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = s.command(&["info", &model("ijepa")]).stdout(full).stderr(Stdio::piped()).output().unwrap();
    let ran = Ran::from(output);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.stderr.contains("stdout"), "{}", ran.stderr);

    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output =
        s.command(&["info", "--tensors", &model("ijepa")]).stdout(writer).stderr(Stdio::piped()).output().unwrap();
    let ran = Ran::from(output);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
}

#[test]
fn ctrl_c_removes_what_is_unfinished() {
    let s = Session::new();
    // A picture that never comes: the program waits with its outputs open.
    assert!(Command::new("mkfifo").arg(s.path("never.png")).status().unwrap().success());
    let mut child = s
        .command(&["embed", "-q", "-m", &model("ijepa"), "never.png", "-o", "out.npy"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while s.files().iter().filter(|name| name.ends_with(".part")).count() < 2 {
        assert!(child.try_wait().unwrap().is_none(), "it waits for the picture");
        std::thread::yield_now();
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(s.files(), ["never.png"]);
}

#[cfg(feature = "train")]
#[test]
fn a_training_that_is_interrupted_says_how_it_goes_on() {
    let s = Session::new();
    crate::shapes::write(&s, "train", 0..2, 12, 1);
    let args = ["probe", "train", "-m", &model("hfvit"), "train", "-o", "out.gguf", "--lr", "0.01", "--batch", "1"];
    let mut child = s
        .command(&[&args[..], &["--val-split", "0", "--epochs", "100000"]].concat())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !s.path("out.gguf.checkpoint").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it has many epochs to go");
        std::thread::yield_now();
    }
    // The line is set right after the first checkpoint is there.
    let (mut epochs, mut said) = (0, String::new());
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().unwrap()));
    for line in lines.by_ref().map(Result::unwrap) {
        epochs += usize::from(line.starts_with("epoch "));
        if epochs == 2 {
            assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
            epochs += 1;
        }
        said = line;
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(said, "stopped; the same command goes on from out.gguf.checkpoint");
}

#[test]
fn ctrl_c_ends_a_program_whose_output_nobody_reads() {
    let s = Session::new();
    let mut child = s.command(&["completions", "powershell"]).stdout(Stdio::piped()).spawn().unwrap();
    // The first byte is there, the rest is more than a pipe holds: it waits with stdout locked.
    let mut stdout = child.stdout.take().unwrap();
    std::io::Read::read_exact(&mut stdout, &mut [0]).unwrap();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let mut rest = Vec::new();
    std::io::Read::read_to_end(&mut stdout, &mut rest).unwrap();
    assert!(
        rest.len() < s.good(&["completions", "powershell"]).stdout.len() - 1,
        "it was written whole: it did not wait"
    );
}

#[test]
fn a_pipe_in_a_folder_is_no_picture() {
    let s = Session::new();
    std::fs::create_dir(s.path("folder")).unwrap();
    assert!(Command::new("mkfifo").arg(s.path("folder/never.png")).status().unwrap().success());
    std::fs::copy(picture(), s.path("folder/picture.png")).unwrap();
    s.good(&["embed", "-m", &model("ijepa"), "folder", "-o", "out.npy"]);
    assert_eq!(s.npy("out.npy").0[0], 1);
}
