//! The files of an import: one file, a folder, a ZIP, or standard input.
//!
//! A folder and a ZIP are lists of names in order, each with slashes. A ZIP is read in place and never unpacked, so
//! that its names reach no file system.

use crate::ImportError;
use crate::text;
use flate2::Crc;
use flate2::bufread::DeflateDecoder;
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use walkdir::WalkDir;
use zip::{CompressionMethod, ZipArchive};

/// The name of standard input.
const STDIN: &str = "-";
/// The first bytes of a ZIP.
const ZIP_MAGIC: &[u8] = b"PK\x03\x04";

/// Files by name.
pub(crate) struct Files {
    path: PathBuf,
    place: Place,
    /// Names in order.
    names: Vec<String>,
}

enum Place {
    Stdin(RefCell<Option<Box<dyn BufRead>>>),
    Memory(Vec<u8>),
    File,
    Folder,
    Zip(RefCell<ZipArchive<BufReader<File>>>),
}

impl Files {
    /// Lists the files at a path; `-` is standard input.
    pub(crate) fn open(path: &Path) -> Result<Files, ImportError> {
        if path.as_os_str() == STDIN {
            let stdin = BufReader::with_capacity(1 << 16, io::stdin());
            return Files::from_stream(path, Box::new(stdin));
        }
        let failed = |source| ImportError::File { path: path.to_owned(), source };
        let path = path.to_owned();
        let metadata = path.metadata().map_err(failed)?;
        if !metadata.is_dir() && !metadata.is_file() {
            let pipe = BufReader::with_capacity(1 << 16, File::open(&path).map_err(failed)?);
            return Files::from_stream(&path, Box::new(pipe));
        }
        if metadata.is_dir() {
            let names = folder(&path)?;
            return Ok(Files { path, place: Place::Folder, names });
        }
        let mut head = [0; 4];
        let mut file = File::open(&path).map_err(failed)?;
        let len = read_full(&mut file, &mut head).map_err(failed)?;
        if &head[..len] == ZIP_MAGIC {
            let file = BufReader::new(File::open(&path).map_err(failed)?);
            let zip = ZipArchive::new(file).map_err(|error| failed(io::Error::other(error)))?;
            let names = zip.file_names().map(|name| name.map(|name| name.into_owned()));
            let mut names =
                names.collect::<Result<Vec<String>, _>>().map_err(|error| failed(io::Error::other(error)))?;
            names.retain(|name| !name.ends_with('/') && !name.starts_with("__MACOSX/"));
            names.sort();
            return Ok(Files { path, place: Place::Zip(RefCell::new(zip)), names });
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Files { path, place: Place::File, names: vec![name] })
    }

    /// Standard input or a pipe, which is read once.
    fn from_stream(path: &Path, mut stream: Box<dyn BufRead>) -> Result<Files, ImportError> {
        let path = path.to_owned();
        let head = stream.fill_buf().map_err(|source| ImportError::File { path: path.clone(), source })?;
        if head.starts_with(ZIP_MAGIC) {
            let source = io::Error::other("got a ZIP, expected text: a ZIP is read from a file, so give its path");
            return Err(ImportError::File { path, source });
        }
        Ok(Files { path, place: Place::Stdin(RefCell::new(Some(stream))), names: vec!["stdin".to_owned()] })
    }

    /// One file that is in memory.
    pub(crate) fn from_bytes(name: &str, bytes: Vec<u8>) -> Files {
        Files { path: PathBuf::from(name), place: Place::Memory(bytes), names: vec![name.to_owned()] }
    }

    /// The names in order.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// True if there may be several files.
    pub(crate) fn is_collection(&self) -> bool {
        matches!(self.place, Place::Folder | Place::Zip(_))
    }

    /// The name of the folder, ZIP or file without its extension.
    pub(crate) fn stem(&self) -> String {
        match self.place {
            Place::Stdin(_) => "stdin".to_owned(),
            Place::Folder => name_of(self.path.canonicalize().unwrap_or_else(|_| self.path.clone()).file_name()),
            Place::File | Place::Zip(_) | Place::Memory(_) => name_of(self.path.file_stem()),
        }
    }

    /// True if a file can be opened more than once.
    pub(crate) fn can_read_again(&self) -> bool {
        !matches!(self.place, Place::Stdin(_))
    }

    /// The path of a file on the disk, unless it is within a ZIP or standard input.
    #[cfg(any(feature = "langgraph", feature = "parquet"))]
    pub(crate) fn on_disk(&self, name: &str) -> Option<PathBuf> {
        match self.place {
            Place::File => Some(self.path.clone()),
            Place::Folder => Some(self.path.join(name)),
            Place::Stdin(_) | Place::Zip(_) | Place::Memory(_) => None,
        }
    }

