//! The page that shows the figures.

use std::fmt::Write;

use super::peer::Pass;
use super::{Figures, Row};

/// Share of its threads that a program must have had for its wall time to count.
const BUSY: f64 = 0.925;

/// What rows are compared with: a program and what its products are in.
const REFERENCES: [(&str, &str); 3] = [("PyTorch", "f32"), ("PyTorch", "bf16"), ("ggml", "f16")];

/// `docs/performance.md` from the JSON of a run.
///
/// # Errors
/// When the text is not what a run writes.
pub(crate) fn page(json: &str) -> Result<String, serde_json::Error> {
    let figures: Figures = serde_json::from_str(json)?;
    let mut page = String::from(HEAD);
    let versions: Vec<_> = figures.machine.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    let _ = writeln!(
        page,
        "\nMachine: {}, kernels `{}`. Programs: {}.",
        figures.machine.cpu,
        figures.machine.kernels,
        versions.join(", ")
    );
    if figures.machine.kernels != "amx" {
        page += "\nThis machine has no AMX units: `high` is computed as `highest` here, in f32. What AMX brings is not measured.\n";
    }
    let mut shapes: Vec<&Row> = Vec::new();
    for row in &figures.rows {
        if shapes.iter().all(|seen| seen.shape != row.shape) {
            shapes.push(row);
        }
    }
    for shape in shapes {
        let rows: Vec<&Row> = figures.rows.iter().filter(|row| row.shape == shape.shape).collect();
        let _ = write!(
            page,
            "\n## {}: {} tokens, {} layers\n\n{} rounds, the best of {} in each.\n",
            shape.title,
            shape.tokens,
            shape.layers,
            shape.rounds.len(),
            counted(shape.passes, "pass", "passes")
        );
        table(&mut page, &rows);
    }
    page += START;
    for start in &figures.start {
        let _ = writeln!(
            page,
            "| {}, {} | {:.0} | {} | {:.0} | {:.0} | {:.0} |",
            start.title,
            start.weights,
            start.file_mb,
            start.threads,
            start.embed_ms,
            start.forward_ms,
            start.embed_ms - start.forward_ms
        );
    }
    Ok(page)
}

