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
pub(crate) const REACH: f64 = 0.125;
/// Left and right face of the wall between the rooms.
pub(crate) const WALL: [f64; 2] = [0.46, 0.54];
/// Upper and lower end of the door in that wall.
pub(crate) const DOOR: [f64; 2] = [0.45, 0.85];

/// Pieces that a push is done in, short enough that no wall is jumped.
const PIECES: usize = 10;
/// Standard deviation of the pushes of random play before they are clipped to what a push can be.
const PLAY: f64 = 0.8;

const FLOOR: [f64; 3] = [244.0, 240.0, 230.0];
const BRICK: [f64; 3] = [58.0, 64.0, 82.0];
const PAINT: [f64; 3] = [214.0, 72.0, 52.0];

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
    fn is_free(self) -> bool {
        let inside = |v: f64| (RADIUS..=1.0 - RADIUS).contains(&v);
        let beside_wall = self.x <= WALL[0] - RADIUS || self.x >= WALL[1] + RADIUS;
        let in_door = (DOOR[0] + RADIUS..=DOOR[1] - RADIUS).contains(&self.y);
        inside(self.x) && inside(self.y) && (beside_wall || in_door)
    }

    /// The picture of the box, `side` × `side` pixels, every pixel the mix of what it covers.
    pub(crate) fn picture(self, side: usize) -> Rgb8 {
        let scale = side as f64;
        let mut pixels = Vec::with_capacity(3 * side * side);
        for row in 0..side {
            for col in 0..side {
                let (left, top) = (col as f64 / scale, row as f64 / scale);
                let share = |low: f64, high: f64, from: f64| {
                    ((high.min(from + 1.0 / scale) - low.max(from)) * scale).clamp(0.0, 1.0)
                };
                let wall = share(WALL[0], WALL[1], left) * (1.0 - share(DOOR[0], DOOR[1], top));
                let away = (left + 0.5 / scale - self.x).hypot(top + 0.5 / scale - self.y);
                let dot = ((RADIUS - away) * scale + 0.5).clamp(0.0, 1.0);
                for channel in 0..3 {
                    let ground = FLOOR[channel] + (BRICK[channel] - FLOOR[channel]) * wall;
                    pixels.push((ground + (PAINT[channel] - ground) * dot).round() as u8);
                }
            }
        }
        Rgb8::new(side, side, pixels).expect("the rows above hold side × side pixels")
    }
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
