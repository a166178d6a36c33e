// Asks for confirmation before revoking a key, and says what ends with the key.
import { List, Loader, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ApiFailure } from "../../api/client.ts";
import { pagesOf } from "../../api/queries.ts";
import type { ApiKey } from "../../api/types.ts";
import { Confirm } from "../../parts/editing/confirm.tsx";
import { Ago } from "../../parts/words/ago.tsx";
import { count, counted } from "../../parts/words/figures.ts";
import { shownKey } from "../../parts/words/key-status.tsx";
import { useKeyChange } from "./use-key-change.ts";

export function RevokeKey({ record, opened, close }: { record: ApiKey; opened: boolean; close(): void }) {
  const revocation = useKeyChange("DELETE", record, "revoked", close);
  return (
    <Confirm
      opened={opened}
      title={`Revoke “${record.name}”?`}
      action="Revoke key"
      busy={revocation.isPending}
      error={revocation.error}
      confirm={() => revocation.mutate(undefined)}
      close={close}
    >
      <Text size="sm" mb="xs">
        All new requests with {shownKey(record)}, and with access tokens made from this key, are refused. Running
        requests are completed. You cannot undo this.
      </Text>
      <Text size="sm" mb="xs">
        {record.last_used_at === null ? (
          "This key was never used."
        ) : (
          <>
            This key was last used <Ago seconds={record.last_used_at} />.
          </>
        )}
      </Text>
      {opened && <Children record={record} />}
    </Confirm>
  );
}

const shownNames = 5;

/**
 * Lists the active keys that were created with this key, because they are revoked as well. Only the newest thousand
 * keys are searched.
 */
function Children({ record }: { record: ApiKey }) {
  const { data, isPending } = useQuery<{ found: ApiKey[]; isAll: boolean }, ApiFailure>({
    queryKey: ["/v1/keys", "made with", record.id],
    queryFn: ({ signal }) => findChildren(record.id, signal),
  });
  if (isPending) return <Loader size="xs" aria-label="Looking for keys created by this key" />;
  const generally = (
    <Text size="sm">Keys created by this key, or by an earlier key that it replaced, are revoked as well.</Text>
  );
  // The keys that a rotated key had created now belong to its successor.
  if (!data || record.revoked_at !== null || data.found.length === 0) return generally;
  return (
    <>
      <Text size="sm" fw={600}>
        {data.isAll ? "" : "At least "}
        {counted(data.found.length, "key")} created by this key {data.found.length === 1 ? "is" : "are"} revoked as
        well, including all keys created by {data.found.length === 1 ? "that key" : "those keys"}:
      </Text>
      <List size="sm">
        {data.found.slice(0, shownNames).map((key) => (
          <List.Item key={key.id}>
            {key.name} ({shownKey(key)})
          </List.Item>
        ))}
        {data.found.length > shownNames && <List.Item>{count(data.found.length - shownNames)} more</List.Item>}
      </List>
    </>
  );
}

async function findChildren(id: string, signal: AbortSignal): Promise<{ found: ApiKey[]; isAll: boolean }> {
  const found: ApiKey[] = [];
  for await (const { data, isLast } of pagesOf<ApiKey>("/v1/keys", { limit: 100 }, signal)) {
    found.push(...data.filter((key) => key.created_by === id && key.status === "active"));
    if (isLast) return { found, isAll: true };
  }
  return { found, isAll: false };
}
