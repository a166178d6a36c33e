// Drains a model server, or gives it requests again.
import { call } from "../../api/client.ts";
import type { Upstream } from "../../api/types.ts";
import { Draining } from "../../parts/editing/draining.tsx";
import { staleWithUpstreams, upstreamPath } from "./upstream-paths.ts";

export function DrainUpstream({ upstream: { name, state, running } }: { upstream: Upstream }) {
  return (
    <Draining
      {...{ name, running }}
      isDraining={state === "draining"}
      stale={staleWithUpstreams}
      change={(isDraining) => call("PATCH", upstreamPath(name), { body: { draining: isDraining } })}
      purpose="so that you can update or stop it"
    >
      Requests for its models go to other upstreams that have them. Where there is none, they get an error with status
      503. It stays drained over a restart, until you send requests to it again.
    </Draining>
  );
}
