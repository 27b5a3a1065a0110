//! How good a classifier is.

use std::collections::BTreeMap;

/// Examples that have been classified, and what they were classified as.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluation {
    n_classes: usize,
    total: usize,
    in_top_5: usize,
    loss: f64,
    /// How often a true class was given a class; only pairs that occurred, since classes may be many.
    pairs: BTreeMap<(usize, usize), usize>,
}

/// One class of an [`Evaluation`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassScore {
    /// Examples of the class.
    pub examples: usize,
    /// Examples that were given the class.
    pub predicted: usize,
    /// Examples of the class that were given it.
    pub correct: usize,
}

impl ClassScore {
    /// Part of the examples that were recognised; `None` without examples.
    pub fn recall(&self) -> Option<f64> {
        (self.examples > 0).then(|| self.correct as f64 / self.examples as f64)
    }

    /// Part of the predictions that were right; `None` without predictions.
    pub fn precision(&self) -> Option<f64> {
        (self.predicted > 0).then(|| self.correct as f64 / self.predicted as f64)
    }
}

impl Evaluation {
    /// No example yet.
    pub fn new(n_classes: usize) -> Self {
        Self { n_classes, ..Self::default() }
    }

    /// Counts an example of class `truth` and gives the class it is given: that of the highest score, of equal ones the first.
    pub fn add(&mut self, truth: usize, scores: &[f32]) -> usize {
        let wins = |class: usize, over: usize| match scores[class].total_cmp(&scores[over]) {
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Equal => class < over,
            std::cmp::Ordering::Less => false,
        };
        let winner = (1..scores.len()).fold(0, |best, class| if wins(class, best) { class } else { best });
        let rank = (0..scores.len()).filter(|&class| class != truth && wins(class, truth)).count();
        let most = f64::from(scores[winner]);
        let sum: f64 = scores.iter().map(|&s| (f64::from(s) - most).exp()).sum();
        self.total += 1;
        self.in_top_5 += usize::from(rank < 5);
        self.loss += most + sum.ln() - f64::from(scores[truth]);
        *self.pairs.entry((truth, winner)).or_default() += 1;
        winner
    }

    /// Number of classes.
    pub fn n_classes(&self) -> usize {
        self.n_classes
    }

    /// Examples counted.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Examples that were given their class.
    pub fn correct(&self) -> usize {
        self.pairs.iter().filter(|((truth, given), _)| truth == given).map(|(_, count)| count).sum()
    }

    /// Part of the examples that were given their class, 0..=1; 0 without examples.
    pub fn accuracy(&self) -> f64 {
        self.part(self.correct())
    }

    /// Part of the examples whose class is among the five likeliest, 0..=1.
    pub fn top_5(&self) -> f64 {
        self.part(self.in_top_5)
    }

    /// Mean cross-entropy, in nats.
    pub fn loss(&self) -> f64 {
        self.loss / self.total.max(1) as f64
    }

    fn part(&self, count: usize) -> f64 {
        count as f64 / self.total.max(1) as f64
    }

    /// How often class `truth` was given class `given`.
    pub fn count(&self, truth: usize, given: usize) -> usize {
        self.pairs.get(&(truth, given)).copied().unwrap_or(0)
    }

    /// All pairs of a true and a given class that occurred, in order, and how often.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        self.pairs.iter().map(|(&(truth, given), &count)| (truth, given, count))
    }

    /// Every class in order.
    pub fn classes(&self) -> Vec<ClassScore> {
        let mut classes = vec![ClassScore::default(); self.n_classes];
        for (truth, given, count) in self.pairs() {
            classes[truth].examples += count;
            classes[given].predicted += count;
            if truth == given {
                classes[truth].correct += count;
            }
        }
        classes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_counted_by_class_and_rank() {
        let mut judged = Evaluation::new(7);
        judged.add(0, &[3.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        judged.add(6, &[6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0]);
        judged.add(1, &[2.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!((judged.total(), judged.correct(), judged.count(1, 0), judged.count(6, 0)), (3, 1, 1, 1));
        assert!((judged.top_5() - 2.0 / 3.0).abs() < 1e-12);
        let classes = judged.classes();
        assert_eq!(classes[0], ClassScore { examples: 1, predicted: 3, correct: 1 });
        assert_eq!((classes[6].recall(), classes[6].precision(), classes[3].recall()), (Some(0.0), None, None));
    }

    #[test]
    fn the_loss_is_the_mean_cross_entropy() {
        let mut judged = Evaluation::new(2);
        judged.add(0, &[0.0, 0.0]);
        judged.add(1, &[1000.0, 0.0]);
        assert!((judged.loss() - (2f64.ln() + 1000.0) / 2.0).abs() < 1e-9);
    }
}
