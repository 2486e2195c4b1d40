//! Finds the distinct files among the images of a trace.
//!
//! Events of one file may write its path with or without the volume, and lack the checksum or the PDB. So images are
//! the same file if path on the volume and size are equal, and nothing else that is known of both differs. An image
//! that fits several files becomes a file of its own.

use hashbrown::HashMap;

use crate::etl::Guid;
use crate::kernel::{ImagePath, ImagePaths, Images};

/// Maximum number of files with the same path and size an image is compared with.
const MAX_COMPARED: usize = 64;

/// Files in the order of their first images.
#[derive(Default)]
pub struct ImageFiles<'a> {
    pub rows: Vec<File<'a>>,
    /// File of each image.
    pub of_image: Vec<u32>,
}

/// Identity of a file, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct File<'a> {
    /// Row of [`Images::paths`], with a volume if possible.
    pub path: u32,
    /// Number of its volume.
    volume: Option<u32>,
    /// PE checksum; 0 if unknown.
    pub checksum: u32,
    pub size: u64,
    /// PDB GUID, age and name.
    pub pdb: Option<(Guid, u32, &'a str)>,
}

impl<'a> ImageFiles<'a> {
    /// Finds the files of images.
    pub fn new(images: &'a Images, paths: &ImagePaths) -> Self {
        let (mut rests, mut volumes) = (HashMap::new(), HashMap::new());
        fn number<T: std::hash::Hash + Eq>(numbers: &mut HashMap<T, u32>, key: T) -> u32 {
            let next = numbers.len() as u32;
            *numbers.entry(key).or_insert(next)
        }
        let system = paths.system_volume().map(|volume| number(&mut volumes, volume.to_owned()));
        let split = images.paths.iter().map(|path| {
            let ImagePath { volume, rest } = paths.split(path);
            (number(&mut rests, rest), volume.map(|volume| number(&mut volumes, volume)))
        });
        let split: Vec<(u32, Option<u32>)> = split.collect();
        // Equal images are merged first, so that only a few are compared.
        let (mut known, mut distinct) = (HashMap::new(), Vec::new());
        let of_image = images.rows.iter().enumerate().map(|(row, image)| {
            let pdb = image.file.pdb.as_ref().map(|(guid, age, name)| (*guid, *age, name.as_str()));
            let (path, size, checksum) = (images.whole_path(row), image.size, image.checksum);
            let (rest, volume) = split.get(path as usize).copied().unwrap_or_default();
            let file = File { path, volume, checksum, size, pdb };
            *known.entry(file).or_insert_with(|| {
                distinct.push((rest, file));
                distinct.len() - 1
            })
        });
        let of_image: Vec<usize> = of_image.collect();
        let merged = merge(&distinct, system);
        let mut files = Self::default();
        let mut numbers: HashMap<usize, u32> = HashMap::new();
        files.of_image = of_image
            .into_iter()
            .map(|image| {
                let (first, file) = merged[image];
                *numbers.entry(first).or_insert_with(|| {
                    files.rows.push(file);
                    files.rows.len() as u32 - 1
                })
            })
            .collect();
        files
    }
}

