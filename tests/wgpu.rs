//! The suite on Burn's wgpu backend.

use burn::backend::Wgpu;

#[test]
fn every_case_passes() {
    jepa_tests::every_case_passes::<Wgpu>();
}

#[test]
fn every_deliberate_mistake_misses_the_bar() {
    jepa_tests::every_deliberate_mistake_misses_the_bar::<Wgpu>();
}

#[test]
fn a_batch_equals_its_elements() {
    jepa_tests::a_batch_equals_its_elements::<Wgpu>();
}

#[test]
fn a_later_frame_changes_no_earlier_one() {
    jepa_tests::a_later_frame_changes_no_earlier_one::<Wgpu>();
}

#[test]
fn context_ids_in_any_order_give_the_same_rows() {
    jepa_tests::context_ids_in_any_order_give_the_same_rows::<Wgpu>();
}

#[test]
fn a_later_frame_changes_no_earlier_prediction() {
    jepa_tests::a_later_frame_changes_no_earlier_prediction::<Wgpu>();
}

#[test]
fn a_plan_is_reproducible_and_beats_random_ones() {
    jepa_tests::a_plan_is_reproducible_and_beats_random_ones::<Wgpu>();
}

#[test]
fn candidates_in_one_batch_equal_single_rollouts() {
    jepa_tests::candidates_in_one_batch_equal_single_rollouts::<Wgpu>();
}

#[test]
fn a_pursuit_replans_from_what_is_seen() {
    jepa_tests::a_pursuit_replans_from_what_is_seen::<Wgpu>();
}

#[test]
fn segments_are_attended_across_and_views_averaged() {
    jepa_tests::segments_are_attended_across_and_views_averaged::<Wgpu>();
}

#[test]
fn statistics_are_those_of_what_enters_a_matrix() {
    jepa_tests::statistics_are_those_of_what_enters_a_matrix::<Wgpu>();
}
