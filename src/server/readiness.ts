// The readiness of this process, for monitors and load balancers, with bounded checks.
import type { CheckState, Readiness } from "../http/api/service-routes.ts";
import type { Catalog } from "../inference/models/catalog.ts";
import type { SpoolLedger } from "../ledger/ledger.ts";
import type { Authenticator } from "../policy/credentials/authenticate.ts";
import { withDeadline } from "../policy/deadline.ts";
import type { Replicas } from "../policy/records/replicas.ts";
import type { InstallationWatch } from "./installation-watch.ts";
import type { MemoryWatch } from "./memory-watch.ts";

export interface ReadinessOptions {
  authenticator: Pick<Authenticator, "checkStore" | "storeStatus">;
  catalog: Pick<Catalog, "complete">;
  ledger: Pick<SpoolLedger, "checkDisk" | "isWritable" | "isSpoolKept">;
  installation: Pick<InstallationWatch, "checkNow" | "secret" | "clock">;
  memory: Pick<MemoryWatch, "isFullForLong">;
  /** Returns the client connections, once the server listens. */
  connections(): { open: number; limit: number };
  /** Undefined if the database is not shared. */
  replicas: Pick<Replicas, "isUncoordinated"> | undefined;
  /** Retries a failed sync of the database's disk. Rejects if it fails again. */
  resync(): Promise<void>;
  /** Returns the state of database writes: `lost` if the database, or its file, was moved, emptied or replaced. */
  writes(): "ok" | "refused" | "lost";
  /** Returns the states of the secrets that the configuration refers to. */
  secrets(): readonly { failure: string | undefined }[];
  /** Returns whether limits are counted in Redis now. Undefined without Redis. */
  redis: (() => "ok" | "failed") | undefined;
  isDraining(): boolean;
}

/** Milliseconds for a check. After this time, the check's last result counts. */
const patienceMs = 1_000;

export async function readinessOf(options: ReadinessOptions): Promise<Readiness> {
  const { authenticator, ledger, installation } = options;
  const checks = Promise.allSettled([ledger.checkDisk(), installation.checkNow(), options.resync()]);
  // A check that exceeds the time limit keeps its last result.
  await Promise.all([authenticator.checkStore(), withDeadline(checks, patienceMs).catch(() => {})]);
  return readinessNow(options);
}

/** Returns the readiness from known results, without new checks. */
export function readinessNow(options: ReadinessOptions): Readiness {
  const { authenticator, catalog, ledger, installation, memory, replicas, redis } = options;
  const database = authenticator.storeStatus;
  const { open, limit } = options.connections();
  // Checks whose failure affects nearly every request here, while another replica may work.
  const needed: Record<string, CheckState> = {
    spool: ledger.isWritable ? "ok" : "failed",
    secret: installation.secret,
    connections: open < limit ? "ok" : "failed",
    memory: memory.isFullForLong ? "failed" : "ok",
    models: catalog.complete ? "ok" : "starting",
    server: options.isDraining() ? "draining" : "ok",
  };
  const writes = options.writes();
  const counters = redis?.();
  const secrets = options.secrets();
  const checks: Record<string, CheckState> = {
    database: database === "ok" && writes === "ok" ? "ok" : "failed",
    ...(counters === undefined ? {} : { redis: counters }),
    ...(replicas === undefined ? {} : { replicas: replicas.isUncoordinated ? "degraded" : "ok" }),
    ...(secrets.length === 0
      ? {}
      : { external_secrets: secrets.every(({ failure }) => failure === undefined) ? "ok" : "degraded" }),
    clock: installation.clock,
    ...needed,
    ...(ledger.isWritable && !ledger.isSpoolKept ? { spool: "degraded" } : {}),
  };
  // Without its database a server still serves cached keys for some minutes, because other replicas are probably
  // affected too.
  const isReady = database !== "gone" && writes !== "lost" && isWhole(needed);
  return { status: isReady ? (isWhole(checks) ? "ready" : "degraded") : "not_ready", checks };
}

function isWhole(checks: Readonly<Record<string, CheckState>>): boolean {
  return Object.values(checks).every((state) => state === "ok");
}
