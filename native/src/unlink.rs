//! Unlinks files of one directory that certainly still are the ones that were read.
//!
//! **Invariant:** `unlink_unchanged` in `jostler/bundle/file.py` unlinks the same files.  A file is
//! unlinked only in the call that has just found it in the state in which it was read; the first
//! one about which anything has to be decided ends the work.  No link is followed.

use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, statat, unlinkat};

use crate::file::state;

/// Five for each file, as in `EntryRow`: inode, size, mtime and ctime in ns, read when in µs.
pub const NUMBERS: usize = 5;

/// A change within a tick of the kernel's clock does not show; see `jostler/bundle/entry.py`.
const RACY_NS: i64 = 20_000_000;
/// The coarsest time stamps of file systems.
const COARSE_NS: i64 = 2_000_000_000;
const SECOND_NS: i64 = 1_000_000_000;

/// Unlinks files, given what was read of them; returns how many, counted from the first.
pub fn unchanged<'a>(
    directory: BorrowedFd,
    names: impl Iterator<Item = &'a str>,
    numbers: &[i64],
) -> usize {
    names
        .zip(numbers.chunks_exact(NUMBERS))
        .take_while(|(name, seen)| unlink(directory, name, seen))
        .count()
}

/// Unlinks a file; returns false if it may be another one, or cannot be unlinked.
fn unlink(directory: BorrowedFd, name: &str, seen: &[i64]) -> bool {
    let &[inode, size, mtime_ns, ctime_ns, added_us] = seen else {
        return false;
    };
    // A link may stand in a longer path.
    if name.contains('/') || is_racy(mtime_ns.max(ctime_ns), added_us) {
        return false;
    }
    let Ok(status) = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else {
        return false;
    };
    // A state that does not fit is left to Python, which knows how it made it fit.
    state(&status) == Some([inode, size, mtime_ns, ctime_ns])
        && unlinkat(directory, name, AtFlags::empty()).is_ok()
}

/// Returns whether a file may have changed after it was read without a change of its times.
fn is_racy(touched_ns: i64, added_us: i64) -> bool {
    let Some(age_ns) = added_us.checked_mul(1000).and_then(|added| added.checked_sub(touched_ns))
    else {
        return true;
    };
    age_ns < COARSE_NS && (age_ns < RACY_NS || touched_ns % SECOND_NS == 0)
}
