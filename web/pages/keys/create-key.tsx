// The dialog that makes a key and then shows it, once.
import { Button, Group, Modal, NativeSelect, Stack, Text } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { call, type Environment } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import { useSession } from "../../api/session.tsx";
import type { CreatedApiKey, CreateKeyRequest } from "../../api/types.ts";
import { Failure } from "../../parts/failure.tsx";
import { environmentNames } from "../../shell/environment-menu.tsx";
import { createRequestOf, newDraft } from "./key-draft.ts";
import { KeyForm } from "./key-form.tsx";
import { NewKey } from "./new-key.tsx";
import { grantableScopes } from "./scopes.ts";
import { useKeyDraft } from "./use-key-draft.ts";

interface CreateKeyProps {
  opened: boolean;
  close(): void;
}

export function CreateKey({ opened, close }: CreateKeyProps) {
  const { environment } = useSession();
  const isNarrow = useMediaQuery("(max-width: 36em)");
  const [created, setCreated] = useState<CreatedApiKey>();
  const leave = () => {
    setCreated(undefined);
    close();
  };
  return (
    <Modal
      opened={opened}
      onClose={leave}
      title={created ? `The key “${created.name}”` : "Create New Key"}
      size="44rem"
      fullScreen={isNarrow ?? false}
      // What was written, and a key that nobody can show again, are not lost by a click beside them.
      closeOnClickOutside={false}
      closeOnEscape={created === undefined}
      withCloseButton={created === undefined}
      closeButtonProps={{ "aria-label": "Close" }}
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
        <Form created={setCreated} close={leave} />
      )}
    </Modal>
  );
}

interface FormProps {
  created(key: CreatedApiKey): void;
  close(): void;
}

function Form({ created, close }: FormProps) {
  const client = useQueryClient();
  const { session, environment: here, environments, isManager } = useSession();
  const [environment, setEnvironment] = useState<Environment>(here);
  const grantable = grantableScopes(session.scopes, isManager);
  const creation = useChange(
    (body: CreateKeyRequest) =>
      call<CreatedApiKey>("POST", "/v1/keys", { body, headers: { "headrace-environment": environment } }),
    {
      done(key) {
        // The new one comes first: of a long list only the beginning is asked for again.
        void client.resetQueries({ queryKey: ["/v1/keys"] });
        created(key);
      },
    },
  );
  const { draft, errorOf, general, form, change, submit } = useKeyDraft(newDraft(grantable), creation.error);
  return (
    <form
      ref={form}
      onSubmit={submit((wanted) => creation.mutate(createRequestOf(wanted, Date.now() / 1000)))}
      noValidate
    >
      <Stack gap="lg">
        <KeyForm {...{ draft, errorOf, change, grantable }}>
          <NativeSelect
            label="Environment"
            description="Each is a world of its own"
            value={environment}
            onChange={(event) => setEnvironment(event.currentTarget.value as Environment)}
            data={environments.map((value) => ({ value, label: environmentNames[value] }))}
          />
        </KeyForm>
        {general && <Failure error={general} />}
        <Group justify="end">
          <Button variant="default" onClick={close}>
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
