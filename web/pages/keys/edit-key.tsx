// The form that changes a key's settings.
import { useState } from "react";
import { nowSeconds } from "../../api/server-time.ts";
import { useSession } from "../../api/session.tsx";
import type { ApiKeyDetails } from "../../api/types.ts";
import { Form } from "../../parts/editing/form.tsx";
import { useDraft } from "../../parts/editing/use-draft.ts";
import { grantableScopes } from "../../parts/words/scopes.ts";
import { changesOf, draftOf, keyKind } from "./key-draft.ts";
import { KeyFields } from "./key-fields.tsx";
import { useKeyChange } from "./use-key-change.ts";

export function EditKey({ record, close }: { record: ApiKeyDetails; close(): void }) {
  const { session, isManager } = useSession();
  // The key as it was when editing began, even if it is read again meanwhile.
  const [before] = useState(() => draftOf(record));
  const edit = useKeyChange("PATCH", record, "changed", close);
  const { draft, errorOf, form, change, submit } = useDraft(keyKind, before, edit);
  const save = submit((wanted) => {
    const changes = changesOf(wanted, before, nowSeconds());
    if (Object.keys(changes).length === 0) close();
    else edit.mutate(changes);
  });
  return (
    <Form {...form} gap="lg" action="Save" submit={save} cancel={close}>
      <KeyFields
        {...{ draft, errorOf, change }}
        grantable={grantableScopes(session.scopes, isManager)}
        used={record.quotas_used}
      />
    </Form>
  );
}
