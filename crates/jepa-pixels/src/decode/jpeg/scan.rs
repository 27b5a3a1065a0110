//! Entropy-coded scans: the order of the blocks, and the coefficients of a block in each of the five codings.

use super::Fault;
use super::huffman::{BitReader, Table};
use super::markers::ZIGZAG;

/// Coefficients of a block, row-major.
pub(super) type Block = [i16; 64];

/// How the blocks of a scan follow each other.
#[derive(Debug)]
pub(super) struct Order {
    /// Groups of blocks across and down.
    pub(super) across: usize,
    pub(super) down: usize,
    /// Per part of the scan: blocks of a group across and down.
    pub(super) parts: Vec<(usize, usize)>,
    /// Groups between restart markers; 0 for none.
    pub(super) restart_interval: usize,
}

/// What carries over from block to block; a restart marker clears it.
#[derive(Debug, Default)]
pub(super) struct Carry {
    /// Last DC value per part.
    dc: [i16; 4],
    /// Blocks to come whose band is all zero.
    empty_bands: u32,
}

/// Calls `block(bits, carry, part, x, y)` for every block of the scan, in file order, and returns where the scan ends.
pub(super) fn each_block(
    mut bits: BitReader<'_>,
    order: &Order,
    mut block: impl FnMut(&mut BitReader<'_>, &mut Carry, usize, usize, usize) -> Result<(), Fault>,
) -> Result<usize, Fault> {
    let mut carry = Carry::default();
    let mut restarts = 0u8;
    let mut left = order.restart_interval;
    for group_y in 0..order.down {
        for group_x in 0..order.across {
            if order.restart_interval > 0 {
                if left == 0 {
                    if bits.ran_dry() {
                        return Err(Fault::Dry);
                    }
                    bits.restart(restarts % 8)?;
                    restarts = restarts.wrapping_add(1);
                    carry = Carry::default();
                    left = order.restart_interval;
                }
                left -= 1;
            }
            for (part, &(h, v)) in order.parts.iter().enumerate() {
                for y in 0..v {
                    for x in 0..h {
                        let read = block(&mut bits, &mut carry, part, group_x * h + x, group_y * v + y);
                        // What looks like damage after the end of the data is the missing data.
                        read.map_err(|fault| if bits.ran_dry() { Fault::Dry } else { fault })?;
                    }
                }
            }
        }
        // Zeros after the end decode to something, so the check can wait, but not for long.
        if bits.ran_dry() {
            return Err(Fault::Dry);
        }
    }
    Ok(bits.end())
}

/// A whole block of a sequential scan; `block` must be zero.
pub(super) fn sequential(
    bits: &mut BitReader<'_>,
    carry: &mut Carry,
    part: usize,
    dc: &Table,
    ac: &Table,
    block: &mut Block,
) -> Result<(), Fault> {
    block[0] = next_dc(bits, carry, part, dc)?;
    let mut k = 1;
    while k < 64 {
        let symbol = bits.symbol(ac)?;
        let (run, size) = (usize::from(symbol >> 4), symbol & 15);
        if size == 0 {
            if run < 15 {
                break;
            }
            k += 16;
            continue;
        }
        k += run;
        let place = *ZIGZAG.get(k).ok_or(Fault::RunTooLong)?;
        block[usize::from(place)] = bits.signed(size) as i16;
        k += 1;
    }
    Ok(())
}

fn next_dc(bits: &mut BitReader<'_>, carry: &mut Carry, part: usize, dc: &Table) -> Result<i16, Fault> {
    let size = bits.symbol(dc)?;
    let value = &mut carry.dc[part];
    *value = value.wrapping_add(bits.signed(size) as i16);
    Ok(*value)
}

/// The upper bits of a block's DC coefficient.
pub(super) fn first_dc(
    bits: &mut BitReader<'_>,
    carry: &mut Carry,
    part: usize,
    dc: &Table,
    low: u8,
    block: &mut Block,
) -> Result<(), Fault> {
    block[0] = next_dc(bits, carry, part, dc)? << low;
    Ok(())
}

/// One more bit of a block's DC coefficient.
pub(super) fn refine_dc(bits: &mut BitReader<'_>, low: u8, block: &mut Block) {
    block[0] |= (bits.bits(1) as i16) << low;
}

/// The upper bits of a band of AC coefficients.
pub(super) fn first_ac(
    bits: &mut BitReader<'_>,
    carry: &mut Carry,
    ac: &Table,
    (first, last): (usize, usize),
    low: u8,
    block: &mut Block,
) -> Result<(), Fault> {
    if carry.empty_bands > 0 {
        carry.empty_bands -= 1;
        return Ok(());
    }
    let mut k = first;
    while k <= last {
        let symbol = bits.symbol(ac)?;
        let (run, size) = (symbol >> 4, symbol & 15);
        if size == 0 {
            if run < 15 {
                carry.empty_bands = (1 << run) + bits.bits(run) - 1;
                break;
            }
            k += 16;
            continue;
        }
        k += usize::from(run);
        let place = *ZIGZAG.get(k).ok_or(Fault::RunTooLong)?;
        block[usize::from(place)] = (bits.signed(size) as i16) << low;
        k += 1;
    }
    Ok(())
}

/// One more bit of a band of AC coefficients: a correction bit for each that is not zero yet, in between those that
/// become ±1 here.
pub(super) fn refine_ac(
    bits: &mut BitReader<'_>,
    carry: &mut Carry,
    ac: &Table,
    (first, last): (usize, usize),
    low: u8,
    block: &mut Block,
) -> Result<(), Fault> {
    let one = 1i16 << low;
    let mut k = first;
    if carry.empty_bands == 0 {
        while k <= last {
            let symbol = bits.symbol(ac)?;
            let (mut run, size) = (symbol >> 4, symbol & 15);
            let value = match size {
                0 if run < 15 => {
                    carry.empty_bands = (1 << run) + bits.bits(run);
                    break;
                }
                0 => 0,
                1 if bits.bits(1) == 1 => one,
                1 => -one,
                _ => return Err(Fault::RefinedTwice),
            };
            // Passes `run` zero coefficients, correcting the others on the way.
            while k <= last {
                let coefficient = &mut block[usize::from(ZIGZAG[k])];
                if *coefficient != 0 {
                    correct(bits, coefficient, one);
                } else if run == 0 {
                    *coefficient = value;
                    break;
                } else {
                    run -= 1;
                }
                k += 1;
            }
            k += 1;
        }
    }
    if carry.empty_bands > 0 {
        for &place in ZIGZAG.get(k..=last).unwrap_or_default() {
            let coefficient = &mut block[usize::from(place)];
            if *coefficient != 0 {
                correct(bits, coefficient, one);
            }
        }
        carry.empty_bands -= 1;
    }
    Ok(())
}

fn correct(bits: &mut BitReader<'_>, coefficient: &mut i16, one: i16) {
    if bits.bits(1) == 1 && *coefficient & one == 0 {
        let towards = if *coefficient > 0 { one } else { -one };
        *coefficient = coefficient.wrapping_add(towards);
    }
}
