//! The folder that tools are confined to, and the one place that decides what lies in it.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use youyou_agent::ToolError;

use crate::settings::Settings;

/// The workspace: the folder the user chose, else one of the app's own. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Workspace {
    settings: Arc<Settings>,
    fallback: PathBuf,
}

impl Workspace {
    /// `fallback` is used as long as the user has chosen nothing.
    #[must_use]
    pub fn new(settings: Arc<Settings>, fallback: PathBuf) -> Self {
        Self { settings, fallback }
    }

    /// The folder now. The user may change it while the app runs.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.settings
            .workspace()
            .unwrap_or_else(|| self.fallback.clone())
    }

    /// The folder without links in its path.
    ///
    /// # Errors
    /// When it is gone.
    pub fn root(&self) -> Result<PathBuf, ToolError> {
        let folder = self.folder();
        folder.canonicalize().map_err(|error| {
            ToolError::new(format_args!(
                "the workspace {} cannot be used ({error}); ask the user to choose another folder",
                folder.display()
            ))
        })
    }

    /// Turns a path of the model into a real one inside the workspace. What does not exist
    /// yet is resolved through its nearest parent that does.
    ///
    /// Links are followed before the check, so a link to the outside is outside. Someone who
    /// changes links between this check and the use is not defended against: the workspace is
    /// a fence for models, not a sandbox.
    ///
    /// # Errors
    /// When the path leaves the workspace.
    pub fn resolve(&self, path: &str) -> Result<PathBuf, ToolError> {
        let root = self.root()?;
        let outside = || {
            ToolError::new(format_args!(
                "\"{path}\" lies outside the workspace; use a path relative to the workspace, such as \"src/main.rs\""
            ))
        };
        let wanted = root.join(path);
        let mut existing = wanted.as_path();
        let mut missing = Vec::new();
        let real = loop {
            match existing.symlink_metadata() {
                // A link to nowhere is there, and must not be written through.
                Ok(_) => break existing.canonicalize().map_err(|_| outside())?,
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    // Only plain names may follow: `new/../../x` is not resolved by guessing.
                    let Some(Component::Normal(name)) = existing.components().next_back() else {
                        return Err(outside());
                    };
                    missing.push(name);
                    existing = existing.parent().ok_or_else(outside)?;
                }
                Err(error) => {
                    return Err(ToolError::new(format_args!(
                        "\"{path}\" cannot be used: {error}"
                    )));
                }
            }
        };
        if !real.starts_with(&root) {
            return Err(outside());
        }
        Ok(missing
            .into_iter()
            .rev()
            .fold(real, |path, name| path.join(name)))
    }

    /// A path as the model should see it: relative to the workspace, with slashes.
    #[must_use]
    pub fn shown(root: &Path, path: &Path) -> String {
        let relative = path.strip_prefix(root).unwrap_or(path);
        let parts: Vec<_> = relative
            .components()
            .map(|part| part.as_os_str().to_string_lossy())
            .collect();
        if parts.is_empty() {
            ".".to_owned()
        } else {
            parts.join("/")
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        std::fs::create_dir_all(root.join("src")).unwrap();
        std::fs::write(root.join("src/a.txt"), "a").unwrap();
        std::fs::write(folder.path().join("secret.txt"), "s").unwrap();
        let settings = Arc::new(Settings::load(&folder.path().join("config"), |_| None).unwrap());
        (folder, Workspace::new(settings, root))
    }

    #[test]
    fn paths_inside_are_found_also_when_they_do_not_exist_yet() {
        let (_folder, workspace) = workspace();
        let root = workspace.root().unwrap();
        for (path, real) in [
            (".", ""),
            ("", ""),
            ("src/a.txt", "src/a.txt"),
            ("./src/../src/a.txt", "src/a.txt"),
            ("new/deep/file.txt", "new/deep/file.txt"),
            ("src/..hidden", "src/..hidden"),
        ] {
            assert_eq!(workspace.resolve(path).unwrap(), root.join(real), "{path}");
        }
        let absolute = root.join("src/a.txt");
        assert_eq!(
            workspace.resolve(absolute.to_str().unwrap()).unwrap(),
            absolute
        );
    }

    #[test]
    fn paths_to_the_outside_are_refused() {
        let (folder, workspace) = workspace();
        let secret = folder.path().join("secret.txt");
        for path in [
            "..",
            "../secret.txt",
            "src/../../secret.txt",
            "new/../../secret.txt",
            "../new.txt",
            "/etc/passwd",
            "/",
            "/nowhere/at/all",
            "../root-sibling/x",
            secret.to_str().unwrap(),
        ] {
            assert!(workspace.resolve(path).is_err(), "{path}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_to_the_outside_are_refused_and_links_inside_are_followed() {
        use std::os::unix::fs::symlink;
        let (folder, workspace) = workspace();
        let root = workspace.root().unwrap();
        symlink(folder.path(), root.join("out")).unwrap();
        symlink(folder.path().join("secret.txt"), root.join("file")).unwrap();
        symlink(folder.path().join("not-yet.txt"), root.join("dangling")).unwrap();
        symlink("src", root.join("inside")).unwrap();
        for path in [
            "out",
            "out/secret.txt",
            "out/new.txt",
            "out/new/deep.txt",
            "file",
            "dangling",
            "dangling/x",
        ] {
            assert!(workspace.resolve(path).is_err(), "{path}");
        }
        assert_eq!(
            workspace.resolve("inside/a.txt").unwrap(),
            root.join("src/a.txt")
        );
        assert_eq!(
            workspace.resolve("inside/new.txt").unwrap(),
            root.join("src/new.txt")
        );
    }
}
