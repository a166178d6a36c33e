// The dialog that replaces a key by a new one; the old key stays valid for some time.
import { Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useLocation } from "wouter";
import type { ApiKey, RotatedApiKey } from "../../api/types.ts";
import { Rotation } from "../../parts/secrets/rotation.tsx";
import { at } from "../../parts/words/figures.ts";
import { shownKey } from "../../parts/words/key-status.tsx";
import { NewKey } from "./new-key.tsx";

export function RotateKey({ record, opened, close }: { record: ApiKey; opened: boolean; close(): void }) {
  const client = useQueryClient();
  const [, navigate] = useLocation();
  return (
    <Rotation<RotatedApiKey>
      {...{ opened, close }}
      what="key"
      path={`/v1/keys/${record.id}`}
      action="rotate"
      title={`Rotate “${record.name}”`}
      titleOf={({ name }) => `The new key “${name}”`}
      about="You get a new key with the same name, permissions, expiration and limits. Keys created by the old key keep working and belong to the new key. A key can be rotated only once. Next time, rotate the new key."
      hint="Choose enough time to replace the key everywhere"
      isWide
      done={() => void client.resetQueries({ queryKey: ["/v1/keys"] })}
    >
      {(made, _leave, overlap) => (
        <NewKey created={made} done={() => navigate(`/settings/api-keys/${made.id}`)}>
          <Text size="sm">
            The old key, {shownKey(record)},{" "}
            {overlap === 0
              ? "no longer works."
              : `works until ${at(made.created_at + overlap)}. Replace the old key before then.`}
          </Text>
        </NewKey>
      )}
    </Rotation>
  );
}
