// One app: its settings, code examples, usage and actions.
import { Skeleton } from "@mantine/core";
import { PencilIcon, SyncIcon } from "@primer/octicons-react";
import { useState } from "react";
import { useRead } from "../../api/queries.ts";
import type { App } from "../../api/types.ts";
import { FormDialog } from "../../parts/editing/form-dialog.tsx";
import { Suspending } from "../../parts/editing/suspending.tsx";
import { BackLink } from "../../parts/page/back-link.tsx";
import { PlainButton } from "../../parts/page/buttons.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { Page } from "../../parts/page/page.tsx";
import { Section } from "../../parts/page/section.tsx";
import { UsageHistory } from "../../parts/usage/usage-history.tsx";
import { AppSettings } from "./app-settings.tsx";
import { AppSnippets } from "./app-snippets.tsx";
import { DeleteApp } from "./delete-app.tsx";
import { EditApp } from "./edit-app.tsx";
import { RotateSecret } from "./rotate-secret.tsx";

export function AppPage({ id }: { id: string }) {
  const { data: app, error, refetch } = useRead<App>(`/v1/apps/${id}`, {}, { everyMs: 60_000 });
  const [opened, setOpened] = useState<"edit" | "rotate">();
  const close = () => setOpened(undefined);
  const back = <BackLink href="/apps">All apps</BackLink>;
  if (!app) {
    return (
      <Page title="App" about={back}>
        {error ? (
          <Failure error={error} retry={refetch} />
        ) : (
          <Skeleton height={320} role="status" aria-label="Loading the app" />
        )}
      </Page>
    );
  }
  return (
    <Page
      title={app.name}
      about={back}
      actions={
        <>
          <PlainButton leftSection={<PencilIcon />} onClick={() => setOpened("edit")}>
            Edit
          </PlainButton>
          {app.type === "confidential" && (
            <PlainButton leftSection={<SyncIcon />} onClick={() => setOpened("rotate")}>
              Rotate secret
            </PlainButton>
          )}
          <Suspending
            {...{ path: `/v1/apps/${app.id}`, what: "app", name: app.name, isSuspended: app.status === "suspended" }}
            stale={[`/v1/apps/${app.id}`, "/v1/apps"]}
          />
          <DeleteApp app={app} />
        </>
      }
    >
      <AppSettings app={app} />
      <Section title="Sign a person in" about="Any OAuth 2.0 library works. These are its first steps.">
        <AppSnippets app={app} />
      </Section>
      <UsageHistory
        path={`/v1/apps/${app.id}/usage`}
        about="Usage through this app, in all accounts that allowed it."
        of="this app"
      />
      <FormDialog opened={opened === "edit"} close={close} title={`Edit “${app.name}”`}>
        <EditApp app={app} close={close} />
      </FormDialog>
      <RotateSecret app={app} opened={opened === "rotate"} close={close} />
    </Page>
  );
}
