// Texts for a model server: its state, and the source of its entry.
import type { Upstream } from "../../api/types.ts";
import { State, type StateKind } from "../../parts/words/state.tsx";

const states: Record<Upstream["state"], readonly [StateKind, string]> = {
  ok: ["good", "Working"],
  unreachable: ["bad", "Unreachable"],
  draining: ["warning", "Draining"],
  starting: ["waiting", "Starting"],
};

export function UpstreamState({ upstream: { state, running, attempts } }: { upstream: Upstream }) {
  if (state === "ok" && attempts?.failing) return <State kind="bad">Failing</State>;
  const [kind, word] = states[state];
  return <State kind={kind}>{state === "draining" && running === 0 ? "Drained" : word}</State>;
}

/** Returns the cause and figures of a failing upstream, the cause first because narrow columns cut the text. */
export function failureOf({ attempts }: Upstream): string | undefined {
  if (!attempts?.failing) return undefined;
  const cause = attempts.last_failure?.cause.replaceAll("_", " ");
  return `${cause === undefined ? "" : `${cause}: `}${attempts.summary}`;
}

/** The names of the API formats. */
export const apiNames: Record<Upstream["apis"][number], string> = {
  chat: "chat completions",
  responses: "Responses",
  messages: "Messages",
};

export const sourceNames: Record<Upstream["source"], string> = {
  "built-in": "Built in",
  command: "Command in headrace.yaml",
  file: "headrace.yaml",
  database: "Added in the dashboard",
  found: "Found on this machine",
  node: "Node",
};

/** Returns the model server's address. For a server without an address, returns where the server runs. */
export function addressOf({ url, source }: Upstream): string {
  return url ?? (source === "node" ? "through a node" : "in this server");
}

/** The reason why an upstream is read-only in the dashboard; undefined if operators can change the upstream. */
export const readOnlyText: Record<Upstream["source"], string | undefined> = {
  "built-in": "This engine is part of the server. You can only drain it here.",
  command: "Headrace starts this engine, as set under engine in headrace.yaml. You can only drain it here.",
  file: "This upstream is set in headrace.yaml. You can only drain it here. Change it under upstreams in that file.",
  found:
    "This server was found automatically on this machine. You can drain it here. To change other settings, add it under a name.",
  node: "This machine joined as a node. You can drain it here. Change its approved models on the page of the node.",
  database: undefined,
};
