// Composes batches: records, workers, and the deletion of old ones.
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { BatchRunner, type BatchTimes } from "../../batches/batch-runner.ts";
import type { Config, ReloadableConfig } from "../../config/config.ts";
import type { InferenceDeps } from "../../inference/call.ts";
import type { OpenRequests } from "../../policy/open-requests.ts";
import type { Database } from "../../storage/sql/database.ts";
import { SqlBatchStore } from "../../storage/tables/batches/batch-store.ts";
import { SqlBatchWork } from "../../storage/tables/batches/batch-work.ts";
import { ExpirySweep } from "../../storage/tables/expiry-sweep.ts";
import type { Governance } from "../governance.ts";
import type { Opened } from "../opened.ts";
import type { Files } from "./files.ts";

export interface BatchesOptions {
  db: Database;
  config: Config;
  /** Returns the current configuration. */
  current(): ReloadableConfig;
  governance: Governance;
  files: Files;
  openRequests: OpenRequests;
  inference: InferenceDeps;
  clock: Clock;
  log: Log;
  times: BatchTimes | undefined;
  opened: Opened;
}

export interface Batches {
  batches: SqlBatchStore;
  batchRunner: BatchRunner;
  openBatches(): number;
  mostRequests(): number;
}

const secondsPerDay = 86_400;

export function openBatches(options: BatchesOptions): Batches {
  const { db, config, current, governance, files, clock, log, opened } = options;
  const { ledger, authenticator, deletionClock, contentSeal } = governance;
  const batches = new SqlBatchStore(db);
  const batchRunner = opened.add(
    new BatchRunner({
      work: new SqlBatchWork(db, contentSeal),
      ...{ storedFiles: files.storedFiles, objects: files.objects, authenticator },
      ...{ openRequests: options.openRequests, inference: options.inference },
      charge: (begin, end) => ledger.record(begin, end),
      flush: () => ledger.flush(),
      settings: () => current().batches,
      requestLimits: () => current().limits,
      isAlone: config.databaseUrl === undefined,
      ...{ clock, log, times: options.times },
    }),
  );
  // Ended batches are kept for as long as files.
  const keptSeconds = config.files.retentionDays * secondsPerDay;
  const store = {
    deleteExpired: (now: number, limit: number) => batches.deleteEnded(now - keptSeconds, limit),
  };
  opened.add(new ExpirySweep({ what: "batch", store, deletionClock, log }));
  return {
    ...{ batches, batchRunner },
    openBatches: () => current().batches.openBatches,
    mostRequests: () => current().batches.maxRequests,
  };
}
