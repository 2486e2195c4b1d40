//! Writes MSF containers, the format of PDB files: streams in pages, and a directory that assigns pages to streams.
//! After "The MSF File Format" in LLVM's documentation.

pub const MAGIC: &[u8] = b"Microsoft C/C++ MSF 7.00\r\n\x1a\x44\x53\x00\x00\x00";

/// Page size of nearly all PDBs below 4 GiB.
pub const PAGE: usize = 4096;
/// Number of the first page of a stream, after a header and two maps of free pages.
const FIRST_PAGE: usize = 3;

/// A container to which streams are appended in the order of their numbers.
pub struct MsfWriter {
    page: usize,
    file: Vec<u8>,
    sizes: Vec<u32>,
    pages: Vec<u32>,
}

impl MsfWriter {
    /// Creates a container with pages of this size, a power of two.
    pub fn new(page: usize) -> Self {
        let file = vec![0; FIRST_PAGE * page];
        Self { page, file, sizes: Vec::new(), pages: Vec::new() }
    }

    /// Appends a stream, which must be shorter than 4 GiB.
    pub fn push(&mut self, stream: &[u8]) {
        self.sizes.push(u32::try_from(stream.len()).unwrap_or(u32::MAX));
        let pages = self.append(stream);
        self.pages.extend(pages);
    }

    /// Appends bytes in whole pages and returns the numbers of these pages.
    fn append(&mut self, bytes: &[u8]) -> impl Iterator<Item = u32> + use<> {
        let first = self.file.len() / self.page;
        self.file.extend(bytes);
        self.file.resize(self.file.len().next_multiple_of(self.page), 0);
        (first..self.file.len() / self.page).filter_map(|page| u32::try_from(page).ok())
    }

    /// Appends the directory and the list of its pages, and fills in the header.
    pub fn finish(mut self) -> Vec<u8> {
        let count = u32::try_from(self.sizes.len()).unwrap_or(u32::MAX);
        let directory = bytes_of([count].iter().chain(&self.sizes).chain(&self.pages));
        let pages: Vec<u32> = self.append(&directory).collect();
        let lists: Vec<u32> = self.append(&bytes_of(pages.iter())).collect();
        let all = u32::try_from(self.file.len() / self.page).unwrap_or(u32::MAX);
        let size = u32::try_from(directory.len()).unwrap_or(u32::MAX);
        let page = u32::try_from(self.page).unwrap_or(u32::MAX);
        let fields = [page, 1, all, size, 0];
        let header = [MAGIC, &bytes_of(fields.iter().chain(&lists))].concat();
        for (slot, byte) in self.file.iter_mut().zip(header) {
            *slot = byte;
        }
        self.file
    }
}

fn bytes_of<'a>(numbers: impl Iterator<Item = &'a u32>) -> Vec<u8> {
    numbers.flat_map(|number| number.to_le_bytes()).collect()
}
