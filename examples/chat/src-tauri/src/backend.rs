//! The whole backend, put together: read this file to see what the app registers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use youyou_agent::{AgentBuilder, AgentConfig};
use youyou_agent_providers::Providers;
use youyou_agent_sqlite::Sqlite;

use crate::demo::{DEMO, DemoProvider};
use crate::plugins::{AuditLog, SecretRedactor, Surroundings};
use crate::settings::Settings;
use crate::workspace::Workspace;
use crate::{models, skills, tools};

/// Where the app keeps its things.
#[derive(Debug, Clone)]
pub struct Folders {
    /// Sessions, memories, logs.
    pub data: PathBuf,
    /// The settings file.
    pub config: PathBuf,
}

impl Folders {
    /// One folder for everything if `YOUYOU_CHAT_DATA_DIR` names one, else the user's own.
    ///
    /// # Errors
    /// When the system names no such folders.
    pub fn find(
        variable: impl Fn(&str) -> Option<String>,
        identifier: &str,
    ) -> Result<Self, String> {
        if let Some(folder) = variable("YOUYOU_CHAT_DATA_DIR").filter(|folder| !folder.is_empty()) {
            let folder = PathBuf::from(folder);
            return Ok(Self {
                data: folder.clone(),
                config: folder,
            });
        }
        let missing =
            || "this system has no folder for app data; set YOUYOU_CHAT_DATA_DIR".to_owned();
        Ok(Self {
            data: dirs::data_dir().ok_or_else(missing)?.join(identifier),
            config: dirs::config_dir().ok_or_else(missing)?.join(identifier),
        })
    }
}

/// What the agent and the app's commands share.
pub struct Backend {
    /// Keys and choices of the user.
    pub settings: Arc<Settings>,
    /// The folder that tools are confined to.
    pub workspace: Workspace,
    /// The model servers.
    pub providers: Providers,
    /// Sessions and memories.
    pub database: Sqlite,
    audit: PathBuf,
}

impl Backend {
    /// Opens settings and storage. `variable` looks up an environment variable.
    ///
    /// # Errors
    /// What cannot be opened, and what to do about it.
    pub fn open(
        folders: &Folders,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let settings = Arc::new(Settings::load(&folders.config, &variable)?);
        let database =
            Sqlite::open(folders.data.join("chat.sqlite")).map_err(|error| error.message)?;
        let fallback = folders.data.join("workspace");
        welcome(&fallback)
            .map_err(|error| format!("{} cannot be made: {error}", fallback.display()))?;

        Ok(Self {
            providers: models::providers(&settings, variable),
            database,
            workspace: Workspace::new(Arc::clone(&settings), fallback),
            audit: folders.data.join("audit.log"),
            settings,
        })
    }

    /// Everything the agent is built from.
    #[must_use]
    pub fn agent(&self) -> AgentBuilder {
        let mut agent = AgentBuilder::new(config())
            .providers(&self.providers)
            .provider(DemoProvider)
            .tools(tools::all(&self.workspace));
        for skill in skills::all() {
            agent = agent.skill(skill);
        }
        agent
            .plugin(AuditLog::new(self.audit.clone()))
            .plugin(SecretRedactor::new(Arc::clone(&self.settings)))
            .plugin(Surroundings::new(self.workspace.clone()))
            .session_storage(self.database.sessions())
            .memory_storage(self.database.memories())
    }
}

fn config() -> AgentConfig {
    AgentConfig {
        system_instructions: vec![
            "You are a helpful assistant in a desktop app. Answer in the language of the user. Be brief and \
             exact; use Markdown where it helps."
                .to_owned(),
            "You have tools for the files of one workspace folder. Look before you answer questions about them, \
             use paths relative to the workspace, call independent read-only tools together, and say what you \
             changed. Never claim to have done what a tool did not confirm."
                .to_owned(),
        ],
        environment: Some(format!("Operating system: {} ({})", std::env::consts::OS, std::env::consts::ARCH)),
        // The demo is always there; the page asks for a real model when there is one.
        ..AgentConfig::new(DEMO)
    }
}

/// A small workspace for those who have chosen none yet, so that the first request finds something.
fn welcome(folder: &Path) -> std::io::Result<()> {
    if folder.exists() {
        return Ok(());
    }
    std::fs::create_dir_all(folder.join("src"))?;
    std::fs::write(folder.join("README.md"), include_str!("welcome/README.md"))?;
    std::fs::write(
        folder.join("Cargo.toml"),
        include_str!("welcome/Cargo.toml.txt"),
    )?;
    std::fs::write(
        folder.join("src/main.rs"),
        include_str!("welcome/main.rs.txt"),
    )
}
