// The user's authorizations, one entry per app and account; revoking one ends it in all environments.
import type { Authorization } from "../../api/types.ts";

export interface Allowed extends Omit<Authorization, "environment"> {
  environments: Authorization["environment"][];
}

/** The client id of the server's own command line tool, the same on every installation. */
export const commandLineId = "headrace-cli";

export function joined(authorizations: readonly Authorization[]): Allowed[] {
  const byId = new Map<string, Allowed>();
  for (const { environment, ...one } of authorizations) {
    const known = byId.get(one.id);
    byId.set(one.id, {
      ...one,
      environments: [...(known?.environments ?? []), environment],
      scopes: [...new Set([...(known?.scopes ?? []), ...one.scopes])],
      tools: known ? eitherOf(known.tools, one.tools) : one.tools,
      allowed_at: Math.min(known?.allowed_at ?? one.allowed_at, one.allowed_at),
      last_used_at: latest(known?.last_used_at ?? null, one.last_used_at),
    });
  }
  return [...byId.values()];
}

/** Returns the union of two lists; null means all. */
function eitherOf(some: string[] | null, others: string[] | null): string[] | null {
  return some && others && [...new Set([...some, ...others])];
}

function latest(one: number | null, other: number | null): number | null {
  if (one === null || other === null) return one ?? other;
  return Math.max(one, other);
}
