// The dialog that changes a key's settings.

import { Button, Group, Modal, Stack } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { notifications } from "@mantine/notifications";
import { useState } from "react";
import { nowSeconds } from "../../api/server-time.ts";
import { useSession } from "../../api/session.tsx";
import type { ApiKey } from "../../api/types.ts";
import { Failure } from "../../parts/failure.tsx";
import { grantableScopes } from "../../parts/scopes.ts";
import { changesOf, draftOf } from "./key-draft.ts";
import { KeyForm } from "./key-form.tsx";
import { useKeyChange } from "./use-key-change.ts";
import { useKeyDraft } from "./use-key-draft.ts";

interface EditKeyProps {
  record: ApiKey;
  opened: boolean;
  close(): void;
}

export function EditKey({ record, opened, close }: EditKeyProps) {
  const isNarrow = useMediaQuery("(max-width: 36em)");
  return (
    <Modal
      opened={opened}
      onClose={close}
      title={`Edit “${record.name}”`}
      size="44rem"
      fullScreen={isNarrow ?? false}
      closeOnClickOutside={false}
    >
      <Form record={record} close={close} />
    </Modal>
  );
}

function Form({ record, close }: Omit<EditKeyProps, "opened">) {
  const { session, isManager } = useSession();
  // What the fields began with, even where the key is read again meanwhile.
  const [before] = useState(() => draftOf(record));
  const edit = useKeyChange("PATCH", record.id, () => {
    notifications.show({ message: `The key “${record.name}” is changed.` });
    close();
  });
  const { draft, errorOf, general, form, change, submit } = useKeyDraft(before, edit.error);
  return (
    <form
      ref={form}
      onSubmit={submit((wanted) => {
        const changes = changesOf(wanted, before, nowSeconds());
        if (Object.keys(changes).length === 0) close();
        else edit.mutate(changes);
      })}
      noValidate
    >
      <Stack gap="lg">
        <KeyForm {...{ draft, errorOf, change }} grantable={grantableScopes(session.scopes, isManager)} />
        {general && <Failure error={general} />}
        <Group justify="end">
          <Button variant="default" onClick={close}>
            Cancel
          </Button>
          <Button type="submit" loading={edit.isPending}>
            Save
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
