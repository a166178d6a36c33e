// Reads from the figures of the server what is not well, and says what to do about it.
import type { System } from "../../api/types.ts";
import { count, counted, duration } from "../../parts/words/figures.ts";

interface Trouble {
  text: string;
  /** Requests are refused or lost; otherwise it is only worth a look. */
  isFailure: boolean;
}

/** So late a person notices. */
const longDelayMs = 1_000;
/** Usage is written within seconds: so much waits only if the database does not keep up. */
const muchPending = 10_000;
/** The database is asked every second or so. */
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
      "The replicas run different versions, as they do while they are being replaced. If it stays so, one was left behind.",
    ),
    ...some(
      reload?.result === "refused",
      `The configuration file was not taken over, so the one from before goes on: ${reload?.error ?? ""}`,
    ),
    ...some(
      reload !== null && reload.needs_restart.length > 0,
      `What changed in the configuration file needs a restart: ${reload?.needs_restart.join(", ") ?? ""}.`,
    ),
    ...some(
      loop.max_delay_ms >= longDelayMs,
      `For ${duration(loop.max_delay_ms)} in the last minute nothing could be answered. If it stays so, the machine has too little processor for its load.`,
    ),
    ...some(
      spool.pending >= muchPending,
      `The usage of ${count(spool.pending)} requests is not in the database yet. None of it is lost; look at the disk if the number grows.`,
    ),
    ...some(
      credentials.unconfirmed_ms >= longUnconfirmedMs,
      `The database last said ${duration(credentials.unconfirmed_ms)} ago which keys hold: a key that is revoked now may work a little longer.`,
    ),
    ...some(
      requests.waiting > 0 && requests.waiting >= requests.open / 2,
      `${count(requests.waiting)} of ${counted(requests.open, "request")} ${requests.waiting === 1 ? "waits" : "wait"} for a place at a model server. More upstreams, or larger ones, shorten the wait.`,
    ),
  ];
}

function some(isSo: boolean, text: string): Trouble[] {
  return isSo ? [{ text, isFailure: false }] : [];
}

function checkText(name: string, state: System["checks"][string]): string {
  if (state === "starting")
    return "Model servers are still being asked for their models, for a moment after the start.";
  if (state === "draining") return "The server is stopping: it ends what runs, and takes nothing new.";
  if (name === "database") {
    return "The database cannot be used. For five minutes the server goes on for keys that it knows, and keeps their usage; nothing can be changed. Look at the log of the server, and at the database.";
  }
  if (name === "redis") {
    return "Redis cannot be used. Until it is back each replica counts limits for itself, with its share of each, and changes reach the other replicas a little later.";
  }
  if (name === "replicas") {
    return "Several replicas run without HEADRACE_REDIS_URL, so each counts limits for itself and clients get as many times as much. Give all of them the same Redis or Valkey.";
  }
  return `The check ${name} fails. Look at the log of the server.`;
}
