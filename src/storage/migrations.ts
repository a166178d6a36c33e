// The schema, as a list of steps that are applied once each and never edited after a release.

export const migrations: readonly (readonly string[])[] = [
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
];
