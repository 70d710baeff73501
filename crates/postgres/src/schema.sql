-- Ids and titles are bytes: PostgreSQL's text holds no NUL and is ordered by a locale.
CREATE TABLE sessions (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session_id bytea NOT NULL UNIQUE,
    title bytea,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    message_count bigint NOT NULL DEFAULT 0
);
-- Listing never touches the events: this index holds the order and the filter.
CREATE INDEX sessions_by_time ON sessions (updated_at DESC, session_id) WHERE message_count > 0;

CREATE TABLE events (
    session_key bigint NOT NULL REFERENCES sessions ON DELETE CASCADE,
    position bigint NOT NULL,
    writer bigint NOT NULL,
    is_message boolean NOT NULL,
    moves_head boolean NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (session_key, position)
);
CREATE INDEX head_moves ON events (session_key, position) WHERE moves_head;

-- A number for each storage object that ever wrote here.
CREATE SEQUENCE writers;

CREATE TABLE memories (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id bytea NOT NULL UNIQUE,
    namespace bytea NOT NULL,
    content bytea NOT NULL,
    source bytea NOT NULL,
    tags text NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    terms text[] NOT NULL
);
CREATE INDEX memories_by_namespace ON memories (namespace, updated_at DESC);
CREATE INDEX memories_by_term ON memories USING gin (terms);

-- English words without their endings; all others as they are.
CREATE FUNCTION stems(terms text[]) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(array_agg(DISTINCT coalesce(
        (ts_lexize('pg_catalog.english_stem', term))[1], term)), '{}')
    FROM unnest(terms) AS term
$$;
