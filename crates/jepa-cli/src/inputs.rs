//! Inputs: which pictures and clips were named, and how they become a model's pixels.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use jepa_models::{Augment, ModelError, Preprocess};
use jepa_pixels::{Limits, PixelError, Rgb8, decode_file};

use crate::arrays::{Array, Values};

type InputError = Box<dyn Error + Send + Sync>;

/// Files in a folder that are taken for pictures; the format itself is found by content.
const PICTURE_EXTENSIONS: [&str; 9] = ["bmp", "gif", "jpe", "jpeg", "jpg", "png", "tif", "tiff", "webp"];

/// How deep folders of folders are searched.
const MAX_FOLDER_DEPTH: usize = 32;

/// One row of the output: a picture or a clip.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    /// Its name in the index, as it was found.
    pub(crate) name: String,
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    Picture(PathBuf),
    /// Frames in their order.
    FrameFolder(Vec<PathBuf>),
    /// A `.npy` file of frames.
    FrameArray(PathBuf),
    /// Something that could not even be listed.
    Broken(String),
}

/// The pixels of one input after resize and crop, and what is worth saying about it.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// Clip after clip, segments fastest, then views.
    pub(crate) frames: Vec<Rgb8>,
    pub(crate) notes: Vec<String>,
}

/// How an input is cut into clips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cuts {
    /// Pieces of the time axis.
    pub(crate) segments: usize,
    /// Crops along the long side.
    pub(crate) views: usize,
    /// Random crops and mirror images besides.
    pub(crate) augmented: usize,
    /// What these are drawn from, together with the name of the input.
    pub(crate) seed: u64,
}

impl Cuts {
    /// One clip, cut from the middle.
    pub(crate) const WHOLE: Self = Self { segments: 1, views: 1, augmented: 0, seed: 0 };

    /// Clips of one input.
    pub(crate) fn clips(self) -> usize {
        self.segments * (self.views + self.augmented)
    }
}

/// Whether a file of this name in a folder is taken for an input.
pub(crate) fn may_be_input(path: &Path) -> bool {
    has_extension(path, &PICTURE_EXTENSIONS) || has_extension(path, &["npy"])
}

/// What the paths on the command line name, in their order.
///
/// A folder is all its pictures for a model of pictures. For a model of clips a folder that holds pictures is one clip, and a folder of folders
/// is one clip each.
pub(crate) fn expand(paths: &[PathBuf], takes_clips: bool) -> Vec<Input> {
    let mut inputs = Vec::new();
    for path in paths {
        let before = inputs.len();
        if path.is_dir() {
            expand_folder(path, takes_clips, 0, &mut inputs);
            if inputs.len() == before {
                inputs.push(Input::broken(path, "the folder holds no picture"));
            }
        } else {
            inputs.push(Input::file(path));
        }
    }
    inputs
}

fn expand_folder(folder: &Path, takes_clips: bool, depth: usize, inputs: &mut Vec<Input>) {
    let entries = match fs::read_dir(folder).and_then(|entries| entries.collect::<Result<Vec<_>, _>>()) {
        Ok(entries) => entries,
        Err(error) => return inputs.push(Input::broken(folder, &error.to_string())),
    };
    let mut paths: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).filter(|path| !is_hidden(path)).collect();
    paths.sort_by(|a, b| natural_order(&a.to_string_lossy(), &b.to_string_lossy()));
    // A pipe or a device in a folder is no picture, and reading it might never end.
    let broken_link = |path: &Path| path.is_symlink() && !path.exists() && may_be_input(path);
    inputs.extend(
        paths.iter().filter(|path| broken_link(path)).map(|path| Input::broken(path, "a link that leads to no file")),
    );
    paths.retain(|path| path.is_dir() || path.is_file());
    let (folders, files): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| path.is_dir() && !path.is_symlink());
    let (pictures, others): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|path| has_extension(path, &PICTURE_EXTENSIONS));
    if takes_clips && !pictures.is_empty() {
        inputs.push(Input { name: folder.display().to_string(), source: Source::FrameFolder(pictures) });
    } else {
        inputs.extend(pictures.iter().map(|path| Input::file(path)));
    }
    inputs.extend(others.iter().filter(|path| has_extension(path, &["npy"])).map(|path| Input::file(path)));
    if depth == MAX_FOLDER_DEPTH && !folders.is_empty() {
        return inputs.push(Input::broken(folder, "folders are nested too deep"));
    }
    for folder in folders {
        expand_folder(&folder, takes_clips, depth + 1, inputs);
    }
}

impl Input {
    fn file(path: &Path) -> Self {
        let owned = path.to_owned();
        let source = if has_extension(path, &["npy"]) { Source::FrameArray(owned) } else { Source::Picture(owned) };
        Self { name: path.display().to_string(), source }
    }

