//! `docs/cli.md`: the help of the program and of every command, in one page.

use std::fs;
use std::path::Path;

use crate::session::Session;

/// Set to write the page instead of comparing it.
const WRITE: &str = "JEPA_WRITE_DOCS";

/// Heading of the options that every command takes; they are shown once.
const SHARED: &str = "Shared options:";

const HEAD: &str = "\
# Command line

The help of `jepa-cli` and of every command, as `jepa-cli COMMAND --help` prints it. The shared options come with every command and are
shown once, under the program. This page is generated; `cargo xtask docs` writes it.
";

fn help(session: &Session, command: &[String]) -> String {
    let mut args: Vec<&str> = command.iter().map(String::as_str).collect();
    args.push("--help");
    // Without a terminal clap asks the environment how wide to print.
    let ran = session.command(&args).env("COLUMNS", "110").output().expect("the program starts");
    assert!(ran.status.success(), "{args:?}: {ran:?}");
    String::from_utf8(ran.stdout).expect("help is text")
}

/// The commands that a help lists, without `help` itself.
fn commands(help: &str) -> Vec<String> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // Names stand two spaces from the edge; what wraps stands further right.
    let names = listed.filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
    names.filter_map(|rest| rest.split_whitespace().next()).filter(|name| *name != "help").map(str::to_owned).collect()
}

/// A help without the shared options, which end at the next line that is not indented.
fn without_shared(help: &str) -> String {
    let mut inside = false;
    let mut kept = String::new();
    for line in help.lines() {
        inside = line == SHARED || inside && (line.is_empty() || line.starts_with(' '));
        if !inside {
            kept.push_str(line.trim_end());
            kept.push('\n');
        }
    }
    kept
}

/// Adds the section of a command and those of the commands below it.
fn describe(session: &Session, command: &mut Vec<String>, page: &mut String) {
    let help = help(session, command);
    let shown = if command.is_empty() { trimmed(&help) } else { without_shared(&help) };
    let title = if command.is_empty() { "jepa-cli".to_owned() } else { command.join(" ") };
    page.push_str(&format!("\n## {title}\n\n```text\n{}\n```\n", shown.trim_end()));
    for name in commands(&help) {
        command.push(name);
        describe(session, command, page);
        command.pop();
    }
}

fn trimmed(help: &str) -> String {
    help.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[test]
fn the_reference_is_what_the_program_says() {
    let mut page = HEAD.to_owned();
    describe(&Session::new(), &mut Vec::new(), &mut page);
    assert!(page.contains("\n## completions\n") && page.matches(SHARED).count() == 1, "{page}");

    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    if std::env::var_os(WRITE).is_some() {
        fs::write(&path, &page).expect("docs is writable");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    let stale = page.lines().zip(committed.lines()).find(|(a, b)| a != b);
    assert!(page == committed, "docs/cli.md is stale, first at {stale:?}; run `cargo xtask docs`");
}

#[test]
fn commands_below_commands_are_found() {
    let help = "Usage: x <COMMAND>\n\nCommands:\n  train  Fit a head\n           on features\n  eval   Judge it\n  help   Print\n\nOptions:\n  -h";
    assert_eq!(commands(help), ["train", "eval"]);
    assert!(commands("Options:\n  -h, --help\n").is_empty());
}
