// How a model server does, and where its entry comes from, in words.
import type { Upstream } from "../../api/types.ts";
import { State, type StateKind } from "../../parts/words/state.tsx";

const states: Record<Upstream["state"], readonly [StateKind, string]> = {
  ok: ["good", "Working"],
  unreachable: ["bad", "Unreachable"],
  draining: ["warning", "Draining"],
  starting: ["waiting", "Starting"],
};

export function UpstreamState({ upstream: { state, running } }: { upstream: Upstream }) {
  const [kind, word] = states[state];
  return <State kind={kind}>{state === "draining" && running === 0 ? "Drained" : word}</State>;
}

/** The formats of conversations. */
export const apiNames: Record<Upstream["apis"][number], string> = {
  chat: "chat completions",
  responses: "Responses",
  messages: "Messages",
};

export const sourceNames: Record<Upstream["source"], string> = {
  "built-in": "Built in",
  command: "Command of headrace.yaml",
  file: "headrace.yaml",
  database: "Added here",
  found: "Found on this machine",
  node: "Joined as a node",
};

/** Its address, or where it is without one. */
export function placeOf({ url, source }: Upstream): string {
  return url ?? (source === "node" ? "over the connection of a node" : "in this server");
}

/** Why it cannot be changed here; of those that can, nothing. */
export const readOnlyText: Record<Upstream["source"], string | undefined> = {
  "built-in": "This engine is part of the server. It can be drained here, and nothing else.",
  command: "This server starts it, as headrace.yaml says under engine. It can be drained here, and nothing else.",
  file: "This upstream is defined in headrace.yaml and is read-only here, but for draining: change it under upstreams in that file.",
  found: "This server was found on this machine by itself. It can be drained here; add it under a name to change more.",
  node: "This is a machine that joined as a node: what it may serve is changed on its page. It can be drained here.",
  database: undefined,
};
