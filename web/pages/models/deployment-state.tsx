// How a place where a model runs does, in a word, with what that means for requests.
import type { DeploymentStatus } from "../../api/types.ts";
import { State } from "../../parts/words/state.tsx";
import { placeStates } from "./managed-words.ts";

const meanings: Record<DeploymentStatus["state"], string> = {
  ok: "It answered when it was last asked.",
  cooling_down: "It failed a moment ago, so others are tried first.",
  draining: "An operator took it out: open requests end, no new ones are sent.",
  unreachable: "It did not answer when it was last asked. It is asked again by itself.",
};

export function DeploymentState({ state }: { state: DeploymentStatus["state"] }) {
  const [kind, word] = placeStates[state];
  return (
    <div className="model-state" data-hint={meanings[state]}>
      <State kind={kind}>{word}</State>
    </div>
  );
}
