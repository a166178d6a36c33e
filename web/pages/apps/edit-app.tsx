// The dialog that changes an app's settings.
import { Button, Group, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import type { App, UpdateAppRequest } from "../../api/types.ts";
import { FormDialog } from "../../parts/editing/form-dialog.tsx";
import { useDraft } from "../../parts/editing/use-draft.ts";
import { Failure } from "../../parts/page/failure.tsx";
import { appKind, changesOf, draftOf } from "./app-draft.ts";
import { AppForm } from "./app-form.tsx";

interface EditAppProps {
  app: App;
  opened: boolean;
  close(): void;
}

export function EditApp({ app, opened, close }: EditAppProps) {
  return (
    <FormDialog opened={opened} close={close} title={`Edit “${app.name}”`}>
      <Form app={app} close={close} />
    </FormDialog>
  );
}

function Form({ app, close }: Omit<EditAppProps, "opened">) {
  const client = useQueryClient();
  const path = `/v1/apps/${app.id}`;
  // What the fields began with, even where the app is read again meanwhile.
  const [before] = useState(() => draftOf(app));
  const edit = useChange((body: UpdateAppRequest) => call<App>("PATCH", path, { body }), {
    stale: ["/v1/authorizations"],
    done(changed) {
      client.setQueryData([path, {}], changed);
      void client.resetQueries({ queryKey: ["/v1/apps"] });
      notifications.show({ message: `The app “${changed.name}” is changed.` });
      close();
    },
  });
  const { draft, errorOf, general, form, change, submit } = useDraft(appKind, before, edit);
  const isWider = draft.scopes.some((scope) => !before.scopes.includes(scope));
  return (
    <form
      ref={form}
      onSubmit={submit((wanted) => {
        const changes = changesOf(wanted, before);
        if (Object.keys(changes).length === 0) close();
        else edit.mutate(changes);
      })}
      noValidate
    >
      <Stack gap="lg">
        <AppForm draft={draft} change={change} errorOf={errorOf} isNew={false} />
        <Text size="sm" c="dimmed" aria-live="polite">
          {isWider
            ? "What you add, people have to allow anew; until then the app goes on with what they allowed."
            : "What you take away is in no access token from then on."}
        </Text>
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
