// The status of a key. If the key ends within a week, the time of its end is shown too.
import { Group } from "@mantine/core";
import { nowSeconds } from "../../api/server-time.ts";
import type { ApiKey } from "../../api/types.ts";
import { ago } from "./figures.ts";
import { SmallNote } from "./note.tsx";
import { State } from "./state.tsx";

const soonSeconds = 7 * 86_400;

/** Returns the known end in Unix seconds; null if the key has none. */
export function endOf({ expires_at: expires, revoked_at: revoked }: ApiKey): number | null {
  if (expires === null || revoked === null) return expires ?? revoked;
  return Math.min(expires, revoked);
}

export function KeyStatus({ record }: { record: ApiKey }) {
  const end = endOf(record);
  if (record.status === "revoked") return <State kind="warning">Revoked</State>;
  if (record.status === "suspended") return <State kind="warning">Suspended</State>;
  if (record.status === "expired") return <State kind="plain">Expired</State>;
  if (end === null || end - nowSeconds() > soonSeconds) return <State kind="good">Active</State>;
  return (
    <Group gap={6} wrap="nowrap">
      <State kind="waiting">Ending</State>
      <SmallNote visibleFrom="sm" className="numeric">
        {ago(end)}
      </SmallNote>
    </Group>
  );
}

/** Returns the visible parts of a key: its beginning and end. */
export function shownKey({ prefix, last4 }: Pick<ApiKey, "prefix" | "last4">): string {
  return `${prefix}…${last4}`;
}