    /// The pixels of a picture after resize and crop, one frame whatever the model does with still pictures.
    pub(crate) fn prepare_frame(path: &Path, preprocess: &Preprocess) -> Result<Prepared, InputError> {
        let mut notes = Vec::new();
        let frame = preprocess.frame_u8(&decode(path, &mut notes)?)?;
        Ok(Prepared { frames: vec![frame], notes })
    }

    /// Why there is nothing to read, where that is known already.
    #[cfg(feature = "train")]
    pub(crate) fn fault(&self) -> Option<&str> {
        match &self.source {
            Source::Broken(why) => Some(why),
            _ => None,
        }
    }

    /// The files it is read from.
    #[cfg(feature = "train")]
    pub(crate) fn files(&self) -> &[PathBuf] {
        match &self.source {
            Source::Picture(path) | Source::FrameArray(path) => std::slice::from_ref(path),
            Source::FrameFolder(paths) => paths,
            Source::Broken(_) => &[],
        }
    }

    /// One frame in the form of the model: its crops along the long side, then the random ones.
    fn views(&self, preprocess: &Preprocess, frame: &Rgb8, cuts: Cuts) -> Result<Vec<Rgb8>, ModelError> {
        let mut views = preprocess.views_u8(frame, cuts.views)?;
        for number in 0..cuts.augmented {
            views.push(Augment::draw(cuts.seed, &self.name, number).frame_u8(preprocess, frame)?);
        }
        Ok(views)
    }

    fn broken(path: &Path, why: &str) -> Self {
        Self { name: path.display().to_string(), source: Source::Broken(why.to_owned()) }
    }

    /// Frames of a clip that this input has after [`Self::prepare`], or more: those of an array are not known before it is read.
    pub(crate) fn frames_at_most(&self, preprocess: &Preprocess, most_frames: Option<usize>) -> usize {
        let most_frames = most_frames.unwrap_or(preprocess.clip_frames());
        match &self.source {
            Source::Picture(_) | Source::Broken(_) => preprocess.still_frames(),
            Source::FrameFolder(paths) => paths.len().min(most_frames),
            Source::FrameArray(_) if preprocess.takes_clips() => most_frames,
            Source::FrameArray(_) => 1,
        }
    }

    /// Decodes, resizes and crops. Of a clip only the frames that are used are decoded, at most `most_frames` of each segment, evenly spaced.
    pub(crate) fn prepare(
        &self,
        preprocess: &Preprocess,
        most_frames: Option<usize>,
        cuts: Cuts,
    ) -> Result<Prepared, InputError> {
        let most_frames = most_frames.unwrap_or(preprocess.clip_frames()).max(1);
        let mut notes = Vec::new();
        let frames = match &self.source {
            Source::Broken(why) => return Err(why.clone().into()),
            Source::Picture(_) if cuts.segments > 1 => {
                return Err(format!("a still picture cannot be cut into {} segments", cuts.segments).into());
            }
            Source::Picture(path) => {
                let views = self.views(preprocess, &decode(path, &mut notes)?, cuts)?;
                let repeats = preprocess.still_frames().min(most_frames.max(preprocess.tubelet_size()));
                if repeats > 1 {
                    notes.push(format!("a still picture, repeated to {repeats} frames"));
                }
                views.into_iter().flat_map(|view| vec![view; repeats]).collect()
            }
            Source::FrameFolder(paths) => cut(paths.len(), most_frames, cuts, &mut notes, |i, notes| {
                let frame = decode(&paths[i], notes).map_err(|error| format!("{}: {error}", paths[i].display()))?;
                Ok(self.views(preprocess, &frame, cuts)?)
            })?,
            Source::FrameArray(path) => {
                let all = frames_of(Array::read_npy(path)?)?;
                if all.len() > 1 && !preprocess.takes_clips() {
                    return Err(ModelError::ClipForImageModel { frames: all.len(), family: preprocess.family() }.into());
                }
                cut(all.len(), most_frames, cuts, &mut notes, |i, _| Ok(self.views(preprocess, &all[i], cuts)?))?
            }
        };
        Ok(Prepared { frames, notes })
    }
}

fn decode(path: &Path, notes: &mut Vec<String>) -> Result<Rgb8, InputError> {
    let decoded = decode_file(path, &Limits::default()).map_err(|error| match error {
        // The caller names the file already.
        PixelError::Read { source, .. } => InputError::from(source),
        other => other.into(),
    })?;
    notes.extend(decoded.notes.iter().map(ToString::to_string));
    Ok(decoded.image)
}

/// Frames of a u8 array `[frames, height, width, 3]` or `[height, width, 3]`.
fn frames_of(array: Array) -> Result<Vec<Rgb8>, InputError> {
    let wanted = "wanted u8 frames of [frames, height, width, 3] or [height, width, 3]";
    let Values::U8(values) = array.values else {
        return Err(format!("the array holds {}, {wanted}", array.values.type_name()).into());
    };
    let (height, width) = match array.shape[..] {
        [_, height, width, 3] | [height, width, 3] if height > 0 && width > 0 => (height, width),
        _ => return Err(format!("the array has shape {:?}, {wanted}", array.shape).into()),
    };
    if values.is_empty() {
        return Err("the array holds no frame".into());
    }
    values.chunks_exact(height * width * 3).map(|frame| Ok(Rgb8::new(width, height, frame.to_vec())?)).collect()
}

