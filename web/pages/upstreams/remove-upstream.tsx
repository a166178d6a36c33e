// Removes a model server that was added here, after a question.
import type { Upstream } from "../../api/types.ts";
import { Removal } from "../../parts/editing/removal.tsx";
import { count } from "../../parts/words/figures.ts";
import { staleWithUpstreams, upstreamPath } from "./upstream-paths.ts";

export function RemoveUpstream({ upstream, close }: { upstream: Upstream; close(): void }) {
  const { name, models, running, has_api_key: hasKey, overrides_database: isHidden } = upstream;
  return (
    <Removal
      {...{ name, path: upstreamPath(name), stale: staleWithUpstreams, close }}
      {...(isHidden ? { label: "Remove the one added here" } : {})}
      action="Remove the upstream"
      done={`The upstream ${name} that was added here is removed.`}
    >
      {isHidden
        ? "The one that was added here is removed. The one of headrace.yaml stays and works on as it does."
        : `Its ${models === 1 ? "model" : `${count(models)} models`} can no longer be called, unless another upstream has them.${
            running === 0 ? "" : ` What runs on it now, ${count(running)} of them, is finished.`
          }${hasKey ? " Its API key is deleted." : ""}`}
    </Removal>
  );
}
