// Reports tool definitions of MCP servers that await an operator's approval, as incidents.
import { type IncidentState, operatorTidings } from "./incident-watch.ts";

/** Returns the state of each MCP server. Its incident lasts while any of its tool definitions awaits approval. */
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
