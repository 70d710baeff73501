//! Memories in SQLite, with a full-text index beside them.

use std::num::NonZeroUsize;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use youyou_agent::{Memory, MemoryStorage, StorageError};

use crate::events::{from_sql, to_sql};
use crate::failure::Failure;
use crate::ranking::ranked;
use crate::terms::index_terms;
use crate::worker::Worker;

const COLUMNS: &str = "m.id, m.namespace, m.content, m.source, m.tags, m.created_at, m.updated_at";

/// A [`MemoryStorage`] in a SQLite file, from [`Sqlite::memories`](crate::Sqlite::memories).
///
/// A search finds memories that share any word with the query, in scripts without spaces any
/// character. Rare words count more than common ones; among equals the newest comes first.
#[derive(Debug, Clone)]
pub struct SqliteMemories(Worker);

impl SqliteMemories {
    pub(crate) fn new(worker: Worker) -> Self {
        Self(worker)
    }
}

#[async_trait]
impl MemoryStorage for SqliteMemories {
    async fn load(&self, namespace: &str) -> Result<Vec<Memory>, StorageError> {
        let namespace = namespace.to_owned();
        self.0
            .run(move |connection| {
                let sql = format!(
                    "SELECT {COLUMNS} FROM memories m WHERE m.namespace = ?1 ORDER BY m.updated_at DESC, m.id"
                );
                let mut statement = connection.prepare_cached(&sql)?;
                let memories = statement.query_map([namespace], memory)?;
                Ok(memories.collect::<rusqlite::Result<_>>()?)
            })
            .await
    }

    async fn upsert(&self, memory: Memory) -> Result<(), StorageError> {
        self.0
            .run(move |connection| write(connection, &memory))
            .await
    }

    async fn delete(&self, namespace: &str, id: &str) -> Result<bool, StorageError> {
        let (namespace, id) = (namespace.to_owned(), id.to_owned());
        self.0
            .run(move |connection| remove(connection, &namespace, &id))
            .await
    }

    async fn search(
        &self,
        namespace: &str,
        query: &str,
        limit: NonZeroUsize,
    ) -> Result<Vec<Memory>, StorageError> {
        let (namespace, query) = (namespace.to_owned(), query.to_owned());
        self.0
            .run(move |connection| best(connection, &namespace, &query, limit.get()))
            .await
    }
}

fn best(
    connection: &Connection,
    namespace: &str,
    query: &str,
    limit: usize,
) -> Result<Vec<Memory>, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM memories m WHERE m.key = ?1 AND m.namespace = ?2");
    let mut statement = connection.prepare_cached(&sql)?;
    let found: rusqlite::Result<Vec<Memory>> = ranked(connection, query)?
        .filter_map(|key| {
            statement
                .query_one(params![key, namespace], memory)
                .optional()
                .transpose()
        })
        .take(limit)
        .collect();
    Ok(found?)
}

fn write(connection: &mut Connection, memory: &Memory) -> Result<(), Failure> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let known: Option<(i64, String)> = transaction
        .prepare_cached("SELECT key, content FROM memories WHERE id = ?1")?
        .query_one([&memory.id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    match known {
        Some((key, content)) if content == memory.content => {
            transaction
                .prepare_cached("UPDATE memories SET updated_at = ?2 WHERE key = ?1")?
                .execute(params![key, to_sql(memory.updated_at)])?;
        }
        Some((key, _)) => {
            transaction
                .prepare_cached(
                    "UPDATE memories SET namespace = ?2, content = ?3, source = ?4, tags = ?5, updated_at = ?6
                     WHERE key = ?1",
                )?
                .execute(params![
                    key,
                    memory.namespace,
                    memory.content,
                    memory.source,
                    tags_json(&memory.tags),
                    to_sql(memory.updated_at)
                ])?;
            unindex(&transaction, key)?;
            index(&transaction, key, memory)?;
        }
        None => {
            transaction
                .prepare_cached(
                    "INSERT INTO memories (id, namespace, content, source, tags, created_at, updated_at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                )?
                .execute(params![
                    memory.id,
                    memory.namespace,
                    memory.content,
                    memory.source,
                    tags_json(&memory.tags),
                    to_sql(memory.created_at),
                    to_sql(memory.updated_at)
                ])?;
            let key = transaction.last_insert_rowid();
            index(&transaction, key, memory)?;
        }
    }
    Ok(transaction.commit()?)
}

fn remove(connection: &mut Connection, namespace: &str, id: &str) -> Result<bool, Failure> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let key: Option<i64> = transaction
        .prepare_cached("DELETE FROM memories WHERE namespace = ?1 AND id = ?2 RETURNING key")?
        .query_one([namespace, id], |row| row.get(0))
        .optional()?;
    if let Some(key) = key {
        unindex(&transaction, key)?;
    }
    transaction.commit()?;
    Ok(key.is_some())
}

fn index(transaction: &Transaction<'_>, key: i64, memory: &Memory) -> rusqlite::Result<()> {
    let terms = index_terms(&format!("{}\n{}", memory.content, memory.tags.join("\n")));
    transaction
        .prepare_cached("INSERT INTO memory_terms (rowid, terms) VALUES (?1, ?2)")?
        .execute(params![key, terms])?;
    Ok(())
}

fn unindex(transaction: &Transaction<'_>, key: i64) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("DELETE FROM memory_terms WHERE rowid = ?1")?
        .execute([key])?;
    Ok(())
}

fn memory(row: &Row<'_>) -> rusqlite::Result<Memory> {
    let tags: String = row.get(4)?;
    Ok(Memory {
        id: row.get(0)?,
        namespace: row.get(1)?,
        content: row.get(2)?,
        source: row.get(3)?,
        // Key words are an extra: damaged ones do not cost the memory.
        tags: serde_json::from_str(&tags).unwrap_or_default(),
        created_at: from_sql(row.get(5)?),
        updated_at: from_sql(row.get(6)?),
    })
}

fn tags_json(tags: &[String]) -> String {
    serde_json::Value::from(tags).to_string()
}
