// Warns above a page that its data may be outdated while the server does not answer.
import { Alert, Group, Text } from "@mantine/core";
import type { Query } from "@tanstack/react-query";
import { useCallback, useSyncExternalStore } from "react";
import { ApiFailure } from "../api/client.ts";
import { queryClient } from "../api/queries.ts";
import { SmallButton } from "../parts/page/buttons.tsx";

const cache = queryClient.getQueryCache();

/** Reports whether a query shows outdated data. A query that never had data shows its own error on the page. */
function isOld(query: Query): boolean {
  const { data, error } = query.state;
  const isAbsent = error instanceof ApiFailure && (error.status === 0 || error.status >= 500);
  return isAbsent && data !== undefined && query.isActive();
}

export function Connection() {
  const subscribe = useCallback((listener: () => void) => cache.subscribe(listener), []);
  const isCutOff = useSyncExternalStore(subscribe, () => cache.getAll().some(isOld));
  return (
    <div role="status">
      {isCutOff && (
        <Alert color="yellow" mb="md" title="The server does not answer">
          <Group justify="space-between" gap="xs">
            <Text size="sm">
              The data on this page may be out of date. Pages that refresh by themselves keep trying.
            </Text>
            <SmallButton onClick={() => void queryClient.refetchQueries({ type: "active", predicate: isOld })}>
              Try again
            </SmallButton>
          </Group>
        </Alert>
      )}
    </div>
  );
}
