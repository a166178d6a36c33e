// Asks for confirmation before revoking several keys.
import { List, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { call } from "../../api/client.ts";
import type { ApiKey } from "../../api/types.ts";
import { Confirm } from "../../parts/editing/confirm.tsx";
import { useQuestion } from "../../parts/editing/question.ts";
import { count, counted } from "../../parts/words/figures.ts";
import { shownKey } from "../../parts/words/key-status.tsx";

const shownNames = 8;

/** Returns `ask`, which opens the question, and the dialog that the page renders. `done` is called after the last key. */
export function useRevokeKeys(done: () => void) {
  const client = useQueryClient();
  const {
    ask,
    about: keys = [],
    dialog,
  } = useQuestion(
    async (chosen: readonly ApiKey[]) => {
      try {
        // After a failure the confirmation can be repeated: the server accepts a key that is revoked already.
        for (const { id } of chosen) await call("DELETE", `/v1/keys/${id}`);
      } finally {
        void client.resetQueries({ queryKey: ["/v1/keys"] });
      }
    },
    { said: (_, chosen) => `${counted(chosen.length, "key")} revoked.`, done },
  );
  const what = counted(keys.length, "key");
  const view = (
    <Confirm title={`Revoke ${what}?`} action={`Revoke ${what}`} {...dialog}>
      <Text size="sm" mb="xs">
        All new requests with these keys, and with access tokens made from them, are refused. Keys created by these keys
        are revoked as well. Running requests are completed. You cannot undo this.
      </Text>
      <List size="sm">
        {keys.slice(0, shownNames).map((key) => (
          <List.Item key={key.id}>
            {key.name} ({shownKey(key)})
          </List.Item>
        ))}
        {keys.length > shownNames && <List.Item>{count(keys.length - shownNames)} more</List.Item>}
      </List>
    </Confirm>
  );
  return { ask, view };
}
