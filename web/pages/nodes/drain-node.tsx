// Drains a node, or gives it requests again.
import { call } from "../../api/client.ts";
import type { Node } from "../../api/types.ts";
import { Draining } from "../../parts/editing/draining.tsx";
import { nodePath, touchedPaths } from "./use-node-change.ts";

export function DrainNode({ node: { id, name, draining, running } }: { node: Node }) {
  return (
    <Draining
      {...{ name, running }}
      isDraining={draining}
      stale={touchedPaths}
      change={(isDraining) => call("PATCH", nodePath(id), { body: { draining: isDraining } })}
      purpose="so that the machine can be updated or switched off"
    >
      Requests for its models go elsewhere. Where nothing else has them, they get an error with status 503. It stays
      drained, also when it connects anew, until you send requests to it again.
    </Draining>
  );
}
