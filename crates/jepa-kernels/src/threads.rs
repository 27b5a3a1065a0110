//! Work over the threads of the current rayon pool.

use rayon::prelude::*;

/// Runs `f` for every number below `tasks`: on the threads of the pool, or right here where that is no less, which saves waking one.
pub(crate) fn each(tasks: usize, f: impl Fn(usize) + Sync) {
    if tasks <= 1 || rayon::current_num_threads() == 1 {
        (0..tasks).for_each(f);
    } else {
        (0..tasks).into_par_iter().for_each(&f);
    }
}
