use burn::prelude::*;
use burn::tensor::DType;
use burn::tensor::activation::softmax;
use burn::tensor::module;
use burn::tensor::ops::AttentionModuleOptions;

use super::{Rope, as_type, is_reduced};

/// Most attention scores that exist at one time, over batch and heads: 16 Mi, that is 64 MiB of f32.
///
/// Small enough for the 128 MiB binding limit of the least capable adapters, large enough that cutting the queries costs nothing.
pub const SCORES_PER_BLOCK: usize = 1 << 24;

/// Which tokens a token may look at.
///
/// No variant holds a mask over pairs of tokens: the structure is kept, and the part of it that one block of queries needs is made when
/// that block is computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// Every token sees every token.
    Full,
    /// A token sees the tokens of its own and of earlier frames.
    BlockCausal {
        /// Leading tokens (CLS) that see everything and are seen by none but themselves.
        prefix: usize,
        /// Frame of each token behind the prefix: one row for the whole batch, or one row per batch element.
        frames: Vec<Vec<usize>>,
    },
}

/// Multi-head attention on projected tokens; `rope` turns queries and keys.
///
/// **Shapes** `q`, `k`, `v` `[batch, tokens, heads · head_dim]` → the same. Heads are consecutive slices. Queries may be fewer than keys where
/// every query sees every key.
pub fn multi_head<B: Backend>(
    q: Tensor<B, 3>,
    k: Tensor<B, 3>,
    v: Tensor<B, 3>,
    n_head: usize,
    rope: Option<&Rope<B>>,
    visibility: &Visibility,
) -> Tensor<B, 3> {
    let heads = |x: Tensor<B, 3>| {
        let [b, n, width] = x.dims();
        x.reshape([b, n, n_head, width / n_head]).swap_dims(1, 2) //           [b, heads, n, hd]
    };
    let turned = |x| match rope {
        Some(rope) => rope.turn(heads(x)),
        None => heads(x),
    };
    let h = attention(turned(q), turned(k), heads(v), visibility);
    h.swap_dims(1, 2).flatten(2, 3) //                                         [b, n, heads·hd]
}

/// Scaled dot-product attention, cut so that no more than [`SCORES_PER_BLOCK`] scores exist at one time.
///
/// **Shapes** `query`, `key`, `value` `[batch, heads, tokens, head_dim]` → `[batch, heads, tokens, head_dim]`.
/// Scores are divided by `√head_dim`. The cut changes no number: a query's row of scores is always whole.
pub fn attention<B: Backend>(
    query: Tensor<B, 4>,
    key: Tensor<B, 4>,
    value: Tensor<B, 4>,
    visibility: &Visibility,
) -> Tensor<B, 4> {
    attention_in_blocks(query, key, value, visibility, SCORES_PER_BLOCK)
}

fn attention_in_blocks<B: Backend>(
    query: Tensor<B, 4>,
    key: Tensor<B, 4>,
    value: Tensor<B, 4>,
    visibility: &Visibility,
    scores: usize,
) -> Tensor<B, 4> {
    match visibility {
        Visibility::Full => every_key(query, key, value, scores),
        Visibility::BlockCausal { prefix, frames } => {
            let n = query.dims()[2];
            let mut rows = Vec::new();
            if *prefix > 0 {
                rows.push(every_key(query.clone().narrow(2, 0, *prefix), key.clone(), value.clone(), scores));
            }
            let (q, k, v) = (
                query.narrow(2, *prefix, n - prefix),
                key.narrow(2, *prefix, n - prefix),
                value.narrow(2, *prefix, n - prefix),
            );
            match frames.as_slice() {
                [shared] if shared.is_sorted() => rows.extend(frame_by_frame(q, k, v, shared, scores)),
                _ => rows.extend(masked(q, k, v, frames, scores)),
            }
            Tensor::cat(rows, 2)
        }
    }
}

/// Every query against every key, in blocks of queries.
fn every_key<B: Backend>(query: Tensor<B, 4>, key: Tensor<B, 4>, value: Tensor<B, 4>, scores: usize) -> Tensor<B, 4> {
    let rows = query_blocks(&query, &key, scores)
        .map(|(start, len)| attend(query.clone().narrow(2, start, len), key.clone(), value.clone(), None))
        .collect::<Vec<_>>();
    cat(rows)
}

/// Tokens in frame order: the queries of a frame see a leading run of the keys, so nothing needs masking and nothing masked is computed.
fn frame_by_frame<B: Backend>(
    query: Tensor<B, 4>,
    key: Tensor<B, 4>,
    value: Tensor<B, 4>,
    frames: &[usize],
    scores: usize,
) -> Vec<Tensor<B, 4>> {
    let mut start = 0;
    frames
        .chunk_by(|a, b| a == b)
        .map(|frame| {
            let (begin, end) = (start, start + frame.len());
            start = end;
            every_key(
                query.clone().narrow(2, begin, frame.len()),
                key.clone().narrow(2, 0, end),
                value.clone().narrow(2, 0, end),
                scores,
            )
        })
        .collect()
}

/// Tokens in any order: each block of queries gets a mask of its own rows.
fn masked<B: Backend>(
    query: Tensor<B, 4>,
    key: Tensor<B, 4>,
    value: Tensor<B, 4>,
    frames: &[Vec<usize>],
    scores: usize,
) -> Vec<Tensor<B, 4>> {
    let n = key.dims()[2];
    query_blocks(&query, &key, scores)
        .map(|(start, len)| {
            let hidden: Vec<bool> = frames
                .iter()
                .flat_map(|row| row[start..start + len].iter().flat_map(|q| row.iter().map(move |k| k > q)))
                .collect();
            let hidden = TensorData::new(hidden, [frames.len(), 1, len, n]);
            let hidden = Tensor::<B, 4, Bool>::from_data(hidden, &query.device()).expand([
                query.dims()[0],
                query.dims()[1],
                len,
                n,
            ]);
            attend(query.clone().narrow(2, start, len), key.clone(), value.clone(), Some(hidden))
        })
        .collect()
}