/// The frames of every clip that `total` frames are cut into, at most `most` of each segment; `views` gives the crops of a frame.
fn cut(
    total: usize,
    most: usize,
    cuts: Cuts,
    notes: &mut Vec<String>,
    mut views: impl FnMut(usize, &mut Vec<String>) -> Result<Vec<Rgb8>, InputError>,
) -> Result<Vec<Rgb8>, InputError> {
    let (starts, length) = segments(total, cuts.segments, most)
        .ok_or_else(|| format!("{total} frames cannot be cut into {} segments", cuts.segments))?;
    let picked: Vec<usize> = starts.iter().flat_map(|start| spaced(length, most).map(move |i| start + i)).collect();
    // Segments may overlap; a frame is decoded once.
    let mut seen = BTreeMap::new();
    for &i in &picked {
        if let Entry::Vacant(entry) = seen.entry(i) {
            entry.insert(views(i, notes)?);
        }
    }
    notes.extend(sampling_note(total, seen.len()));
    Ok((0..cuts.views + cuts.augmented)
        .flat_map(|view| picked.iter().map(move |i| (view, i)))
        .map(|(view, i)| seen[i][view].clone())
        .collect())
}

/// First frames and length of `n` segments of `total` frames: equal pieces, or, where those are shorter than a clip of `clip` frames, pieces of a
/// clip's length that overlap evenly. `None` when there are fewer frames than segments.
///
/// **Source** the video dataset of V-JEPA's evaluations, without its frame step: our clips are spread over their segment.
fn segments(total: usize, n: usize, clip: usize) -> Option<(Vec<usize>, usize)> {
    let piece = total / n;
    if piece == 0 {
        return None;
    }
    let length = piece.max(total.min(clip));
    let step = if n == 1 || length == piece { piece } else { (total - length) / (n - 1) };
    // A single segment is everything, also the frames that equal pieces leave over.
    Some(((0..n).map(|i| i * step).collect(), if n == 1 { total } else { length }))
}

/// Indices of at most `most` of `total` frames, evenly spaced from the first.
fn spaced(total: usize, most: usize) -> impl Iterator<Item = usize> {
    let n = total.min(most);
    (0..n).map(move |i| i * total / n)
}

fn sampling_note(total: usize, taken: usize) -> Option<String> {
    (taken < total).then(|| format!("{taken} of {total} frames taken, evenly spaced"))
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'))
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension().is_some_and(|found| extensions.iter().any(|wanted| found.eq_ignore_ascii_case(wanted)))
}

/// Order in which `frame2` comes before `frame10`.
pub(crate) fn natural_order(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let digits = |s: &str| s.len() - s.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (da, db) = (digits(a), digits(b));
        if da > 0 && db > 0 {
            let (na, nb) = (a[..da].trim_start_matches('0'), b[..db].trim_start_matches('0'));
            match na.len().cmp(&nb.len()).then_with(|| na.cmp(nb)) {
                Ordering::Equal => (a, b) = (&a[da..], &b[db..]),
                unequal => return unequal,
            }
        } else {
            let (mut ca, mut cb) = (a.chars(), b.chars());
            match (ca.next(), cb.next()) {
                (Some(x), Some(y)) if x == y => (a, b) = (ca.as_str(), cb.as_str()),
                (x, y) => return x.cmp(&y),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_sort_by_number() {
        let mut names = ["f10.png", "f9.png", "f010.png", "f1.png", "e.png", "f1b.png"];
        names.sort_by(|a, b| natural_order(a, b));
        assert_eq!(names, ["e.png", "f1.png", "f1b.png", "f9.png", "f10.png", "f010.png"]);
    }

    #[test]
    fn segments_follow_each_other_or_overlap_evenly() {
        assert_eq!(segments(10, 1, 4), Some((vec![0], 10)));
        assert_eq!(segments(3, 1, 4), Some((vec![0], 3)));
        assert_eq!(segments(17, 2, 4), Some((vec![0, 8], 8)));
        assert_eq!(segments(10, 3, 6), Some((vec![0, 2, 4], 6)));
        assert_eq!(segments(5, 3, 16), Some((vec![0, 0, 0], 5)));
        assert_eq!(segments(2, 3, 1), None);
    }

    #[test]
    fn spaced_frames_start_at_the_first_and_never_repeat() {
        assert_eq!(spaced(10, 4).collect::<Vec<_>>(), [0, 2, 5, 7]);
        assert_eq!(spaced(3, 8).collect::<Vec<_>>(), [0, 1, 2]);
    }
}
