//! The tables: made and brought up to date.

use sqlx::{PgConnection, PgPool};

use crate::failure::Failure;

/// Each brings the schema from its position to the next version.
const MIGRATIONS: &[&str] = &[include_str!("schema.sql")];

/// Names stand in SQL as they are, so they are of letters that need no quotes.
pub(crate) fn check_name(name: &str) -> Result<(), Failure> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let starts_well = !name.starts_with(|c: char| c.is_ascii_digit());
    if name.is_empty() || name.len() > 63 || !name.chars().all(is_plain) || !starts_well {
        return Err(Failure::new(format_args!(
            "\"{name}\" is no name of a schema; use lower-case letters, digits and _"
        )));
    }
    Ok(())
}

/// Makes the schema of this name, or brings it to the newest version. Processes that do so at
/// once wait for each other.
pub(crate) async fn prepare(pool: &PgPool, schema: &str) -> Result<(), Failure> {
    let encoding: String = sqlx::query_scalar("SHOW server_encoding")
        .fetch_one(pool)
        .await?;
    if encoding != "UTF8" {
        return Err(Failure::new(format_args!(
            "the database holds text as {encoding}; create one with ENCODING 'UTF8'"
        )));
    }
    let mut transaction = pool.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended('youyou_agent.' || $1, 0))")
        .bind(schema)
        .execute(&mut *transaction)
        .await?;
    // Asked first: making a schema needs a right that a user may lack who was given one.
    let has = async |connection: &mut PgConnection, question: &str| {
        sqlx::query_scalar::<_, bool>(question)
            .bind(schema)
            .fetch_one(connection)
            .await
    };
    if !has(&mut transaction, "SELECT to_regnamespace($1) IS NOT NULL").await? {
        let sql = format!("CREATE SCHEMA {schema}");
        sqlx::raw_sql(&sql).execute(&mut *transaction).await?;
    }
    if !has(
        &mut transaction,
        "SELECT to_regclass($1 || '.version') IS NOT NULL",
    )
    .await?
    {
        let sql = "CREATE TABLE version (number integer NOT NULL);
                   INSERT INTO version VALUES (0)";
        sqlx::raw_sql(sql).execute(&mut *transaction).await?;
    }
    let version: i32 = sqlx::query_scalar("SELECT number FROM version")
        .fetch_one(&mut *transaction)
        .await?;
    let pending = usize::try_from(version)
        .ok()
        .and_then(|done| MIGRATIONS.get(done..))
        .ok_or_else(|| {
            Failure::new(format_args!(
                "the schema \"{schema}\" was written by a later version of the app; update the app"
            ))
        })?;
    if pending.is_empty() {
        return Ok(transaction.rollback().await?);
    }
    sqlx::raw_sql("SET LOCAL statement_timeout = 0")
        .execute(&mut *transaction)
        .await?;
    for migration in pending {
        sqlx::raw_sql(migration).execute(&mut *transaction).await?;
    }
    sqlx::query("UPDATE version SET number = $1")
        .bind(i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX))
        .execute(&mut *transaction)
        .await?;
    Ok(transaction.commit().await?)
}
