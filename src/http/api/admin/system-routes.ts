// How the server does, for its operators.
import { z } from "zod";
import { unixSeconds } from "../../../wire/parts.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import type { EndpointDeps } from "../endpoint.ts";
import { checkState } from "../service-routes.ts";
import { adminEndpoints } from "./admin-endpoint.ts";

export interface AdminSystemDeps extends EndpointDeps {
  systemHealth(): Promise<z.infer<typeof systemShape>>;
}

const bytes = z.int().min(0);
const milliseconds = z.number().min(0);

const systemShape = z
  .object({
    object: z.literal("system"),
    version: z.string(),
    mode: z.enum(["development", "production"]),
    started_at: unixSeconds,
    configuration: z.object({
      file: z.string().nullable().describe("Read at the start; null: there was none."),
      last_reload: z
        .object({
          at: unixSeconds,
          result: z.enum(["ok", "refused"]).describe("`refused`: the configuration from before goes on."),
          error: z.string().nullable().describe("What is wrong with the file."),
          needs_restart: z.array(z.string()).describe("Keys that changed and hold after a restart."),
        })
        .nullable()
        .describe("null: it has not changed since the start."),
    }),
    memory: z.object({ rss_bytes: bytes.describe("Resident memory of the gateway's process.") }),
    event_loop: z
      .object({ mean_delay_ms: milliseconds, max_delay_ms: milliseconds })
      .describe("How late timers were in the last minute: for so long, nothing could be answered."),
    database: z.object({
      kind: z.enum(["sqlite", "postgres"]),
      size_bytes: bytes.nullable().describe("null where it cannot be asked."),
      wal_bytes: bytes.nullable().describe("The size of SQLite's write-ahead log."),
      state: checkState,
    }),
    redis: z
      .object({ state: checkState })
      .nullable()
      .describe("Where limits are counted for all replicas; null: in memory."),
    replicas: z
      .array(
        z.object({
          id: z.string(),
          advertise_url: z.string().nullable().describe("Where other replicas reach it."),
          version: z.string(),
          started_at: unixSeconds,
          seen_at: unixSeconds,
          current: z.boolean().describe("Whether it is the one that answers."),
        }),
      )
      .describe("The processes that share the database, oldest first. Times are by the database's clock."),
    spool: z
      .object({
        bytes: bytes.describe("The size of its files."),
        pending: z.int().describe("Ended requests whose usage is not in the database yet."),
      })
      .describe("Where the ledger keeps what the database does not have yet."),
    requests: z.object({
      open: z.int().describe("Requests for models that were admitted and have not ended."),
      waiting: z.int().describe("Those of them that wait for a place at a model server."),
    }),
    credentials: z
      .object({ cached: z.int(), unconfirmed_ms: milliseconds })
      .describe("How many are in memory, and the time since the database last said that they hold."),
    secret: z
      .object({
        accepted: z.int().describe("Secrets that are accepted: more than one while one is replaced."),
        keys_under_old: z.int().describe("Keys that have not been used since the secret was replaced."),
        keys_under_dropped: z.int().describe("Keys that are refused, as their secret is no longer accepted."),
        app_secrets_under_old: z.int(),
        app_secrets_under_dropped: z.int(),
        sealed_under_old: z.int().describe("Signing keys and keys of upstreams; a start seals them anew."),
        join_tokens_under_old: z.int(),
      })
      .nullable()
      .describe(
        "How far the installation's secret is replaced, at most a minute ago; null where it cannot be counted.",
      ),
    checks: z.record(z.string(), checkState).describe("The checks of `GET /readyz`."),
  })
  .meta({ id: "System" });

export type SystemFigures = z.infer<typeof systemShape>;

const endpoint = adminEndpoints<AdminSystemDeps>();

export function adminSystemRoutes(deps: AdminSystemDeps): ScopedRoute[] {
  return [system(deps)];
}

const system = endpoint("GET", "/v1/admin/system", {
  operationId: "getSystem",
  summary: "How the server does",
  description: "It answers while the database fails, too, as long as the credential is known.",
  response: { description: "The figures of this moment.", json: systemShape },
  answer: ({ deps }) => deps.systemHealth(),
});
