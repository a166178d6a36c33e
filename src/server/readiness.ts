// Whether this process takes requests, and what it does without: asked by monitors and load balancers, so never slow.
import type { CheckState, Readiness } from "../http/api/service-routes.ts";
import type { Catalog } from "../inference/models/catalog.ts";
import type { SpoolLedger } from "../ledger/ledger.ts";
import type { Authenticator } from "../policy/credentials/authenticate.ts";
import { withDeadline } from "../policy/deadline.ts";
import type { Replicas } from "../policy/records/replicas.ts";
import type { InstallationWatch } from "./installation-watch.ts";
import type { MemoryWatch } from "./memory-watch.ts";

export interface ReadinessOptions {
  authenticator: Pick<Authenticator, "reach" | "standing">;
  catalog: Pick<Catalog, "complete">;
  ledger: Pick<SpoolLedger, "reach" | "isWritable" | "isSpoolKept">;
  installation: Pick<InstallationWatch, "reach" | "secret" | "clock">;
  memory: Pick<MemoryWatch, "isFullForLong">;
  /** Connections of clients, once it listens. */
  connections(): { open: number; limit: number };
  /** Undefined where the database is not shared. */
  replicas: Pick<Replicas, "isUncoordinated"> | undefined;
  /** Asks the disk of the database again, where it did not keep what was written last. Rejects where it still does not. */
  resync(): Promise<void>;
  /** The state of writes to the database: `lost` if it, or its file, was moved, emptied or replaced. */
  writes(): "ok" | "refused" | "lost";
  /** Whether limits are counted in Redis now; undefined where there is none. */
  redis: (() => "ok" | "failed") | undefined;
  isDraining(): boolean;
}

/** A disk or a database that takes longer is judged by what was seen of it last. */
const patienceMs = 1_000;

export async function readinessOf(options: ReadinessOptions): Promise<Readiness> {
  const { authenticator, ledger, installation } = options;
  const looks = Promise.allSettled([ledger.reach(), installation.reach(), options.resync()]);
  // A check that was late keeps its last result.
  await Promise.all([authenticator.reach(), withDeadline(looks, patienceMs).catch(() => {})]);
  return readinessNow(options);
}

/** The readiness as far as it is known without asking anybody: it is looked at all the time. */
export function readinessNow(options: ReadinessOptions): Readiness {
  const { authenticator, catalog, ledger, installation, memory, replicas, redis } = options;
  const database = authenticator.standing;
  const { open, limit } = options.connections();
  // Parts whose failure refuses every request, or nearly every one, while another replica may well answer them.
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
  const checks: Record<string, CheckState> = {
    database: database === "ok" && writes === "ok" ? "ok" : "failed",
    ...(counters === undefined ? {} : { redis: counters }),
    ...(replicas === undefined ? {} : { replicas: replicas.isUncoordinated ? "degraded" : "ok" }),
    clock: installation.clock,
    ...needed,
    ...(ledger.isWritable && !ledger.isSpoolKept ? { spool: "degraded" } : {}),
  };
  // A server without its database serves whom it knows, for some minutes: others that are better off may not be there.
  const isReady = database !== "gone" && writes !== "lost" && isWhole(needed);
  return { status: isReady ? (isWhole(checks) ? "ready" : "degraded") : "not_ready", checks };
}

function isWhole(checks: Readonly<Record<string, CheckState>>): boolean {
  return Object.values(checks).every((state) => state === "ok");
}
