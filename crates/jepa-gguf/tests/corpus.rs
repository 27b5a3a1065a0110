//! Replays the corpus of the fuzz targets, and seeded mutations of it, on stable Rust: nothing may panic.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../../fuzz/bodies.rs"]
mod bodies;
mod bundles;

use std::path::Path;

use jepa_gguf::GgmlType;

/// Mutants of each target.
const MUTANTS: usize = 4000;

/// Small numbers from a xorshift generator.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % n.max(1)
    }
}

/// The corpus of a target and other seeds.
fn seeds(target: &str, others: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is committed", folder.display());
    files.iter().map(|file| std::fs::read(file).unwrap()).chain(others).collect()
}

fn replay(target: &str, others: Vec<Vec<u8>>, body: fn(&[u8])) {
    let seeds = seeds(target, others);
    seeds.iter().for_each(|seed| body(seed));
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for _ in 0..MUTANTS {
        let mut bytes = seeds[dice.below(seeds.len())].clone();
        for _ in 0..=dice.below(4) {
            mutate(&mut bytes, &seeds, &mut dice);
        }
        body(&bytes);
    }
}

fn mutate(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], dice: &mut Dice) {
    // Half of the changes hit the head, where the counts and offsets are.
    let reach = if dice.below(2) == 0 { bytes.len() } else { bytes.len().min(512) };
    let at = dice.below(reach);
    match dice.below(6) {
        0 => bytes.truncate(at),
        1 if !bytes.is_empty() => bytes[at] ^= 1 << dice.below(8),
        2 if !bytes.is_empty() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, b'.', b'('][dice.below(7)],
        3 => {
            let number = [u64::MAX, 1 << 63, 1 << 32, 1 << 31, 0, 1 << 40][dice.below(6)].to_le_bytes();
            let end = (at + 8).min(bytes.len());
            bytes[at..end].copy_from_slice(&number[..end - at]);
        }
        4 => {
            let other = &seeds[dice.below(seeds.len())];
            let from = dice.below(other.len());
            let piece = &other[from..(from + dice.below(64)).min(other.len())];
            bytes.splice(at..at, piece.iter().copied());
        }
        _ => {
            let end = (at + dice.below(32)).min(bytes.len());
            bytes.drain(at..end);
        }
    }
}

fn drafts() -> Vec<Vec<u8>> {
    vec![bundles::image().bytes(), bundles::video().bytes(), bundles::ijepa().bytes()]
}

#[test]
fn containers() {
    replay("gguf", drafts(), bodies::gguf);
}

#[test]
fn schemas() {
    replay("schema", drafts(), bodies::schema);
}

#[test]
fn block_formats() {
    let blocks = |(i, dtype): (usize, &GgmlType)| [vec![i as u8], vec![0x5a; 2 * dtype.block_bytes()]].concat();
    replay("blocks", GgmlType::ALL.iter().enumerate().map(blocks).collect(), bodies::blocks);
}

#[test]
fn safetensors() {
    replay("safetensors", Vec::new(), bodies::checkpoint);
}

#[test]
fn pickles() {
    replay("pickle", Vec::new(), bodies::checkpoint);
}
