// Takes back what was declared of a model here, after a question.
import type { ManagedModel } from "../../api/types.ts";
import { Removal } from "../../parts/editing/removal.tsx";
import { managedPathOf, staleWithModels } from "./managed-models.ts";

export function RemoveModel({ model, close }: { model: ManagedModel; close(): void }) {
  const { id, overrides_database: isHidden, settings } = model;
  const places = settings?.deployments?.length ?? 0;
  return (
    <Removal
      {...{ name: id, path: managedPathOf(id), stale: staleWithModels, close }}
      {...(isHidden ? { label: "Remove the one declared here" } : {})}
      action="Remove it"
      done={`What was declared of ${id} here is removed.`}
    >
      {isHidden
        ? "What was declared of it here is removed. The model of headrace.yaml stays as it is."
        : `Its price and whatever else was declared of it here is removed. ${
            places > 0
              ? "It can no longer be called, unless an upstream lists a model of this id."
              : "It is offered on as its upstreams list it, and what it uses is not counted as spend."
          } Requests under way end as usual, and its usage stays.`}
    </Removal>
  );
}
