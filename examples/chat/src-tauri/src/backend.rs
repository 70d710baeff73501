//! The whole backend, put together: read this file to see what the app registers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::runtime::Handle;
use youyou_agent::{AgentBuilder, AgentConfig, ModelProvider};

use crate::plugins::{AuditLog, SecretRedactor, Surroundings};
use crate::providers::{
    DEMO, DemoProvider, GenaiProvider, Line, LocalProvider, LocalServer, VENDORS,
};
use crate::settings::Settings;
use crate::storage::{Database, SqliteMemories, SqliteSessions};
use crate::workspace::Workspace;
use crate::{skills, tools};

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
    /// What is remembered.
    pub memories: SqliteMemories,
    /// The vendors that take a key.
    pub vendors: Vec<Arc<GenaiProvider>>,
    /// The servers on this computer.
    pub servers: Vec<LocalProvider>,
    sessions: SqliteSessions,
    audit: PathBuf,
}

impl Backend {
    /// Opens settings and storage and makes the providers. `runtime` is where local servers
    /// are looked for.
    ///
    /// # Errors
    /// What cannot be opened, and what to do about it.
    pub fn open(
        folders: &Folders,
        variable: impl Fn(&str) -> Option<String>,
        runtime: Option<&Handle>,
    ) -> Result<Self, String> {
        let settings = Arc::new(Settings::load(&folders.config, &variable)?);
        let database =
            Database::open(&folders.data.join("chat.sqlite")).map_err(|error| error.message)?;
        let fallback = folders.data.join("workspace");
        welcome(&fallback)
            .map_err(|error| format!("{} cannot be made: {error}", fallback.display()))?;

        let net = Line::to_the_net()?;
        let vendors = VENDORS.iter().map(|vendor| {
            Arc::new(GenaiProvider::new(
                vendor,
                Arc::clone(&settings),
                net.clone(),
            ))
        });
        let here = Line::on_this_computer()?;
        let servers = LocalServer::well_known().into_iter().map(|mut server| {
            // A server elsewhere: `"endpoints": { "llamacpp": "http://192.168.1.5:8080" }`.
            let address = settings
                .endpoint(server.id)
                .or_else(|| variable(server.address_variable));
            if let Some(address) = address {
                server.address = address.trim_end_matches('/').to_owned();
            }
            LocalProvider::new(server, here.clone(), runtime.cloned())
        });
        Ok(Self {
            vendors: vendors.collect(),
            servers: servers.collect(),
            workspace: Workspace::new(Arc::clone(&settings), fallback),
            memories: SqliteMemories::new(database.clone()),
            sessions: SqliteSessions::new(database),
            audit: folders.data.join("audit.log"),
            settings,
        })
    }

    /// Everything the agent is built from.
    #[must_use]
    pub fn agent(&self) -> AgentBuilder {
        let vendors = self.vendors.iter();
        let vendors = vendors.map(|vendor| Arc::clone(vendor) as Arc<dyn ModelProvider>);
        let mut agent = AgentBuilder::new(config()).providers(vendors);
        for server in &self.servers {
            agent = agent.provider(server.clone());
        }
        for tool in tools::all(&self.workspace) {
            agent = agent.shared_tool(tool);
        }
        for skill in skills::all() {
            agent = agent.skill(skill);
        }
        agent
            .provider(DemoProvider)
            .plugin(AuditLog::new(self.audit.clone()))
            .plugin(SecretRedactor::new(Arc::clone(&self.settings)))
            .plugin(Surroundings::new(self.workspace.clone()))
            .session_storage(self.sessions.clone())
            .memory_storage(self.memories.clone())
    }

    /// Asks all vendors and local servers what they have. Nobody waits for it.
    pub async fn look_around(&self) {
        let vendors =
            futures_util::future::join_all(self.vendors.iter().map(|vendor| vendor.discover()));
        let servers = futures_util::future::join_all(self.servers.iter().map(LocalProvider::look));
        futures_util::future::join(vendors, servers).await;
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