/// Returns, for each image, the first image of its file, and the file. Each image comes with the number of its path on
/// the volume.
fn merge<'a>(images: &[(u32, File<'a>)], system: Option<u32>) -> Vec<(usize, File<'a>)> {
    let mut order: Vec<usize> = (0..images.len()).collect();
    // The best known images come first, so that files are complete before images with less are compared with them.
    order.sort_by_key(|at| std::cmp::Reverse(images[*at].1.known()));
    let mut files: HashMap<(u32, u64), Vec<(usize, File<'a>)>> = HashMap::new();
    let mut places = vec![0; images.len()];
    for at in order {
        let (rest, image) = images[at];
        let alike = files.entry((rest, image.size)).or_default();
        let compared = alike.len().min(MAX_COMPARED);
        let fitting = || (0..compared).filter(|file| alike[*file].1.may_be(&image));
        let place = match (fitting().next(), fitting().nth(1)) {
            (Some(only), None) => Some(only),
            // A path without a volume is usually on the volume of Windows.
            (Some(_), Some(_)) => fitting().find(|file| {
                image.volume.is_none() && system.is_some() && alike[*file].1.volume == system
            }),
            (None, _) => None,
        };
        places[at] = place.unwrap_or_else(|| {
            alike.push((at, image));
            alike.len() - 1
        });
        let (first, file) = &mut alike[places[at]];
        *first = at.min(*first);
        file.complete(&image);
    }
    let file =
        |(at, (rest, image)): (usize, &(u32, File<'a>))| files[&(*rest, image.size)][places[at]];
    images.iter().enumerate().map(file).collect()
}

impl<'a> File<'a> {
    /// Returns the number of known properties.
    fn known(&self) -> usize {
        let Self { volume, checksum, pdb, .. } = self;
        usize::from(volume.is_some()) + usize::from(*checksum != 0) + usize::from(pdb.is_some())
    }

    /// Whether nothing that is known of both differs.
    fn may_be(&self, image: &Self) -> bool {
        fn fits<T: PartialEq>(one: Option<&T>, other: Option<&T>) -> bool {
            one.is_none() || other.is_none() || one == other
        }
        let checksum = |file: &Self| Some(file.checksum).filter(|checksum| *checksum != 0);
        fits(self.volume.as_ref(), image.volume.as_ref())
            && fits(checksum(self).as_ref(), checksum(image).as_ref())
            && fits(self.pdb.as_ref(), image.pdb.as_ref())
    }

    /// Fills in unknown properties from an image of the file.
    fn complete(&mut self, image: &File<'a>) {
        if self.checksum == 0 {
            self.checksum = image.checksum;
        }
        if self.volume.is_none() && image.volume.is_some() {
            (self.volume, self.path) = (image.volume, image.path);
        }
        self.pdb = self.pdb.or(image.pdb);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Option<(Guid, u32, &str)> = None;
    const PDB: Option<(Guid, u32, &str)> = Some((Guid([1; 16]), 1, "a.pdb"));
    const OTHER: Option<(Guid, u32, &str)> = Some((Guid([2; 16]), 1, "a.pdb"));

    type ImageFields = (Option<u32>, u32, Option<(Guid, u32, &'static str)>);

    /// Returns the first image of each image's file, for images with one path and size but their own volume, checksum
    /// and PDB.
    fn first_of(images: &[ImageFields]) -> Vec<usize> {
        let file = |(volume, checksum, pdb): &ImageFields| {
            (0, File { path: 0, volume: *volume, checksum: *checksum, size: 1, pdb: *pdb })
        };
        let images: Vec<_> = images.iter().map(file).collect();
        merge(&images, Some(3)).into_iter().map(|(first, _)| first).collect()
    }

    #[test]
    fn an_image_with_less_is_of_the_only_file_that_it_fits() {
        assert_eq!(first_of(&[(None, 0, NONE), (Some(1), 7, PDB), (None, 7, NONE)]), [0, 0, 0]);
        assert_eq!(first_of(&[(None, 7, PDB), (Some(1), 7, OTHER), (Some(1), 8, PDB)]), [0, 1, 2]);
        assert_eq!(first_of(&[(Some(1), 7, NONE), (None, 7, PDB)]), [0, 0]);
    }

    #[test]
    fn an_image_without_volume_that_fits_several_files_is_of_the_volume_of_windows_or_of_none() {
        assert_eq!(first_of(&[(Some(1), 7, PDB), (Some(3), 7, PDB), (None, 7, PDB)]), [0, 1, 1]);
        assert_eq!(first_of(&[(Some(1), 7, PDB), (Some(2), 7, PDB), (None, 7, PDB)]), [0, 1, 2]);
        assert_eq!(first_of(&[(Some(1), 7, PDB), (Some(1), 8, PDB), (Some(1), 0, PDB)]), [0, 1, 2]);
    }

    #[test]
    fn the_file_has_all_that_is_known_of_its_images() {
        let file = |path, volume, checksum, pdb| (0, File { path, volume, checksum, size: 1, pdb });
        let merged = merge(&[file(5, None, 7, PDB), file(6, Some(1), 0, NONE)], None);
        let (_, whole) = file(6, Some(1), 7, PDB);
        assert_eq!(merged, [(0, whole), (0, whole)]);
    }
}
