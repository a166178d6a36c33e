// The dialog that changes a key's settings.

import { Button, Group, Stack } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useState } from "react";
import { nowSeconds } from "../../api/server-time.ts";
import { useSession } from "../../api/session.tsx";
import type { ApiKey } from "../../api/types.ts";
import { FormDialog } from "../../parts/editing/form-dialog.tsx";
import { useDraft } from "../../parts/editing/use-draft.ts";
import { Failure } from "../../parts/page/failure.tsx";
import { grantableScopes } from "../../parts/words/scopes.ts";
import { changesOf, draftOf, keyKind } from "./key-draft.ts";
import { KeyForm } from "./key-form.tsx";
import { useKeyChange } from "./use-key-change.ts";

interface EditKeyProps {
  record: ApiKey;
  opened: boolean;
  close(): void;
}

export function EditKey({ record, opened, close }: EditKeyProps) {
  return (
    <FormDialog opened={opened} close={close} title={`Edit “${record.name}”`}>
      <Form record={record} close={close} />
    </FormDialog>
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
  const { draft, errorOf, general, form, change, submit } = useDraft(keyKind, before, edit);
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
