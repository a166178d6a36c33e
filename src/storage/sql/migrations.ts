// The schema as a list of migration steps. Each is applied once and never edited after a release, which a start would
// detect.

export type Dialect = "sqlite" | "postgres";

/**
 * The number of migration steps that a version of Headrace must know to use this schema. It is stored beside each step,
 * so that older versions can check it. A release raises it if it removes, or changes the meaning of, something that
 * earlier releases use; none has yet.
 */
export const worksFrom = 21;

/**
 * The same steps for both databases. For PostgreSQL, SQLite-only parts are left out and texts are ordered by bytes, as
 * SQLite always orders them. Ids that begin with the time, and pages by name, rely on that order. A step only adds:
 * tables, indexes, columns that may be null or have a default. During an upgrade, processes of the previous version use
 * the schema, and an operator may go back to that version. So everything that the previous version reads and writes
 * must remain.
 */
export function migrationsFor(dialect: Dialect): readonly (readonly string[])[] {
  if (dialect === "sqlite") {
    forSqlite ??= migrations.map((step) => step.map((statement) => statement.replace(concurrently, "")));
    return forSqlite;
  }
  return migrations.map((step) =>
    step
      .filter((statement) => !concurrently.test(statement))
      .map((statement) => statement.replace(/\) WITHOUT ROWID$/, ")").replace(/\bTEXT\b/g, 'TEXT COLLATE "C"')),
  );
}

const concurrently = /(?<=^CREATE INDEX )CONCURRENTLY (?=(\w+) )/;
let forSqlite: readonly (readonly string[])[] | undefined;

/**
 * Returns the indexes, by name, that PostgreSQL builds after the steps, because a step would stop all writers of the
 * table.
 */
export function concurrentIndexes(): ReadonlyMap<string, string> {
  const named = migrations.flat().map((statement) => [concurrently.exec(statement)?.[1] ?? "", statement] as const);
  return new Map(named.filter(([name]) => name !== ""));
}

