// Changes a key and puts what the server answers wherever the key is shown.
import { useQueryClient } from "@tanstack/react-query";
import { call } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import type { ApiKey } from "../../api/types.ts";

export function useKeyChange(method: "PATCH" | "DELETE", id: string, done: (key: ApiKey) => void) {
  const client = useQueryClient();
  const path = `/v1/keys/${id}`;
  return useChange((body: unknown) => call<ApiKey>(method, path, { body }), {
    done(key) {
      client.setQueryData([path, {}], key);
      void client.resetQueries({ queryKey: ["/v1/keys"] });
      done(key);
    },
  });
}
