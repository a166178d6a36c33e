// The form that changes an app's settings.
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../../api/client.ts";
import type { App, UpdateAppRequest } from "../../api/types.ts";
import { Form } from "../../parts/editing/form.tsx";
import { useNotifiedChange } from "../../parts/editing/notified-change.ts";
import { useDraft } from "../../parts/editing/use-draft.ts";
import { Note } from "../../parts/words/note.tsx";
import { appKind, changesOf, draftOf } from "./app-draft.ts";
import { AppFields } from "./app-fields.tsx";

export function EditApp({ app, close }: { app: App; close(): void }) {
  const client = useQueryClient();
  const path = `/v1/apps/${app.id}`;
  // The app as it was when editing began, even if it is read again meanwhile.
  const [before] = useState(() => draftOf(app));
  const edit = useNotifiedChange((body: UpdateAppRequest) => call<App>("PATCH", path, { body }), {
    stale: ["/v1/authorizations"],
    said: ({ name }) => `The app “${name}” was changed.`,
    done(changed) {
      client.setQueryData([path, {}], changed);
      void client.resetQueries({ queryKey: ["/v1/apps"] });
      close();
    },
  });
  const { draft, errorOf, form, change, submit } = useDraft(appKind, before, edit);
  const isWider = draft.scopes.some((scope) => !before.scopes.includes(scope));
  const save = submit((wanted) => {
    const changes = changesOf(wanted, before);
    if (Object.keys(changes).length === 0) close();
    else edit.mutate(changes);
  });
  return (
    <Form {...form} gap="lg" action="Save" submit={save} cancel={close}>
      <AppFields draft={draft} change={change} errorOf={errorOf} isNew={false} />
      <Note aria-live="polite">
        {isWider
          ? "People must allow the permissions that you add. Until then the app keeps the permissions that they allowed."
          : "Permissions that you remove no longer appear in new access tokens."}
      </Note>
    </Form>
  );
}
