// Changes a key, shows a notification, and updates the key wherever it is shown.
import { useQueryClient } from "@tanstack/react-query";
import { call } from "../../api/client.ts";
import type { ApiKey, ApiKeyDetails } from "../../api/types.ts";
import { useNotifiedChange } from "../../parts/editing/notified-change.ts";

export function useKeyChange(method: "PATCH" | "DELETE", { id, name }: ApiKey, did: string, done: () => void) {
  const client = useQueryClient();
  const path = `/v1/keys/${id}`;
  return useNotifiedChange((body: unknown) => call<ApiKey>(method, path, { body }), {
    said: () => `The key “${name}” is ${did}.`,
    done(key) {
      const before = client.getQueryData<ApiKeyDetails>([path, {}]);
      // The answer lacks quota usage, so changed quotas are loaded again.
      client.setQueryData<ApiKeyDetails>([path, {}], { ...key, quotas_used: before?.quotas_used ?? [] });
      void client.invalidateQueries({ queryKey: [path, {}] });
      void client.resetQueries({ queryKey: ["/v1/keys"] });
      done();
    },
  });
}
