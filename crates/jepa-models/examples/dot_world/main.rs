//! A world model trained by this library alone, and planning with it: a dot is pushed through a door.
//!
//! ```sh
//! cargo run --release -p jepa-models --features cpu,train --example dot_world -- train -o models/dot-world.gguf
//! cargo run --release -p jepa-models --features cpu,train --example dot_world -- plan -m models/dot-world.gguf
//! ```
#![allow(clippy::print_stdout, reason = "a program that prints its figures")]

mod model;
mod plan;
mod train;
mod world;

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use clap::{Parser, Subcommand};

use crate::plan::{Player, Task, wander};
use crate::train::Training;

#[derive(Parser)]
#[command(about = "A world model of a dot that is pushed through a door")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train a model from random play and write it to a file
    Train {
        /// The model file
        #[arg(short, default_value = "models/dot-world.gguf")]
        output: PathBuf,
        /// Steps of the optimiser
        #[arg(long, default_value_t = Training::default().steps)]
        steps: usize,
        #[arg(long, default_value_t = Training::default().batch)]
        batch: usize,
        #[arg(long, default_value_t = Training::default().rate)]
        rate: f64,
        #[arg(long, default_value_t = Training::default().loss.weight)]
        weight: f64,
        #[arg(long, default_value_t = 0)]
        seed: u64,
    },
    /// Plan with a model, and compare with random play
    Plan {
        /// The model file
        #[arg(short, default_value = "models/dot-world.gguf")]
        model: PathBuf,
        /// Tasks to try
        #[arg(long, default_value_t = 100)]
        tasks: usize,
    },
}

fn main() -> Result<(), Box<dyn Error>> {
    match Args::parse().command {
        Command::Train { output, steps, batch, rate, weight, seed } => {
            let start = Instant::now();
            let mut t = Training { steps, batch, rate, seed, ..Training::default() };
            t.loss.weight = weight;
            let world = t.run(|step, losses| {
                if step % 50 == 0 || step == steps {
                    println!(
                        "step {step:5}  prediction {:.4}  sigreg {:7.3}  loss {:.4}  {:.0} s",
                        losses.prediction,
                        losses.sigreg,
                        losses.total,
                        start.elapsed().as_secs_f64()
                    );
                }
            })?;
            model::save(&world, &output)?;
        }
        Command::Plan { model, tasks } => {
            let (world, preprocess) = model::open(&model)?;
            let player = Player::new(world, preprocess);
            let start = Instant::now();
            let (mut planned, mut random) = (0, 0);
            for (i, task) in Task::draw(tasks, 1).into_iter().enumerate() {
                let attempt = player.pursue(task, i as u64)?;
                planned += usize::from(attempt.reached);
                random += usize::from(wander(task, i as u64).reached);
                println!("{i} {} {:?}", attempt.reached, attempt.path.len());
            }
            println!("planner {planned}/{tasks}, random {random}/{tasks}, {:.1} s", start.elapsed().as_secs_f64());
        }
    }
    Ok(())
}
