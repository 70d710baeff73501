//! Copies of the file, and its health.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::failure::Failure;

/// How many kinds of damage a message names.
const FINDINGS: usize = 3;

/// Copies the database `from` that the connection reads.
pub(crate) fn copy(connection: &Connection, from: &Path, to: &Path) -> Result<(), Failure> {
    let to = std::path::absolute(to)?;
    let is_same = match (fs::canonicalize(from), fs::canonicalize(&to)) {
        (Ok(from), Ok(to)) => from == to,
        _ => from == to,
    };
    if is_same {
        return Err(Failure::new(
            "a backup cannot be written over the database itself; choose another file",
        ));
    }
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    let partial = beside(&to);
    // Left by a backup that was cut; SQLite writes to no file that holds something.
    let _ = fs::remove_file(&partial);
    let whole = write(connection, &partial).and_then(|()| Ok(fs::rename(&partial, &to)?));
    if whole.is_err() {
        let _ = fs::remove_file(&partial);
    }
    whole.map_err(|failure| failure.prefixed(to.display()).into())
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".partial");
    PathBuf::from(name)
}

fn write(connection: &Connection, to: &Path) -> Result<(), Failure> {
    let Some(name) = to.to_str() else {
        return Err(Failure::new("the path of a backup has to be Unicode"));
    };
    // One snapshot, while others go on writing.
    connection.execute("VACUUM INTO ?1", [name])?;
    // SQLite leaves this to us. A handle that may write, since Windows syncs no other.
    Ok(File::options().write(true).open(to)?.sync_all()?)
}

/// Reads everything.
pub(crate) fn check(connection: &Connection) -> Result<(), Failure> {
    let sql = format!("PRAGMA integrity_check({FINDINGS})");
    let mut findings: Vec<String> = connection
        .prepare(&sql)?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    findings.retain(|finding| finding != "ok");
    let orphans: i64 =
        connection.query_one("SELECT count(*) FROM pragma_foreign_key_check", [], |row| {
            row.get(0)
        })?;
    if orphans > 0 {
        findings.push(format!("{orphans} records belong to no session"));
    }
    if findings.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format_args!(
        "the database is damaged; restore a backup ({})",
        findings.join("; ")
    )))
}
