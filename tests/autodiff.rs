//! The suite on flex under Burn's autodiff: the graphs as Burn operations, where `cpu.rs` has the same cases on the kernels.

use burn::backend::Flex;
use burn_autodiff::Autodiff;

#[test]
fn every_case_passes() {
    jepa_tests::every_case_passes::<Autodiff<Flex>>();
}

#[test]
fn every_deliberate_mistake_misses_the_bar() {
    jepa_tests::every_deliberate_mistake_misses_the_bar::<Autodiff<Flex>>();
}

#[test]
fn a_batch_equals_its_elements() {
    jepa_tests::a_batch_equals_its_elements::<Autodiff<Flex>>();
}

#[test]
fn a_later_frame_changes_no_earlier_one() {
    jepa_tests::a_later_frame_changes_no_earlier_one::<Autodiff<Flex>>();
}

#[test]
fn context_ids_in_any_order_give_the_same_rows() {
    jepa_tests::context_ids_in_any_order_give_the_same_rows::<Autodiff<Flex>>();
}

#[test]
fn a_later_frame_changes_no_earlier_prediction() {
    jepa_tests::a_later_frame_changes_no_earlier_prediction::<Autodiff<Flex>>();
}

#[test]
fn a_plan_is_reproducible_and_beats_random_ones() {
    jepa_tests::a_plan_is_reproducible_and_beats_random_ones::<Autodiff<Flex>>();
}

#[test]
fn candidates_in_one_batch_equal_single_rollouts() {
    jepa_tests::candidates_in_one_batch_equal_single_rollouts::<Autodiff<Flex>>();
}

#[test]
fn a_pursuit_replans_from_what_is_seen() {
    jepa_tests::a_pursuit_replans_from_what_is_seen::<Autodiff<Flex>>();
}

#[test]
fn segments_are_attended_across_and_views_averaged() {
    jepa_tests::segments_are_attended_across_and_views_averaged::<Autodiff<Flex>>();
}

#[test]
fn statistics_are_those_of_what_enters_a_matrix() {
    jepa_tests::statistics_are_those_of_what_enters_a_matrix::<Autodiff<Flex>>();
}

#[test]
fn gradients_are_those_of_central_differences() {
    jepa_tests::gradients_are_those_of_central_differences::<Autodiff<Flex>>();
}
