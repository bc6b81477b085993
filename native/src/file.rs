//! Reads, judges and hashes files of one directory together, and makes rows of them.
//!
//! **Invariant:** `jostler/bundle/batch.py` makes the same rows of the same files.  Only files about
//! which nothing has to be decided are taken; the first other one ends the work.  No link is
//! followed, no open blocks on a pipe, and nothing is changed.

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{SystemTime, UNIX_EPOCH};

use memchr::memchr2_iter;
use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, openat};
use rustix::io::read;

use crate::hash::{Hash, hashes};
use crate::judge::Judge;

/// Larger files are left to the agent, which notes while it judges one of them.
pub const FILE_BYTES: usize = (1 << 20) - 1;
/// Bytes of rows at which a batch ends.
const BATCH_BYTES: usize = 1 << 20;

/// What the files must be like, and what their rows begin with; see `BatchRules` in Python.
pub struct Rules<'a> {
    pub head: &'a [u8],
    pub folder: &'a [u8],
    pub room_bytes: usize,
    pub ask_writer: bool,
    pub lease_suffices: bool,
    pub settled_ns: i64,
}

/// Files that were taken, in their order.
#[derive(Default)]
pub struct Batch {
    /// All rows, one after another.
    pub text: Vec<u8>,
    /// Where in the text each row is.
    pub rows: Vec<Range<usize>>,
    /// Where in the text each document is.
    pub documents: Vec<Range<usize>>,
    /// Five for each file: inode, size, mtime and ctime in ns, and when it was read in µs.
    pub numbers: Vec<i64>,
    /// Whether it ended at a file that does not belong into it.
    pub is_cut: bool,
}

/// An open file that may be taken.
struct Found {
    state: [i64; 4],
    at_us: i64,
}

/// Takes files of a directory.
pub fn take(judge: &Judge, directory: BorrowedFd, names: &[String], rules: &Rules) -> Batch {
    let mut batch = Batch::default();
    let mut buffer = Vec::new();
    for name in names {
        if batch.text.len() >= BATCH_BYTES {
            break;
        }
        let is_taken = content(directory, name, rules, &mut buffer).is_some_and(|found| {
            let document = &buffer[..found.state[1] as usize];
            judge.accepts(document) && batch.add(name, document, &found, rules)
        });
        if !is_taken {
            batch.is_cut = true;
            break;
        }
    }
    batch
}

impl Batch {
    /// Adds a file; returns false if there is no room for it.
    fn add(&mut self, name: &str, document: &[u8], found: &Found, rules: &Rules) -> bool {
        let start = self.text.len();
        for part in [rules.head, b"\"", rules.folder, name.as_bytes(), b"\"},\"raw\":"] {
            self.text.extend_from_slice(part);
        }
        let begin = self.text.len();
        // In a good document line breaks are white space, which means nothing.
        let mut at = 0;
        for line_break in memchr2_iter(b'\n', b'\r', document) {
            self.text.extend_from_slice(&document[at..line_break]);
            at = line_break + 1;
        }
        self.text.extend_from_slice(&document[at..]);
        let end = self.text.len();
        self.text.extend_from_slice(b"}\n");
        if self.text.len() > rules.room_bytes {
            self.text.truncate(start);
            return false;
        }
        self.rows.push(start..self.text.len());
        self.documents.push(begin..end);
        self.numbers.extend_from_slice(&found.state);
        self.numbers.push(found.at_us);
        true
    }

    /// Returns the hash of each document.
    pub fn hashes(&self) -> Vec<Hash> {
        hashes(self.documents.iter().map(|range| &self.text[range.clone()]))
    }
}

/// Reads a file into the buffer; `None` if it is not one that belongs into a batch.
fn content(
    directory: BorrowedFd,
    name: &str,
    rules: &Rules,
    buffer: &mut Vec<u8>,
) -> Option<Found> {
    let at_us = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_micros();
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(directory, name, flags, Mode::empty()).ok()?;
    let status = fstat(&file).ok()?;
    let state = state(&status)?;
    let [_, size, mtime, ctime] = state;
    let size = size as usize; // at least 0, and at most FILE_BYTES where it is used
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile || size > FILE_BYTES {
        return None;
    }
    if rules.ask_writer {
        let writer = has_writer(file.as_fd());
        let is_closed = writer == Some(false) && rules.lease_suffices;
        if writer == Some(true) || !(is_closed || mtime.max(ctime) <= rules.settled_ns) {
            return None;
        }
    }
    if buffer.len() <= size {
        buffer.resize(size + 1, 0);
    }
    // One byte more than the size shows a file that grows.
    if read(&file, &mut buffer[..=size]).ok()? != size {
        return None;
    }
    let at_us = i64::try_from(at_us).ok()?;
    Some(Found { state, at_us })
}

/// Returns inode, size, mtime and ctime in ns; `None` if one of them does not fit.
pub fn state(status: &Stat) -> Option<[i64; 4]> {
    Some([
        i64::try_from(status.st_ino).ok()?,
        u64::try_from(status.st_size).ok()?.try_into().ok()?,
        nanoseconds(status.st_mtime, status.st_mtime_nsec)?,
        nanoseconds(status.st_ctime, status.st_ctime_nsec)?,
    ])
}

