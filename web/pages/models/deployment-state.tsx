// How a place where a model runs does, in a word, with what that means for requests.
import type { DeploymentStatus } from "../../api/types.ts";
import { State, type StateKind } from "../../parts/words/state.tsx";

interface Look {
  word: string;
  kind: StateKind;
  meaning: string;
}

const looks: Record<DeploymentStatus["state"], Look> = {
  ok: { word: "Working", kind: "good", meaning: "It answered when it was last asked." },
  cooling_down: {
    word: "Cooling down",
    kind: "waiting",
    meaning: "It failed a moment ago, so others are tried first.",
  },
  draining: {
    word: "Draining",
    kind: "warning",
    meaning: "An operator took it out: open requests end, no new ones are sent.",
  },
  unreachable: {
    word: "Unreachable",
    kind: "bad",
    meaning: "It did not answer when it was last asked. It is asked again by itself.",
  },
};

export function DeploymentState({ state }: { state: DeploymentStatus["state"] }) {
  const { word, kind, meaning } = looks[state];
  return (
    <div className="model-state" data-hint={meaning}>
      <State kind={kind}>{word}</State>
    </div>
  );
}
