//! A world model made and used by this library alone: a LeWorldModel learns, from pictures of random play, how a dot moves in a box with two rooms, and
//! a planner then pushes the dot through the door to where it is asked to be.
//!
//! ```sh
//! cargo run --release -p jepa-models --features cpu,train --example dot_world -- train
//! cargo run --release -p jepa-models --features cpu,train --example dot_world -- plan --picture docs/dot-world.png
//! ```
#![allow(clippy::print_stdout, reason = "a program that prints its figures")]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]

mod canvas;
mod model;
mod picture;
mod plan;
mod train;
mod world;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Parser, Subcommand};

use crate::canvas::Canvas;
use crate::plan::{CLOSE, PUSHES, Player, Task, wander};
use crate::train::Training;
use crate::world::{Dot, SIDE};

#[derive(Parser)]
#[command(about = "A world model of a dot that is pushed about, and planning with it")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train a model from random play and write it to a file
    Train {
        /// The model file
        #[arg(short, long, default_value = "models/dot-world.gguf")]
        output: PathBuf,
        /// Steps of the optimiser
        #[arg(long, default_value_t = Training::default().steps)]
        steps: usize,
        /// Seed of the first weights and of the play
        #[arg(long, default_value_t = 0)]
        seed: u64,
    },
    /// Bring the dot to places in the other room, by planning and by random play
    Plan {
        /// The model file
        #[arg(short, long, default_value = "models/dot-world.gguf")]
        model: PathBuf,
        /// Tasks to try
        #[arg(long, default_value_t = 100)]
        tasks: usize,
        /// Seed of the tasks and of the draws
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Draw the first task whose straight way is walled off to this PNG
        #[arg(long)]
        picture: Option<PathBuf>,
    },
    /// Draw the box as the model sees it, to ask `jepa-cli` about
    Draw {
        /// Place of the dot's centre from the left, in sides of the box
        x: f64,
        /// Place of the dot's centre from the top
        y: f64,
        /// The PNG
        #[arg(short, long)]
        output: PathBuf,
    },
}

fn main() -> Result<(), Box<dyn Error>> {
    match Args::parse().command {
        Command::Train { output, steps, seed } => train(&Training { steps, seed, ..Training::default() }, &output),
        Command::Draw { x, y, output } => {
            let mut canvas = Canvas::new(SIDE, SIDE, [0.0; 3]);
            canvas.lay(&Dot { x, y }.picture(SIDE), 0, 0, 1);
            Ok(canvas.save(&output)?)
        }
        Command::Plan { model, tasks, seed, picture } => plan(&model, tasks, seed, picture.as_deref()),
    }
}

fn train(training: &Training, output: &Path) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let world = training.run(|step, losses| {
        if step % 50 == 0 || step == training.steps {
            let seconds = start.elapsed().as_secs_f64();
            println!(
                "step {step:5}  prediction {:.4}  sigreg {:6.3}  loss {:.4}  {seconds:5.0} s",
                losses.prediction, losses.sigreg, losses.total
            );
        }
    })?;
    model::save(&world, output)?;
    println!("{}", output.display());
    Ok(())
}

fn plan(model: &Path, count: usize, seed: u64, picture: Option<&Path>) -> Result<(), Box<dyn Error>> {
    let (world, preprocess) = model::open(model)?;
    let player = Player::new(world, preprocess);
    let tasks = Task::draw(count, seed);
    let pictured = tasks.iter().find(|task| task.is_walled_off());
    let start = Instant::now();
    let (mut planned, mut played, mut pushes) = (0, 0, 0);
    for (task, seed) in tasks.iter().zip(seed..) {
        let attempt = player.pursue(*task, seed)?;
        if let Some(path) = picture.filter(|_| pictured == Some(task)) {
            picture::draw(&player, *task, &attempt, seed)?.save(path)?;
        }
        if attempt.reached {
            planned += 1;
            pushes += attempt.path.len() - 1;
        }
        played += usize::from(wander(*task, seed).reached);
    }
    println!("within {CLOSE} of a goal in the other room, after at most {PUSHES} pushes:");
    println!("planner      {planned} of {count}, {:.1} pushes on average", pushes as f64 / f64::from(planned.max(1)));
    println!("random play  {played} of {count}");
    println!("{:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}
