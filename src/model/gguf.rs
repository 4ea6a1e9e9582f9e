//! A GGUF file, memory-mapped: metadata and tensors.

use std::fs::File;
use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use candle_core::quantized::gguf_file::{Content, Value};
use candle_core::{Device, Tensor};
use memmap2::Mmap;

use super::ModelError;
use super::error::brief;

/// The parsed header and the mapping of one file.
pub struct Gguf {
    path: PathBuf,
    map: Mmap,
    content: Content,
}

impl Gguf {
    /// Maps and parses `path`. A missing, truncated or foreign file is named in the error.
    pub fn open(path: &Path) -> Result<Self, ModelError> {
        let fail = |reason: String| ModelError::File { path: path.to_owned(), reason };
        let file = File::open(path).map_err(|error| fail(error.to_string()))?;
        // SAFETY: the mapping is read-only and private to this process; a file that another process truncates
        // while it is mapped can end the process with SIGBUS, as with every memory-mapped model.
        let map = unsafe { Mmap::map(&file) }.map_err(|error| fail(error.to_string()))?;
        let unreadable = |reason: &str| fail(format!("is not a readable GGUF file: {reason}"));
        // The reader divides by the alignment that a file names, which may be zero.
        let content = catch_unwind(AssertUnwindSafe(|| Content::read(&mut Cursor::new(&map[..]))))
            .map_err(|_| unreadable("its header makes no sense"))?
            .map_err(|error| unreadable(&brief(&error)))?;
        let tensors = &content.tensor_infos;
        if let Some(name) = tensors.keys().find(|name| !fits(tensors[*name].shape.dims(), map.len())) {
            return Err(unreadable(&format!("tensor {name} is empty or larger than the file")));
        }
        Ok(Self { path: path.to_owned(), map, content })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn bytes(&self) -> &[u8] {
        &self.map
    }

    pub fn value(&self, key: &str) -> Option<&Value> {
        self.content.metadata.get(key)
    }

    /// A metadata string; an error names the key that is missing or of another kind.
    pub fn string(&self, key: &str) -> Result<&str, ModelError> {
        self.value(key)
            .and_then(|value| value.to_string().ok())
            .map(String::as_str)
            .ok_or_else(|| self.missing(key, "a string"))
    }

    /// A metadata integer of any width.
    pub fn integer(&self, key: &str) -> Result<usize, ModelError> {
        self.value(key)
            .and_then(|value| value.to_u64().ok().or_else(|| value.to_u32().ok().map(u64::from)))
            .and_then(|value| usize::try_from(value).ok())
            .ok_or_else(|| self.missing(key, "an unsigned integer"))
    }

    pub fn float(&self, key: &str) -> Result<f32, ModelError> {
        self.value(key).and_then(|value| value.to_f32().ok()).ok_or_else(|| self.missing(key, "a number"))
    }

    pub fn has_tensor(&self, name: &str) -> bool {
        self.content.tensor_infos.contains_key(name)
    }

    /// Names of all tensors, in no order.
    pub fn tensor_names(&self) -> impl Iterator<Item = &str> {
        self.content.tensor_infos.keys().map(String::as_str)
    }

    /// Rows of a two-dimensional tensor, outermost dimension first.
    pub fn rows(&self, name: &str) -> Result<usize, ModelError> {
        let info = self.content.tensor_infos.get(name);
        info.and_then(|info| info.shape.dims().first().copied())
            .ok_or_else(|| ModelError::File { path: self.path.clone(), reason: format!("tensor {name} is missing") })
    }

    /// Dequantises one tensor to f32, row-major, in the file's own row order.
    pub fn tensor(&self, name: &str) -> Result<Tensor, ModelError> {
        self.content
            .tensor(&mut Cursor::new(&self.map[..]), name, &Device::Cpu)
            .and_then(|tensor| tensor.dequantize(&Device::Cpu))
            .map_err(|error| ModelError::File {
                path: self.path.clone(),
                reason: format!("tensor {name} cannot be read: {}", brief(&error)),
            })
    }

    fn missing(&self, key: &str, kind: &str) -> ModelError {
        ModelError::File { path: self.path.clone(), reason: format!("metadata {key} is missing or not {kind}") }
    }
}

/// Whether a tensor of these sizes can be in so many bytes. The reader multiplies them as they are: a product that is too
/// large for the machine would come out small. It also reads an empty tensor through a pointer to nothing.
fn fits(sizes: &[usize], bytes: usize) -> bool {
    /// No kind of ggml takes less than two bits a weight.
    const WEIGHTS_PER_BYTE: usize = 4;
    let weights = sizes.iter().try_fold(1_usize, |product, size| product.checked_mul(*size));
    weights.is_some_and(|weights| weights > 0 && weights / WEIGHTS_PER_BYTE <= bytes)
}
