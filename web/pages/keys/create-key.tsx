// The dialog that creates a key and then shows it once.
import { NativeSelect, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { call, type Environment } from "../../api/client.ts";
import { type Change, useChange } from "../../api/queries.ts";
import { nowSeconds } from "../../api/server-time.ts";
import { useSession } from "../../api/session.tsx";
import type { CreatedApiKey, CreateKeyRequest } from "../../api/types.ts";
import { Form } from "../../parts/editing/form.tsx";
import { useDraft } from "../../parts/editing/use-draft.ts";
import { MakingDialog } from "../../parts/secrets/making-dialog.tsx";
import { environmentChoices, environmentNames } from "../../parts/words/environments.ts";
import { grantableScopes } from "../../parts/words/scopes.ts";
import { createRequestOf, keyKind, newDraft } from "./key-draft.ts";
import { KeyFields } from "./key-fields.tsx";
import { NewKey } from "./new-key.tsx";

export function CreateKey({ opened, close }: { opened: boolean; close(): void }) {
  const client = useQueryClient();
  const { environment } = useSession();
  const creation = useChange(
    ({ body, where }: Wanted) =>
      call<CreatedApiKey>("POST", "/v1/keys", { body, headers: { "headrace-environment": where } }),
    // The new key is first in the list, so only the list's first page is loaded again.
    { done: () => void client.resetQueries({ queryKey: ["/v1/keys"] }) },
  );
  return (
    <MakingDialog
      {...{ opened, close }}
      making={creation}
      title="Create API key"
      titleOf={({ name }) => `The key “${name}”`}
      form={(leave) => <KeyForm creation={creation} close={leave} />}
      isLong
    >
      {(created, leave) => (
        <NewKey created={created} done={leave}>
          {created.environment !== environment && (
            <Text size="sm">
              The key belongs to {environmentNames[created.environment]}. To see the key in the list, choose that
              environment at the top of the page.
            </Text>
          )}
        </NewKey>
      )}
    </MakingDialog>
  );
}

interface Wanted {
  body: CreateKeyRequest;
  where: Environment;
}

interface KeyFormProps {
  creation: Change<Wanted, CreatedApiKey>;
  close(): void;
}

function KeyForm({ creation, close }: KeyFormProps) {
  const { session, environment: here, environments, isManager } = useSession();
  const [environment, setEnvironment] = useState<Environment>(here);
  const grantable = grantableScopes(session.scopes, isManager);
  const { draft, errorOf, form, change, submit } = useDraft(keyKind, newDraft(grantable), creation);
  return (
    <Form
      {...form}
      gap="lg"
      action="Create key"
      submit={submit((wanted) => creation.mutate({ body: createRequestOf(wanted, nowSeconds()), where: environment }))}
      cancel={close}
      isHeld
    >
      <KeyFields {...{ draft, errorOf, change, grantable }}>
        <NativeSelect
          label="Environment"
          description="Each environment has its own usage, limits and stored chats"
          value={environment}
          onChange={(event) => setEnvironment(event.currentTarget.value as Environment)}
          data={environmentChoices(environments)}
        />
      </KeyFields>
    </Form>
  );
}
