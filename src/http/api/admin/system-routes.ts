// The operators' endpoints for the state and configuration of the server, and for draining replicas.
import { z } from "zod";
import { GatewayError } from "../../../base/errors.ts";
import { shown } from "../../../base/text/shown.ts";
import type { Upstreams } from "../../../inference/models/manage-upstreams.ts";
import { unixSeconds } from "../../../wire/parts.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import type { EndpointDeps } from "../endpoint.ts";
import { checkState } from "../service-routes.ts";
import { adminEndpoints } from "./admin-endpoint.ts";

export interface AdminSystemDeps extends EndpointDeps {
  systemHealth(): Promise<z.infer<typeof systemShape>>;
  upstreams: Pick<Upstreams, "drainReplica">;
  configInEffect(): Promise<Omit<z.infer<typeof configurationShape>, "object" | "file" | "last_reload">>;
}

const bytes = z.int().min(0);
const milliseconds = z.number().min(0);

const configurationState = {
  file: z.string().nullable().describe("Path of the file that was read at the start. null: no file."),
  last_reload: z
    .object({
      at: unixSeconds,
      result: z.enum(["ok", "refused"]).describe("`refused`: the previous configuration stays active."),
      error: z.string().nullable().describe("Errors in the file."),
      needs_restart: z.array(z.string()).describe("Changed keys that take effect after a restart."),
    })
    .nullable()
    .describe("null: no change since the start."),
};

const configurationShape = z
  .object({
    object: z.literal("configuration"),
    ...configurationState,
    settings: z
      .array(
        z.object({
          name: z.string().describe("Key in the file, or the name of the variable or flag."),
          value: z.unknown().describe("null: none."),
          source: z
            .string()
            .describe("The flag, the variable, or the file and line of the value; otherwise `default`."),
        }),
      )
      .describe("Settings that a flag, a variable or the file may have."),
    sections: z.record(z.string(), z.unknown()).describe("The sections of the file in effect, with their defaults."),
    sections_in_file: z.array(z.string()).describe("Names of the sections that the file has."),
    differences: z
      .array(
        z.object({
          path: z.string(),
          in_effect: z.unknown(),
          in_file: z.unknown(),
          needs_restart: z.boolean().describe("True if the change takes effect after a restart."),
        }),
      )
      .describe("Values that the file on the server's disk has, and that are not in effect."),
    problems: z.array(z.string()).describe("Errors in the file on the server's disk."),
  })
  .meta({ id: "Configuration" });

const replicaShape = z
  .object({
    object: z.literal("replica"),
    id: z.string(),
    advertise_url: z.string().nullable().describe("URL at which other replicas reach the process."),
    version: z.string(),
    started_at: unixSeconds,
    seen_at: unixSeconds,
    current: z.boolean().describe("True if this process answers the request."),
    draining: z
      .boolean()
      .describe(
        "True if the replica reports that it is not ready, so that load balancers send it nothing new. It still answers requests.",
      ),
  })
  .meta({ id: "Replica" });

