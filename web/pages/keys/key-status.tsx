// Whether a key works, and until when.
import { Badge, Group, Text } from "@mantine/core";
import { AlertIcon, CheckCircleIcon, CircleSlashIcon, ClockIcon } from "@primer/octicons-react";
import type { ApiKey } from "../../api/types.ts";
import { ago } from "../../parts/figures.ts";

const looks = {
  active: { text: "Active", color: "green", Icon: CheckCircleIcon },
  ending: { text: "Ending", color: "yellow", Icon: AlertIcon },
  expired: { text: "Expired", color: "gray", Icon: ClockIcon },
  revoked: { text: "Revoked", color: "red", Icon: CircleSlashIcon },
} as const;

const soonSeconds = 7 * 86_400;

/** Unix seconds of the end that is known; null where it goes on. */
export function endOf({ expires_at: expires, revoked_at: revoked }: ApiKey): number | null {
  if (expires === null || revoked === null) return expires ?? revoked;
  return Math.min(expires, revoked);
}

export function KeyStatus({ record }: { record: ApiKey }) {
  const end = endOf(record);
  const isEnding = record.status === "active" && end !== null && end - Date.now() / 1000 < soonSeconds;
  const { text, color, Icon } = looks[isEnding ? "ending" : record.status];
  return (
    <Group gap={6} wrap="nowrap">
      <Badge
        variant="light"
        color={color}
        leftSection={<Icon size={12} />}
        tt="none"
        style={{ flexShrink: 0, "--badge-color": "var(--mantine-color-text)" }}
      >
        {text}
      </Badge>
      {isEnding && (
        <Text size="xs" c="dimmed" visibleFrom="sm" className="numeric">
          {ago(end)}
        </Text>
      )}
    </Group>
  );
}

/** What may be shown of a key, as it begins and ends. */
export function shownKey({ prefix, last4 }: Pick<ApiKey, "prefix" | "last4">): string {
  return `${prefix}…${last4}`;
}
