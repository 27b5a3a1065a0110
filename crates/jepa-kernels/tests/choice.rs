//! `JEPA_KERNELS`, in processes of their own: it is read once.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that says what it finds")]

use std::process::Command;

use jepa_kernels::Isa;

/// Prints what is chosen. The other test runs it with the variable set.
#[test]
fn print_the_chosen() {
    match Isa::chosen() {
        Ok(isa) => println!("chosen: {}.", isa.name()),
        Err(error) => println!("refused: {error}."),
    }
}

fn with(value: Option<&str>) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "print_the_chosen", "--nocapture"]).env_remove("JEPA_KERNELS");
    if let Some(value) = value {
        command.env("JEPA_KERNELS", value);
    }
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

#[test]
fn the_variable_forces_a_set() {
    for isa in Isa::all() {
        let found = with(Some(isa.name()));
        assert!(found.contains(&format!("chosen: {}.", isa.name())), "{found}");
    }
    let best = Isa::all().pop().unwrap().name();
    assert!(with(None).contains(&format!("chosen: {best}.")));
    let found = with(Some("avx1024"));
    assert!(found.contains("refused: JEPA_KERNELS is `avx1024`") && found.contains(best), "{found}");
}
