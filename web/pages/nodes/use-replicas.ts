// The names of the server's replicas, if there are several.
import { useRead } from "../../api/queries.ts";
import type { System } from "../../api/types.ts";

export type ReplicaName = (id: string) => string;

/** Returns undefined for a single process, where it is clear which replica holds a connection. */
export function useReplicas(): ReplicaName | undefined {
  const { data } = useRead<System>("/v1/admin/system", {}, { everyMs: 30_000 });
  const replicas = data?.replicas ?? [];
  if (replicas.length < 2) return undefined;
  return (id) => {
    const url = replicas.find((replica) => replica.id === id)?.advertise_url ?? null;
    // The ids of replicas differ at their end.
    return url === null ? `…${id.slice(-8)}` : new URL(url).host;
  };
}
