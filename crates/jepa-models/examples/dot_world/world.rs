//! A box with two rooms, a door between them, and a dot that is pushed about.
//!
//! Lengths are in sides of the box, from its upper left corner, x to the right and y down as in pictures. A push has two values of -1 to 1, the
//! shares of [`REACH`] that the dot moves along x and y; walls stop it, and along a wall it slides.

use jepa_pixels::Rgb8;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

/// Side of the pictures that the model sees, in pixels.
pub(crate) const SIDE: usize = 32;
/// Radius of the dot.
pub(crate) const RADIUS: f64 = 0.08;
/// How far a push of 1 moves the dot.
pub(crate) const REACH: f64 = 0.15;
/// Left and right face of the wall between the rooms.
pub(crate) const WALL: [f64; 2] = [0.46, 0.54];
/// Upper and lower end of the door in that wall.
pub(crate) const DOOR: [f64; 2] = [0.35, 0.85];

/// Pieces that a push is done in, short enough that no wall is jumped.
const PIECES: usize = 10;
/// Standard deviation of the pushes of random play before they are clipped to what a push can be.
const PLAY: f64 = 0.8;

/// Red, green and blue, 0 to 255, as of all colours here.
const FLOOR: [f64; 3] = [244.0, 240.0, 230.0];
const BRICK: [f64; 3] = [58.0, 64.0, 82.0];
pub(crate) const PAINT: [f64; 3] = [214.0, 72.0, 52.0];

/// What the dot is told to do.
pub(crate) type Push = [f32; 2];

/// Where the dot's centre is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Dot {
    /// From the left.
    pub(crate) x: f64,
    /// From the top.
    pub(crate) y: f64,
}

impl Dot {
    /// A place that the dot can be at, drawn evenly.
    pub(crate) fn somewhere(rng: &mut impl Rng) -> Self {
        loop {
            let dot = Self { x: rng.random_range(0.0..1.0), y: rng.random_range(0.0..1.0) };
            if dot.is_free() {
                return dot;
            }
        }
    }

    /// How far two centres are apart.
    pub(crate) fn distance(self, other: Self) -> f64 {
        (self.x - other.x).hypot(self.y - other.y)
    }

    /// Whether the dot is to the left of the wall's middle.
    pub(crate) fn in_left_room(self) -> bool {
        self.x < f64::midpoint(WALL[0], WALL[1])
    }

    /// The dot after a push.
    pub(crate) fn pushed(self, push: Push) -> Self {
        let by = push.map(|share| f64::from(share).clamp(-1.0, 1.0) * REACH / PIECES as f64);
        let mut dot = self;
        for _ in 0..PIECES {
            // One axis after the other, so that a wall takes away one of them only.
            for [dx, dy] in [[by[0], 0.0], [0.0, by[1]]] {
                let moved = Self { x: dot.x + dx, y: dot.y + dy };
                if moved.is_free() {
                    dot = moved;
                }
            }
        }
        dot
    }

    /// Whether the dot overlaps no wall; corners count as square.
    pub(crate) fn is_free(self) -> bool {
        let inside = |v: f64| (RADIUS..=1.0 - RADIUS).contains(&v);
        let beside_wall = self.x <= WALL[0] - RADIUS || self.x >= WALL[1] + RADIUS;
        let in_door = (DOOR[0] + RADIUS..=DOOR[1] - RADIUS).contains(&self.y);
        inside(self.x) && inside(self.y) && (beside_wall || in_door)
    }

    /// The box with the dot in it, `side` × `side` pixels.
    pub(crate) fn picture(self, side: usize) -> Rgb8 {
        picture(Some(self), side)
    }
}

/// The box without the dot.
pub(crate) fn empty_box(side: usize) -> Rgb8 {
    picture(None, side)
}

