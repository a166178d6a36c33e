// Derives problems from the server's figures, each with advice.
import type { System } from "../../api/types.ts";
import { count, counted, duration } from "../../parts/words/figures.ts";

interface Trouble {
  text: string;
  /** True if requests are refused or lost; otherwise the problem is a warning. */
  isFailure: boolean;
}

/** An event-loop delay that users notice. */
const longDelayMs = 1_000;
/** Usage is written within seconds, so this many pending records mean that the database does not keep up. */
const muchPending = 10_000;
/** The age of the database's last confirmation that counts as a problem; a confirmation is due about every second. */
const longUnconfirmedMs = 10_000;

export function troublesOf(system: System): Trouble[] {
  const { checks, event_loop: loop, spool, credentials, requests } = system;
  const reload = system.configuration.last_reload;
  const failed = Object.entries(checks)
    .filter(([, state]) => state !== "ok")
    .map(([name, state]) => ({ text: checkText(name, state), isFailure: state === "failed" && name !== "redis" }));
  return [
    ...failed,
    ...some(
      new Set(system.replicas.map(({ version }) => version)).size > 1,
      "The replicas run different versions. This is normal during an upgrade. If it persists, upgrade the remaining replicas.",
    ),
    ...some(
      reload?.result === "refused",
      `The changed configuration file was rejected, and the previous configuration stays in effect: ${reload?.error ?? ""}`,
    ),
    ...some(
      reload !== null && reload.needs_restart.length > 0,
      `These changes in the configuration file need a restart: ${reload?.needs_restart.join(", ") ?? ""}.`,
    ),
    ...some(
      loop.max_delay_ms >= longDelayMs,
      `The server was blocked for ${duration(loop.max_delay_ms)} in the last minute. If this persists, the machine needs more processor capacity.`,
    ),
    ...some(
      spool.pending >= muchPending,
      `The usage of ${count(spool.pending)} requests is not in the database yet. No usage is lost. If the number grows, check the disk.`,
    ),
    ...some(
      credentials.unconfirmed_ms >= longUnconfirmedMs,
      `The database last confirmed the keys ${duration(credentials.unconfirmed_ms)} ago. A key that is revoked now may keep working for a short time.`,
    ),
    ...some(
      requests.waiting > 0 && requests.waiting >= requests.open / 2,
      `${count(requests.waiting)} of ${counted(requests.open, "request")} ${requests.waiting === 1 ? "waits" : "wait"} for a model server. More or larger upstreams shorten the wait.`,
    ),
  ];
}

function some(isSo: boolean, text: string): Trouble[] {
  return isSo ? [{ text, isFailure: false }] : [];
}

function checkText(name: string, state: System["checks"][string]): string {
  if (state === "starting")
    return "The server has just started and is still asking the model servers for their models.";
  if (state === "draining") return "The server is stopping. It completes running requests and accepts no new ones.";
  if (name === "database") {
    return "The database is unavailable. For five minutes the server still accepts requests with known keys and records their usage, but no settings can be changed. Check the server log and the database.";
  }
  if (name === "redis") {
    return "Redis is unavailable. Until it is back, each replica counts its own share of every limit, and changes reach the other replicas later.";
  }
  if (name === "replicas") {
    return "Several replicas run without HEADRACE_REDIS_URL. Each replica counts limits separately, so clients can exceed them. Configure the same Redis or Valkey for all replicas.";
  }
  return `The check ${name} fails. Check the server log.`;
}
