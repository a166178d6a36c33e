// `headrace status`: shows the state of a server, and the rights of this key.
import { z } from "zod";
import { type FoundKey, isOwnKey, listKeys } from "../keys/key-records.ts";
import { ApiError, parseJson, requestJson, requestWholeList, send, understood } from "../login/api-request.ts";
import type { Connection } from "../login/connection.ts";
import { serverCommand } from "../login/server-command.ts";
import { readModels } from "../models/models.ts";
import { CliError, printable } from "../terminal/terminal.ts";
import { limitsShape } from "../usage/limits.ts";
import { modelQueues, queuesOf } from "./queues.ts";
import { account, printStatus, type StatusReport } from "./status-view.ts";

export const statusCommand = serverCommand({
  name: "status",
  summary: "show whether the server is ready, and what this key may do",
  description: "Show whether the server is ready, and the account, limits and quota of this key.",
  options: { json: ["--json", "print one JSON object"] },
  examples: ["headrace status", "headrace status --json", `headrace status > /dev/null || echo "not ready"`],
  help: [
    `Exit code 1 when the server is not ready, cannot be reached or refuses the key.
What the key has no scope for is left out and named.`,
  ],
  async run({ ask, context, terminal }) {
    const report = await ask(readStatus);
    return {
      json: asJson(report),
      show: () => printStatus(terminal, report, context.nowMs()),
      failure: failureOf(report),
    };
  },
});

function failureOf({ unreachable, ready, checks, keyRefused }: StatusReport): string | undefined {
  if (unreachable !== undefined || ready) return unreachable ?? keyRefused;
  const failing = Object.entries(checks).filter(([, state]) => state !== "ok");
  const which = failing.map(([name, state]) => `${printable(name)} is ${printable(state)}`).join(", ");
  return `The server is not ready${which ? `: ${which}` : ""}. Its log says why.`;
}

const readiness = z.object({ status: z.string(), checks: z.record(z.string(), z.string()).catch({}) });
const description = z.object({ info: z.object({ version: z.string() }) });

async function readStatus(connection: Connection, signal: AbortSignal): Promise<StatusReport> {
  const { baseUrl } = connection;
  const blank: StatusReport = {
    baseUrl,
    apiKey: connection.apiKey,
    keySource: connection.keySource,
    ready: false,
    checks: {},
    missing: [],
  };
  // Some pages are public: their paths are outside of /v1 and they need no key.
  const root = { baseUrl: baseUrl.replace(/\/v1$/, "") };
  let ready: z.infer<typeof readiness>;
  try {
    const response = await send(root, "/readyz", signal);
    ready = understood(readiness, parseJson(await response.text()), root, "readiness report");
  } catch (error) {
    if (!(error instanceof CliError) || signal.aborted) throw error;
    return { ...blank, unreachable: error.message };
  }
  const report: StatusReport = { ...blank, ready: ready.status !== "not_ready", checks: ready.checks };
  const part = <Result>(name: string, read: Promise<Result>, take: (result: Result) => void) =>
    read.then(take).catch((error: unknown) => leaveOut(report, name, error, signal));
  await Promise.all([
    part("version", readVersion(root, signal), (version) => {
      report.version = version;
    }),
    readAccount(connection, signal, report).catch((error: unknown) =>
      leaveOut(report, report.limits ? "account and tier" : "account, limits and quota", error, signal),
    ),
    part("scopes and end of the key", listKeys(connection, signal), (keys) => {
      const own: FoundKey | undefined = keys.find(({ key }) => isOwnKey(connection, key));
      if (own) report.key = own;
    }),
    part(
      "what waits for models",
      requestWholeList(connection, "/model-status", "state of the models", signal),
      (raw) => {
        report.queues = raw.flatMap((entry) =>
          queuesOf(understood(modelQueues, entry, connection, "state of the models")),
        );
      },
    ),
    part("models", readModels(connection, signal), (models) => {
      report.models = models.filter(({ alias_of: model }) => model === undefined).map(({ id }) => id);
    }),
  ]);
  return report;
}

/** Reads the account. A key that may only use models gets its limits instead. */
async function readAccount(connection: Connection, signal: AbortSignal, report: StatusReport): Promise<void> {
  try {
    const raw = await requestJson(connection, "/account", signal);
    report.account = { raw, read: understood(account, raw, connection, "account") };
  } catch (error) {
    if (error instanceof ApiError && error.status === 403) {
      const raw = await requestJson(connection, "/limits", signal).catch(() => undefined);
      const read = limitsShape.safeParse(raw);
      if (read.success) report.limits = { raw, read: read.data };
    }
    throw error;
  }
}

async function readVersion(root: { baseUrl: string }, signal: AbortSignal): Promise<string> {
  const response = await send(root, "/openapi.json", signal);
  return understood(description, parseJson(await response.text()), root, "API description").info.version;
}

/** Records a part that could not be read. The other parts are still shown. */
function leaveOut(report: StatusReport, name: string, error: unknown, signal: AbortSignal): void {
  if (signal.aborted || !(error instanceof CliError)) throw error;
  if (error instanceof ApiError && error.status === 401) {
    report.keyRefused = error.message;
    return;
  }
  const reason = (error instanceof ApiError ? error.reason : undefined) ?? error.message;
  report.missing.push({ part: name, reason });
}

function asJson(report: StatusReport): Record<string, unknown> {
  return {
    base_url: report.baseUrl,
    reachable: report.unreachable === undefined,
    ready: report.ready,
    checks: report.checks,
    version: report.version ?? null,
    key_accepted: report.unreachable === undefined ? report.keyRefused === undefined : null,
    account: report.account?.raw ?? null,
    limits: report.limits?.raw ?? null,
    key: report.key?.raw ?? null,
    models: report.models ?? null,
    queues: report.queues ?? null,
    missing: report.missing,
  };
}