/// Every pixel is the mix of what it covers.
fn picture(dot: Option<Dot>, side: usize) -> Rgb8 {
    let size = 1.0 / side as f64;
    let mut pixels = Vec::with_capacity(3 * side * side);
    for row in 0..side {
        for col in 0..side {
            let (left, top) = (col as f64 * size, row as f64 * size);
            let inside = |[low, high]: [f64; 2], from: f64| ((high.min(from + size) - low.max(from)) / size).max(0.0);
            let wall = inside(WALL, left) * (1.0 - inside(DOOR, top));
            let covered = dot.map_or(0.0, |dot| {
                let centre = Dot { x: left + size / 2.0, y: top + size / 2.0 };
                ((RADIUS - dot.distance(centre)) / size + 0.5).clamp(0.0, 1.0)
            });
            for channel in 0..3 {
                let ground = FLOOR[channel] + (BRICK[channel] - FLOOR[channel]) * wall;
                pixels.push((ground + (PAINT[channel] - ground) * covered).round() as u8);
            }
        }
    }
    Rgb8::new(side, side, pixels).expect("the loops above push side × side pixels")
}

/// A push of random play.
pub(crate) fn random_push(rng: &mut impl Rng) -> Push {
    [0, 1].map(|_| {
        let drawn: f64 = StandardNormal.sample(rng);
        (drawn * PLAY).clamp(-1.0, 1.0) as f32
    })
}

/// Random play from anywhere: `frames` places, and the pushes between them.
pub(crate) fn play(frames: usize, rng: &mut impl Rng) -> (Vec<Dot>, Vec<Push>) {
    let mut places = vec![Dot::somewhere(rng)];
    let mut pushes = Vec::with_capacity(frames - 1);
    for _ in 1..frames {
        let push = random_push(rng);
        places.push(places[places.len() - 1].pushed(push));
        pushes.push(push);
    }
    (places, pushes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    fn pushed_often(dot: Dot, push: Push) -> Dot {
        (0..20).fold(dot, |dot, _| dot.pushed(push))
    }

    #[test]
    fn a_push_moves_the_dot_by_its_share_of_the_reach_and_no_more() {
        let dot = Dot { x: 0.2, y: 0.2 };
        let moved = dot.pushed([0.5, -0.25]);
        assert!((moved.x - 0.2 - 0.5 * REACH).abs() < 1e-9 && (moved.y - 0.2 + 0.25 * REACH).abs() < 1e-9);
        assert_eq!(dot.pushed([9.0, 0.0]), dot.pushed([1.0, 0.0]));
    }

    #[test]
    fn the_wall_stops_the_dot_and_the_door_lets_it_through() {
        let blocked = pushed_often(Dot { x: 0.2, y: 0.2 }, [1.0, 0.0]);
        assert!(blocked.in_left_room() && blocked.x > WALL[0] - RADIUS - REACH / PIECES as f64);
        let through = pushed_often(Dot { x: 0.2, y: 0.65 }, [1.0, 0.0]);
        assert!(!through.in_left_room() && through.x > 0.9);
    }

    #[test]
    fn along_a_wall_it_slides() {
        let slid = Dot { x: WALL[0] - RADIUS, y: 0.2 }.pushed([1.0, 0.4]);
        assert!((slid.x - WALL[0] + RADIUS).abs() < 1e-9 && (slid.y - 0.2 - 0.4 * REACH).abs() < 1e-9);
    }

    #[test]
    fn play_stays_inside() {
        let (places, pushes) = play(500, &mut ChaCha8Rng::seed_from_u64(3));
        assert!(places.iter().all(|dot| dot.is_free()) && places.len() == pushes.len() + 1);
    }

    #[test]
    fn a_picture_has_as_much_paint_as_the_dot_has_area() {
        for side in [SIDE, 200] {
            let dot = Dot { x: 0.213, y: 0.304 };
            let (with, without) = (dot.picture(side), empty_box(side));
            let changed = |channel: usize| -> f64 {
                let at = |picture: &Rgb8| -> f64 {
                    picture.pixels().iter().skip(channel).step_by(3).map(|&v| f64::from(v)).sum()
                };
                at(&with) - at(&without)
            };
            let area = changed(1) / (PAINT[1] - FLOOR[1]) / (side * side) as f64;
            let wanted = std::f64::consts::PI * RADIUS * RADIUS;
            assert!((area / wanted - 1.0).abs() < 0.02, "{side}: {area}, wanted {wanted}");
        }
    }
}
