// The dialog that registers an app and then shows its id and secret, once.
import { useQueryClient } from "@tanstack/react-query";
import { useLocation } from "wouter";
import { call } from "../../api/client.ts";
import { type Change, useChange } from "../../api/queries.ts";
import { useSession } from "../../api/session.tsx";
import type { CreateAppRequest, CreatedApp } from "../../api/types.ts";
import { Form } from "../../parts/editing/form.tsx";
import { useDraft } from "../../parts/editing/use-draft.ts";
import { MakingDialog } from "../../parts/secrets/making-dialog.tsx";
import { environmentNames } from "../../parts/words/environments.ts";
import { Note } from "../../parts/words/note.tsx";
import { appKind, createRequestOf, newDraft } from "./app-draft.ts";
import { AppFields } from "./app-fields.tsx";
import { NewApp } from "./new-app.tsx";

export function CreateApp({ opened, close }: { opened: boolean; close(): void }) {
  const client = useQueryClient();
  const [, navigate] = useLocation();
  const creation = useChange((body: CreateAppRequest) => call<CreatedApp>("POST", "/v1/apps", { body }), {
    // The new app is first in the list, so only the list's first page is loaded again.
    done: () => void client.resetQueries({ queryKey: ["/v1/apps"] }),
  });
  return (
    <MakingDialog
      {...{ opened, close }}
      making={creation}
      title="Register an app"
      titleOf={({ name }) => `The app “${name}”`}
      form={(leave) => <AppForm creation={creation} close={leave} />}
      isLong
    >
      {(created) => <NewApp app={created} done={() => navigate(`/apps/${created.id}`)} />}
    </MakingDialog>
  );
}

interface AppFormProps {
  creation: Change<CreateAppRequest, CreatedApp>;
  close(): void;
}

function AppForm({ creation, close }: AppFormProps) {
  const { environment, session } = useSession();
  const { draft, errorOf, form, change, submit } = useDraft(appKind, newDraft, creation);
  const register = submit((wanted) => creation.mutate(createRequestOf(wanted)));
  return (
    <Form {...form} gap="lg" action="Register app" submit={register} cancel={close} isHeld>
      <AppFields draft={draft} change={change} errorOf={errorOf} isNew />
      <Note>
        People see {session.account.name} as the publisher. The app works in {environmentNames[environment]}, which is
        chosen at the top of the page.
      </Note>
    </Form>
  );
}
