// Lists all checks of an installation, in the order of the report.
import { redisFacts } from "../storage/redis/redis-facts.ts";
import { attemptChecks } from "./attempts.ts";
import { backupChecks } from "./backups.ts";
import { clockChecks } from "./clocks.ts";
import { configurationChecks } from "./configuration.ts";
import { counterChecks } from "./counters.ts";
import { dataDirectoryChecks } from "./data-directory.ts";
import { databaseChecks } from "./database.ts";
import { diskChecks } from "./disk.ts";
import { engineChecks } from "./engine.ts";
import { type ExamineOptions, examine, once } from "./examine.ts";
import type { Group, GroupReport } from "./finding.ts";
import { processChecks } from "./process-checks.ts";
import { publicUrlChecks } from "./public-url.ts";
import { withoutSecrets } from "./redaction.ts";
import { serverChecks } from "./server.ts";
import { exportChecks, serviceChecks } from "./services.ts";
import { spoolChecks } from "./spool.ts";
import type { Subject } from "./subject.ts";
import { storedProbes, upstreamChecks, upstreamProbes } from "./upstreams.ts";

const redisMs = 4_000;

/** Runs all checks. No text of the result contains known secrets. */
export function diagnose(subject: Subject, options: ExamineOptions): Promise<GroupReport[]> {
  return examine(groupsFor(subject), { clean: withoutSecrets(subject.secrets), ...options });
}

function groupsFor(subject: Subject): Group[] {
  const { redisUrl } = subject;
  const redis = once(() =>
    redisUrl === undefined ? Promise.reject(new Error("there is none")) : redisFacts(redisUrl, redisMs),
  );
  const upstreams = upstreamProbes(subject);
  const stored = once(() => storedProbes(subject));
  return [
    { title: "Configuration", checks: configurationChecks(subject) },
    { title: "Server", checks: [...serverChecks(subject), ...publicUrlChecks(subject)] },
    { title: "Process", checks: processChecks(subject) },
    {
      title: "Data directory",
      checks: [...dataDirectoryChecks(subject), ...diskChecks(subject), ...spoolChecks(subject)],
    },
    {
      title: "Records",
      checks: [...databaseChecks(subject), ...backupChecks(subject), ...counterChecks(redisUrl, redis)],
    },
    { title: "Clocks", checks: clockChecks(subject, redis, upstreams) },
    { title: "Model servers", checks: [...upstreamChecks(subject, upstreams, stored), ...attemptChecks(subject)] },
    { title: "Built-in engine", checks: engineChecks(subject) },
    { title: "Services", checks: [...serviceChecks(subject), ...exportChecks(subject)] },
  ];
}