/// Returns a time since 1970 in nanoseconds; `None` if it lies before, or does not fit.
fn nanoseconds(seconds: impl TryInto<i64>, more: impl TryInto<i64>) -> Option<i64> {
    let whole = seconds.try_into().ok()?.checked_mul(1_000_000_000)?;
    let sum = whole.checked_add(more.try_into().ok()?)?;
    (sum >= 0).then_some(sum)
}

/// Returns whether a process has a file open for writing; `None` if the kernel does not say.
///
/// See `jostler/bundle/lease.py`.
#[cfg(target_os = "linux")]
fn has_writer(file: BorrowedFd) -> Option<bool> {
    /// The same on all architectures; see include/uapi/asm-generic/fcntl.h.
    const F_SETSIG: libc::c_int = 10;
    let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
    // SAFETY: no memory is passed, and the descriptor is open for as long as it is borrowed.  A
    // process that waits for the lease would be told by SIGIO, which ends a process; SIGURG, the
    // signal that is chosen here, is ignored.
    let (signal, lease) = unsafe {
        let signal = libc::fcntl(fd, F_SETSIG, libc::SIGURG);
        (signal, if signal == 0 { libc::fcntl(fd, libc::F_SETLEASE, libc::F_RDLCK) } else { -1 })
    };
    if lease == 0 {
        return Some(false);
    }
    let error = std::io::Error::last_os_error();
    (signal == 0 && error.raw_os_error() == Some(libc::EAGAIN)).then_some(true)
}

#[cfg(not(target_os = "linux"))]
fn has_writer(_: BorrowedFd) -> Option<bool> {
    None
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;

    use super::*;

    const RULES: Rules = Rules {
        head: b"{\"Filename\":",
        folder: b"2022/09/29/",
        room_bytes: 10_000,
        ask_writer: false,
        lease_suffices: false,
        settled_ns: i64::MAX,
    };

    /// Takes files of a directory of their own; returns their rows.
    fn rows(test: &str, files: &[(&str, &[u8])], rules: &Rules) -> Vec<String> {
        let path = std::env::temp_dir().join(format!("jostler-{test}-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        symlink("a", path.join("link")).unwrap();
        fs::create_dir(path.join("directory")).unwrap();
        for (name, content) in files {
            fs::write(path.join(name), content).unwrap();
        }
        let directory = File::open(&path).unwrap();
        let mut names: Vec<String> = files.iter().map(|(name, _)| (*name).into()).collect();
        names.extend(["link".into(), "a".into()]);
        let batch = take(&Judge::Objects, directory.as_fd(), &names, rules);
        for name in ["directory", "link", "nowhere"] {
            let alone = take(&Judge::Objects, directory.as_fd(), &[name.into()], rules);
            assert!(alone.rows.is_empty(), "{name}");
        }
        fs::remove_dir_all(path).unwrap();
        assert_eq!(batch.numbers.len(), 5 * batch.rows.len());
        assert_eq!(batch.hashes().len(), batch.rows.len());
        let text = String::from_utf8(batch.text).unwrap();
        batch.rows.iter().map(|range| text[range.clone()].into()).collect()
    }

    fn row(name: &str, raw: &str) -> String {
        format!("{{\"Filename\":\"2022/09/29/{name}\"}},\"raw\":{raw}}}\n")
    }

    #[test]
    fn files_are_taken_up_to_the_first_that_is_not_good() {
        let files: [(&str, &[u8]); 4] =
            [("a", b"{\"a\":1}"), ("b", b"{\r\n\"b\":\n2}\n"), ("c", b"{\"c\":}"), ("d", b"{}")];
        let good = [row("a", "{\"a\":1}"), row("b", "{\"b\":2}")];
        assert_eq!(rows("good", &files, &RULES), good);
        let all: Vec<_> = files.iter().filter(|file| file.0 != "c").copied().collect();
        assert_eq!(rows("link", &all, &RULES).len(), 3); // and no link
    }

    #[test]
    fn a_row_for_which_there_is_no_room_is_not_taken() {
        let files: [(&str, &[u8]); 2] = [("a", b"{\"a\":1}"), ("b", b"{\"b\":2}")];
        let room_bytes = row("a", "{\"a\":1}").len();
        let taken = |room_bytes| rows("room", &files, &Rules { room_bytes, ..RULES }).len();
        assert_eq!(taken(2 * room_bytes), 2);
        assert_eq!(taken(2 * room_bytes - 1), 1);
        assert_eq!(taken(room_bytes - 1), 0);
    }

    #[test]
    fn empty_and_large_files_are_not_taken() {
        let large = [b' '; FILE_BYTES + 1];
        assert!(rows("large", &[("a", &large)], &RULES).is_empty());
        assert!(rows("empty", &[("a", b"")], &RULES).is_empty());
    }

    #[test]
    fn hashes_do_not_depend_on_what_else_is_hashed() {
        let mut batch = Batch::default();
        let found = Found { state: [0; 4], at_us: 0 };
        let rules = Rules { room_bytes: 20_000, ..RULES };
        for length in 0..20 {
            assert!(batch.add("a", &vec![b'x'; 50 * length], &found, &rules));
        }
        let alone = |range: &Range<usize>| hashes([&batch.text[range.clone()]].into_iter())[0];
        let expected: Vec<_> = batch.documents.iter().map(alone).collect();
        assert_eq!(batch.hashes(), expected);
    }
}
