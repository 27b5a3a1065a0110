//! The suite: cases that know no device. A runner (`cpu.rs`, `ndarray.rs`, `autodiff.rs`) picks the backend.

mod flips;
mod gradients;
mod parameter_gradients;
mod properties;
mod training;
mod worlds;

use std::path::{Path, PathBuf};

use burn::prelude::Backend;
use burn::tensor::DType;
use jepa_cli::parity::{Case, Line, Outcome, Variant, replay};
use jepa_gguf::Bundle;
use jepa_models::Jepa;

pub use flips::every_deliberate_mistake_misses_the_bar;
pub use gradients::gradients_are_those_of_central_differences;
pub use parameter_gradients::every_parameter_has_the_gradient_of_central_differences;
pub use properties::{
    a_batch_equals_its_elements, a_later_frame_changes_no_earlier_one, context_ids_in_any_order_give_the_same_rows,
    statistics_are_those_of_what_enters_a_matrix,
};
pub use training::{a_finished_lewm_is_its_trainee, the_loss_of_lewm_has_its_whole_gradient};
pub use worlds::{
    a_later_frame_changes_no_earlier_prediction, a_plan_is_reproducible_and_beats_random_ones,
    a_pursuit_replans_from_what_is_seen, candidates_in_one_batch_equal_single_rollouts,
    segments_are_attended_across_and_views_averaged,
};

/// The tests of the suite on a backend. `$run(name, test)` runs one, where it cannot simply be called.
#[macro_export]
macro_rules! suite {
    ($backend:ty) => {
        $crate::suite!($backend, |_, test: fn()| test());
    };
    ($backend:ty, $run:expr) => {
        $crate::suite!(@tests $backend, $run,
            every_case_passes
            every_deliberate_mistake_misses_the_bar
            a_batch_equals_its_elements
            a_later_frame_changes_no_earlier_one
            context_ids_in_any_order_give_the_same_rows
            a_later_frame_changes_no_earlier_prediction
            a_plan_is_reproducible_and_beats_random_ones
            candidates_in_one_batch_equal_single_rollouts
            a_pursuit_replans_from_what_is_seen
            segments_are_attended_across_and_views_averaged
            statistics_are_those_of_what_enters_a_matrix
        );
    };
    (@tests $backend:ty, $run:expr, $($test:ident)+) => {
        $(
            #[test]
            fn $test() {
                $run(stringify!($test), $crate::$test::<$backend>);
            }
        )+
    };
}

/// The committed fixtures.
pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// Folders of the committed cases, in order, and of those below `$JEPA_CASES` where somebody has more.
pub fn cases() -> Vec<PathBuf> {
    let mut folders = cases_below(&fixtures().join("cases"));
    match std::env::var_os("JEPA_CASES") {
        Some(more) => folders.extend(cases_below(Path::new(&more))),
        None => eprintln!("skipped: JEPA_CASES names no further cases"),
    }
    folders
}

fn cases_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut folders: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    folders.retain(|folder| folder.join("case.json").is_file());
    folders.sort();
    folders
}

/// Loads the model of `variant`.
pub fn load<B: Backend>(variant: &Variant) -> Jepa<B> {
    load_as(variant, DType::F32)
}

/// Loads the model of `variant` with linear layers of type `dtype`.
pub fn load_as<B: Backend>(variant: &Variant, dtype: DType) -> Jepa<B> {
    let bundle = Bundle::open(&variant.model).unwrap_or_else(|error| panic!("{}: {error}", variant.model.display()));
    Jepa::from_bundle_as(bundle, &B::Device::default(), dtype)
        .unwrap_or_else(|error| panic!("{}: {error}", variant.model.display()))
}

/// Every output of every case, of every model type, is within its bar.
pub fn every_case_passes<B: Backend>() {
    let lines = pass_as::<B>(&cases(), DType::F32);
    let passed = lines.iter().filter(|line| line.outcome == Outcome::Pass).count();
    assert!(passed > 100, "only {passed} outputs were compared");
}

/// Some committed cases (an encoder of pictures, one of clips with its predictor, a head, world models) are within the bars of their tier when linear layers are of
/// type `dtype`.
pub fn some_cases_pass_as<B: Backend>(dtype: DType) {
    let folders = ["hfvit_registers", "vjepa2", "vjepa2_cls", "vjepa2_ac", "lewm"]
        .map(|name| fixtures().join("cases").join(name));
    pass_as::<B>(&folders, dtype);
}

/// Every output of every case is within the bar of its tier when linear layers are of type `dtype`.
pub fn every_case_passes_as<B: Backend>(dtype: DType) {
    pass_as::<B>(&cases(), dtype);
}

fn pass_as<B: Backend>(folders: &[PathBuf], dtype: DType) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for folder in folders {
        let case = Case::read(folder).expect("the cases are sound");
        for variant in case.variants(None).expect("the cases are sound") {
            let replayed = replay(&case, &variant, load_as::<B>(&variant, dtype), &B::Device::default());
            lines.extend(replayed.expect("the cases are sound").lines);
        }
    }
    let missed: Vec<_> = lines.iter().filter(|line| line.outcome == Outcome::Miss).collect();
    assert!(missed.is_empty(), "{missed:#?}");
    let skipped: Vec<_> = lines.iter().filter(|line| line.outcome == Outcome::Skip).collect();
    assert!(skipped.is_empty(), "{skipped:#?}");
    lines
}
