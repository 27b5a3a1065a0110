//! The pose of a robot's hand under actions: position, orientation, gripper.

/// Values of a pose and of an action: x, y, z in metres, extrinsic xyz angles in radians, gripper from 0 (open) to 1 (closed).
pub const POSE_DIM: usize = 7;

/// Below this length of its horizontal part a rotated x axis points straight up or down, and only one of two angles can be told.
const LOCKED: f64 = 1e-7;

/// The pose after an action: positions add, rotations compose (`R(action) · R(pose)`), the gripper adds and stays within 0 and 1.
///
/// **Source** Meta's V-JEPA 2-AC world-model wrapper over SciPy's rotations. In the locked case (pitch at ±90°) the third angle is 0.
///
/// ```
/// use jepa_models::world::update_pose;
///
/// let quarter_turn = std::f64::consts::FRAC_PI_2;
/// let pose = [0.1, 0.0, 0.0, 0.0, 0.0, quarter_turn, 0.9];
/// let after = update_pose(&pose, &[0.0, 0.2, 0.0, 0.0, 0.0, -quarter_turn, 0.5]);
/// assert_eq!(&after[..3], &[0.1, 0.2, 0.0]);
/// assert!(after[5].abs() < 1e-12);
/// assert_eq!(after[6], 1.0);
/// ```
pub fn update_pose(pose: &[f64; POSE_DIM], action: &[f64; POSE_DIM]) -> [f64; POSE_DIM] {
    let r = product(&pose_rotation(action), &pose_rotation(pose));
    let beta = (-r[2][0]).clamp(-1.0, 1.0).asin();
    let (alpha, gamma) = if r[0][0].hypot(r[1][0]) < LOCKED {
        ((-r[1][2]).atan2(r[1][1]), 0.0)
    } else {
        (r[2][1].atan2(r[2][2]), r[1][0].atan2(r[0][0]))
    };
    let add = |i: usize| pose[i] + action[i];
    [add(0), add(1), add(2), alpha, beta, gamma, add(6).clamp(0.0, 1.0)]
}

/// The rotation matrix of a pose: `Rz(γ) Ry(β) Rx(α)` of its angles α, β, γ.
pub fn pose_rotation(pose: &[f64; POSE_DIM]) -> [[f64; 3]; 3] {
    let [(sa, ca), (sb, cb), (sc, cc)] = [pose[3], pose[4], pose[5]].map(f64::sin_cos);
    [
        [cc * cb, cc * sb * sa - sc * ca, cc * sb * ca + sc * sa],
        [sc * cb, sc * sb * sa + cc * ca, sc * sb * ca - cc * sa],
        [-sb, cb * sa, cb * ca],
    ]
}

fn product(a: &[[f64; 3]; 3], b: &[[f64; 3]; 3]) -> [[f64; 3]; 3] {
    std::array::from_fn(|i| std::array::from_fn(|j| (0..3).map(|k| a[i][k] * b[k][j]).sum()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::FRAC_PI_2;

    fn assert_same_rotation(a: &[f64; POSE_DIM], b: &[[f64; 3]; 3]) {
        let a = pose_rotation(a);
        let worst = (0..9).map(|i| (a[i / 3][i % 3] - b[i / 3][i % 3]).abs()).fold(0.0, f64::max);
        assert!(worst < 1e-12, "{worst}");
    }

    #[test]
    fn angles_are_read_back_as_the_rotation_they_came_from() {
        let pose = [0.0, 0.0, 0.0, 0.4, -1.1, 2.3, 0.0];
        let action = [0.0, 0.0, 0.0, -0.7, 0.2, 0.9, 0.0];
        assert_same_rotation(&update_pose(&pose, &action), &product(&pose_rotation(&action), &pose_rotation(&pose)));
    }

    #[test]
    fn straight_up_the_third_angle_is_zero_and_the_rotation_is_kept() {
        let pose = [0.0, 0.0, 0.0, 0.3, FRAC_PI_2, 0.8, 0.0];
        let after = update_pose(&pose, &[0.0; POSE_DIM]);
        assert_eq!(after[5], 0.0);
        assert_same_rotation(&after, &pose_rotation(&pose));
        let down = [0.0, 0.0, 0.0, 0.3, -FRAC_PI_2, 0.8, 0.0];
        assert_same_rotation(&update_pose(&down, &[0.0; POSE_DIM]), &pose_rotation(&down));
    }

    #[test]
    fn the_gripper_stays_between_open_and_closed() {
        let gripper = |pose, action| update_pose(&[0., 0., 0., 0., 0., 0., pose], &[0., 0., 0., 0., 0., 0., action])[6];
        assert_eq!((gripper(0.2, -0.5), gripper(0.8, 0.5), gripper(0.25, 0.5)), (0.0, 1.0, 0.75));
    }
}