const systemShape = z
  .object({
    object: z.literal("system"),
    version: z.string(),
    mode: z.enum(["development", "production"]),
    started_at: unixSeconds,
    configuration: z.object(configurationState),
    external_secrets: z
      .array(
        z.object({
          name: z.string().describe("The reference in the configuration: `file:PATH` or `vault:PATH#FIELD`."),
          age_seconds: z.int().min(0).describe("Seconds since the value in use was last confirmed."),
          failure: z
            .string()
            .nullable()
            .describe("The reason why the secret cannot be read. Its last value stays in use."),
        }),
      )
      .describe("Secrets in files and in Vault that the configuration refers to, without their values."),
    exports: z
      .array(
        z.object({
          receiver: z.string().describe("`otlp`: the collector. `s3`: the object store."),
          records: z.boolean().describe("True for audit events and requests, false for metrics of this process."),
          waiting: z.int().min(0).describe("Number of records that the receiver lacks."),
          lag_seconds: z.int().min(0).describe("Seconds for which the oldest of them has waited."),
          last_sent_at: unixSeconds.nullable().describe("Time of the last accepted message. null: none yet."),
          failing_since: unixSeconds
            .nullable()
            .describe("Time of the first failure since the last success. null: no failure."),
          failure: z.string().nullable().describe("The reason why the last attempt failed."),
        }),
      )
      .describe("State of the receivers of audit events, requests and metrics, a few seconds old."),
    memory: z.object({ rss_bytes: bytes.describe("Resident memory of the gateway's process.") }),
    event_loop: z
      .object({ mean_delay_ms: milliseconds, max_delay_ms: milliseconds })
      .describe("Event-loop delay in the last minute: no request could be answered for this long."),
    database: z.object({
      kind: z.enum(["sqlite", "postgres"]),
      size_bytes: bytes.nullable().describe("null if it cannot be read."),
      wal_bytes: bytes.nullable().describe("Size of SQLite's write-ahead log."),
      state: checkState,
    }),
    redis: z
      .object({ state: checkState })
      .nullable()
      .describe("Store in which limits are counted for all replicas. null: in memory."),
    replicas: z
      .array(replicaShape)
      .describe("Processes that share the database, oldest first. Times are from the database's clock."),
    spool: z
      .object({
        bytes: bytes.describe("Size of the ledger's files."),
        pending: z.int().describe("Number of ended requests whose usage is not in the database yet."),
      })
      .describe("Files of the ledger, with records that are not in the database yet."),
    requests: z.object({
      open: z.int().describe("Number of admitted requests for models that have not ended."),
      waiting: z.int().describe("Number of these requests that wait for a free slot at a model server."),
    }),
    credentials: z
      .object({ cached: z.int(), unconfirmed_ms: milliseconds })
      .describe("Number of credentials in memory, and time since the database last confirmed them."),
    secret: z
      .object({
        accepted: z.int().describe("Number of accepted secrets: more than one during a rotation."),
        keys_under_old: z.int().describe("Number of keys that have not been used since the secret was replaced."),
        keys_under_dropped: z
          .int()
          .describe("Number of keys that are refused because their secret is no longer accepted."),
        app_secrets_under_old: z.int(),
        app_secrets_under_dropped: z.int(),
        sealed_under_old: z
          .int()
          .describe("Number of signing keys and upstream keys. A start encrypts them with the new secret."),
        join_tokens_under_old: z.int(),
      })
      .nullable()
      .describe(
        "Progress of the rotation of the installation's secret, at most a minute old. null if it cannot be counted.",
      ),
    checks: z.record(z.string(), checkState).describe("Checks of `GET /readyz`."),
  })
  .meta({ id: "System" });

export type SystemFigures = z.infer<typeof systemShape>;

const endpoint = adminEndpoints<AdminSystemDeps>();

export function adminSystemRoutes(deps: AdminSystemDeps): ScopedRoute[] {
  return [system(deps), configuration(deps), updateReplica(deps)];
}

const system = endpoint("GET", "/v1/admin/system", {
  operationId: "getSystem",
  summary: "Retrieve the state of the server",
  description: "Works even while the database fails, as long as the credential is in memory.",
  response: { description: "Current figures.", json: systemShape },
  answer: ({ deps }) => deps.systemHealth(),
});

const configuration = endpoint("GET", "/v1/admin/configuration", {
  operationId: "getConfiguration",
  summary: "Retrieve the configuration in effect",
  description:
    "Secrets are redacted, and a value that comes from a variable is shown as the name of the variable. Each replica has its own configuration: this is the one of the process that answers.",
  response: { description: "The configuration.", json: configurationShape },
  async answer({ deps }) {
    const [{ configuration: state }, inEffect] = await Promise.all([deps.systemHealth(), deps.configInEffect()]);
    return { object: "configuration", ...state, ...inEffect };
  },
});

const updateReplica = endpoint("PATCH", "/v1/admin/replicas/:id", {
  operationId: "updateReplica",
  summary: "Drain a replica, or end that",
  description:
    "A drained replica reports at `GET /readyz` that it is not ready, so that load balancers send it nothing new. It still answers the requests that reach it. The change applies at the replica within two seconds, and ends when the replica stops.",
  parameters: [{ name: "id", in: "path", description: "Id of the replica, `rep_…`." }],
  requestBody: z.object({ draining: z.boolean() }).meta({ id: "UpdateReplicaRequest" }),
  example: { draining: true },
  response: { description: "The replica.", json: replicaShape },
  async answer({ deps, principal, id, body: { draining }, origin }) {
    const { replicas } = await deps.systemHealth();
    const replica = replicas.find((one) => one.id === id);
    if (!replica) {
      throw new GatewayError("not_found", `There is no replica ${shown(id)}. GET /v1/admin/system lists the replicas.`);
    }
    await deps.upstreams.drainReplica(principal, id, draining, origin);
    return { ...replica, draining };
  },
});
