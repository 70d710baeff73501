// A private PostgreSQL server on a free loopback port, for the tests, the example of the
// documentation and the benchmark. It is included by all of them, so it has no inner attributes.

use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What starts a server by `pg_ctl` and returns when it takes connections.
pub(crate) const START: [&str; 3] = ["start", "-w", "-s"];

/// A running server; it stops and its files go when this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    programs: PathBuf,
    folder: tempfile::TempDir,
    port: u16,
    user: Option<(u32, u32)>,
}

/// Starts a server, or says loudly that there is none to start.
pub(crate) fn start() -> Option<Server> {
    let Some(programs) = programs() else {
        // Not by `eprintln`, which a test keeps to itself.
        let loud = "\n!!! SKIPPED: PostgreSQL is not installed (on Debian: apt-get install postgresql) !!!\n\n";
        let _ = std::io::stderr().write_all(loud.as_bytes());
        return None;
    };
    let user = other_than_root();
    let folder = tempfile::tempdir().unwrap();
    if let Some((user, group)) = user {
        #[cfg(unix)]
        std::os::unix::fs::chown(folder.path(), Some(user), Some(group)).unwrap();
    }
    let mut server = Server {
        programs,
        folder,
        port: 0,
        user,
    };
    server.run(
        "initdb",
        &[
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "-N",
        ],
    );
    // The port is free when it is asked for, and may be taken when it is used.
    for _ in 0..10 {
        server.port = TcpListener::bind(("127.0.0.1", 0))
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        if server.try_run("pg_ctl", &START) {
            return Some(server);
        }
    }
    panic!("PostgreSQL does not start; see the messages above");
}

impl Server {
    /// The URL of the database that every server has.
    pub(crate) fn url(&self) -> String {
        self.url_of("postgres")
    }

    /// The URL of a database.
    pub(crate) fn url_of(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Runs a program of the server on its files.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) {
        assert!(self.try_run(program, arguments), "{program} failed");
    }

    fn try_run(&self, program: &str, arguments: &[&str]) -> bool {
        let data = self.folder.path().join("data");
        let settings = format!(
            "-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c max_connections=100",
            self.port
        );
        let mut command = Command::new(self.programs.join(program));
        command.args(arguments).arg("-D").arg(&data);
        if arguments.first() == Some(&"start") {
            // The server keeps no pipe of ours open.
            command
                .arg("-l")
                .arg(self.folder.path().join("log"))
                .arg("-o")
                .arg(settings);
        }
        #[cfg(unix)]
        if let Some((user, group)) = self.user {
            use std::os::unix::process::CommandExt as _;
            command.uid(user).gid(group).current_dir(self.folder.path());
        }
        let output = command.output().unwrap();
        if !output.status.success() {
            let _ = std::io::stderr().write_all(&output.stderr);
        }
        output.status.success()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.try_run("pg_ctl", &["stop", "-m", "immediate", "-w"]);
    }
}

/// Where the programs of a server are. Debian does not put them into the path.
fn programs() -> Option<PathBuf> {
    let holds = |folder: &Path| folder.join("pg_ctl").exists() && folder.join("initdb").exists();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).find(|folder| holds(folder));
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    in_path.or_else(|| {
        versions
            .map(|version| version.path().join("bin"))
            .find(|folder| holds(folder))
    })
}

/// PostgreSQL does not run as root: the user and group to run it as, where we are root.
fn other_than_root() -> Option<(u32, u32)> {
    let output = Command::new("id").arg("-u").output().ok()?;
    if output.stdout != b"0\n" {
        return None;
    }
    let id = |option: &str, name: &str| -> Option<u32> {
        let output = Command::new("id").args([option, name]).output().ok()?;
        String::from_utf8(output.stdout).ok()?.trim().parse().ok()
    };
    ["postgres", "nobody"]
        .iter()
        .find_map(|name| Some((id("-u", name)?, id("-g", name)?)))
}
