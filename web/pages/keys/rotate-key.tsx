// The dialog that puts a new key in the place of an old one, which goes on for a while.
import { Button, Group, Modal, NativeSelect, Stack, Text } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation } from "wouter";
import { call } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import type { ApiKey, RotatedApiKey } from "../../api/types.ts";
import { Failure } from "../../parts/page/failure.tsx";
import { overlaps } from "../../parts/secrets/overlaps.ts";
import { at } from "../../parts/words/figures.ts";
import { shownKey } from "../../parts/words/key-status.tsx";
import { NewKey } from "./new-key.tsx";

interface RotateKeyProps {
  record: ApiKey;
  opened: boolean;
  close(): void;
}

export function RotateKey({ record, opened, close }: RotateKeyProps) {
  const client = useQueryClient();
  const [, navigate] = useLocation();
  const isNarrow = useMediaQuery("(max-width: 36em)");
  const [overlap, setOverlap] = useState("86400");
  const path = `/v1/keys/${record.id}`;
  const rotation = useChange(
    () => call<RotatedApiKey>("POST", `${path}/rotate`, { body: { overlap_seconds: Number(overlap) } }),
    { stale: [path], done: () => void client.resetQueries({ queryKey: ["/v1/keys"] }) },
  );
  const made = rotation.data;
  const leave = () => {
    // Whoever left while it is made would never see the new key.
    if (rotation.isPending) return;
    close();
  };
  const endsAt = made && made.created_at + Number(overlap);
  return (
    <Modal
      opened={opened}
      onClose={leave}
      onExitTransitionEnd={rotation.reset}
      title={made ? `The new key “${made.name}”` : `Rotate “${record.name}”`}
      size="44rem"
      fullScreen={(isNarrow && made !== undefined) ?? false}
      closeOnClickOutside={made === undefined}
      closeOnEscape={made === undefined}
      withCloseButton={made === undefined}
    >
      {made && endsAt !== undefined ? (
        <NewKey created={made} done={() => navigate(`/settings/api-keys/${made.id}`)}>
          <Text size="sm">
            The old key, {shownKey(record)},{" "}
            {overlap === "0" ? "works no more." : `works until ${at(endsAt)}: put the new one in its place by then.`}
          </Text>
        </NewKey>
      ) : (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            rotation.mutate(undefined);
          }}
        >
          <Stack>
            <Text size="sm">
              A new secret with the same name, permissions, expiration and limits. Keys that were made with the old one
              go on with the new one. A key can be rotated once; next time, rotate the new one.
            </Text>
            <NativeSelect
              label="The old key goes on working"
              description="Long enough to replace it wherever it is in use"
              value={overlap}
              onChange={(event) => setOverlap(event.currentTarget.value)}
              data={overlaps}
              data-autofocus
            />
            {rotation.error && <Failure error={rotation.error} />}
            <Group justify="end">
              <Button variant="default" onClick={leave} disabled={rotation.isPending}>
                Cancel
              </Button>
              <Button type="submit" loading={rotation.isPending}>
                Rotate the key
              </Button>
            </Group>
          </Stack>
        </form>
      )}
    </Modal>
  );
}