    /// The name of a file for messages.
    pub(crate) fn shown(&self, name: &str) -> String {
        match self.place {
            Place::Stdin(_) => "<stdin>".to_owned(),
            Place::File | Place::Memory(_) => self.path.display().to_string(),
            Place::Folder => self.path.join(name).display().to_string(),
            Place::Zip(_) => format!("{}/{name}", self.path.display()),
        }
    }

    /// Opens a file as UTF-8 text.
    pub(crate) fn open_text(&self, name: &str) -> Result<Box<dyn BufRead>, ImportError> {
        let failed = |source| ImportError::File { path: PathBuf::from(self.shown(name)), source };
        match &self.place {
            Place::Stdin(stdin) => {
                let again = || failed(io::Error::other("standard input can be read once only: give a file"));
                text::decode(stdin.borrow_mut().take().ok_or_else(again)?).map_err(failed)
            }
            Place::Memory(bytes) => text::decode(io::Cursor::new(bytes.clone())).map_err(failed),
            Place::File => text::decode(File::open(&self.path).map_err(failed)?).map_err(failed),
            Place::Folder => text::decode(File::open(self.path.join(name)).map_err(failed)?).map_err(failed),
            Place::Zip(zip) => {
                let file = File::open(&self.path).map_err(failed)?;
                let entry = Entry::open(&mut zip.borrow_mut(), name, file).map_err(failed)?;
                text::decode(entry).map_err(failed)
            }
        }
    }

    /// The size of all files in bytes, if it is known.
    pub(crate) fn len(&self) -> u64 {
        match &self.place {
            Place::Stdin(_) => 0,
            Place::Memory(bytes) => bytes.len() as u64,
            Place::File => self.path.metadata().map_or(0, |metadata| metadata.len()),
            Place::Folder => {
                let len = |name: &String| self.path.join(name).metadata().map_or(0, |metadata| metadata.len());
                self.names.iter().map(len).sum()
            }
            Place::Zip(zip) => zip.borrow().decompressed_size().and_then(|len| u64::try_from(len).ok()).unwrap_or(0),
        }
    }
}

/// A file of a ZIP, read through a handle of its own and checked at its end.
struct Entry {
    contents: Box<dyn Read>,
    checksum: Crc,
    stated: u32,
}

impl Entry {
    fn open(zip: &mut ZipArchive<BufReader<File>>, name: &str, mut file: File) -> io::Result<Entry> {
        let missing = || io::Error::new(io::ErrorKind::NotFound, "the ZIP has no such file");
        let index = zip.index_for_name(name).ok_or_else(missing)?;
        let entry = zip.by_index_raw(index).map_err(io::Error::other)?;
        if entry.encrypted() {
            return Err(io::Error::other("got an encrypted ZIP, expected a plain one: unpack it first"));
        }
        let (method, stated, len) = (entry.compression(), entry.crc32(), entry.compressed_size());
        let start = entry.data_start().ok_or_else(missing)?;
        drop(entry);
        file.seek(SeekFrom::Start(start))?;
        let packed = BufReader::with_capacity(1 << 16, file.take(len));
        let contents: Box<dyn Read> = match method {
            CompressionMethod::Stored => Box::new(packed),
            CompressionMethod::DEFLATE => Box::new(DeflateDecoder::new(packed)),
            other => return Err(io::Error::other(format!("got the compression {other}, expected deflate"))),
        };
        Ok(Entry { contents, checksum: Crc::new(), stated })
    }
}

impl Read for Entry {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.contents.read(buffer)?;
        self.checksum.update(&buffer[..len]);
        if len == 0 && !buffer.is_empty() && self.checksum.sum() != self.stated {
            return Err(io::Error::other("the checksum of this file of the ZIP is wrong: the ZIP is damaged"));
        }
        Ok(len)
    }
}

fn name_of(name: Option<&std::ffi::OsStr>) -> String {
    name.unwrap_or_default().to_string_lossy().into_owned()
}

/// The names of a folder's files, without hidden ones.
fn folder(root: &Path) -> Result<Vec<String>, ImportError> {
    let mut names = Vec::new();
    let is_shown =
        |entry: &walkdir::DirEntry| entry.depth() == 0 || !entry.file_name().as_encoded_bytes().starts_with(b".");
    for entry in WalkDir::new(root).sort_by_file_name().into_iter().filter_entry(is_shown) {
        let entry = entry.map_err(|error| ImportError::File {
            path: error.path().unwrap_or(root).to_owned(),
            source: error.into(),
        })?;
        if entry.path().is_file() {
            let name = entry.path().strip_prefix(root).unwrap_or(entry.path());
            names.push(name.to_string_lossy().replace('\\', "/"));
        }
    }
    Ok(names)
}

fn read_full(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while len < buffer.len() {
        match input.read(&mut buffer[len..]) {
            Ok(0) => break,
            Ok(read) => len += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}
