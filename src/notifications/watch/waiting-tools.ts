// The changes of MCP servers that wait for an operator's approval, of which operators are notified.
import { type IncidentState, operatorTidings } from "./incident-watch.ts";

/**
 * Returns an incident for each server with definitions that await approval. An incident lasts until none of its
 * definitions waits.
 */
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
