// What the processes of this server are called, where there are several.
import { useRead } from "../../api/queries.ts";
import type { System } from "../../api/types.ts";

export type ReplicaName = (id: string) => string;

/** Undefined where there is one alone: nobody asks then which of them holds a connection. */
export function useReplicas(): ReplicaName | undefined {
  const { data } = useRead<System>("/v1/admin/system", {}, { everyMs: 30_000 });
  const replicas = data?.replicas ?? [];
  if (replicas.length < 2) return undefined;
  return (id) => {
    const url = replicas.find((replica) => replica.id === id)?.advertise_url ?? null;
    // Ids differ at their end.
    return url === null ? `…${id.slice(-8)}` : new URL(url).host;
  };
}