/// Starts and lengths of the blocks of queries whose scores against all keys stay within the bound.
fn query_blocks<B: Backend>(
    query: &Tensor<B, 4>,
    key: &Tensor<B, 4>,
    scores: usize,
) -> impl Iterator<Item = (usize, usize)> + use<B> {
    let [batch, heads, queries, _] = query.dims();
    let per_query = batch * heads * key.dims()[2];
    let block = (scores / per_query.max(1)).clamp(1, queries.max(1));
    (0..queries).step_by(block).map(move |start| (start, block.min(queries - start)))
}

/// Burn's attention keeps its scores in the type of the operands unless one of its fused kernels runs, which `autotune` chooses; so f16 and bf16 go
/// through it only then. `scale` stays unset: it is `1/√head_dim`, and naming it would force the backends' slow path.
fn attend<B: Backend>(
    query: Tensor<B, 4>,
    key: Tensor<B, 4>,
    value: Tensor<B, 4>,
    hidden: Option<Tensor<B, 4, Bool>>,
) -> Tensor<B, 4> {
    if cfg!(feature = "autotune") || !is_reduced(query.dtype()) {
        return module::attention(query, key, value, hidden, None, AttentionModuleOptions::default());
    }
    let own = query.dtype();
    let scale = 1.0 / (query.dims()[3] as f64).sqrt();
    let [query, key] = [query, key].map(|x| as_type(x, DType::F32));
    let scores = (query * scale).matmul(key.swap_dims(2, 3)); //               [b, heads, queries, keys]
    let scores = match hidden {
        Some(hidden) => scores.mask_fill(hidden, f32::NEG_INFINITY),
        None => scores,
    };
    as_type(softmax(scores, 3), own).matmul(value)
}

fn cat<B: Backend>(mut rows: Vec<Tensor<B, 4>>) -> Tensor<B, 4> {
    if rows.len() == 1 { rows.remove(0) } else { Tensor::cat(rows, 2) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Distribution;
    use burn_flex::Flex;

    type T = Tensor<Flex, 4>;

    /// Softmax attention written out, one query at a time, in f64.
    fn written_out(q: &T, k: &T, v: &T, sees: impl Fn(usize, usize, usize) -> bool) -> Vec<f64> {
        let [b, h, n, d] = q.dims();
        let [q, k, v] = [q, k, v].map(|t| t.to_data().iter::<f64>().collect::<Vec<_>>());
        let at = |b_: usize, h_: usize, n_: usize| ((b_ * h + h_) * n + n_) * d;
        let mut out = Vec::new();
        for (b_, h_, i) in (0..b).flat_map(|b_| (0..h).flat_map(move |h_| (0..n).map(move |i| (b_, h_, i)))) {
            let keys: Vec<usize> = (0..n).filter(|&j| sees(b_, i, j)).collect();
            let score =
                |j: usize| (0..d).map(|c| q[at(b_, h_, i) + c] * k[at(b_, h_, j) + c]).sum::<f64>() / (d as f64).sqrt();
            let weights: Vec<f64> = keys.iter().map(|&j| score(j).exp()).collect();
            let sum: f64 = weights.iter().sum();
            out.extend(
                (0..d).map(|c| keys.iter().zip(&weights).map(|(&j, w)| w / sum * v[at(b_, h_, j) + c]).sum::<f64>()),
            );
        }
        out
    }

    fn random() -> [T; 3] {
        let device = Default::default();
        Flex::seed(&device, 7);
        [0, 1, 2].map(|_| Tensor::random([2, 3, 13, 4], Distribution::Normal(0.0, 1.0), &device))
    }

    fn assert_close(got: T, want: &[f64]) {
        let got: Vec<f64> = got.to_data().iter::<f64>().collect();
        let worst = got.iter().zip(want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst < 1e-5, "{worst}");
    }

    #[test]
    fn cutting_the_queries_changes_nothing() {
        let [q, k, v] = random();
        let want = written_out(&q, &k, &v, |_, _, _| true);
        for scores in [1, 2 * 3 * 13 * 5, usize::MAX] {
            assert_close(attention_in_blocks(q.clone(), k.clone(), v.clone(), &Visibility::Full, scores), &want);
        }
    }

    #[test]
    fn a_frame_sees_itself_and_earlier_frames_and_the_prefix_sees_all() {
        let [q, k, v] = random();
        let frames = vec![0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2];
        let sees = |_, i: usize, j: usize| i == 0 || (j > 0 && frames[j - 1] <= frames[i - 1]);
        let want = written_out(&q, &k, &v, sees);
        let visibility = Visibility::BlockCausal { prefix: 1, frames: vec![frames.clone()] };
        for scores in [1, 100, usize::MAX] {
            assert_close(attention_in_blocks(q.clone(), k.clone(), v.clone(), &visibility, scores), &want);
        }
    }

    #[test]
    fn unsorted_frames_per_batch_row_are_masked() {
        let [q, k, v] = random();
        let frames = vec![vec![2, 0, 1, 1, 0, 2, 2, 0, 1, 0, 1, 2, 0], vec![0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0]];
        let want = written_out(&q, &k, &v, |b, i, j| frames[b][j] <= frames[b][i]);
        let visibility = Visibility::BlockCausal { prefix: 0, frames: frames.clone() };
        for scores in [1, 200, usize::MAX] {
            assert_close(attention_in_blocks(q.clone(), k.clone(), v.clone(), &visibility, scores), &want);
        }
    }
}
