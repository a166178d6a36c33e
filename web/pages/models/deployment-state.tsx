// The state of a deployment in a word, and what it means for requests.
import type { DeploymentStatus } from "../../api/types.ts";
import { State } from "../../parts/words/state.tsx";
import { placeStates } from "./managed-words.ts";

const meanings: Record<DeploymentStatus["state"], string> = {
  ok: "The last health check succeeded.",
  failing: "This server failed the last requests. Other servers are tried first.",
  cooling_down: "This server failed recently, so other servers are tried first.",
  draining: "An operator drained this server: running requests are completed, and no new requests are sent.",
  unreachable: "The last health check failed. Checks are repeated automatically.",
};

export function DeploymentState({ state }: { state: DeploymentStatus["state"] }) {
  const [kind, word] = placeStates[state];
  return (
    <div className="model-state" data-hint={meanings[state]}>
      <State kind={kind}>{word}</State>
    </div>
  );
}
