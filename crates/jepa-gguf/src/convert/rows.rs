//! Mapping tables: which tensors of a checkpoint a tensor of the bundle is made of.

/// Where the numbers of a row come from. `{i}` stands for the number of the block, `{last}` for that of the last hierarchical output.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Take {
    /// `.weight` and `.bias` of a layer, as they are.
    Layer(&'static str),
    /// As [`Take::Layer`], for a convolution over patches: `[D, C, (τ,) P, P]` becomes `[D, C·τ·P·P]`.
    Conv(&'static str),
    /// The rows of several layers on top of each other.
    Stack(&'static [&'static str]),
    /// One tensor; sizes of 1 make no difference.
    Table(&'static str),
    /// Numbered tensors, `{j}` from 0, one row each.
    Rows(&'static str),
    /// A linear layer with the BatchNorm behind it folded in.
    Normed {
        /// The layer.
        linear: &'static str,
        /// The BatchNorm.
        norm: &'static str,
    },
    /// A convolution over single steps and the linear layer behind it, as one linear layer.
    After {
        /// The convolution.
        conv: &'static str,
        /// The layer.
        linear: &'static str,
    },
}

/// One row of a mapping table: a name of the schema's tensor table and its source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(super) to: &'static str,
    pub(super) from: Take,
}

pub(super) const fn row(to: &'static str, from: Take) -> Row {
    Row { to, from }
}

/// Fills the numbers into a name of a table.
pub(crate) fn fill(name: &str, block: usize, last: usize) -> String {
    name.replace("{i}", &block.to_string()).replace("{last}", &last.to_string())
}

/// The row for a tensor of the bundle, the number of its block, and `.weight`, `.bias` or nothing.
pub(crate) fn find(rows: &[&'static [Row]], tensor: &str) -> Option<(Take, usize, &'static str)> {
    let (base, suffix) = match (tensor.strip_suffix(".weight"), tensor.strip_suffix(".bias")) {
        (Some(base), _) => (base, ".weight"),
        (_, Some(base)) => (base, ".bias"),
        _ => (tensor, ""),
    };
    let (pattern, block) = numbered(base);
    let mut all = rows.iter().flat_map(|part| part.iter());
    all.find(|row| row.to == pattern).map(|row| (row.from, block, suffix))
}

/// A name with `{i}` for the number behind `blk` or `hier_norm`, and that number.
fn numbered(base: &str) -> (String, usize) {
    let mut block = 0;
    let mut before = "";
    let mut parts = Vec::new();
    for part in base.split('.') {
        match part.parse() {
            Ok(number) if matches!(before, "blk" | "hier_norm") => {
                block = number;
                parts.push("{i}");
            }
            _ => parts.push(part),
        }
        before = part;
    }
    (parts.join("."), block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_blocks_are_found_and_numbers_of_layers_are_left_alone() {
        assert_eq!(numbered("pred.blk.12.ln1"), ("pred.blk.{i}.ln1".to_owned(), 12));
        assert_eq!(numbered("enc.hier_norm.3"), ("enc.hier_norm.{i}".to_owned(), 3));
        assert_eq!(numbered("pred.action_embed.2"), ("pred.action_embed.2".to_owned(), 0));
    }

    #[test]
    fn a_tensor_finds_its_row() {
        const ROWS: &[Row] =
            &[row("enc.blk.{i}.ln1", Take::Layer("blocks.{i}.norm1")), row("enc.pos_embed", Take::Table("pos_embed"))];
        let (take, block, suffix) = find(&[ROWS], "enc.blk.7.ln1.bias").unwrap();
        assert!(matches!(take, Take::Layer("blocks.{i}.norm1")));
        assert_eq!((block, suffix), (7, ".bias"));
        assert_eq!(find(&[ROWS], "enc.pos_embed").unwrap().2, "");
        assert!(find(&[ROWS], "enc.norm.bias").is_none());
    }
}
