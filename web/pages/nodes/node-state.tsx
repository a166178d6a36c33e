// Texts for a node's state, approvals and timestamps.
import type { Node } from "../../api/types.ts";
import { Ago } from "../../parts/words/ago.tsx";
import { count, counted } from "../../parts/words/figures.ts";
import { State, type StateKind } from "../../parts/words/state.tsx";

const states: Record<Node["status"], readonly [StateKind, string]> = {
  online: ["good", "Online"],
  pending: ["waiting", "Waits for approval"],
  draining: ["warning", "Draining"],
  offline: ["bad", "Offline"],
};

export function NodeState({ node }: { node: Node }) {
  const { status, running } = node;
  const [kind, word] = states[status];
  if (status === "pending" && !waitsForApproval(node)) return <State kind={kind}>No models yet</State>;
  return <State kind={kind}>{status === "draining" && running === 0 ? "Drained" : word}</State>;
}

/** Reports whether the node waits for an approval; false if it announces no models that could be approved. */
export function waitsForApproval({ status, announced_models: announced }: Node): boolean {
  return status === "pending" && announced.length > 0;
}

/** Shows since when the node is connected, or when it was last seen. */
export function NodeSince({ node }: { node: Node }) {
  const { connected_at: connected, last_seen_at: seen } = node;
  if (connected !== null) return <Ago seconds={connected} />;
  if (seen === null) return "never connected";
  return (
    <>
      seen <Ago seconds={seen} />
    </>
  );
}

/** Returns "2 of 3": the approved ones among the announced models. */
export function approvedText({ announced_models: announced }: Node): string {
  if (announced.length === 0) return "none yet";
  const approved = announced.filter((model) => model.approved).length;
  return `${count(approved)} of ${count(announced.length)}`;
}

export function modelCount(models: number): string {
  return counted(models, "model");
}

/** Returns "3 of 8": the running requests and the concurrency. */
export function runningText({ running, concurrency }: Node): string {
  return concurrency === null ? count(running) : `${count(running)} of ${count(concurrency)}`;
}
