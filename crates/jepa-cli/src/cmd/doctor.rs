use burn::prelude::*;
use jepa_models::{EncoderConfig, self_check};
use serde::Serialize;

use super::model::open_bundle;
use crate::args::{DoctorArgs, Shared};
use crate::backend::{Task, run_on, running_on};
use crate::exit::CliError;
use crate::report::{self, Report};

pub(crate) fn run(args: &DoctorArgs, shared: &Shared) -> Result<(), CliError> {
    run_on(Doctor { args, shared }, shared)
}

struct Doctor<'a> {
    args: &'a DoctorArgs,
    shared: &'a Shared,
}

#[derive(Serialize)]
struct Checked {
    device: String,
    checks: Vec<Check>,
}

/// The operations of encoders at the sizes of one.
#[derive(Serialize)]
struct Check {
    shape: String,
    sound: bool,
    /// What is wrong.
    fault: Option<String>,
}

impl Task for Doctor<'_> {
    type Output = ();

    fn run<B: Backend>(self, device: B::Device) -> Result<(), CliError> {
        let Self { args, shared } = self;
        let configs = match &args.model {
            Some(path) => {
                let bundle = open_bundle(path, false, shared)?;
                let hparams = bundle.hparams();
                vec![(
                    path.display().to_string(),
                    EncoderConfig { family: hparams.family, hparams: hparams.enc.clone() },
                )]
            }
            None => {
                let config = |shape: &String| EncoderConfig::of_shape(shape).expect("clap lets these names pass only");
                args.shape.iter().map(|shape| (shape.clone(), config(shape))).collect()
            }
        };
        let checks = configs
            .into_iter()
            .map(|(shape, config)| {
                let fault =
                    self_check::<B>(&config, &device, shared.dtype.dtype()).err().map(|wrong| wrong.to_string());
                Check { shape, sound: fault.is_none(), fault }
            })
            .collect();
        let checked = Checked { device: running_on(), checks };
        report::print(&checked, shared)?;
        match checked.checks.iter().filter(|check| !check.sound).count() {
            0 => Ok(()),
            wrong => Err(CliError::Sick { device: checked.device, wrong, total: checked.checks.len() }),
        }
    }
}

impl Report for Checked {
    fn text(&self) -> String {
        let mut text = format!("{}\n", self.device);
        for check in &self.checks {
            let verdict =
                check.fault.as_deref().unwrap_or("matrix products, attention, norm, GELU and a block are right");
            text += &format!("  {}: {verdict}\n", check.shape);
        }
        text
    }
}
