//! Which examples are learned from and which are held out.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// Indices of the examples that are learned from and of those that are held out, each ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// Learned from.
    pub train: Vec<usize>,
    /// Held out.
    pub held_out: Vec<usize>,
}

impl Split {
    /// Holds out `fraction` of every class, rounded, drawn by `seed`; at least one example of a class is learned from.
    ///
    /// `fraction` is 0..1.
    pub fn new(classes: &[usize], fraction: f64, seed: u64) -> Self {
        let n_classes = classes.iter().max().map_or(0, |most| most + 1);
        let mut members = vec![Vec::new(); n_classes];
        for (index, &class) in classes.iter().enumerate() {
            members[class].push(index);
        }
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut split = Self::default();
        for mut members in members {
            members.shuffle(&mut random);
            let held_out = ((members.len() as f64 * fraction).round() as usize).min(members.len().saturating_sub(1));
            split.held_out.extend(members.drain(..held_out));
            split.train.extend(members);
        }
        split.train.sort_unstable();
        split.held_out.sort_unstable();
        split
    }

    /// The split of examples that each have `views` rows, one after the other: all rows are learned from, the first one is held out.
    #[must_use]
    pub fn over_views(&self, views: usize) -> Self {
        Self {
            train: self.train.iter().flat_map(|i| i * views..(i + 1) * views).collect(),
            held_out: self.held_out.iter().map(|i| i * views).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_gives_its_share_and_keeps_one() {
        let classes: Vec<usize> = (0..10).map(|_| 0).chain((0..5).map(|_| 1)).chain([2]).collect();
        let split = Split::new(&classes, 0.2, 3);
        let held = |class| split.held_out.iter().filter(|&&i| classes[i] == class).count();
        assert_eq!([held(0), held(1), held(2)], [2, 1, 0]);
        let mut all = [split.train.clone(), split.held_out.clone()].concat();
        all.sort_unstable();
        assert_eq!(all, (0..classes.len()).collect::<Vec<_>>());
        assert_eq!(split, Split::new(&classes, 0.2, 3));
        assert_ne!(split, Split::new(&classes, 0.2, 4));
        assert!(Split::new(&[0, 0, 1], 0.99, 0).train.len() >= 2);
    }

    #[test]
    fn views_are_learned_from_and_only_the_plain_one_is_held_out() {
        let split = Split { train: vec![0, 2], held_out: vec![1] };
        assert_eq!(split.over_views(3), Split { train: vec![0, 1, 2, 6, 7, 8], held_out: vec![3] });
    }
}
