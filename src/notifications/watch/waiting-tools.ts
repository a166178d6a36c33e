// The changes of MCP servers that wait for an operator's approval, of which operators are notified.
import { type IncidentState, operatorTidings } from "./incident-watch.ts";

/** `waiting`: how much of each server waits; told once, until nothing of it does any more. */
export function waitingTools(waiting: ReadonlyMap<string, number>): IncidentState[] {
  return [...waiting].map(([server, count]): IncidentState => {
    const subject = `tools:${server}`;
    return {
      subject,
      isOut: count > 0,
      began: (since) => operatorTidings("tool.changed", subject, since, { server, waiting: count }),
      ended: () => undefined,
    };
  });
}
