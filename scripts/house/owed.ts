// What the house does not keep to yet, and by how much: each line may only go down, or away.

/** Folders with more than their files, and with how many. */
export const crowded: Readonly<Record<string, number>> = {};

/** Files that read the time themselves. */
export const readTime: readonly string[] = [
  "src/base/bytes/bulk-input.ts",
  "src/engines/llama/engine-install.ts",
  "src/engines/llama/llama-engine.ts",
  "src/engines/llama/pull-model.ts",
  "src/engines/llama/worker-process.ts",
  "src/http1/client/client-connection.ts",
  "src/http1/server/connection.ts",
  "src/http1/server/server.ts",
  "src/http1/server/upgraded-connection.ts",
  "src/inference/answer/relay.ts",
  "src/ledger/spool-facts.ts",
  "src/ledger/usage/sqlite-rollups.ts",
  "src/logging/logging.ts",
  "src/nodes/node-link.ts",
  "src/nodes/tunnel/gateway-handshake.ts",
  "src/nodes/tunnel/gateway-stream.ts",
  "src/nodes/tunnel/gateway-tunnel.ts",
  "src/nodes/tunnel/incoming-answer.ts",
  "src/nodes/tunnel/node-tunnel.ts",
  "src/nodes/tunnel/tunnel-connection.ts",
  "src/server/event-loop-delay.ts",
  "src/storage/redis/redis-connection.ts",
  "src/storage/sql/checkpointer.ts",
  "src/storage/sql/database-clock.ts",
  "src/storage/sql/database.ts",
  "src/storage/sql/open-postgres.ts",
  "src/storage/sql/postgres-pool.ts",
  "src/storage/sql/schema.ts",
  "src/tracing/export.ts",
  "src/tracing/request-trace.ts",
  "src/tracing/tracer.ts",
  "src/upkeep/upgrade.ts",
];

/** Cycles of imports, types included. */
export const cycles = 0;
