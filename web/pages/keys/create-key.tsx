// The dialog that makes a key and then shows it, once.

import { Button, Group, NativeSelect, Stack, Text } from "@mantine/core";
import { type UseMutationResult, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { type ApiFailure, call, type Environment } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import { nowSeconds } from "../../api/server-time.ts";
import { useSession } from "../../api/session.tsx";
import type { CreatedApiKey, CreateKeyRequest } from "../../api/types.ts";
import { FormDialog } from "../../parts/editing/form-dialog.tsx";
import { useDraft } from "../../parts/editing/use-draft.ts";
import { Failure } from "../../parts/page/failure.tsx";
import { environmentChoices, environmentNames } from "../../parts/words/environments.ts";
import { grantableScopes } from "../../parts/words/scopes.ts";
import { createRequestOf, keyKind, newDraft } from "./key-draft.ts";
import { KeyForm } from "./key-form.tsx";
import { NewKey } from "./new-key.tsx";

interface CreateKeyProps {
  opened: boolean;
  close(): void;
}

export function CreateKey({ opened, close }: CreateKeyProps) {
  const client = useQueryClient();
  const { environment } = useSession();
  const creation = useChange(
    ({ body, where }: Wanted) =>
      call<CreatedApiKey>("POST", "/v1/keys", { body, headers: { "headrace-environment": where } }),
    // The new one comes first: of a long list only the beginning is asked for again.
    { done: () => void client.resetQueries({ queryKey: ["/v1/keys"] }) },
  );
  const created = creation.data;
  const leave = () => {
    // Whoever left while it is made would never see the key.
    if (creation.isPending) return;
    close();
  };
  return (
    <FormDialog
      opened={opened}
      close={leave}
      closed={creation.reset}
      title={created ? `The key “${created.name}”` : "Create New Key"}
      isLocked={created !== undefined}
    >
      {created ? (
        <NewKey created={created} done={leave}>
          {created.environment !== environment && (
            <Text size="sm">
              The key belongs to {environmentNames[created.environment]}. To see it in the list, choose that environment
              at the top of the page.
            </Text>
          )}
        </NewKey>
      ) : (
        <Form creation={creation} close={leave} />
      )}
    </FormDialog>
  );
}

interface Wanted {
  body: CreateKeyRequest;
  where: Environment;
}

interface FormProps {
  creation: Pick<UseMutationResult<CreatedApiKey, ApiFailure, Wanted>, "mutate" | "error" | "isPending" | "reset">;
  close(): void;
}

function Form({ creation, close }: FormProps) {
  const { session, environment: here, environments, isManager } = useSession();
  const [environment, setEnvironment] = useState<Environment>(here);
  const grantable = grantableScopes(session.scopes, isManager);
  const { draft, errorOf, general, form, change, submit } = useDraft(keyKind, newDraft(grantable), creation);
  return (
    <form
      ref={form}
      onSubmit={submit((wanted) =>
        creation.mutate({ body: createRequestOf(wanted, nowSeconds()), where: environment }),
      )}
      noValidate
    >
      <Stack gap="lg">
        <KeyForm {...{ draft, errorOf, change, grantable }}>
          <NativeSelect
            label="Environment"
            description="Usage, limits and stored chats are kept apart for each"
            value={environment}
            onChange={(event) => setEnvironment(event.currentTarget.value as Environment)}
            data={environmentChoices(environments)}
          />
        </KeyForm>
        {general && <Failure error={general} />}
        <Group justify="end">
          <Button variant="default" onClick={close} disabled={creation.isPending}>
            Cancel
          </Button>
          <Button type="submit" loading={creation.isPending}>
            Create key
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
