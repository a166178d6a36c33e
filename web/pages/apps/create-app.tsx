// The dialog that registers an app and then shows its id and secret, once.

import { Button, Group, Stack, Text } from "@mantine/core";
import { type UseMutationResult, useQueryClient } from "@tanstack/react-query";
import { useLocation } from "wouter";
import { type ApiFailure, call } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import { useSession } from "../../api/session.tsx";
import type { CreateAppRequest, CreatedApp } from "../../api/types.ts";
import { FormDialog } from "../../parts/editing/form-dialog.tsx";
import { useDraft } from "../../parts/editing/use-draft.ts";
import { Failure } from "../../parts/page/failure.tsx";
import { environmentNames } from "../../parts/words/environments.ts";
import { appKind, createRequestOf, newDraft } from "./app-draft.ts";
import { AppForm } from "./app-form.tsx";
import { NewApp } from "./new-app.tsx";

interface CreateAppProps {
  opened: boolean;
  close(): void;
}

export function CreateApp({ opened, close }: CreateAppProps) {
  const client = useQueryClient();
  const [, navigate] = useLocation();
  const creation = useChange((body: CreateAppRequest) => call<CreatedApp>("POST", "/v1/apps", { body }), {
    // The new one comes first: of a long list only the beginning is asked for again.
    done: () => void client.resetQueries({ queryKey: ["/v1/apps"] }),
  });
  const created = creation.data;
  const leave = () => {
    // Whoever left while it is registered would never see its secret.
    if (creation.isPending) return;
    close();
  };
  return (
    <FormDialog
      opened={opened}
      close={leave}
      closed={creation.reset}
      title={created ? `The app “${created.name}”` : "Register an app"}
      isLocked={created !== undefined}
    >
      {created ? (
        <NewApp app={created} done={() => navigate(`/apps/${created.id}`)} />
      ) : (
        <Form creation={creation} close={leave} />
      )}
    </FormDialog>
  );
}

interface FormProps {
  creation: UseMutationResult<CreatedApp, ApiFailure, CreateAppRequest>;
  close(): void;
}

function Form({ creation, close }: FormProps) {
  const { environment, session } = useSession();
  const { draft, errorOf, general, form, change, submit } = useDraft(appKind, newDraft, creation);
  return (
    <form ref={form} onSubmit={submit((wanted) => creation.mutate(createRequestOf(wanted)))} noValidate>
      <Stack gap="lg">
        <AppForm draft={draft} change={change} errorOf={errorOf} isNew />
        <Text size="sm" c="dimmed">
          People see {session.account.name} as its publisher. Its access works in {environmentNames[environment]}, which
          is chosen at the top of the page.
        </Text>
        {general && <Failure error={general} />}
        <Group justify="end">
          <Button variant="default" onClick={close} disabled={creation.isPending}>
            Cancel
          </Button>
          <Button type="submit" loading={creation.isPending}>
            Register app
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
