//! Softmax attention without the matrix of scores.
//!
//! A task is one head of one element and a block of queries. Keys come in blocks too: the scores of a block pair stay in the cache, and running
//! maxima and sums join the blocks (online softmax). What a query may not see is skipped by blocks of keys, and no mask is ever an array.

use crate::flash;
use crate::isa::Isa;
use crate::precision::Precision;
use crate::threads::each;
use crate::tile::Words;

/// Which keys a query sees.
#[derive(Clone, Copy, Debug)]
pub enum Mask<'a> {
    /// All of them.
    Full,
    /// Query `i` sees the first `seen[i]` keys behind the `prefix`, and not the prefix; a query of the prefix sees all keys.
    Leading {
        /// Leading tokens that see everything and are seen by none but themselves.
        prefix: usize,
        /// Per query behind the prefix, the number of keys behind the prefix that it sees: at least 1, and never less than the query before it.
        seen: &'a [usize],
    },
}

/// Tokens inside a larger array: of token `t`, the values from `t · stride + first` on.
#[derive(Clone, Copy, Debug)]
pub struct Tokens<'a> {
    /// The array.
    pub values: &'a [f32],
    /// Values from one token to the next.
    pub stride: usize,
    /// Values of a token before those that are meant.
    pub first: usize,
}

/// Cosines and sines that turn queries and keys: `x · cos + r · sin` with `r[2k] = -x[2k + 1]`, `r[2k + 1] = x[2k]`.
#[derive(Clone, Copy, Debug)]
pub struct Turns<'a> {
    /// `[1 or batch, tokens, lanes]`; lanes behind these are not turned.
    pub cos: &'a [f32],
    /// As `cos`.
    pub sin: &'a [f32],
    /// Turned lanes of a head: even.
    pub lanes: usize,
}

/// Sizes of an attention.
#[derive(Clone, Copy, Debug)]
pub struct Heads {
    /// Elements.
    pub batch: usize,
    /// Tokens of an element.
    pub tokens: usize,
    /// Heads, consecutive slices of a token.
    pub heads: usize,
    /// Width of a head.
    pub head_dim: usize,
}

/// `softmax(q kᵀ / √head_dim) v` for every head.
///
/// **Shapes** `q`, `k`, `v` `[batch · tokens]` tokens of `heads · head_dim` values; `out` `[batch · tokens, heads · head_dim]`.
///
/// # Panics
/// When the lengths do not fit together.
pub fn attention(
    isa: Isa,
    precision: Precision,
    size: Heads,
    [q, k, v]: [Tokens<'_>; 3],
    turns: Option<Turns<'_>>,
    mask: Mask<'_>,
    out: &mut [f32],
) {
    let Heads { batch, tokens, heads, head_dim } = size;
    assert!(head_dim > 0, "attention: heads without width");
    let width = heads * head_dim;
    assert_eq!(out.len(), batch * tokens * width, "attention: length of the result");
    for part in [q, k, v] {
        let needed = (batch * tokens).saturating_sub(1) * part.stride + part.first + width;
        assert!(part.stride >= width && part.values.len() >= needed, "attention: {} values", part.values.len());
    }
    if let Some(turns) = turns {
        let shared = tokens * turns.lanes;
        let fits = [shared, batch * shared].contains(&turns.cos.len()) && turns.sin.len() == turns.cos.len();
        assert!(fits && turns.lanes <= head_dim && turns.lanes.is_multiple_of(2), "attention: turns");
    }
    if let Mask::Leading { prefix, seen } = mask {
        let sound = seen.is_sorted() && seen.iter().all(|n| (1..=seen.len()).contains(n));
        assert!(prefix + seen.len() == tokens && sound, "attention: mask");
    }
    let words = precision.words(isa);
    let tiles = isa.has_tiles() && words != Words::F32;
    let block = flash::queries(tiles);
    let work = Work { words, tiles, block, size, q, k, v, turns, mask, out: out.as_mut_ptr() };
    // Keys and values of a head are laid out once and shared by its blocks of queries, so a head is the unit where there are enough of them.
    let units = batch * heads;
    let threads = rayon::current_num_threads();
    let blocks = tokens.div_ceil(block);
    let parts = if units >= 2 * threads { 1 } else { blocks.min(threads) };
    each(units * parts, |task| {
        let (unit, part) = (task / parts, task % parts);
        let queries = blocks * part / parts * block..(blocks * (part + 1) / parts * block).min(tokens);
        flash::head(isa, &work, &Task { element: unit / heads, head: unit % heads, queries });
    });
}

/// An attention, as all tasks see it.
pub(crate) struct Work<'a> {
    pub(crate) words: Words,
    /// Whether products run on AMX.
    pub(crate) tiles: bool,
    /// Queries of a block.
    block: usize,
    pub(crate) size: Heads,
    pub(crate) q: Tokens<'a>,
    pub(crate) k: Tokens<'a>,
    pub(crate) v: Tokens<'a>,
    pub(crate) turns: Option<Turns<'a>>,
    pub(crate) mask: Mask<'a>,
    /// The result; a task writes the rows of its queries at the columns of its head.
    out: *mut f32,
}

// SAFETY: tasks only read, but for the result, of which no two tasks share a row of a head.
unsafe impl Sync for Work<'_> {}

/// One head of one element, and some of its queries.
pub(crate) struct Task {
    pub(crate) element: usize,
    pub(crate) head: usize,
    pub(crate) queries: std::ops::Range<usize>,
}

impl Work<'_> {
    /// Where a head of a token begins in `part`.
    pub(crate) fn place(&self, part: &Tokens<'_>, task: &Task, token: usize) -> usize {
        (task.element * self.size.tokens + token) * part.stride + part.first + task.head * self.size.head_dim
    }

    /// The result of a query.
    ///
    /// # Safety
    /// The query is the task's, and its result is asked for by this task alone, once at a time.
    #[allow(clippy::mut_from_ref, reason = "tasks share the result and write disjoint parts of it")]
    pub(crate) unsafe fn result(&self, task: &Task, query: usize) -> &mut [f32] {
        let Heads { tokens, heads, head_dim, .. } = self.size;
        let at = ((task.element * tokens + query) * heads + task.head) * head_dim;
        // SAFETY: `attention` checked the length of the result; nobody else holds this part of it.
        unsafe { std::slice::from_raw_parts_mut(self.out.add(at), head_dim) }
    }

    /// First key that a query sees, and one past the last.
    #[inline(always)]
    pub(crate) fn visible(&self, query: usize) -> (usize, usize) {
        match self.mask {
            Mask::Leading { prefix, seen } if query >= prefix => (prefix, prefix + seen[query - prefix]),
            _ => (0, self.size.tokens),
        }
    }

    /// End of a block of queries: queries of the prefix have a block of their own, since they see other keys.
    pub(crate) fn block_end(&self, start: usize, end: usize) -> usize {
        let full = (start + self.block).min(end);
        match self.mask {
            Mask::Leading { prefix, .. } if start < prefix => full.min(prefix),
            _ => full,
        }
    }
}
