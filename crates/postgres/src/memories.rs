//! Memories in PostgreSQL, with an index of their words.

use std::num::NonZeroUsize;

use async_trait::async_trait;
use sqlx::postgres::PgRow;
use sqlx::{PgPool, Row as _};
use youyou_agent::{Memory, MemoryStorage, StorageError};

use crate::events::{from_sql, to_sql};
use crate::failure::Failure;
use crate::lanes::Lanes;
use crate::terms::{index_terms, query_terms};

const COLUMNS: &str = "m.id, m.namespace, m.content, m.source, m.tags, m.created_at, m.updated_at";

/// A [`MemoryStorage`] in a PostgreSQL database, from
/// [`Postgres::memories`](crate::Postgres::memories).
///
/// A search finds memories that share any word with the query, in scripts without spaces any
/// character. Rare words count more than common ones; among equals the newest comes first.
#[derive(Debug, Clone)]
pub struct PostgresMemories(Lanes);

impl PostgresMemories {
    pub(crate) fn new(lanes: Lanes) -> Self {
        Self(lanes)
    }
}

#[async_trait]
impl MemoryStorage for PostgresMemories {
    async fn load(&self, namespace: &str) -> Result<Vec<Memory>, StorageError> {
        let namespace = namespace.to_owned();
        self.0.aside(move |pool| load(pool, namespace)).await
    }

    async fn upsert(&self, memory: Memory) -> Result<(), StorageError> {
        // By its id: a newer version never comes before an older one.
        let id = memory.id.clone();
        self.0.in_order(&id, move |pool| upsert(pool, memory)).await
    }

    async fn delete(&self, namespace: &str, id: &str) -> Result<bool, StorageError> {
        let (namespace, owned) = (namespace.to_owned(), id.to_owned());
        self.0
            .in_order(id, move |pool| delete(pool, namespace, owned))
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
            .aside(move |pool| search(pool, namespace, query, limit.get()))
            .await
    }
}

async fn load(pool: PgPool, namespace: String) -> Result<Vec<Memory>, Failure> {
    let sql = format!(
        "SELECT {COLUMNS} FROM memories m WHERE m.namespace = $1 ORDER BY m.updated_at DESC, m.id"
    );
    let rows = sqlx::query(&sql)
        .bind(namespace.as_bytes())
        .fetch_all(&pool)
        .await?;
    Ok(rows.iter().map(memory).collect::<Result<_, _>>()?)
}

async fn upsert(pool: PgPool, memory: Memory) -> Result<(), Failure> {
    let terms = index_terms(&format!("{}\n{}", memory.content, memory.tags.join("\n")));
    // With the same content only the time changes.
    let kept = |column: &str| {
        format!(
            "{column} = CASE WHEN m.content = excluded.content THEN m.{column} ELSE excluded.{column} END"
        )
    };
    let columns = ["namespace", "content", "source", "tags", "terms"].map(kept);
    let sql = format!(
        "INSERT INTO memories AS m
             (id, namespace, content, source, tags, created_at, updated_at, terms)
         VALUES ($1, $2, $3, $4, $5, $6, $7, stems($8))
         ON CONFLICT (id) DO UPDATE SET updated_at = excluded.updated_at, {}",
        columns.join(", ")
    );
    sqlx::query(&sql)
        .bind(memory.id.as_bytes())
        .bind(memory.namespace.as_bytes())
        .bind(memory.content.as_bytes())
        .bind(memory.source.as_bytes())
        .bind(serde_json::Value::from(memory.tags).to_string())
        .bind(to_sql(memory.created_at))
        .bind(to_sql(memory.updated_at))
        .bind(terms)
        .execute(&pool)
        .await?;
    Ok(())
}

async fn delete(pool: PgPool, namespace: String, id: String) -> Result<bool, Failure> {
    let done = sqlx::query("DELETE FROM memories WHERE namespace = $1 AND id = $2")
        .bind(namespace.as_bytes())
        .bind(id.as_bytes())
        .execute(&pool)
        .await?;
    Ok(done.rows_affected() > 0)
}

async fn search(
    pool: PgPool,
    namespace: String,
    query: String,
    limit: usize,
) -> Result<Vec<Memory>, Failure> {
    // The inverse document frequency of bm25, within the namespace: a term adds to the memories
    // it is in, the more the fewer they are.
    let sql = format!(
        "WITH wanted AS MATERIALIZED (SELECT stems($2) AS terms),
         hits AS (
             SELECT m.key, term
             FROM wanted, memories m, unnest(m.terms) AS term
             WHERE m.namespace = $1 AND m.terms && wanted.terms AND term = ANY(wanted.terms)
         ),
         total AS (SELECT count(*)::float8 AS count FROM memories WHERE namespace = $1),
         weights AS (
             SELECT term, ln(1 + (total.count - count(*) + 0.5) / (count(*) + 0.5)) AS weight
             FROM hits, total GROUP BY term, total.count
         ),
         scores AS (
             SELECT key, sum(weight) AS score FROM hits JOIN weights USING (term) GROUP BY key
         )
         SELECT {COLUMNS} FROM scores JOIN memories m USING (key)
         ORDER BY round(scores.score::numeric, 4) DESC, m.key DESC LIMIT $3"
    );
    let rows = sqlx::query(&sql)
        .bind(namespace.as_bytes())
        .bind(query_terms(&query))
        .bind(to_sql(limit as u64))
        .fetch_all(&pool)
        .await?;
    Ok(rows.iter().map(memory).collect::<Result<_, _>>()?)
}

fn memory(row: &PgRow) -> Result<Memory, sqlx::Error> {
    let text = |column: &str| -> Result<String, sqlx::Error> {
        let bytes: &[u8] = row.try_get(column)?;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    };
    let tags: &str = row.try_get("tags")?;
    Ok(Memory {
        id: text("id")?,
        namespace: text("namespace")?,
        content: text("content")?,
        source: text("source")?,
        // Key words are an extra: damaged ones do not cost the memory.
        tags: serde_json::from_str(tags).unwrap_or_default(),
        created_at: from_sql(row.try_get("created_at")?),
        updated_at: from_sql(row.try_get("updated_at")?),
    })
}