const migrations: readonly (readonly string[])[] = [
  [
    `CREATE TABLE accounts (
      id TEXT PRIMARY KEY,
      name TEXT NOT NULL,
      tier TEXT NOT NULL,
      created_at BIGINT NOT NULL
    )`,
    `CREATE TABLE api_keys (
      id TEXT PRIMARY KEY,
      account_id TEXT NOT NULL REFERENCES accounts (id),
      name TEXT NOT NULL,
      environment TEXT NOT NULL,
      digest TEXT NOT NULL UNIQUE,
      prefix TEXT NOT NULL,
      last4 TEXT NOT NULL,
      scopes TEXT NOT NULL,
      created_at BIGINT NOT NULL,
      expires_at BIGINT,
      revoked_at BIGINT
    )`,
    `CREATE INDEX api_keys_by_environment ON api_keys (environment, created_at)`,
    `CREATE TABLE usage_records (
      request_id TEXT PRIMARY KEY,
      at BIGINT NOT NULL,
      account_id TEXT NOT NULL,
      key_id TEXT NOT NULL,
      environment TEXT NOT NULL,
      operation TEXT NOT NULL,
      model TEXT NOT NULL,
      outcome TEXT NOT NULL,
      prompt_tokens BIGINT NOT NULL,
      completion_tokens BIGINT NOT NULL,
      estimated INTEGER NOT NULL,
      cost DOUBLE PRECISION,
      duration_ms BIGINT NOT NULL
    )`,
    `CREATE INDEX usage_records_by_account ON usage_records (account_id, at)`,
  ],
  [
    `ALTER TABLE accounts ADD COLUMN status TEXT NOT NULL DEFAULT 'active'`,
    // JSON of only the overridden amounts: a missing one is the tier's, null is no limit.
    `ALTER TABLE accounts ADD COLUMN overrides TEXT NOT NULL DEFAULT '{}'`,
    `ALTER TABLE accounts ADD COLUMN store_chats INTEGER NOT NULL DEFAULT 0`,
    `CREATE TABLE tiers (
      name TEXT PRIMARY KEY,
      requests_per_minute BIGINT,
      tokens_per_minute BIGINT,
      monthly_tokens BIGINT,
      monthly_spend DOUBLE PRECISION,
      environments TEXT NOT NULL
    )`,

    `ALTER TABLE api_keys ADD COLUMN created_by TEXT`,
    `ALTER TABLE api_keys ADD COLUMN parent_id TEXT`,
    `ALTER TABLE api_keys ADD COLUMN limit_id TEXT NOT NULL DEFAULT ''`,
    `UPDATE api_keys SET limit_id = id`,
    `ALTER TABLE api_keys ADD COLUMN last_used_at BIGINT`,
    `ALTER TABLE api_keys ADD COLUMN revoked INTEGER NOT NULL DEFAULT 0`,
    `UPDATE api_keys SET revoked = 1 WHERE revoked_at IS NOT NULL`,
    `ALTER TABLE api_keys ADD COLUMN allowed_ips TEXT NOT NULL DEFAULT ''`,
    `ALTER TABLE api_keys ADD COLUMN rate_limit BIGINT`,
    `ALTER TABLE api_keys ADD COLUMN rate_limit_window BIGINT`,
    `ALTER TABLE api_keys ADD COLUMN monthly_tokens BIGINT`,
    `ALTER TABLE api_keys ADD COLUMN monthly_spend DOUBLE PRECISION`,
    `CREATE INDEX api_keys_by_account ON api_keys (account_id, environment, id)`,
    `CREATE INDEX api_keys_by_parent ON api_keys (parent_id)`,
    `CREATE INDEX api_keys_by_limit ON api_keys (limit_id)`,
    // A single row, raised by every change of a key, account or tier, so that caches reload.
    `CREATE TABLE credential_revision (id INTEGER PRIMARY KEY, revision BIGINT NOT NULL)`,
    `INSERT INTO credential_revision (id, revision) VALUES (1, 1)`,

    `ALTER TABLE usage_records ADD COLUMN app_id TEXT`,
    `ALTER TABLE usage_records ADD COLUMN stream INTEGER NOT NULL DEFAULT 0`,
    `ALTER TABLE usage_records ADD COLUMN error_code TEXT`,
    `ALTER TABLE usage_records ADD COLUMN nano_usd BIGINT`,
    `UPDATE usage_records SET nano_usd = CAST(round(cost * 1000000000) AS BIGINT) WHERE cost IS NOT NULL`,
    `ALTER TABLE usage_records DROP COLUMN cost`,
    `ALTER TABLE usage_records ADD COLUMN capped INTEGER NOT NULL DEFAULT 0`,
    `ALTER TABLE usage_records ADD COLUMN upstream TEXT`,
    `ALTER TABLE usage_records ADD COLUMN first_token_ms BIGINT`,
    `ALTER TABLE usage_records ADD COLUMN queue_ms BIGINT NOT NULL DEFAULT 0`,
    // Sums by hour and by day (`span`), updated in the transaction that adds the records. '' is no app.
    `CREATE TABLE usage_rollups (
      account_id TEXT NOT NULL,
      environment TEXT NOT NULL,
      span TEXT NOT NULL,
      start BIGINT NOT NULL,
      key_id TEXT NOT NULL,
      app_id TEXT NOT NULL,
      model TEXT NOT NULL,
      requests BIGINT NOT NULL,
      prompt_tokens BIGINT NOT NULL,
      completion_tokens BIGINT NOT NULL,
      nano_usd BIGINT NOT NULL,
      errors BIGINT NOT NULL,
      PRIMARY KEY (account_id, environment, span, start, key_id, app_id, model)
    ) WITHOUT ROWID`,
    `CREATE INDEX usage_rollups_by_key ON usage_rollups (key_id, span, start)`,
    ...["hour", "day"].map(
      (span) => `INSERT INTO usage_rollups
        SELECT account_id, environment, '${span}', at - at % ${span === "hour" ? 3600 : 86400}, key_id, '', model, count(*),
          sum(prompt_tokens), sum(completion_tokens), sum(coalesce(nano_usd, 0)),
          sum(CASE WHEN outcome = 'failed' THEN 1 ELSE 0 END)
        FROM usage_records GROUP BY 1, 2, 4, 5, 7`,
    ),

    // `list_size`: characters of the listed members. `deleted_at`: the content is erased, and the row keeps its
    // position in lists until `expires_at`. The large columns come last, so that SQLite reads the others without them.
    `CREATE TABLE stored_chats (
      id TEXT PRIMARY KEY,
      account_id TEXT NOT NULL,
      environment TEXT NOT NULL,
      key_id TEXT NOT NULL,
      app_id TEXT,
      model TEXT NOT NULL,
      created_at BIGINT NOT NULL,
      expires_at BIGINT NOT NULL,
      deleted_at BIGINT,
      list_size BIGINT NOT NULL,
      metadata TEXT NOT NULL,
      parameters TEXT NOT NULL,
      completion TEXT NOT NULL,
      messages TEXT NOT NULL
    )`,
    `CREATE INDEX stored_chats_by_owner ON stored_chats (account_id, environment, created_at, id)`,
    `CREATE INDEX stored_chats_by_model ON stored_chats (account_id, environment, model, created_at, id)`,
    `CREATE INDEX stored_chats_by_app ON stored_chats (account_id, environment, app_id, created_at, id)
      WHERE app_id IS NOT NULL`,
    `CREATE INDEX stored_chats_by_expiry ON stored_chats (expires_at)`,
    // `tag`: digest of the name and the value of a piece of metadata.
    `CREATE TABLE stored_chat_tags (
      account_id TEXT NOT NULL,
      environment TEXT NOT NULL,
      tag TEXT NOT NULL,
      created_at BIGINT NOT NULL,
      chat_id TEXT NOT NULL,
      PRIMARY KEY (account_id, environment, tag, created_at, chat_id)
    ) WITHOUT ROWID`,
    `CREATE INDEX stored_chat_tags_by_chat ON stored_chat_tags (chat_id)`,

    `CREATE TABLE audit_log (
      id TEXT PRIMARY KEY,
      at BIGINT NOT NULL,
      action TEXT NOT NULL,
      actor_type TEXT NOT NULL,
      actor_id TEXT,
      account_id TEXT,
      target_id TEXT,
      client_address TEXT,
      request_id TEXT,
      detail TEXT NOT NULL
    )`,
    `CREATE INDEX audit_log_by_account ON audit_log (account_id, id)`,
    `CREATE INDEX audit_log_by_action ON audit_log (action, id)`,
    `CREATE INDEX audit_log_by_target ON audit_log (target_id, id)`,
    `CREATE INDEX audit_log_by_time ON audit_log (at)`,

    `CREATE TABLE signing_keys (
      id TEXT PRIMARY KEY,
      public_jwk TEXT NOT NULL,
      sealed_private_jwk TEXT NOT NULL,
      created_at BIGINT NOT NULL,
      active_at BIGINT NOT NULL,
      retires_at BIGINT
    )`,
  ],
  [
    // The index by account put each record on one of thousands of pages: half of the cost of an insert. Queries read
    // only recent records.
    `DROP INDEX usage_records_by_account`,
    `CREATE INDEX usage_records_by_time ON usage_records (at)`,
  ],
  [
    // Memberships and grants are records of the same form as keys; their digest matches no secret.
    `ALTER TABLE api_keys ADD COLUMN kind TEXT NOT NULL DEFAULT 'key'`,
    `ALTER TABLE api_keys ADD COLUMN person_id TEXT`,
    `ALTER TABLE api_keys ADD COLUMN app_id TEXT`,
    `ALTER TABLE api_keys ADD COLUMN role TEXT`,
    `CREATE INDEX api_keys_by_person ON api_keys (person_id) WHERE person_id IS NOT NULL`,
    `CREATE INDEX api_keys_by_app ON api_keys (app_id) WHERE app_id IS NOT NULL`,
    // null if the chat is the account's, not one member's.
    `ALTER TABLE stored_chats ADD COLUMN person_id TEXT`,

    `CREATE INDEX usage_rollups_by_app ON usage_rollups (app_id, span, start) WHERE app_id <> ''`,

    `CREATE TABLE people (
      id TEXT PRIMARY KEY,
      email TEXT NOT NULL UNIQUE,
      name TEXT NOT NULL,
      password_hash TEXT,
      email_proven INTEGER NOT NULL,
      is_operator INTEGER NOT NULL,
      created_at BIGINT NOT NULL
    )`,
    `CREATE TABLE memberships (
      id TEXT PRIMARY KEY,
      account_id TEXT NOT NULL REFERENCES accounts (id),
      person_id TEXT NOT NULL REFERENCES people (id),
      role TEXT NOT NULL,
      created_at BIGINT NOT NULL,
      UNIQUE (account_id, person_id)
    )`,
    `CREATE INDEX memberships_by_person ON memberships (person_id)`,
    `CREATE TABLE identities (
      issuer TEXT NOT NULL,
      subject TEXT NOT NULL,
      person_id TEXT NOT NULL REFERENCES people (id),
      created_at BIGINT NOT NULL,
      PRIMARY KEY (issuer, subject)
    )`,
    `CREATE INDEX identities_by_person ON identities (person_id)`,
    `CREATE TABLE passkeys (
      id TEXT PRIMARY KEY,
      person_id TEXT NOT NULL REFERENCES people (id),
      name TEXT NOT NULL,
      public_key TEXT NOT NULL,
      counter BIGINT NOT NULL,
      transports TEXT NOT NULL,
      backed_up INTEGER NOT NULL,
      created_at BIGINT NOT NULL,
      last_used_at BIGINT
    )`,
    `CREATE INDEX passkeys_by_person ON passkeys (person_id)`,
    `CREATE TABLE one_time_links (
      id TEXT PRIMARY KEY,
      purpose TEXT NOT NULL,
      digest TEXT NOT NULL UNIQUE,
      delivery TEXT NOT NULL,
      email TEXT,
      person_id TEXT,
      account_id TEXT,
      role TEXT,
      created_by TEXT,
      created_at BIGINT NOT NULL,
      expires_at BIGINT NOT NULL,
      used_at BIGINT
    )`,
    `CREATE INDEX one_time_links_by_account ON one_time_links (account_id, id)`,
    // `previous_digest`: the digest of the previous token, which stays valid for a short time for requests in flight.
    `CREATE TABLE sessions (
      id TEXT PRIMARY KEY,
      person_id TEXT NOT NULL REFERENCES people (id),
      account_id TEXT,
      digest TEXT NOT NULL UNIQUE,
      previous_digest TEXT UNIQUE,
      method TEXT NOT NULL,
      user_agent TEXT NOT NULL,
      client_address TEXT NOT NULL,
      created_at BIGINT NOT NULL,
      last_seen_at BIGINT NOT NULL,
      rotated_at BIGINT NOT NULL,
      expires_at BIGINT NOT NULL
    )`,
    `CREATE INDEX sessions_by_person ON sessions (person_id, id)`,
    `CREATE INDEX sessions_by_expiry ON sessions (expires_at)`,

    `CREATE TABLE apps (
      id TEXT PRIMARY KEY,
      account_id TEXT NOT NULL REFERENCES accounts (id),
      person_id TEXT,
      name TEXT NOT NULL,
      homepage_url TEXT,
      type TEXT NOT NULL,
      redirect_uris TEXT NOT NULL,
      scopes TEXT NOT NULL,
      environment TEXT NOT NULL,
      require_pkce INTEGER NOT NULL,
      created_by TEXT,
      created_at BIGINT NOT NULL
    )`,
    `CREATE INDEX apps_by_account ON apps (account_id, environment, id)`,
    `CREATE TABLE app_secrets (
      id TEXT PRIMARY KEY,
      app_id TEXT NOT NULL REFERENCES apps (id),
      digest TEXT NOT NULL,
      last4 TEXT NOT NULL,
      created_at BIGINT NOT NULL,
      expires_at BIGINT
    )`,
    `CREATE INDEX app_secrets_by_app ON app_secrets (app_id)`,
    `CREATE TABLE authorization_codes (
      digest TEXT PRIMARY KEY,
      app_id TEXT NOT NULL,
      person_id TEXT NOT NULL,
      account_id TEXT NOT NULL,
      membership_id TEXT NOT NULL,
      environment TEXT NOT NULL,
      scopes TEXT NOT NULL,
      redirect_uri TEXT,
      code_challenge TEXT,
      created_at BIGINT NOT NULL,
      expires_at BIGINT NOT NULL,
      grant_id TEXT
    )`,
    `CREATE INDEX authorization_codes_by_expiry ON authorization_codes (expires_at)`,
    `CREATE TABLE refresh_tokens (
      digest TEXT PRIMARY KEY,
      grant_id TEXT NOT NULL,
      created_at BIGINT NOT NULL,
      expires_at BIGINT NOT NULL,
      used_at BIGINT,
      sealed_answer TEXT
    )`,
    `CREATE INDEX refresh_tokens_by_expiry ON refresh_tokens (expires_at)`,
    `CREATE INDEX refresh_tokens_by_grant ON refresh_tokens (grant_id)`,
    `CREATE TABLE device_codes (
      digest TEXT PRIMARY KEY,
      user_code TEXT NOT NULL,
      app_id TEXT NOT NULL,
      environment TEXT NOT NULL,
      scopes TEXT NOT NULL,
      created_at BIGINT NOT NULL,
      expires_at BIGINT NOT NULL,
      interval_seconds BIGINT NOT NULL,
      polled_at BIGINT,
      state TEXT NOT NULL,
      person_id TEXT,
      account_id TEXT,
      membership_id TEXT,
      grant_id TEXT
    )`,
    `CREATE UNIQUE INDEX device_codes_by_user_code ON device_codes (user_code) WHERE state = 'pending'`,
    `CREATE INDEX device_codes_by_expiry ON device_codes (expires_at)`,
  ],
  [
    // Number of answers whose first token was timed, and the sums for their means.
    `ALTER TABLE usage_rollups ADD COLUMN timed BIGINT NOT NULL DEFAULT 0`,
    `ALTER TABLE usage_rollups ADD COLUMN first_token_ms BIGINT NOT NULL DEFAULT 0`,
    `ALTER TABLE usage_rollups ADD COLUMN generated_tokens BIGINT NOT NULL DEFAULT 0`,
    `ALTER TABLE usage_rollups ADD COLUMN generation_ms BIGINT NOT NULL DEFAULT 0`,

    // Requests by hour that a limit, a quota or a full queue refused. '' is no app.
    `CREATE TABLE refusals (
      account_id TEXT NOT NULL,
      environment TEXT NOT NULL,
      start BIGINT NOT NULL,
      key_id TEXT NOT NULL,
      app_id TEXT NOT NULL,
      model TEXT NOT NULL,
      reason TEXT NOT NULL,
      requests BIGINT NOT NULL,
      last_at BIGINT NOT NULL,
      PRIMARY KEY (account_id, environment, start, key_id, app_id, model, reason)
    )`,

    // Upstreams that operators added besides the configuration file. `settings` is JSON of the rest, without secrets.
    `CREATE TABLE upstreams (
      name TEXT PRIMARY KEY,
      url TEXT NOT NULL,
      sealed_api_key TEXT,
      settings TEXT NOT NULL,
      created_at BIGINT NOT NULL
    )`,
    // Drained upstreams of every source: they finish open requests and get no new ones.
    `CREATE TABLE drained_upstreams (
      name TEXT PRIMARY KEY,
      since BIGINT NOT NULL
    )`,
  ],
  [
    // Unix seconds of the first and the last request of the row, so that a list of requests skips the rest of its hour.
    // In earlier rows both cover the whole hour, and stay so.
    `ALTER TABLE usage_rollups ADD COLUMN first_at BIGINT NOT NULL DEFAULT 0`,
    `ALTER TABLE usage_rollups ADD COLUMN last_at BIGINT NOT NULL DEFAULT 253402300799`,
  ],
  [
    // For lists of one member's own chats and keys, however many others the account has.
    `CREATE INDEX api_keys_of_person ON api_keys (account_id, environment, person_id, id) WHERE person_id IS NOT NULL`,
    `CREATE INDEX stored_chats_by_person ON stored_chats (account_id, environment, person_id, created_at, id)
      WHERE person_id IS NOT NULL`,
  ],
  [
    // The second row is raised by every change of upstreams and nodes, so that other processes reload.
    `INSERT INTO credential_revision (id, revision) VALUES (2, 1)`,
    // Values that all processes of the database must agree on, such as a check value of the secret.
    `CREATE TABLE installation (
      name TEXT PRIMARY KEY,
      value TEXT NOT NULL
    )`,
    // Processes that share the database. One without a recent heartbeat is dead.
    `CREATE TABLE replicas (
      id TEXT PRIMARY KEY,
      advertise_url TEXT,
      version TEXT NOT NULL,
      started_at BIGINT NOT NULL,
      seen_at BIGINT NOT NULL
    )`,
    // Sign-in flows that one process begins and another may finish: passkey ceremonies, single sign-on. Each is taken
    // once.
    `CREATE TABLE pending_entries (
      kind TEXT NOT NULL,
      digest TEXT NOT NULL,
      value TEXT NOT NULL,
      expires_at BIGINT NOT NULL,
      PRIMARY KEY (kind, digest)
    )`,
    `CREATE INDEX pending_entries_by_expiry ON pending_entries (expires_at)`,

    // `models` is JSON of the models approved in advance; null: none before an operator approves.
    `CREATE TABLE node_join_tokens (
      id TEXT PRIMARY KEY,
      digest TEXT NOT NULL UNIQUE,
      last4 TEXT NOT NULL,
      models TEXT,
      environments TEXT NOT NULL,
      created_by TEXT,
      created_at BIGINT NOT NULL,
      expires_at BIGINT NOT NULL,
      used_at BIGINT,
      node_id TEXT
    )`,
    // `models` and `environments` are JSON of the approvals. `announced` is JSON of the last announced models.
    `CREATE TABLE nodes (
      id TEXT PRIMARY KEY,
      name TEXT NOT NULL UNIQUE,
      public_key TEXT NOT NULL UNIQUE,
      models TEXT NOT NULL,
      environments TEXT NOT NULL,
      max_concurrency BIGINT,
      announced TEXT NOT NULL,
      version TEXT,
      created_at BIGINT NOT NULL,
      last_seen_at BIGINT
    )`,
    // The process that holds a node's connection. Rows of dead processes are ignored.
    `CREATE TABLE node_connections (
      node_id TEXT PRIMARY KEY,
      replica_id TEXT NOT NULL,
      connection_id TEXT NOT NULL,
      client_address TEXT NOT NULL,
      connected_at BIGINT NOT NULL
    )`,
    `CREATE INDEX node_connections_by_replica ON node_connections (replica_id)`,
  ],
  [
    // Id of the secret under which the digest was made. null: the secret that was in use when rows got ids
    // (`first_secret` in `installation`), or no secret.
    `ALTER TABLE api_keys ADD COLUMN secret_id TEXT`,
    `ALTER TABLE app_secrets ADD COLUMN secret_id TEXT`,
  ],
  [
    // Only in SQLite: usage that the roll-ups do not contain yet. `sums`: JSON of the ids of a batch's requests. In
    // rows with a negative `batch`: negative sums of the parts that were added to the roll-ups since. In the row with
    // `batch` 0: the last batch that does not count any more.
    `CREATE TABLE usage_unrolled (
      batch BIGINT PRIMARY KEY,
      sums TEXT NOT NULL
    )`,
  ],
  [
    // JSON of a request's attempt log, unless the first model server that was asked simply answered (`trail-text.ts`).
    `ALTER TABLE usage_records ADD COLUMN trail TEXT`,
    // Refused requests for models, without usage and not in the sums. `model` and `stream` are null if the body was not
    // read.
    `CREATE TABLE refused_requests (
      request_id TEXT PRIMARY KEY,
      at BIGINT NOT NULL,
      account_id TEXT NOT NULL,
      key_id TEXT NOT NULL,
      app_id TEXT,
      environment TEXT NOT NULL,
      operation TEXT NOT NULL,
      model TEXT,
      stream INTEGER,
      error_code TEXT NOT NULL,
      message TEXT NOT NULL,
      duration_ms BIGINT NOT NULL
    )`,
    `CREATE INDEX refused_requests_by_account ON refused_requests (account_id, environment, at, request_id)`,
    `CREATE INDEX refused_requests_by_time ON refused_requests (at)`,
  ],
  [
    // Model declarations of operators besides the configuration file. `settings` is JSON of the rest, without secrets.
    `CREATE TABLE models (
      id TEXT PRIMARY KEY,
      settings TEXT NOT NULL,
      created_at BIGINT NOT NULL
    )`,
  ],
  [
    // Content is sealed under its own key (`content_key` in `installation`). `input_size`, `output_size`: characters of
    // JSON of the items. `seen_at`: the last heartbeat of the process that runs it; null: none needed. `events_until`:
    // when its events are deleted; null: it has none, or has not ended. `deleted_at`: the content is erased, and the
    // row prevents a late writer from restoring it until `expires_at`. The large columns come last.
    `CREATE TABLE stored_responses (
      id TEXT PRIMARY KEY,
      account_id TEXT NOT NULL,
      environment TEXT NOT NULL,
      key_id TEXT NOT NULL,
      app_id TEXT,
      person_id TEXT,
      made_by TEXT,
      model TEXT NOT NULL,
      created_at BIGINT NOT NULL,
      expires_at BIGINT NOT NULL,
      status TEXT NOT NULL,
      previous_id TEXT,
      conversation_id TEXT,
      background INTEGER NOT NULL,
      input_size BIGINT NOT NULL,
      output_size BIGINT NOT NULL,
      seen_at BIGINT,
      cancel_requested_at BIGINT,
      events_until BIGINT,
      deleted_at BIGINT,
      input TEXT NOT NULL,
      response TEXT NOT NULL
    )`,
    `CREATE INDEX stored_responses_by_expiry ON stored_responses (expires_at)`,
    `CREATE INDEX stored_responses_by_seen ON stored_responses (seen_at) WHERE seen_at IS NOT NULL`,
    `CREATE INDEX stored_responses_by_events ON stored_responses (events_until) WHERE events_until IS NOT NULL`,
    // Finds the item that a request refers to. `item`: digest of its id, which several responses may have.
    `CREATE TABLE stored_response_items (
      account_id TEXT NOT NULL,
      environment TEXT NOT NULL,
      item TEXT NOT NULL,
      created_at BIGINT NOT NULL,
      response_id TEXT NOT NULL,
      PRIMARY KEY (account_id, environment, item, created_at, response_id)
    ) WITHOUT ROWID`,
    `CREATE INDEX stored_response_items_by_response ON stored_response_items (response_id)`,
    // `size`: characters of JSON of the events.
    `CREATE TABLE response_events (
      response_id TEXT NOT NULL,
      first_number BIGINT NOT NULL,
      last_number BIGINT NOT NULL,
      size BIGINT NOT NULL,
      events TEXT NOT NULL,
      PRIMARY KEY (response_id, first_number)
    )`,

    // `next_place`: the position of the next item that is added. `metadata` is sealed.
    `CREATE TABLE conversations (
      id TEXT PRIMARY KEY,
      account_id TEXT NOT NULL,
      environment TEXT NOT NULL,
      key_id TEXT NOT NULL,
      app_id TEXT,
      person_id TEXT,
      made_by TEXT,
      created_at BIGINT NOT NULL,
      expires_at BIGINT NOT NULL,
      next_place BIGINT NOT NULL,
      metadata TEXT NOT NULL
    )`,
    `CREATE INDEX conversations_by_expiry ON conversations (expires_at)`,
    // An id is unique in a conversation. `response_id`: the response that added the item; null: added separately.
    `CREATE TABLE conversation_items (
      conversation_id TEXT NOT NULL,
      place BIGINT NOT NULL,
      account_id TEXT NOT NULL,
      environment TEXT NOT NULL,
      item TEXT NOT NULL,
      added_at BIGINT NOT NULL,
      response_id TEXT,
      size BIGINT NOT NULL,
      content TEXT NOT NULL,
      PRIMARY KEY (conversation_id, place)
    )`,
    `CREATE UNIQUE INDEX conversation_items_by_item ON conversation_items (conversation_id, item)`,
    `CREATE INDEX conversation_items_by_owner ON conversation_items (account_id, environment, item, added_at)`,
  ],
  [
    // Parts of the tokens with their own rates. `details`: JSON of details that only some model servers report.
    ...["usage_records", "usage_rollups"].flatMap((table) =>
      ["cached_tokens", "cache_write_tokens", "reasoning_tokens"].map(
        (column) => `ALTER TABLE ${table} ADD COLUMN ${column} BIGINT NOT NULL DEFAULT 0`,
      ),
    ),
    `ALTER TABLE usage_records ADD COLUMN details TEXT`,
  ],
  [
    // Notifications of accounts and operators. `once`: subject, window and threshold, which prevent a repetition.
    `CREATE TABLE notices (
      id TEXT PRIMARY KEY,
      at BIGINT NOT NULL,
      type TEXT NOT NULL,
      account_id TEXT,
      environment TEXT,
      once TEXT NOT NULL UNIQUE,
      data TEXT NOT NULL
    )`,
    `CREATE INDEX notices_by_time ON notices (at)`,
    // `account_id`, `environment`: null for operators'. `secrets`: JSON, each sealed.
    `CREATE TABLE webhooks (
      id TEXT PRIMARY KEY,
      account_id TEXT,
      environment TEXT,
      url TEXT NOT NULL,
      description TEXT NOT NULL,
      events TEXT NOT NULL,
      is_enabled INTEGER NOT NULL,
      disabled_reason TEXT,
      secrets TEXT NOT NULL,
      created_by TEXT,
      created_at BIGINT NOT NULL
    )`,
    // `target`: id of the webhook or the person; `owner`: id of the account, or `operators`. `tries`: JSON of the
    // attempts.
    `CREATE TABLE notice_deliveries (
      id TEXT PRIMARY KEY,
      notice_id TEXT NOT NULL,
      webhook_id TEXT,
      person_id TEXT,
      target TEXT NOT NULL,
      owner TEXT NOT NULL,
      state TEXT NOT NULL,
      tries TEXT NOT NULL,
      created_at BIGINT NOT NULL,
      due_at BIGINT NOT NULL,
      ended_at BIGINT,
      claim TEXT,
      claimed_until BIGINT NOT NULL
    )`,
    `CREATE INDEX notice_deliveries_by_due ON notice_deliveries (due_at) WHERE state = 'pending'`,
    `CREATE INDEX notice_deliveries_waiting ON notice_deliveries (target) WHERE state = 'pending'`,
    `CREATE INDEX notice_deliveries_by_target ON notice_deliveries (target, id)`,
    `CREATE INDEX notice_deliveries_by_time ON notice_deliveries (created_at)`,
    // Current faults that were reported; `replica_id`: the process that sees the fault.
    `CREATE TABLE incidents (
      subject TEXT PRIMARY KEY,
      replica_id TEXT NOT NULL,
      since BIGINT NOT NULL
    )`,
    // People who turned off mail notifications.
    `CREATE TABLE notice_mutes (person_id TEXT PRIMARY KEY)`,
  ],
  [
    // Quotas per window, as JSON.
    `ALTER TABLE api_keys ADD COLUMN quotas TEXT NOT NULL DEFAULT '[]'`,
    `ALTER TABLE tiers ADD COLUMN quotas TEXT NOT NULL DEFAULT '[]'`,
    `ALTER TABLE memberships ADD COLUMN quotas TEXT NOT NULL DEFAULT '[]'`,
  ],
  [
    // JSON of the models that a key may use, null for all; JSON of its tags; and whether its requests stay on local
    // deployments.
    `ALTER TABLE api_keys ADD COLUMN models TEXT NOT NULL DEFAULT 'null'`,
    `ALTER TABLE api_keys ADD COLUMN never_leaves INTEGER NOT NULL DEFAULT 0`,
    `ALTER TABLE api_keys ADD COLUMN tags TEXT NOT NULL DEFAULT '[]'`,
    `ALTER TABLE api_keys ADD COLUMN note TEXT`,
    `ALTER TABLE nodes ADD COLUMN is_local INTEGER NOT NULL DEFAULT 0`,
  ],
  [
    // JSON of the tags that a request has.
    `ALTER TABLE usage_records ADD COLUMN tags TEXT`,
    // Like `usage_rollups`, for requests with tags: a row for each tag, and a row with the tag '' for all tags
    // together.
    `CREATE TABLE usage_tag_rollups (
      account_id TEXT NOT NULL,
      environment TEXT NOT NULL,
      span TEXT NOT NULL,
      start BIGINT NOT NULL,
      tag TEXT NOT NULL,
      key_id TEXT NOT NULL,
      app_id TEXT NOT NULL,
      model TEXT NOT NULL,
      requests BIGINT NOT NULL,
      prompt_tokens BIGINT NOT NULL,
      completion_tokens BIGINT NOT NULL,
      nano_usd BIGINT NOT NULL,
      errors BIGINT NOT NULL,
      timed BIGINT NOT NULL,
      first_token_ms BIGINT NOT NULL,
      generated_tokens BIGINT NOT NULL,
      generation_ms BIGINT NOT NULL,
      cached_tokens BIGINT NOT NULL,
      cache_write_tokens BIGINT NOT NULL,
      reasoning_tokens BIGINT NOT NULL,
      first_at BIGINT NOT NULL,
      last_at BIGINT NOT NULL,
      PRIMARY KEY (account_id, environment, span, start, tag, key_id, app_id, model)
    ) WITHOUT ROWID`,
    `CREATE INDEX usage_tag_rollups_by_key ON usage_tag_rollups (key_id, span, start)`,
    `CREATE INDEX usage_tag_rollups_by_app ON usage_tag_rollups (app_id, span, start) WHERE app_id <> ''`,
  ],
  [
    // Finds the first due delivery of each target without scanning the others.
    `CREATE INDEX notice_deliveries_queue ON notice_deliveries (target, due_at) WHERE state = 'pending'`,
    `DROP INDEX notice_deliveries_waiting`,
  ],
  [
    // True if a member sees the usage and requests of the whole account; false for keys other than memberships.
    `ALTER TABLE memberships ADD COLUMN sees_all_usage INTEGER NOT NULL DEFAULT 0`,
    `ALTER TABLE api_keys ADD COLUMN sees_all_usage INTEGER NOT NULL DEFAULT 0`,
  ],
  [
    // Requests to models without a price, which a sum of money alone cannot distinguish from free ones.
    `ALTER TABLE usage_rollups ADD COLUMN unpriced BIGINT NOT NULL DEFAULT 0`,
    `ALTER TABLE usage_tag_rollups ADD COLUMN unpriced BIGINT NOT NULL DEFAULT 0`,
  ],
  [
    // Files of clients. `state`: pending while it is written, ready, or gone once it was deleted.
    `CREATE TABLE stored_files (
      id TEXT PRIMARY KEY,
      account_id TEXT NOT NULL,
      environment TEXT NOT NULL,
      key_id TEXT NOT NULL,
      app_id TEXT,
      person_id TEXT,
      made_by TEXT,
      purpose TEXT NOT NULL,
      filename TEXT NOT NULL,
      bytes BIGINT NOT NULL,
      created_at BIGINT NOT NULL,
      expires_at BIGINT NOT NULL,
      state TEXT NOT NULL
    )`,
    `CREATE INDEX stored_files_by_owner ON stored_files (account_id, environment, created_at, id)`,
    `CREATE INDEX stored_files_by_expiry ON stored_files (expires_at)`,
    `CREATE INDEX stored_files_gone ON stored_files (id) WHERE state = 'gone'`,
    // Files that are uploaded in parts.
    `CREATE TABLE uploads (
      id TEXT PRIMARY KEY,
      account_id TEXT NOT NULL,
      environment TEXT NOT NULL,
      key_id TEXT NOT NULL,
      app_id TEXT,
      person_id TEXT,
      made_by TEXT,
      filename TEXT NOT NULL,
      purpose TEXT NOT NULL,
      bytes BIGINT NOT NULL,
      mime_type TEXT NOT NULL,
      status TEXT NOT NULL,
      created_at BIGINT NOT NULL,
      expires_at BIGINT NOT NULL,
      keep_seconds BIGINT,
      file_id TEXT
    )`,
    `CREATE INDEX uploads_by_expiry ON uploads (expires_at)`,
    `CREATE TABLE upload_parts (
      id TEXT PRIMARY KEY,
      upload_id TEXT NOT NULL,
      bytes BIGINT NOT NULL,
      created_at BIGINT NOT NULL
    )`,
    `CREATE INDEX upload_parts_by_upload ON upload_parts (upload_id)`,
  ],
  [
    // Batches of requests. `ending`: the final status of a batch that is being finalized. `claim`: the process that
    // works on it, exclusively until `claimed_until`.
    `CREATE TABLE batches (
      id TEXT PRIMARY KEY,
      account_id TEXT NOT NULL,
      environment TEXT NOT NULL,
      key_id TEXT NOT NULL,
      app_id TEXT,
      person_id TEXT,
      made_by TEXT,
      form TEXT NOT NULL,
      endpoint TEXT NOT NULL,
      input_file_id TEXT NOT NULL,
      status TEXT NOT NULL,
      ending TEXT,
      created_at BIGINT NOT NULL,
      expires_at BIGINT NOT NULL,
      in_progress_at BIGINT,
      finalizing_at BIGINT,
      cancelling_at BIGINT,
      ended_at BIGINT,
      models TEXT NOT NULL,
      total BIGINT NOT NULL,
      completed BIGINT NOT NULL,
      failed BIGINT NOT NULL,
      prompt_tokens BIGINT NOT NULL,
      cached_tokens BIGINT NOT NULL,
      completion_tokens BIGINT NOT NULL,
      reasoning_tokens BIGINT NOT NULL,
      output_file_id TEXT,
      error_file_id TEXT,
      keep_seconds BIGINT,
      faults TEXT NOT NULL,
      metadata TEXT NOT NULL,
      claim TEXT,
      claimed_until BIGINT NOT NULL,
      has_lines INTEGER NOT NULL
    )`,
    `CREATE INDEX batches_by_owner ON batches (account_id, environment, created_at, id)`,
    `CREATE INDEX batches_open ON batches (created_at) WHERE ended_at IS NULL`,
    `CREATE INDEX batches_ended ON batches (ended_at) WHERE ended_at IS NOT NULL`,
    `CREATE INDEX batches_to_clear ON batches (id) WHERE ended_at IS NOT NULL AND has_lines = 1`,
    // A row for each request. `answer`: the sealed line of the output. `usage_record`: JSON of its charge, written with
    // the answer; `paid`: whether it is in the ledger.
    `CREATE TABLE batch_lines (
      batch_id TEXT NOT NULL,
      line BIGINT NOT NULL,
      custom_id TEXT NOT NULL,
      model TEXT NOT NULL,
      first_byte BIGINT NOT NULL,
      end_byte BIGINT NOT NULL,
      attempts BIGINT NOT NULL,
      due_at BIGINT NOT NULL,
      claim TEXT,
      claimed_until BIGINT NOT NULL,
      done_at BIGINT,
      answer TEXT,
      is_error INTEGER,
      usage_record TEXT,
      paid INTEGER NOT NULL,
      PRIMARY KEY (batch_id, line)
    )`,
    `CREATE INDEX batch_lines_waiting ON batch_lines (batch_id, line) WHERE done_at IS NULL`,
    `CREATE INDEX batch_lines_unpaid ON batch_lines (claimed_until) WHERE done_at IS NOT NULL AND paid = 0`,
    `CREATE INDEX batch_lines_claimed ON batch_lines (claim) WHERE claim IS NOT NULL AND paid = 0`,
  ],
  [
    // The highest priority of requests; null for a key: that of its account's tier.
    `ALTER TABLE api_keys ADD COLUMN priority TEXT`,
    `ALTER TABLE tiers ADD COLUMN priority TEXT NOT NULL DEFAULT 'normal'`,
  ],
  [
    // The response cache setting of a key: `on`, `off`, or null as each model is configured.
    `ALTER TABLE api_keys ADD COLUMN response_cache TEXT`,
  ],
  [
    // The cost of a model's overflow in each calendar span, including reservations of running requests.
    `CREATE TABLE overflow_spend (
      model TEXT NOT NULL,
      per TEXT NOT NULL,
      start BIGINT NOT NULL,
      nano_usd BIGINT NOT NULL,
      PRIMARY KEY (model, per, start)
    )`,
  ],
  [
    // People may use tools wherever they are members; their keys may not until the scope is added.
    `UPDATE api_keys SET scopes = scopes || ' tools:use' WHERE kind = 'membership' AND revoked = 0`,
    // Paths of the resources that tokens are for (RFC 8707), separated by blanks.
    `ALTER TABLE authorization_codes ADD COLUMN resources TEXT NOT NULL DEFAULT '/v1'`,
    `ALTER TABLE refresh_tokens ADD COLUMN resources TEXT NOT NULL DEFAULT '/v1'`,
    `ALTER TABLE device_codes ADD COLUMN resources TEXT NOT NULL DEFAULT '/v1'`,
    // OAuth clients that no account registered. A client without a metadata document registered itself.
    `CREATE TABLE outside_clients (
      id TEXT PRIMARY KEY,
      document_url TEXT,
      name TEXT NOT NULL,
      homepage_url TEXT,
      redirect_uris TEXT NOT NULL,
      created_at BIGINT NOT NULL,
      allowed_at BIGINT
    )`,
    `CREATE INDEX outside_clients_waiting ON outside_clients (created_at) WHERE allowed_at IS NULL`,
    `CREATE INDEX outside_clients_allowed ON outside_clients (allowed_at) WHERE allowed_at IS NOT NULL`,
  ],
  [
    // The definitions of MCP servers: JSON of the approved and of the current version.
    `CREATE TABLE tool_definitions (
      server TEXT NOT NULL,
      kind TEXT NOT NULL,
      name TEXT NOT NULL,
      state TEXT NOT NULL,
      approved_digest TEXT,
      approved TEXT,
      seen TEXT NOT NULL,
      seen_at BIGINT NOT NULL,
      decided_at BIGINT,
      decided_by TEXT,
      PRIMARY KEY (server, kind, name)
    )`,
  ],
  [
    // Sealed arguments and results of tool calls, if an operator has them stored.
    `CREATE TABLE tool_contents (
      request_id TEXT PRIMARY KEY,
      account_id TEXT NOT NULL,
      environment TEXT NOT NULL,
      app_id TEXT,
      person_id TEXT,
      expires_at BIGINT NOT NULL,
      content TEXT NOT NULL
    )`,
    `CREATE INDEX tool_contents_by_expiry ON tool_contents (expires_at)`,
  ],
  [
    // Tools that keys (also memberships and grants) and members may use: JSON list; null: all.
    `ALTER TABLE api_keys ADD COLUMN tools TEXT`,
    `ALTER TABLE memberships ADD COLUMN tools TEXT`,
  ],
  [
    // Accounts of people at MCP servers. `sealed`: the tokens and their client. `claim`: the process that renews them,
    // until `claimed_until`.
    `CREATE TABLE tool_connections (
      id TEXT PRIMARY KEY,
      server TEXT NOT NULL,
      account_id TEXT NOT NULL,
      person_id TEXT NOT NULL,
      membership_id TEXT NOT NULL,
      issuer TEXT NOT NULL,
      scopes TEXT NOT NULL,
      created_at BIGINT NOT NULL,
      last_used_at BIGINT,
      broken_because TEXT,
      url TEXT NOT NULL,
      sealed TEXT NOT NULL,
      expires_at BIGINT,
      renewed_at BIGINT NOT NULL,
      claim TEXT,
      claimed_until BIGINT NOT NULL DEFAULT 0
    )`,
    `CREATE UNIQUE INDEX tool_connections_by_person ON tool_connections (person_id, account_id, server)`,
    `CREATE INDEX tool_connections_by_membership ON tool_connections (membership_id)`,
    `CREATE INDEX tool_connections_by_server ON tool_connections (server, id)`,
    `CREATE TABLE tool_clients (
      server TEXT NOT NULL,
      issuer TEXT NOT NULL,
      sealed TEXT NOT NULL,
      created_at BIGINT NOT NULL,
      PRIMARY KEY (server, issuer)
    )`,
  ],
  [
    // Scopes that MCP servers asked for beyond the allowed ones.
    `ALTER TABLE tool_connections ADD COLUMN wanted_scopes TEXT NOT NULL DEFAULT ''`,
    // MCP servers that operators added. `sealed_credentials`: headers or a client, as JSON; null: none.
    `CREATE TABLE tool_servers (
      name TEXT PRIMARY KEY,
      place TEXT NOT NULL,
      credential_kind TEXT NOT NULL,
      sealed_credentials TEXT,
      settings TEXT NOT NULL,
      created_at BIGINT NOT NULL
    )`,
    // An index for counting waiting definitions every few seconds, because the table's rows have long texts.
    `CREATE INDEX tool_definitions_waiting ON tool_definitions (server) WHERE state IN ('pending', 'changed')`,
  ],
  [
    // Tools that accounts, apps and people's authorizations of apps may use: JSON list; null: all.
    `ALTER TABLE accounts ADD COLUMN tools TEXT`,
    `ALTER TABLE apps ADD COLUMN tools TEXT`,
    `ALTER TABLE authorization_codes ADD COLUMN tools TEXT`,
    `ALTER TABLE device_codes ADD COLUMN tools TEXT`,
  ],
  [
    // MCP servers that a node shares: JSON list.
    `ALTER TABLE nodes ADD COLUMN tool_servers TEXT NOT NULL DEFAULT '[]'`,
  ],
  [
    // Approved tool calls, so that none runs twice. `approval`: a digest.
    `CREATE TABLE approved_calls (
      approval TEXT PRIMARY KEY,
      call_id TEXT NOT NULL,
      response_id TEXT NOT NULL,
      expires_at BIGINT NOT NULL
    )`,
    `CREATE INDEX approved_calls_by_expiry ON approved_calls (expires_at)`,
  ],
  [
    // Digests of further approved and refused versions of a tool that its server describes differently to each person.
    `ALTER TABLE tool_definitions ADD COLUMN approved_others TEXT NOT NULL DEFAULT ''`,
    `ALTER TABLE tool_definitions ADD COLUMN refused TEXT NOT NULL DEFAULT ''`,
  ],
  [
    // The total size of a chat, for sums by account without reading content. `size`: characters of all JSON columns; 0
    // for chats older than the column.
    `ALTER TABLE stored_chats ADD COLUMN size BIGINT NOT NULL DEFAULT 0`,
    `CREATE INDEX stored_chats_by_size ON stored_chats (account_id, size)`,
    `CREATE INDEX stored_responses_by_size ON stored_responses (account_id, input_size, output_size)`,
    `CREATE INDEX conversation_items_by_size ON conversation_items (account_id, size)`,
  ],
  [
    // For sums of an account's files and open uploads, without reading their rows.
    `CREATE INDEX stored_files_by_size ON stored_files (account_id, state, bytes)`,
    `CREATE INDEX uploads_by_size ON uploads (account_id, status, expires_at, bytes)`,
  ],
  [
    // For a person's current grants, without reading ended grants, whose rows stay.
    `CREATE INDEX api_keys_live_grants ON api_keys (person_id, app_id, account_id) WHERE kind = 'grant' AND revoked = 0`,
  ],
  [
    // The body that a webhook gets.
    `ALTER TABLE webhooks ADD COLUMN format TEXT NOT NULL DEFAULT 'standard'`,
  ],
  [
    // The report of a replica on failing upstreams: JSON list; null: an older version.
    `ALTER TABLE replicas ADD COLUMN attempts TEXT`,
  ],
  [
    // Suspended people (since when, Unix seconds), keys and apps (`suspended_by`: 'member', 'account' or 'operator'). null:
    // not suspended.
    `ALTER TABLE people ADD COLUMN suspended_at BIGINT`,
    `ALTER TABLE api_keys ADD COLUMN suspended_by TEXT`,
    `ALTER TABLE apps ADD COLUMN suspended_by TEXT`,
    `ALTER TABLE outside_clients ADD COLUMN suspended_by TEXT`,
    `CREATE INDEX people_suspended ON people (id) WHERE suspended_at IS NOT NULL`,
    `CREATE INDEX api_keys_suspended ON api_keys (id) WHERE suspended_by IS NOT NULL AND revoked = 0`,
    `CREATE INDEX accounts_suspended ON accounts (id) WHERE status <> 'active'`,
  ],
  [
    // The requests of all accounts, for operators: those with an attempt log, and those that did not complete. Further
    // columns are compared before a row is read. The expression `at + 0` keeps PostgreSQL's planner, which weighs pages
    // and not rows, from `usage_records_by_time`.
    `CREATE INDEX CONCURRENTLY usage_records_tried ON usage_records ((at + 0), environment) WHERE trail IS NOT NULL`,
    `CREATE INDEX CONCURRENTLY usage_records_unfinished ON usage_records ((at + 0), environment, outcome, upstream, model)
      WHERE outcome <> 'completed'`,
    // Two indexes begin with an expression, so that no query of one account uses them.
    `CREATE INDEX usage_rollups_by_time ON usage_rollups ((span || environment), start, account_id)`,
    `CREATE INDEX refusals_by_time ON refusals ((environment || ''), start, account_id, key_id, app_id, model, reason)`,
  ],
  [
    // Quotas that a person sets when they allow an app: JSON list; null: those of earlier grants.
    `ALTER TABLE authorization_codes ADD COLUMN quotas TEXT`,
    `ALTER TABLE device_codes ADD COLUMN quotas TEXT`,
  ],
  [
    // Names of objects that operators keep in files. `managed_by`: the set of files; null: none.
    `CREATE TABLE declared_objects (
      kind TEXT NOT NULL,
      name TEXT NOT NULL,
      target_id TEXT NOT NULL,
      managed_by TEXT,
      changed_at BIGINT NOT NULL,
      PRIMARY KEY (kind, name)
    )`,
    `CREATE UNIQUE INDEX declared_objects_by_target ON declared_objects (kind, target_id)`,
  ],
  [
    // Requests with an idempotency key. `request`: a digest; `answer`: sealed, null until the request has succeeded.
    `CREATE TABLE idempotent_requests (
      owner TEXT NOT NULL,
      idempotency_key TEXT NOT NULL,
      request TEXT NOT NULL,
      created_at BIGINT NOT NULL,
      answer TEXT,
      PRIMARY KEY (owner, idempotency_key)
    )`,
    `CREATE INDEX idempotent_requests_by_age ON idempotent_requests (created_at)`,
  ],
  [
    // Schedules of key rotations. `subject`: the limit id of a key, or an account's id.
    `CREATE TABLE key_rotations (
      subject TEXT PRIMARY KEY,
      every_days BIGINT NOT NULL,
      overlap_seconds BIGINT NOT NULL
    )`,
    // Keys that end at `ends_at` because of their schedule, and whose successor was not fetched.
    `CREATE TABLE due_rotations (
      key_id TEXT PRIMARY KEY,
      ends_at BIGINT NOT NULL
    )`,
  ],
  [
    // For suspended apps and clients, which are read twice a second, without reading all others.
    `CREATE INDEX apps_suspended ON apps (id) WHERE suspended_by IS NOT NULL`,
    `CREATE INDEX outside_clients_suspended ON outside_clients (id) WHERE suspended_by IS NOT NULL`,
  ],
  [
    // For the grant of an app that ended last, because its spending cap holds for the next grant.
    `CREATE INDEX api_keys_ended_grants ON api_keys (person_id, app_id, account_id, environment, revoked_at, id)
      WHERE kind = 'grant' AND revoked = 1`,
  ],
  [
    // Requests for more of a quota. `quota`, `decision`: JSON; `limit_key`: equal for requests about the same quota.
    `CREATE TABLE limit_requests (
      id TEXT PRIMARY KEY,
      account_id TEXT NOT NULL,
      environment TEXT NOT NULL,
      owner TEXT NOT NULL,
      owner_id TEXT NOT NULL,
      membership_id TEXT NOT NULL,
      person_id TEXT NOT NULL,
      quota TEXT NOT NULL,
      limit_key TEXT NOT NULL,
      amount DOUBLE PRECISION,
      reason TEXT NOT NULL,
      status TEXT NOT NULL,
      created_at BIGINT NOT NULL,
      decision TEXT
    )`,
    `CREATE UNIQUE INDEX limit_requests_open ON limit_requests (account_id, person_id, environment, owner_id, limit_key)
      WHERE status = 'open'`,
    `CREATE INDEX limit_requests_of_account ON limit_requests (account_id, status, id)`,
    // Raised limits of the account and its members: JSON list; null: none.
    `ALTER TABLE accounts ADD COLUMN raises TEXT`,
  ],
  [
    // Sums over whole accounts (`kind` model), and over all accounts with `account_id` '' (all, account, model, upstream,
    // deployment, outcome). `name`: the account, model server or outcome. The last columns count answers by their time.
    `CREATE TABLE usage_totals (
      account_id TEXT NOT NULL,
      environment TEXT NOT NULL,
      span TEXT NOT NULL,
      kind TEXT NOT NULL,
      start BIGINT NOT NULL,
      name TEXT NOT NULL,
      model TEXT NOT NULL,
      requests BIGINT NOT NULL,
      prompt_tokens BIGINT NOT NULL,
      completion_tokens BIGINT NOT NULL,
      nano_usd BIGINT NOT NULL,
      errors BIGINT NOT NULL,
      timed BIGINT NOT NULL,
      first_token_ms BIGINT NOT NULL,
      generated_tokens BIGINT NOT NULL,
      generation_ms BIGINT NOT NULL,
      cached_tokens BIGINT NOT NULL,
      cache_write_tokens BIGINT NOT NULL,
      reasoning_tokens BIGINT NOT NULL,
      unpriced BIGINT NOT NULL,
      ${["first", "total"].flatMap((of) => Array.from({ length: 19 }, (_, i) => `${of}_${i} BIGINT NOT NULL,`)).join(" ")}
      PRIMARY KEY (account_id, environment, span, kind, start, name, model)
    ) WITHOUT ROWID`,
    // The requests of all accounts for one model, and at one model server.
    `CREATE INDEX CONCURRENTLY usage_records_by_model ON usage_records (model, environment, (at + 0))`,
    `CREATE INDEX CONCURRENTLY usage_records_by_server ON usage_records (upstream, environment, (at + 0)) WHERE upstream IS NOT NULL`,
    `CREATE INDEX CONCURRENTLY usage_records_by_deployment ON usage_records (upstream, model, environment, (at + 0))
      WHERE upstream IS NOT NULL`,
  ],
  [
    // Groups of accounts with limits for all of them together. An amount that is null is no limit.
    `CREATE TABLE organizations (
      id TEXT PRIMARY KEY,
      name TEXT NOT NULL,
      monthly_tokens BIGINT,
      monthly_spend DOUBLE PRECISION,
      quotas TEXT NOT NULL,
      created_at BIGINT NOT NULL
    )`,
    `ALTER TABLE accounts ADD COLUMN organization_id TEXT`,
    `CREATE INDEX accounts_by_organization ON accounts (organization_id, id) WHERE organization_id IS NOT NULL`,
  ],
  [
    // The budgets of the users whom an account's requests name: JSON; null: none.
    `ALTER TABLE accounts ADD COLUMN end_users TEXT`,
  ],
  [
    // The receivers of exported audit events and requests. `sent_seq`: the receiver has all records up to this sequence
    // number. `batch_end`: the last record of the batch that is being sent; null: none. `max_audit_lag`:
    // seconds of failures after which changes are refused; null: never.
    `CREATE TABLE export_sinks (
      name TEXT PRIMARY KEY,
      audit INTEGER NOT NULL,
      requests INTEGER NOT NULL,
      sent_seq BIGINT NOT NULL,
      batch_end BIGINT,
      sent_at BIGINT,
      seen_at BIGINT NOT NULL,
      failing_since BIGINT,
      error TEXT,
      max_audit_lag BIGINT
    )`,
    // Records that a receiver lacks. `seq`: their number in the order of the export; null until a process assigns it.
    `CREATE TABLE export_queue (
      record_id TEXT PRIMARY KEY,
      kind TEXT NOT NULL,
      queued_at BIGINT NOT NULL,
      seq BIGINT
    ) WITHOUT ROWID`,
    `CREATE UNIQUE INDEX export_queue_by_seq ON export_queue (seq) WHERE seq IS NOT NULL`,
    `CREATE INDEX export_queue_unnumbered ON export_queue (record_id) WHERE seq IS NULL`,
    // A table of at most one row: the last sequence number, and the process that exports until the end of its lease.
    `CREATE TABLE export_lease (
      id INTEGER PRIMARY KEY,
      seq BIGINT NOT NULL,
      holder TEXT,
      held_until BIGINT NOT NULL
    )`,
  ],
  [
    // Incremented whenever an account joins or leaves the organization, so that servers read its usage again.
    `ALTER TABLE organizations ADD COLUMN members_revision BIGINT NOT NULL DEFAULT 0`,
  ],
];
