// The terminal display of a node. It updates one line, or prints each change if the output is a log.
import type { UplinkView } from "../../nodes/uplink.ts";
import { printable, type Terminal } from "../terminal/terminal.ts";

const redrawMs = 500;
/** Minimum width of the line in columns. A narrower line would not be readable. */
const minColumns = 40;

/** Shows the state until the process ends. `stop` ends the node cleanly. */
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
      // Some terminals report a width of 0 if they do not know it.
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
    // A node that the gateway refused exits with an error. A node that left on request does not.
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
    // The number of running requests changes all the time, so a log does not show it.
    interactive ? `${running} running` : "",
  ];
  return parts.filter((part) => part !== "").join(" · ");
}

function cut(line: string, columns: number): string {
  return Bun.stringWidth(line) <= columns ? line : `${line.slice(0, columns - 1)}…`;
}
