// What a person sees of a machine that serves as a node: one line that is kept up to date, or, in a log, what changed.
import type { UplinkView } from "../../nodes/uplink.ts";
import { printable, type Terminal } from "../terminal/terminal.ts";

const redrawMs = 500;
/** Pieces of the line stay readable while they can be shown at all. */
const minColumns = 40;

/** Until the process ends; `stop` ends it in order. */
export function showNode(
  terminal: Terminal,
  view: () => UplinkView | undefined,
  stop: (reason: string) => Promise<void>,
): void {
  let shown = "";
  const show = () => {
    const now = view();
    const line = now ? lineOf(now, terminal) : "This machine has left its gateway.";
    const isOver = now === undefined || now.status === "refused";
    if (terminal.interactive && !isOver) {
      // Some say 0 where they do not know.
      const columns = Math.max(minColumns, terminal.stderr.columns || 80);
      const fitting = cut(line, columns - 1);
      if (fitting === shown) return;
      terminal.stderr.write(`\r\x1b[2K${fitting}`);
      shown = fitting;
      return;
    }
    if (line === shown) return;
    if (terminal.interactive) terminal.stderr.write("\r\x1b[2K");
    shown = line;
    terminal.note(line);
    if (!isOver) return;
    clearInterval(timer);
    // Somebody has to hear of a node that is not let in; that it left was somebody's wish.
    if (now) process.exitCode = 1;
    void stop(now ? "node_refused" : "node_left");
  };
  const timer = setInterval(show, redrawMs);
  if (terminal.interactive) terminal.note(terminal.err.dim("Ctrl-C ends it: running requests are finished first."));
  show();
}

function lineOf(view: UplinkView, { interactive }: Terminal): string {
  const { status, name, gatewayUrl, models, running } = view;
  const who = `${printable(name)} · ${printable(gatewayUrl)}`;
  if (status !== "connected") return `${who} · ${printable(view.message)}`;
  const approved = models.filter((model) => model.approved).length;
  const pending = models.filter((model) => model.approved === false).length;
  const offered =
    models.length === 0
      ? "no models here"
      : approved === 0 && pending === 0
        ? `${models.length} ${models.length === 1 ? "model" : "models"}`
        : "";
  const parts = [
    ...[who, "connected", offered],
    approved > 0 ? `${approved} approved` : "",
    pending > 0 ? `${pending} waiting for approval` : "",
    // It changes all the time, which a log need not say.
    interactive ? `${running} running` : "",
  ];
  return parts.filter((part) => part !== "").join(" · ");
}

function cut(line: string, columns: number): string {
  return Bun.stringWidth(line) <= columns ? line : `${line.slice(0, columns - 1)}…`;
}
