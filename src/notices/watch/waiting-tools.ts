// What servers of tools say that waits for an operator: nobody is offered it, so somebody should look.
import { operatorTidings, type Standing } from "./incident-watch.ts";

/** `waiting`: how much of each server waits; told once, until nothing of it does any more. */
export function waitingTools(waiting: ReadonlyMap<string, number>): Standing[] {
  return [...waiting].map(([server, count]): Standing => {
    const subject = `tools:${server}`;
    return {
      subject,
      isOut: count > 0,
      began: (since) => operatorTidings("tool.changed", subject, since, { server, waiting: count }),
      ended: () => undefined,
    };
  });
}
