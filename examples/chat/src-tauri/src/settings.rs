//! What the user sets: keys, endpoints and the workspace. One small file in the app's
//! config folder, readable by its owner only.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::models;

/// A secret that cannot be printed by accident.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// A secret as people paste it and files hold it: with blanks or quotes around it.
    fn new(written: &str) -> Self {
        let bare = written.trim().trim_matches(['"', '\'', '`']).trim();
        Self(bare.to_owned())
    }

    /// The secret itself, for the one place that sends it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

/// The settings, kept in memory and written through.
#[derive(Debug)]
pub struct Settings {
    path: PathBuf,
    environment: BTreeMap<&'static str, Secret>,
    /// Written by the settings commands only.
    stored: Mutex<Stored>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Stored {
    keys: BTreeMap<String, Secret>,
    endpoints: BTreeMap<String, String>,
    workspace: Option<PathBuf>,
}

impl Settings {
    /// Reads the settings in `folder` and the keys in the environment. `variable` looks up an
    /// environment variable.
    ///
    /// # Errors
    /// A file that is there and cannot be read or understood: writing over it would lose keys.
    pub fn load(folder: &Path, variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let path = folder.join("settings.json");
        let stored = match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                // The position is enough; the text around it may be a key.
                format!(
                    "{} cannot be read (line {}); correct or delete it",
                    path.display(),
                    error.line()
                )
            })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Stored::default(),
            Err(error) => return Err(format!("{} cannot be read: {error}", path.display())),
        };
        let mut environment = BTreeMap::new();
        for (vendor, name) in models::key_variables() {
            let key = variable(name).map(|key| Secret::new(&key));
            if let Some(key) = key.filter(|key| !key.0.is_empty()) {
                // Of several variables of a vendor, the first counts.
                environment.entry(vendor).or_insert(key);
            }
        }
        Ok(Self {
            path,
            environment,
            stored: Mutex::new(stored),
        })
    }

    /// The key of a provider: what the user entered, else the environment's.
    #[must_use]
    pub fn key(&self, provider_id: &str) -> Option<Secret> {
        let entered = self.stored().keys.get(provider_id).cloned();
        entered.or_else(|| self.environment.get(provider_id).cloned())
    }

    /// All keys, of whatever provider: entered ones and the environment's.
    #[must_use]
    pub fn keys(&self) -> Vec<Secret> {
        let entered: Vec<Secret> = self.stored().keys.values().cloned().collect();
        let environment = self.environment.values().cloned();
        entered.into_iter().chain(environment).collect()
    }

    /// The addresses the user set, by provider: `"endpoints": { "ollama": "http://box:11434" }`.
    #[must_use]
    pub fn endpoints(&self) -> BTreeMap<String, String> {
        self.stored().endpoints.clone()
    }

    /// The folder tools are confined to, if one was chosen.
    #[must_use]
    pub fn workspace(&self) -> Option<PathBuf> {
        self.stored().workspace.clone()
    }

    /// Stores a key; a blank one removes it.
    ///
    /// # Errors
    /// Why the file could not be written; then nothing has changed.
    pub fn set_key(&self, provider_id: &str, key: &str) -> Result<(), String> {
        let key = Secret::new(key);
        if key
            .0
            .chars()
            .any(|c| c.is_whitespace() || c.is_control() || !c.is_ascii())
        {
            return Err(
                "an API key has no blanks and no special characters; copy it again".to_owned(),
            );
        }
        self.change(|stored| {
            if key.0.is_empty() {
                stored.keys.remove(provider_id);
            } else {
                stored.keys.insert(provider_id.to_owned(), key);
            }
        })
    }

    /// Chooses the workspace.
    ///
    /// # Errors
    /// Why it is not usable or could not be stored.
    pub fn set_workspace(&self, path: &Path) -> Result<(), String> {
        let folder = std::fs::canonicalize(path)
            .map_err(|error| format!("{} cannot be used: {error}", path.display()))?;
        if !folder.is_dir() {
            return Err(format!("{} is not a folder", path.display()));
        }
        self.change(|stored| stored.workspace = Some(folder))
    }

    fn stored(&self) -> MutexGuard<'_, Stored> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Stored)) -> Result<(), String> {
        let mut stored = self.stored();
        let mut changed = stored.clone();
        change(&mut changed);
        write_private(&self.path, &changed).map_err(|error| {
            format!(
                "the settings could not be stored in {}: {error}",
                self.path.display()
            )
        })?;
        *stored = changed;
        Ok(())
    }
}

/// Writes beside the file and renames, so that a crash leaves the old or the new one.
fn write_private(path: &Path, stored: &Stored) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let beside = path.with_extension("json.new");
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&beside)?;
    file.write_all(&serde_json::to_vec_pretty(stored)?)?;
    file.sync_all()?;
    std::fs::rename(&beside, path)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;

    const KEY: &str = "sk-very-secret";

    fn empty(folder: &Path) -> Settings {
        Settings::load(folder, |_| None).unwrap()
    }

    #[test]
    fn a_key_is_kept_over_a_restart_and_removed_by_an_empty_one() {
        let folder = tempfile::tempdir().unwrap();
        empty(folder.path())
            .set_key("openai", &format!(" \"{KEY}\"\n"))
            .unwrap();
        let again = empty(folder.path());
        assert_eq!(again.key("openai").unwrap().reveal(), KEY);
        again.set_key("openai", "  ").unwrap();
        assert_eq!(empty(folder.path()).key("openai"), None);
    }

    #[test]
    fn a_key_is_never_printed() {
        let folder = tempfile::tempdir().unwrap();
        let settings = empty(folder.path());
        settings.set_key("openai", KEY).unwrap();
        assert!(!format!("{settings:?}").contains(KEY));
        assert!(!format!("{:?}", settings.key("openai")).contains(KEY));
    }

    #[test]
    fn the_environment_gives_keys_and_what_was_entered_wins() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings::load(folder.path(), |name| {
            (name == "ANTHROPIC_API_KEY").then(|| "from-environment".to_owned())
        })
        .unwrap();
        assert_eq!(
            settings.key("anthropic").unwrap().reveal(),
            "from-environment"
        );
        settings.set_key("anthropic", "entered").unwrap();
        assert_eq!(settings.key("anthropic").unwrap().reveal(), "entered");
        assert_eq!(settings.key("gemini"), None);
        let all: Vec<String> = settings
            .keys()
            .iter()
            .map(|key| key.reveal().to_owned())
            .collect();
        assert_eq!(all, ["entered", "from-environment"]);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_the_file() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        empty(folder.path()).set_key("openai", KEY).unwrap();
        let mode = std::fs::metadata(folder.path().join("settings.json"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_broken_file_is_reported_without_quoting_it_and_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        std::fs::write(&path, format!("{{\"keys\": {{\"openai\": {KEY}")).unwrap();
        let error = Settings::load(folder.path(), |_| None).unwrap_err();
        assert!(
            error.contains("correct or delete it") && !error.contains(KEY),
            "{error}"
        );
        assert!(std::fs::read_to_string(&path).unwrap().contains(KEY));
    }

    #[test]
    fn a_workspace_must_be_a_folder_that_exists() {
        let folder = tempfile::tempdir().unwrap();
        let settings = empty(folder.path());
        assert!(
            settings
                .set_workspace(&folder.path().join("nowhere"))
                .is_err()
        );
        settings.set_workspace(folder.path()).unwrap();
        assert_eq!(
            empty(folder.path()).workspace(),
            folder.path().canonicalize().ok()
        );
    }
}