fn counted(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// One line for each program, its threads side by side.
fn table(page: &mut String, rows: &[&Row]) {
    let mut threads: Vec<usize> = rows.iter().map(|row| row.threads).collect();
    threads.sort_unstable();
    threads.dedup();
    let references: Vec<_> =
        REFERENCES.into_iter().filter(|(program, word)| rows.iter().any(|row| is_of(row, program, word))).collect();
    let mut head = String::from("\n| program | products | weights | batch |");
    for n in &threads {
        let clock = if *n == 1 { "1 thread, CPU ms".to_owned() } else { format!("{n} threads, ms") };
        let _ = write!(head, " {clock} |");
        for (program, word) in &references {
            let _ = write!(head, " × {program} {word} |");
        }
    }
    head += " peak MB | file MB | lowest cosine |";
    let _ = writeln!(page, "{head}\n|{}", "---|".repeat(head.matches('|').count() - 2));
    for first in rows.iter().filter(|row| row.threads == threads[0]) {
        let _ = write!(page, "| {} | {} | {} | {} |", first.program, first.precision, first.weights, first.batch);
        for &n in &threads {
            let same = |row: &&&Row| row.threads == n && row.is_as(first);
            let row = rows.iter().copied().find(|row| same(&row));
            let times = row.map(|row| row.rounds.iter().filter_map(|pass| clock(pass, n)));
            let times = times.map_or(Vec::new(), |times| times.map(|ms| ms / first.batch as f64).collect());
            let _ = write!(page, " {} |", median(times).map_or("-".into(), |ms| format!("{ms:.1}")));
            for (program, word) in &references {
                let others: Vec<_> =
                    rows.iter().copied().filter(|row| row.threads == n && is_of(row, program, word)).collect();
                let ratio = row.and_then(|row| median(ratios(&others, row, n)));
                let _ = write!(page, " {} |", ratio.map_or("-".into(), |ratio| format!("{ratio:.2}")));
            }
        }
        let peak = first.peak_rss_mb.map_or("-".into(), |mb| format!("{mb:.0}"));
        let _ = writeln!(page, " {peak} | {:.0} | {:.7} |", first.file_mb, first.cos_min);
    }
}

impl Row {
    /// Whether it is the same program doing the same, perhaps with other threads.
    fn is_as(&self, other: &Self) -> bool {
        (&self.program, &self.precision, &self.weights, self.batch)
            == (&other.program, &other.precision, &other.weights, other.batch)
    }
}

/// Whether a row is one of a reference: of its program, in any build.
fn is_of(row: &Row, program: &str, word: &str) -> bool {
    row.program.split(',').next() == Some(program) && row.precision == word
}

/// How many times as fast as the fastest of `others` a row is for one input, round by round.
fn ratios(others: &[&Row], row: &Row, threads: usize) -> Vec<f64> {
    let own = row.rounds.iter().enumerate();
    own.filter_map(|(round, pass)| {
        let times = others.iter().filter_map(|other| clock(other.rounds.get(round)?, threads));
        let best = times.min_by(f64::total_cmp)?;
        Some(best / (clock(pass, threads)? / row.batch as f64))
    })
    .collect()
}

/// CPU time of one thread, which does not mind who else is there; wall time of several, where they had their cores.
fn clock(pass: &Pass, threads: usize) -> Option<f64> {
    match threads {
        1 => Some(pass.cpu),
        _ => (pass.cpu / pass.wall >= BUSY * threads as f64).then_some(pass.wall),
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    (n > 0).then(|| f64::midpoint(values[n / 2], values[(n - 1) / 2]))
}

const HEAD: &str = "\
# Performance

<!-- Generated by `cargo xtask docs` from `performance.json`, which `cargo xtask bench` writes. -->

`cargo xtask bench --python PYTHON --ggml CHECKOUT` times this command line beside PyTorch, candle and ggml on the CPU: the same bundle with random weights, the same input,
patch embedding to final norm, all programs taking turns in one run. Ratios are taken within a round and their median is shown; above 1 we are
faster. Times are for one input, batches divided by their size. At one thread the clock is the CPU time of the process, since machines are shared. At more it
is wall time, from passes in which a program had 92.5 % of its cores; `-` where there was no such pass.

PyTorch runs plain eager code with its own scaled-dot-product attention; `bf16` is the model cast to bf16. ggml runs f16 and q8_0 files with its flash
attention, as it comes and with llamafile's products (the faster of the two counts in the column). Our precisions are PyTorch's words for
float32 matrix products: `high` keeps f32's accuracy, `medium` multiplies in bf16; everything else is f32 in both. *Lowest cosine* is that of the worst token
with PyTorch's f32 tokens (for f16 and q8_0 files that is the rounding of the weights). *Peak* is the process's peak of resident memory, mapped pages of
the file included.
";

const START: &str = "
## From the start of the process to the first embedding

The file is in the page cache, the best of five.

| model | file MB | threads | whole process ms | one forward pass ms | beyond it ms |
|---|---|---|---|---|---|
";

#[cfg(test)]
mod tests {
    use super::*;

    fn row(program: &str, precision: &str, threads: usize, rounds: &[(f64, f64)]) -> Row {
        Row {
            shape: "vit-x".into(),
            title: "ViT-X".into(),
            tokens: 9,
            layers: 2,
            threads,
            batch: 1,
            program: program.into(),
            precision: precision.into(),
            weights: "f32".into(),
            file_mb: 1.0,
            peak_rss_mb: None,
            cos_min: 1.0,
            passes: 1,
            rounds: rounds.iter().map(|&(wall, cpu)| Pass { wall, cpu }).collect(),
        }
    }

    /// 4/2, 9/3 and 8/1 within rounds; the ratio of the medians would be another number.
    #[test]
    fn ratios_are_taken_within_rounds() {
        let torch = row("PyTorch", "f32", 1, &[(0.0, 4.0), (0.0, 9.0), (0.0, 8.0)]);
        let ours = row("jepa-cli", "high", 1, &[(0.0, 2.0), (0.0, 3.0), (0.0, 1.0)]);
        assert_eq!(median(ratios(&[&torch], &ours, 1)), Some(3.0));
    }

    #[test]
    fn the_faster_build_of_a_reference_counts() {
        let builds = [row("ggml", "f16", 1, &[(0.0, 9.0)]), row("ggml, llamafile", "f16", 1, &[(0.0, 6.0)])];
        assert!(builds.iter().all(|row| is_of(row, "ggml", "f16")));
        let ours = row("jepa-cli", "high", 1, &[(0.0, 2.0)]);
        assert_eq!(ratios(&builds.each_ref(), &ours, 1), [3.0]);
    }

    #[test]
    fn wall_time_counts_only_where_the_cores_were_ours() {
        let torch = row("PyTorch", "f32", 2, &[(4.0, 8.0), (9.0, 18.0)]);
        let ours = row("jepa-cli", "high", 2, &[(2.0, 2.5), (3.0, 5.7)]);
        assert_eq!(ratios(&[&torch], &ours, 2), [3.0]);
    }
}
